//! Profiles the work of one device: hands out encoders, and records the results that arrive.

use super::Capability;
use super::encoder::Encoder;
use super::inner::Inner;
use super::scope::Scopes;
use crate::kernel_profile::{self, Profile, ProfileHandle};
use ::wgpu::{
    CommandEncoder, CommandEncoderDescriptor, ComputePipeline, ComputePipelineDescriptor, Device,
    Features, PollType, Queue,
};
use std::sync::Arc;

/// A profiler of the work of one device. Clones share their state. See [the module](super).
///
/// ```no_run
/// use gapscope_sdk::wgpu::Profiler;
///
/// # fn example(device: &wgpu::Device, queue: &wgpu::Queue) {
/// let profiler = Profiler::new(device, queue);
/// queue.submit([profiler.encoder("forward").finish()]);
/// profiler.harvest();
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Profiler(pub(super) Arc<Inner>);

impl Profiler {
    /// Returns the features of the adapter to request when the device is created.
    ///
    /// ```
    /// use gapscope_sdk::wgpu::Profiler;
    /// use wgpu::Features;
    ///
    /// let has = Features::TIMESTAMP_QUERY | Features::SHADER_F16;
    /// assert_eq!(Profiler::wanted_features(has), Features::TIMESTAMP_QUERY);
    /// ```
    pub fn wanted_features(of_adapter: Features) -> Features {
        of_adapter
            & (Features::TIMESTAMP_QUERY
                | Features::TIMESTAMP_QUERY_INSIDE_ENCODERS
                | Features::TIMESTAMP_QUERY_INSIDE_PASSES)
    }

    /// Creates a profiler that records into the process's own profile ([`kernel_profile::global`]).
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// let profiler = gapscope_sdk::wgpu::Profiler::new(device, queue);
    /// # }
    /// ```
    pub fn new(device: &Device, queue: &Queue) -> Profiler {
        Profiler::all(device, queue, kernel_profile::global().into())
    }

    /// Creates a profiler that records into `profile`.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// use gapscope_sdk::{kernel_profile::Profile, wgpu::Profiler};
    ///
    /// let profiler = Profiler::with_profile(device, queue, Profile::new().into());
    /// # }
    /// ```
    pub fn with_profile(device: &Device, queue: &Queue, profile: Arc<Profile>) -> Profiler {
        Profiler::all(device, queue, profile.into())
    }

    /// Limits the detail to `most` if the device leaves the choice.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// use gapscope_sdk::wgpu::{Capability, Profiler};
    ///
    /// let profiler = Profiler::new(device, queue).at_most(Capability::CommandBuffers);
    /// # }
    /// ```
    #[must_use]
    pub fn at_most(&self, most: Capability) -> Profiler {
        Profiler(self.0.at_most(most))
    }

    /// Creates a profiler of all that the device can time.
    fn all(device: &Device, queue: &Queue, profile: ProfileHandle) -> Profiler {
        let period_ns = f64::from(queue.get_timestamp_period());
        Profiler(Inner::new(device.clone(), period_ns, profile))
    }

    /// Returns the capability of the device.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// if profiler.capability() > gapscope_sdk::wgpu::Capability::Dispatches {
    ///     eprintln!("{}", profiler.capability_note());
    /// }
    /// # }
    /// ```
    pub fn capability(&self) -> Capability {
        self.0.capability
    }

    /// Returns a sentence about the source of times and the reason why no more is timed; every result shows it.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// eprintln!("{}", profiler.capability_note());
    /// # }
    /// ```
    pub fn capability_note(&self) -> &'static str {
        self.0.sentence()
    }

    /// Returns the profile that the times go to.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// print!("{}", profiler.profile().snapshot());
    /// # }
    /// ```
    pub fn profile(&self) -> &Profile {
        self.0.profile()
    }

    /// Creates a command encoder whose compute passes are timed; `label` is that of its command buffer.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// let encoder = profiler.encoder("forward"); // was: device.create_command_encoder(…)
    /// # }
    /// ```
    pub fn encoder(&self, label: &str) -> Encoder {
        let described = CommandEncoderDescriptor {
            label: (!label.is_empty()).then_some(label),
        };
        self.wrap(self.0.device.create_command_encoder(&described), label)
    }

    /// Switches timing off or on again, for this profiler, its clones and those that [`Self::at_most`] made of it.
    /// Encoders and scopes that are made while it is off encode nothing of gapscope's and are not listed; those that
    /// exist stay as they are.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler) {
    /// profiler.set_enabled(false);
    /// # }
    /// ```
    pub fn set_enabled(&self, enabled: bool) {
        self.0.set_enabled(enabled);
    }

    /// Returns true while timing is on, as at first.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler) {
    /// assert!(profiler.is_enabled());
    /// # }
    /// ```
    pub fn is_enabled(&self) -> bool {
        self.0.is_enabled()
    }

    /// Begins to time parts of wgpu's own encoders and passes, such as those of a frame; `label` is that of the whole.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// let mut encoder = device.create_command_encoder(&Default::default());
    /// let scopes = profiler.scopes("frame");
    /// {
    ///     let mut shadows = scopes.scope("shadows", &mut encoder);
    ///     let mut pass = shadows.compute_pass(&wgpu::ComputePassDescriptor {
    ///         label: Some("blur"),
    ///         timestamp_writes: None,
    ///     });
    ///     pass.dispatch_workgroups(64, 1, 1); // wgpu's own pass
    /// }
    /// scopes.resolve(&mut encoder);
    /// queue.submit([encoder.finish()]);
    /// # }
    /// ```
    pub fn scopes(&self, label: &str) -> Scopes {
        self.harvest();
        Scopes::begin(&self.0, label)
    }

    /// Times the compute passes of an encoder of the program. Commands that it already holds are not timed on their
    /// own.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// let encoder = device.create_command_encoder(&Default::default());
    /// let mut encoder = profiler.wrap(encoder, "forward");
    /// # }
    /// ```
    pub fn wrap(&self, encoder: CommandEncoder, label: &str) -> Encoder {
        self.harvest();
        Encoder::around(&self.0, encoder, label)
    }

    /// Creates a compute pipeline and remembers its name for its dispatches: its label, or else its entry point.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue, descriptor: &wgpu::ComputePipelineDescriptor<'_>) {
    /// let pipeline = profiler.create_compute_pipeline(descriptor); // was: device.create_compute_pipeline(…)
    /// # }
    /// ```
    pub fn create_compute_pipeline(
        &self,
        pipeline: &ComputePipelineDescriptor<'_>,
    ) -> ComputePipeline {
        let made = self.0.device.create_compute_pipeline(pipeline);
        if let Some(name) = pipeline.label.or(pipeline.entry_point) {
            self.name_pipeline(&made, name);
        }
        made
    }

    /// Names the dispatches of a pipeline that was created elsewhere.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue, pipeline: &wgpu::ComputePipeline) {
    /// profiler.name_pipeline(pipeline, "softmax");
    /// # }
    /// ```
    pub fn name_pipeline(&self, pipeline: &ComputePipeline, name: &str) {
        self.0.name_pipeline(pipeline, name);
    }

    /// Records the results that have arrived, and returns the number of command buffers. Nothing is waited for:
    /// results arrive while the program submits to its device or polls it. New encoders and everything that shows the
    /// profile do this, too.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// let command_buffers = profiler.harvest();
    /// # }
    /// ```
    pub fn harvest(&self) -> usize {
        self.0.record_all_arrived()
    }

    /// Waits until everything that was submitted has finished, and records it.
    ///
    /// # Errors
    /// The error of wgpu; results that have arrived are recorded.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// profiler.wait().expect("the device is there");
    /// # }
    /// ```
    pub fn wait(&self) -> Result<usize, ::wgpu::PollError> {
        let polled = self.0.device.poll(PollType::wait_indefinitely());
        let harvested = self.harvest();
        polled.map(|_| harvested)
    }
}

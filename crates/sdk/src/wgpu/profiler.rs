//! Profiles the work of one device.

use super::Capability;
use super::batch::Batch;
use super::chunk::{Chunk, MAX_CHUNKS};
use super::clock::DeviceClock;
use super::encoder::Encoder;
use crate::kernel_profile::{self, DeviceInfo, Profile, ProfileHandle};
use ::wgpu::{
    CommandEncoder, CommandEncoderDescriptor, ComputePipeline, ComputePipelineDescriptor, Device,
    Features, PollType, Queue,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLock};

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

#[derive(Debug)]
pub(super) struct Inner {
    device: Device,
    pub capability: Capability,
    /// Timestamps may be written between passes.
    encoders: bool,
    /// The nanoseconds of a tick.
    pub period_ns: f64,
    profile: ProfileHandle,
    /// Guards the note about the source of times, which is added once.
    said: Once,
    pool: Mutex<Pool>,
    arrived: Mutex<Vec<ArrivedBatch>>,
    pub clock: Mutex<DeviceClock>,
    names: Arc<RwLock<Names>>,
}

/// A batch whose results have arrived.
#[derive(Debug)]
struct ArrivedBatch {
    batch: Batch,
    seen_ns: u64,
}

/// The names of pipelines.
type Names = HashMap<ComputePipeline, Arc<str>>;

#[derive(Debug, Default)]
struct Pool {
    free: Vec<Chunk>,
    made: u32,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
        let inner = &self.0;
        let (profile, names) = (inner.profile.clone(), Arc::clone(&inner.names));
        Profiler::make(&inner.device, inner.period_ns, profile, most, names)
    }

    fn all(device: &Device, queue: &Queue, profile: ProfileHandle) -> Profiler {
        let period_ns = f64::from(queue.get_timestamp_period());
        let most = Capability::Dispatches;
        Profiler::make(device, period_ns, profile, most, Arc::default())
    }

    fn make(
        device: &Device,
        period_ns: f64,
        profile: ProfileHandle,
        most: Capability,
        names: Arc<RwLock<Names>>,
    ) -> Profiler {
        let features = device.features();
        Profiler(Arc::new(Inner {
            device: device.clone(),
            capability: Capability::choose(features, most),
            encoders: features.contains(Features::TIMESTAMP_QUERY_INSIDE_ENCODERS),
            period_ns,
            profile,
            said: Once::new(),
            pool: Mutex::default(),
            arrived: Mutex::default(),
            clock: Mutex::default(),
            names,
        }))
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
        self.0.capability.sentence(self.0.times_encoders())
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
        self.0.say();
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
        let mut names = self.0.names.write().unwrap_or_else(PoisonError::into_inner);
        names.insert(pipeline.clone(), Arc::from(name));
    }

    /// Records the results that have arrived, and returns the number of command buffers. Nothing is waited for:
    /// results arrive while the program submits to its device or polls it.
    ///
    /// ```no_run
    /// # fn example(profiler: &gapscope_sdk::wgpu::Profiler, device: &wgpu::Device, queue: &wgpu::Queue) {
    /// let command_buffers = profiler.harvest();
    /// # }
    /// ```
    pub fn harvest(&self) -> usize {
        let arrived = std::mem::take(&mut *lock(&self.0.arrived));
        let count = arrived.len();
        for ArrivedBatch { batch, seen_ns } in arrived {
            self.0.record_arrived(batch, seen_ns);
        }
        count
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

impl Inner {
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns true if a command buffer is timed by timestamps of its own.
    pub fn times_encoders(&self) -> bool {
        self.encoders && self.capability != Capability::Nothing
    }

    /// Returns true if passes and dispatches are listed and not only counted.
    pub fn lists_work(&self) -> bool {
        self.capability <= Capability::Passes
    }

    /// Notes the source of times once, before the first result.
    fn say(&self) {
        self.said.call_once(|| {
            let profile = self.profile();
            let info = self.device.adapter_info();
            profile.set_sampling(self.capability.sampling());
            profile.set_device(DeviceInfo {
                api: info.backend.to_string(),
                name: info.name,
                driver: format!("{} {}", info.driver, info.driver_info)
                    .trim()
                    .to_owned(),
            });
            profile.note(self.capability.sentence(self.times_encoders()));
            profile.note("A command buffer is taken to be submitted when its encoder is finished: wgpu does not say when it is.");
        });
    }

    pub fn name_of(&self, pipeline: &ComputePipeline) -> Option<Arc<str>> {
        let names = self.names.read().unwrap_or_else(PoisonError::into_inner);
        names.get(pipeline).cloned()
    }

    /// Takes a chunk for timestamps.
    pub fn take_chunk(&self) -> Option<Chunk> {
        let mut pool = lock(&self.pool);
        if let Some(chunk) = pool.free.pop() {
            return Some(chunk);
        }
        if pool.made >= MAX_CHUNKS {
            return None;
        }
        let chunk = Chunk::new(&self.device)?;
        pool.made += 1;
        Some(chunk)
    }

    /// Returns chunks whose results were read.
    pub fn give_back(&self, chunks: Vec<Chunk>) {
        let free = chunks.into_iter().map(Chunk::emptied);
        lock(&self.pool).free.extend(free);
    }

    /// Drops chunks that cannot be used again, because it is unknown whether they are still mapped.
    pub fn give_up(&self, chunks: Vec<Chunk>) {
        lock(&self.pool).made -= chunks.len() as u32;
    }

    /// Records that all results of a batch are mapped.
    pub fn arrived(&self, batch: Batch, seen_ns: u64) {
        lock(&self.arrived).push(ArrivedBatch { batch, seen_ns });
    }
}

//! Metal devices and queues whose work is timed. A device chooses what it times ([`Ladder`]: dispatches, passes or
//! command buffers), a queue gives out command buffers, and these add their times to the device's profile.

use super::counters::AppleCounters;
use super::{CommandBuffer, MetalError};
use crate::kernel_profile::DeviceInfo;
use crate::metal::{
    AppleCaptureManager, Batch, Ladder, MetalCapture, Object, ProfileHandle, Sources, Wanted,
    is_debug,
};
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{MTLCommandQueue, MTLCreateSystemDefaultDevice, MTLDevice, MTLLibrary};
use std::sync::Arc;

// A program that is not linked against it gets no default device (Apple's documentation of
// `MTLCreateSystemDefaultDevice`, and objc2-metal's).
#[cfg(target_os = "macos")]
#[link(name = "CoreGraphics", kind = "framework")]
unsafe extern "C" {}

/// A Metal device whose work is timed.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use gapscope_sdk::kernel_profile;
/// use gapscope_sdk::metal::{Device, Dispatch, Wanted};
///
/// let device = Device::system_default(Wanted::from_env(), kernel_profile::global()).ok_or("no Metal")?;
/// let queue = device.queue("Stream 0")?;
/// let mut commands = queue.command_buffer()?;
/// let mut pass = commands.compute_pass("layer 3")?;
/// pass.dispatch(Dispatch { kernel: "softmax".into(), ..Dispatch::default() }, |encoder| {
///     // set the pipeline and the buffers, and dispatch
/// })?;
/// pass.end();
/// commands.commit_and_wait_labeled("layer 3")?;
/// println!("{}", kernel_profile::global().snapshot());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Device {
    raw: Retained<ProtocolObject<dyn MTLDevice>>,
    counters: Arc<AppleCounters>,
    ladder: Ladder,
    profile: ProfileHandle,
    sources: Arc<Sources>,
    /// Kernels get debug groups, and their sources are kept.
    debug: bool,
}

impl Device {
    /// Returns the system's default device; `None` if there is none.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let device = Device::system_default(Wanted::Passes, gapscope_sdk::kernel_profile::global());
    /// # Ok(())
    /// # }
    /// ```
    pub fn system_default(wanted: Wanted, profile: impl Into<ProfileHandle>) -> Option<Device> {
        MTLCreateSystemDefaultDevice().map(|raw| Device::new(raw, wanted, profile))
    }

    /// Wraps a device of the program. Its sampling points are read once; [`Self::ladder`] returns the resulting way
    /// of timing.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// if let Some(raw) = objc2_metal::MTLCreateSystemDefaultDevice() {
    ///     let device = Device::new(raw, Wanted::from_env(), gapscope_sdk::kernel_profile::global());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn new(
        raw: Retained<ProtocolObject<dyn MTLDevice>>,
        wanted: Wanted,
        profile: impl Into<ProfileHandle>,
    ) -> Device {
        let counters = AppleCounters::new(raw.clone());
        let profile = profile.into();
        profile.set_device(DeviceInfo {
            api: "metal".to_owned(),
            name: autoreleasepool(|_| raw.name().to_string()),
            driver: String::new(),
            ..DeviceInfo::default()
        });
        let ladder = Ladder::choose(wanted, counters.points());
        ladder.say(&profile);
        Device {
            ladder,
            counters: Arc::new(counters),
            raw,
            profile,
            sources: Arc::default(),
            debug: is_debug(),
        }
    }

    /// Returns Metal's device.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// use objc2_metal::MTLDevice;
    /// println!("{}", device.raw().name());
    /// # Ok(())
    /// # }
    /// ```
    pub fn raw(&self) -> &ProtocolObject<dyn MTLDevice> {
        &self.raw
    }

    /// Returns how work is timed.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// println!("{:?}", device.ladder());
    /// # Ok(())
    /// # }
    /// ```
    pub fn ladder(&self) -> Ladder {
        self.ladder
    }

    /// Returns the sources of the libraries that [`Self::compile`] has compiled.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let kept = device.sources().write(std::path::Path::new("kernels"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Creates a command queue with a label.
    ///
    /// # Errors
    /// Metal returns none.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let queue = device.queue("Stream 0")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn queue(&self, label: &str) -> Result<Queue, MetalError> {
        let raw = self.raw.newCommandQueue().ok_or(MetalError::NoQueue)?;
        raw.setLabel(Some(&NSString::from_str(label)));
        Ok(self.wrap_queue(raw))
    }

    /// Wraps a command queue of the program.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let same = device.wrap_queue(queue.raw().clone());
    /// # Ok(())
    /// # }
    /// ```
    pub fn wrap_queue(&self, raw: Retained<ProtocolObject<dyn MTLCommandQueue>>) -> Queue {
        let label = autoreleasepool(|_| raw.label().map(|label| label.to_string()));
        Queue {
            device: self.clone(),
            raw,
            label: label.unwrap_or_default(),
        }
    }

    /// Returns the device for captures of windows of work of `queues`. Each is waited for before a window starts and
    /// before it ends, by an empty command buffer, which the capture shows as `gapscope: wait`. With
    /// [`Object::Queue`] and [`Object::Scope`] the first queue is captured or, if there is none, the device.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let device = device.capture(Object::Queue, std::slice::from_ref(queue)).device();
    /// let capture = gapscope_sdk::Capture::from_env(&device);
    /// # Ok(())
    /// # }
    /// ```
    pub fn capture(&self, object: Object, queues: &[Queue]) -> MetalCapture<AppleCaptureManager> {
        let queues = queues.iter().map(|queue| queue.raw.clone()).collect();
        MetalCapture::new(AppleCaptureManager::new(self.raw.clone(), object, queues))
    }

    /// Compiles a library from source. The source is kept if the environment asked for it ([`is_debug`]) when the
    /// device was created.
    ///
    /// # Errors
    /// The error of the compiler.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let library = device.compile("softmax", "kernel void softmax() {}")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn compile(
        &self,
        name: &str,
        source: &str,
    ) -> Result<Retained<ProtocolObject<dyn MTLLibrary>>, MetalError> {
        if self.debug {
            self.sources.keep(name, source);
        }
        autoreleasepool(|_| {
            self.raw
                .newLibraryWithSource_options_error(&NSString::from_str(source), None)
                .map_err(|error| MetalError::Library {
                    name: name.to_owned(),
                    reason: error.localizedDescription().to_string(),
                })
        })
    }
}

/// A command queue whose command buffers are timed.
///
/// ```no_run
/// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
/// # use gapscope_sdk::metal::*;
/// let queue: Queue = device.queue("Stream 0")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Queue {
    device: Device,
    raw: Retained<ProtocolObject<dyn MTLCommandQueue>>,
    label: String,
}

impl Queue {
    /// Returns Metal's queue.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// use objc2_metal::MTLCommandQueue;
    /// println!("{:?}", queue.raw().label());
    /// # Ok(())
    /// # }
    /// ```
    pub fn raw(&self) -> &Retained<ProtocolObject<dyn MTLCommandQueue>> {
        &self.raw
    }

    /// Creates a command buffer.
    ///
    /// # Errors
    /// Metal returns none.
    ///
    /// ```no_run
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let commands = queue.command_buffer()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn command_buffer(&self) -> Result<CommandBuffer, MetalError> {
        // Metal autoreleases the command buffer; a thread without a pool would keep every one.
        let raw = autoreleasepool(|_| self.raw.commandBuffer());
        let raw = raw.ok_or(MetalError::NoCommandBuffer)?;
        let device = &self.device;
        let batch = Batch::new(
            device.counters.clone(),
            device.profile.clone(),
            device.ladder,
            self.label.clone(),
        );
        Ok(CommandBuffer::new(raw, batch, device.debug))
    }
}

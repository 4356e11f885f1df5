//! Apple's capture manager.

use super::{Device, Queue};
use crate::capture::Destination;
use crate::metal::{CaptureManager, ManagerError, MetalCapture, Object};
use objc2::rc::{Retained, autoreleasepool};
use objc2::runtime::{AnyObject, ProtocolObject};
use objc2_foundation::{NSString, NSURL};
use objc2_metal::{
    MTLCaptureDescriptor, MTLCaptureDestination, MTLCaptureManager, MTLCaptureScope,
    MTLCommandBuffer, MTLCommandQueue, MTLCreateSystemDefaultDevice, MTLDevice,
};
use std::sync::{Mutex, PoisonError};

/// The capture manager of the process, for one device.
///
/// ```no_run
/// # #[cfg(target_vendor = "apple")]
/// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
/// # use gapscope_sdk::metal::*;
/// let capture: MetalCapture<AppleCaptureManager> = device.capture(Object::Device, &[]);
/// # Ok(())
/// # }
/// ```
pub struct AppleCaptureManager {
    device: Retained<ProtocolObject<dyn MTLDevice>>,
    /// The queues that are waited for; of a window of one queue, the first.
    queues: Vec<Retained<ProtocolObject<dyn MTLCommandQueue>>>,
    object: Object,
    scope: Mutex<Option<Scope>>,
}

struct Scope(Retained<ProtocolObject<dyn MTLCaptureScope>>);

// SAFETY: a scope is started and ended by whoever holds the lock around it; only its reference count is shared, which is
// atomic.
unsafe impl Send for Scope {}

impl Device {
    /// The device as something to capture: the work of `queues`, which are waited for before the window starts and
    /// before it ends, by an empty command buffer each, which the capture shows as `gapscope: wait`. Of
    /// [`Object::Queue`] and [`Object::Scope`] the first queue is captured; without one, the device.
    ///
    /// ```no_run
    /// # #[cfg(target_vendor = "apple")]
    /// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
    /// # use gapscope_sdk::metal::*;
    /// let device = device.capture(Object::Queue, std::slice::from_ref(queue)).device();
    /// let capture = gapscope_sdk::Capture::from_env(&device);
    /// # Ok(())
    /// # }
    /// ```
    pub fn capture(&self, object: Object, queues: &[Queue]) -> MetalCapture<AppleCaptureManager> {
        MetalCapture::new(AppleCaptureManager {
            device: Retained::from(self.raw()),
            queues: queues.iter().map(|queue| queue.raw().clone()).collect(),
            object,
            scope: Mutex::new(None),
        })
    }
}

/// The system's default device, as something to capture: nothing is waited for, as its queues are not known.
pub(crate) fn default_capture() -> Option<MetalCapture<AppleCaptureManager>> {
    let device = MTLCreateSystemDefaultDevice()?;
    Some(MetalCapture::new(AppleCaptureManager::from_device(device)))
}

fn manager() -> Retained<MTLCaptureManager> {
    // SAFETY: the shared manager may be used from any thread.
    unsafe { MTLCaptureManager::sharedCaptureManager() }
}

fn destination(document: bool) -> MTLCaptureDestination {
    match document {
        true => MTLCaptureDestination::GPUTraceDocument,
        false => MTLCaptureDestination::DeveloperTools,
    }
}

impl AppleCaptureManager {
    /// All work of a device; its queues are not known.
    pub(crate) fn from_device(device: Retained<ProtocolObject<dyn MTLDevice>>) -> Self {
        AppleCaptureManager {
            device,
            queues: Vec::new(),
            object: Object::Device,
            scope: Mutex::new(None),
        }
    }

    fn scope(&self) -> std::sync::MutexGuard<'_, Option<Scope>> {
        self.scope.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CaptureManager for AppleCaptureManager {
    fn supports(&self, document: bool) -> bool {
        manager().supportsDestination(destination(document))
    }

    fn is_capturing(&self) -> bool {
        manager().isCapturing()
    }

    fn start(&self, to: &Destination) -> Result<(), ManagerError> {
        autoreleasepool(|_| self.start_in_pool(to))
    }

    fn stop(&self) {
        autoreleasepool(|_| {
            if let Some(scope) = self.scope().take() {
                scope.0.endScope();
            }
            manager().stopCapture();
        });
    }

    fn synchronise(&self) -> Result<(), String> {
        autoreleasepool(|_| {
            for queue in &self.queues {
                // Command buffers of a queue run in the order of their commits.
                let last = queue
                    .commandBuffer()
                    .ok_or("Metal gave no command buffer")?;
                last.setLabel(Some(&NSString::from_str("gapscope: wait")));
                last.commit();
                last.waitUntilCompleted();
                if let Some(error) = last.error() {
                    return Err(error.localizedDescription().to_string());
                }
            }
            Ok(())
        })
    }
}

impl AppleCaptureManager {
    fn start_in_pool(&self, to: &Destination) -> Result<(), ManagerError> {
        let manager = manager();
        let descriptor = MTLCaptureDescriptor::new();
        let first = self.queues.first();
        let scope = match (self.object, first) {
            (Object::Scope, Some(queue)) => Some(manager.newCaptureScopeWithCommandQueue(queue)),
            _ => None,
        };
        let object: &AnyObject = match (&scope, self.object, first) {
            (Some(scope), ..) => scope.as_ref(),
            (None, Object::Queue | Object::Scope, Some(queue)) => queue.as_ref(),
            (None, ..) => self.device.as_ref(),
        };
        // SAFETY: the object is a device, a queue or a scope, as the descriptor wants.
        unsafe { descriptor.setCaptureObject(Some(object)) };
        descriptor.setDestination(destination(to.path().is_some()));
        if let Some(path) = to.path() {
            // A URL of a path: spaces and % in it mean themselves.
            let path = NSString::from_str(&path.to_string_lossy());
            descriptor.setOutputURL(Some(&NSURL::fileURLWithPath(&path)));
        }
        manager
            .startCaptureWithDescriptor_error(&descriptor)
            .map_err(|error| ManagerError {
                code: error.code() as i64,
                description: error.localizedDescription().to_string(),
            })?;
        if let Some(scope) = scope {
            scope.beginScope();
            *self.scope() = Some(Scope(scope));
        }
        Ok(())
    }
}

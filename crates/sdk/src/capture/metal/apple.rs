//! Captures through the capture manager of the process, by the objects of Metal.

use super::{CaptureManager, ManagerError, MetalCapture, Object, WaitError};
use crate::capture::Destination;
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
/// # fn example(device: &gapscope_sdk::metal::Device, queue: &gapscope_sdk::metal::Queue) -> Result<(), gapscope_sdk::metal::MetalError> {
/// # use gapscope_sdk::metal::*;
/// let capture: MetalCapture<AppleCaptureManager> = device.capture(Object::Device, &[]);
/// # Ok(())
/// # }
/// ```
pub struct AppleCaptureManager {
    device: Retained<ProtocolObject<dyn MTLDevice>>,
    /// The queues that are waited for; a window of one queue captures the first.
    queues: Vec<Retained<ProtocolObject<dyn MTLCommandQueue>>>,
    /// What is captured.
    object: Object,
    /// The capture scope that has begun, where a scope is captured.
    scope: Mutex<Option<Scope>>,
}

/// Metal's object that marks the begin and the end of captured work on a queue.
struct Scope(Retained<ProtocolObject<dyn MTLCaptureScope>>);

// SAFETY: a scope is started and ended by the holder of the lock around it; only its reference count is shared, which
// is atomic.
unsafe impl Send for Scope {}

/// Returns the system's default device for captures. Nothing is waited for, because its queues are unknown.
pub(crate) fn default_capture() -> Option<MetalCapture<AppleCaptureManager>> {
    let device = MTLCreateSystemDefaultDevice()?;
    Some(MetalCapture::new(AppleCaptureManager::from_device(device)))
}

/// Returns the process's capture manager.
fn manager() -> Retained<MTLCaptureManager> {
    // SAFETY: the shared manager may be used from any thread.
    unsafe { MTLCaptureManager::sharedCaptureManager() }
}

/// Returns Metal's name for a destination: a document, or Xcode.
fn destination(document: bool) -> MTLCaptureDestination {
    match document {
        true => MTLCaptureDestination::GPUTraceDocument,
        false => MTLCaptureDestination::DeveloperTools,
    }
}

impl AppleCaptureManager {
    /// Creates a manager that captures the work of `object`, and waits for `queues`.
    pub(crate) fn new(
        device: Retained<ProtocolObject<dyn MTLDevice>>,
        object: Object,
        queues: Vec<Retained<ProtocolObject<dyn MTLCommandQueue>>>,
    ) -> Self {
        AppleCaptureManager {
            device,
            queues,
            object,
            scope: Mutex::new(None),
        }
    }

    /// Creates a manager of all work of a device whose queues are unknown.
    pub(crate) fn from_device(device: Retained<ProtocolObject<dyn MTLDevice>>) -> Self {
        AppleCaptureManager::new(device, Object::Device, Vec::new())
    }

    /// Locks the scope that has begun.
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

    fn synchronise(&self) -> Result<(), WaitError> {
        autoreleasepool(|_| {
            for queue in &self.queues {
                // Command buffers of a queue run in the order of their commits.
                let last = queue.commandBuffer().ok_or(WaitError::NoCommandBuffer)?;
                last.setLabel(Some(&NSString::from_str("gapscope: wait")));
                last.commit();
                last.waitUntilCompleted();
                if let Some(error) = last.error() {
                    return Err(WaitError::device(error.localizedDescription()));
                }
            }
            Ok(())
        })
    }
}

impl AppleCaptureManager {
    /// Starts a capture of a scope on the first queue, of that queue, or of the device where there is no queue.
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
            // A file URL escapes spaces and `%` in the path.
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

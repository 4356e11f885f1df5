//! Captures through Apple's capture manager, the system's service that records the GPU work of a process. It allows
//! captures outside of Xcode only where the environment or the program's Info.plist says so (a gate).

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(test)]
mod tests;
#[cfg(any(test, all(feature = "wgpu", target_vendor = "apple")))]
mod wgpu_device;

#[cfg(target_vendor = "apple")]
pub use apple::AppleCaptureManager;
#[cfg(target_vendor = "apple")]
pub(super) use apple::default_capture;
#[cfg(all(feature = "wgpu", target_vendor = "apple"))]
pub(crate) use wgpu_device::from_wgpu;

use super::{Backend, CaptureDevice, Destination, NotCaptured, Running, WaitError};
use crate::environment::any_is_on;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The backend's name in messages.
const BACKEND: &str = "Metal";
/// The extension of GPU trace documents.
const EXTENSION: &str = "gputrace";

/// The variable that allows captures outside of Xcode since macOS 14.
const VARIABLE: &str = "MTL_CAPTURE_ENABLED";
/// The variable that did so before macOS 14.
const OLDER_VARIABLE: &str = "METAL_CAPTURE_ENABLED";

/// The state of the variables that allow captures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// Neither variable is set.
    Closed,
    /// Only the variable from before macOS 14 is set.
    Older,
    /// The present variable is set.
    Open,
}

impl Gate {
    fn from_environment() -> Gate {
        match (any_is_on(&[VARIABLE]), any_is_on(&[OLDER_VARIABLE])) {
            (true, _) => Gate::Open,
            (false, true) => Gate::Older,
            (false, false) => Gate::Closed,
        }
    }
}

/// The program's function that waits until the device has finished all submitted work.
type Wait = dyn Fn() -> Result<(), WaitError> + Send + Sync;

/// The maximum time for the capture manager to write a document after the stop.
const WRITTEN_WITHIN: Duration = Duration::from_secs(60);

/// The part of the GPU's work that is captured.
///
/// ```
/// # use gapscope_sdk::metal::Object;
/// assert_eq!(Object::default(), Object::Device);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Object {
    /// All command queues of the device, as in MLX.
    #[default]
    Device,
    /// One command queue.
    Queue,
    /// A capture scope on one command queue.
    Scope,
}

/// The reason why the capture manager did not start (`MTLCaptureError`).
///
/// ```
/// # use gapscope_sdk::metal::ManagerError;
/// let busy = ManagerError::new(2, "already capturing");
/// assert_eq!(busy.code, 2);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ManagerError {
    /// The code: 1 is not supported, 2 is already capturing, 3 is an invalid descriptor.
    pub code: i64,
    /// The description of the error.
    pub description: String,
}

impl ManagerError {
    /// Makes an error of its code and its description.
    ///
    /// ```
    /// # use gapscope_sdk::metal::ManagerError;
    /// assert_eq!(ManagerError::new(1, "not supported").description, "not supported");
    /// ```
    pub fn new(code: i64, description: impl Into<String>) -> ManagerError {
        ManagerError {
            code,
            description: description.into(),
        }
    }
}

/// The operations of Apple's capture manager that captures need.
///
/// ```
/// use gapscope_sdk::capture::{Destination, WaitError};
/// use gapscope_sdk::metal::{CaptureManager, ManagerError};
///
/// /// For programs without Metal.
/// struct None;
///
/// impl CaptureManager for None {
///     fn supports(&self, _document: bool) -> bool { false }
///     fn is_capturing(&self) -> bool { false }
///     fn start(&self, _: &Destination) -> Result<(), ManagerError> {
///         Err(ManagerError::new(1, "there is no Metal"))
///     }
///     fn stop(&self) {}
///     fn synchronise(&self) -> Result<(), WaitError> { Ok(()) }
/// }
/// ```
pub trait CaptureManager: Send + Sync + 'static {
    /// Returns true if the manager can write a document or, if `document` is false, capture to Xcode.
    fn supports(&self, document: bool) -> bool;

    /// Returns true while the manager captures.
    fn is_capturing(&self) -> bool;

    /// Starts a capture.
    ///
    /// # Errors
    /// The error of the manager.
    fn start(&self, destination: &Destination) -> Result<(), ManagerError>;

    /// Stops the capture, if the manager captures.
    fn stop(&self);

    /// Waits until the GPU has finished all committed work.
    ///
    /// # Errors
    /// The error of Metal.
    fn synchronise(&self) -> Result<(), WaitError>;
}

/// The capture backend of Metal, which writes a GPU trace document (`NAME.gputrace`) or captures to Xcode.
///
/// ```
/// use gapscope_sdk::Capture;
/// use gapscope_sdk::capture::Destination;
/// use gapscope_sdk::metal::{CaptureManager, MetalCapture};
///
/// fn capture(manager: impl CaptureManager) {
///     let device = MetalCapture::new(manager).device();
///     if let Err(why) = Capture::to(&device, Destination::from_path("step.gputrace")) {
///         eprintln!("{why}");
///     }
/// }
/// ```
pub struct MetalCapture<M> {
    manager: Arc<M>,
    gate: Gate,
    /// The program's way to wait for the device, in place of the manager's.
    wait: Option<Box<Wait>>,
}

impl<M: CaptureManager> MetalCapture<M> {
    /// Creates a backend from a capture manager and reads the environment.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{CaptureManager, MetalCapture};
    /// # fn example(manager: impl CaptureManager) {
    /// let capture = MetalCapture::new(manager);
    /// # }
    /// ```
    pub fn new(manager: M) -> MetalCapture<M> {
        MetalCapture::with_gate(manager, Gate::from_environment())
    }

    /// Creates a backend without reading the environment.
    fn with_gate(manager: M, gate: Gate) -> MetalCapture<M> {
        MetalCapture {
            manager: Arc::new(manager),
            gate,
            wait: None,
        }
    }

    /// Replaces the way to wait for the device, for managers that do not know the device's queues.
    ///
    /// ```
    /// # use gapscope_sdk::{capture::WaitError, metal::{CaptureManager, MetalCapture}};
    /// # fn wait_for_the_device() -> Result<(), WaitError> { Ok(()) }
    /// # fn example(manager: impl CaptureManager) {
    /// let capture = MetalCapture::new(manager).waiting_by(wait_for_the_device);
    /// # }
    /// ```
    pub fn waiting_by(
        mut self,
        wait: impl Fn() -> Result<(), WaitError> + Send + Sync + 'static,
    ) -> MetalCapture<M> {
        self.wait = Some(Box::new(wait));
        self
    }

    /// Returns a device that this backend captures.
    ///
    /// ```
    /// # use gapscope_sdk::metal::{CaptureManager, MetalCapture};
    /// # fn example(manager: impl CaptureManager) {
    /// let device = MetalCapture::new(manager).device();
    /// let capture = gapscope_sdk::Capture::from_env(&device);
    /// # }
    /// ```
    pub fn device(self) -> impl CaptureDevice {
        let backend: Arc<dyn Backend> = Arc::new(self);
        backend
    }

    /// Returns why captures are refused, by the state of the gate, with what Metal said.
    fn refused(&self, said: Option<String>) -> NotCaptured {
        let said = said
            .map(|said| format!(" (Metal said: {said})"))
            .unwrap_or_default();
        let gate = |reason: String| NotCaptured::Gate {
            backend: BACKEND,
            reason: format!("{reason}{said}"),
        };
        match self.gate {
            Gate::Open => NotCaptured::Unsupported {
                backend: BACKEND,
                reason: format!(
                    "the system does not support it although {VARIABLE} is set; Metal needs it before the program's first device, and before macOS 14 it is {OLDER_VARIABLE}{said}"
                ),
            },
            Gate::Older => gate(format!(
                "{OLDER_VARIABLE} is set, which is the variable of before macOS 14: start the program with {VARIABLE}=1 in its environment as well"
            )),
            Gate::Closed => gate(format!(
                "start the program with {VARIABLE}=1 in its environment (macOS 14 and later; before, {OLDER_VARIABLE}=1), or put MetalCaptureEnabled into its Info.plist"
            )),
        }
    }
}

impl<M: CaptureManager> Backend for MetalCapture<M> {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn extension(&self) -> &'static str {
        EXTENSION
    }

    /// A document holds every buffer that the window uses; some gigabytes are usual for a language model.
    fn least_free_bytes(&self) -> u64 {
        1 << 30
    }

    fn ready(&self, destination: &Destination) -> Result<(), NotCaptured> {
        let document = destination.path().is_some();
        // The manager decides and not the environment, because an Info.plist opens the gate as well.
        if !self.manager.supports(document) {
            return Err(match document {
                true => self.refused(None),
                false => NotCaptured::Unsupported {
                    backend: BACKEND,
                    reason: "no Xcode watches this process; give a path to write a document"
                        .to_owned(),
                },
            });
        }
        match self.manager.is_capturing() {
            true => Err(NotCaptured::AlreadyCapturing),
            false => Ok(()),
        }
    }

    fn synchronise(&self) -> Result<(), NotCaptured> {
        let waited = match &self.wait {
            Some(wait) => wait(),
            None => self.manager.synchronise(),
        };
        Ok(waited?)
    }

    fn start(&self, destination: &Destination) -> Result<Box<dyn Running>, NotCaptured> {
        self.manager
            .start(destination)
            .map_err(|error| match error.code {
                1 => self.refused(Some(error.description)),
                2 => NotCaptured::AlreadyCapturing,
                _ => NotCaptured::Start {
                    backend: BACKEND,
                    reason: error.description,
                },
            })?;
        Ok(Box::new(Window {
            manager: self.manager.clone(),
            destination: destination.clone(),
            open: true,
        }))
    }
}

/// A capture that runs.
struct Window<M: CaptureManager> {
    manager: Arc<M>,
    destination: Destination,
    /// Whether the capture has yet to be stopped.
    open: bool,
}

impl<M: CaptureManager> Running for Window<M> {
    fn stop(&mut self) -> Result<(), NotCaptured> {
        // If something else stopped the capture, the content of the document is unknown.
        let was_capturing = self.manager.is_capturing();
        self.open = false;
        self.manager.stop();
        match was_capturing {
            true => Ok(()),
            false => Err(NotCaptured::Stop {
                backend: BACKEND,
                reason: "something else in the process had stopped it".to_owned(),
            }),
        }
    }

    fn finished(&mut self) -> Result<(), NotCaptured> {
        let Some(path) = self.destination.path() else {
            return Ok(());
        };
        let started = Instant::now();
        while self.manager.is_capturing() {
            if started.elapsed() > WRITTEN_WITHIN {
                return Err(NotCaptured::NotWritten {
                    path: path.to_owned(),
                    reason: "Metal has not written it in 60 s".to_owned(),
                });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl<M: CaptureManager> Drop for Window<M> {
    fn drop(&mut self) {
        if self.open {
            self.manager.stop();
        }
    }
}

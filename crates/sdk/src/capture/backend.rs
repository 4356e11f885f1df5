//! The interface of capture backends: Apple's capture manager, and the hooks of gapscope (libraries that `gapscope
//! record` loads into the process).

use super::{Destination, NotCaptured};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A device whose work can be captured: implemented for the devices of wgpu and Metal, and by [`super::Hooked`] for
/// any device of a program that gapscope records.
///
/// ```
/// use gapscope_sdk::capture::{Backend, CaptureDevice};
/// use std::sync::Arc;
///
/// /// A program's own device, around one that can be captured.
/// struct Gpu<D>(D);
///
/// impl<D: CaptureDevice> CaptureDevice for Gpu<D> {
///     fn backend(&self) -> Arc<dyn Backend> {
///         self.0.backend()
///     }
/// }
/// ```
pub trait CaptureDevice {
    /// Returns the backend that captures the work of this device.
    fn backend(&self) -> Arc<dyn Backend>;
}

impl<D: CaptureDevice + ?Sized> CaptureDevice for &D {
    fn backend(&self) -> Arc<dyn Backend> {
        (**self).backend()
    }
}

impl CaptureDevice for Arc<dyn Backend> {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(self)
    }
}

/// A backend that captures the work of one device.
///
/// The callers of a backend see to the order (`ready`, `synchronise`, `start`, the work, `synchronise`, `stop`,
/// `finished`), to the checks of paths, and to there being one capture at a time in the process.
///
/// ```
/// use gapscope_sdk::Capture;
/// use gapscope_sdk::capture::{Backend, Destination, NotCaptured, Running};
/// use std::sync::Arc;
///
/// /// Notes that it was asked, and captures nothing.
/// struct Dry;
/// struct DryRun;
///
/// impl Backend for Dry {
///     fn name(&self) -> &'static str { "dry" }
///     fn extension(&self) -> &'static str { "dry" }
///     fn ready(&self, _: &Destination) -> Result<(), NotCaptured> { Ok(()) }
///     fn synchronise(&self) -> Result<(), NotCaptured> { Ok(()) }
///     fn start(&self, to: &Destination) -> Result<Box<dyn Running>, NotCaptured> {
///         println!("from here, to {to:?}");
///         Ok(Box::new(DryRun))
///     }
/// }
///
/// impl Running for DryRun {
///     fn stop(&mut self) -> Result<(), NotCaptured> {
///         println!("to here");
///         Ok(())
///     }
/// }
///
/// let device: Arc<dyn Backend> = Arc::new(Dry);
/// let mut capture = Capture::to(&device, Destination::Live)?;
/// capture.begin()?;
/// capture.end()?;
/// # Ok::<(), NotCaptured>(())
/// ```
pub trait Backend: Send + Sync {
    /// Returns the name in messages, such as `Metal`.
    fn name(&self) -> &'static str;

    /// Returns the extension of this backend's files, without the dot.
    fn extension(&self) -> &'static str;

    /// Returns the path that a capture to `path` is written to; `None` if the name does not fit this backend.
    fn output(&self, path: &Path) -> Option<PathBuf> {
        let extension = path.extension()?;
        extension
            .eq_ignore_ascii_case(self.extension())
            .then(|| path.to_owned())
    }

    /// Returns the free space in bytes below which a capture is not started.
    fn least_free_bytes(&self) -> u64 {
        256 << 20
    }

    /// Checks that a capture to `destination` could start now, by the gates of the environment and the support of the
    /// device.
    ///
    /// # Errors
    /// The reason why it could not, and what to do.
    fn ready(&self, destination: &Destination) -> Result<(), NotCaptured>;

    /// Waits until the device has finished everything that the program has submitted to it.
    ///
    /// # Errors
    /// [`NotCaptured::Synchronise`]: waiting for the device failed.
    fn synchronise(&self) -> Result<(), NotCaptured>;

    /// Notes that the calling thread has waited for the device or the backend since `start_ns`, on the clock of
    /// [`host_now_ns`](crate::kernel_profile::host_now_ns), because of a capture. A backend that records the host keeps
    /// this time apart from the program's.
    fn waited_since(&self, start_ns: u64) {
        let _ = start_ns;
    }

    /// Starts a capture.
    ///
    /// # Errors
    /// The reason why it did not start; there is nothing to stop then.
    fn start(&self, destination: &Destination) -> Result<Box<dyn Running>, NotCaptured>;
}

/// A capture that runs. It must also stop if it is dropped without [`Running::stop`].
///
/// [`Backend`] shows one.
///
/// ```
/// use gapscope_sdk::capture::{NotCaptured, Running};
///
/// fn stop(mut running: Box<dyn Running>) -> Result<(), NotCaptured> {
///     running.stop()?;
///     running.finished()
/// }
/// ```
pub trait Running: Send {
    /// Stops the capture. It is called once, after the device has finished the work of the window.
    ///
    /// # Errors
    /// [`NotCaptured::Stop`]: the capture cannot be relied on.
    fn stop(&mut self) -> Result<(), NotCaptured>;

    /// Waits until the capture is written. The caller checks the file.
    ///
    /// # Errors
    /// [`NotCaptured::NotWritten`], with the reason.
    fn finished(&mut self) -> Result<(), NotCaptured> {
        Ok(())
    }
}

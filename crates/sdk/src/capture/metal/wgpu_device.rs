//! Captures devices of wgpu if wgpu runs on Metal; a device that runs on something else refuses every capture.

use super::{BACKEND, CaptureManager, EXTENSION, MetalCapture, WaitError};
use crate::capture::{Backend, Destination, NotCaptured, Running};
use std::sync::Arc;

/// Returns the capture device of a wgpu device. `manager` is Metal's capture manager, `None` for a device that does
/// not run on Metal; `wait` waits for the work of the device.
pub(crate) fn from_wgpu<M: CaptureManager>(
    manager: Option<M>,
    wait: impl Fn() -> Result<(), WaitError> + Send + Sync + 'static,
) -> Arc<dyn Backend> {
    match manager {
        Some(manager) => Arc::new(MetalCapture::new(manager).waiting_by(wait)),
        None => Arc::new(NotMetal),
    }
}

struct NotMetal;

impl NotMetal {
    fn refused() -> NotCaptured {
        NotCaptured::Unsupported {
            backend: BACKEND,
            reason:
                "this device of wgpu does not run on Metal: make its instance with Backends::METAL"
                    .to_owned(),
        }
    }
}

impl Backend for NotMetal {
    fn name(&self) -> &'static str {
        BACKEND
    }

    fn extension(&self) -> &'static str {
        EXTENSION
    }

    fn ready(&self, _: &Destination) -> Result<(), NotCaptured> {
        Err(NotMetal::refused())
    }

    fn synchronise(&self) -> Result<(), NotCaptured> {
        Err(NotMetal::refused())
    }

    fn start(&self, _: &Destination) -> Result<Box<dyn Running>, NotCaptured> {
        Err(NotMetal::refused())
    }
}

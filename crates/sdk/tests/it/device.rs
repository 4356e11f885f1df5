//! A stand-in for the device of a program that captures itself, on machines without Metal.

use gapscope_sdk::capture::{Backend, CaptureDevice, Destination, NotCaptured, Running};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device of the program, whose operations are noted in `log`.
#[derive(Clone, Default)]
pub struct MlxDevice {
    pub log: Arc<Mutex<Vec<&'static str>>>,
}

impl MlxDevice {
    pub fn new() -> Result<MlxDevice, NotCaptured> {
        Ok(MlxDevice::default())
    }

    pub fn note(&self, what: &'static str) {
        self.log.lock().unwrap().push(what);
    }
}

impl CaptureDevice for MlxDevice {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::new(self.clone())
    }
}

impl Backend for MlxDevice {
    fn name(&self) -> &'static str {
        "Metal"
    }

    fn extension(&self) -> &'static str {
        "gputrace"
    }

    fn ready(&self, _: &Destination) -> Result<(), NotCaptured> {
        Ok(())
    }

    fn synchronise(&self) -> Result<(), NotCaptured> {
        self.note("wait");
        Ok(())
    }

    fn start(&self, to: &Destination) -> Result<Box<dyn Running>, NotCaptured> {
        self.note("start");
        Ok(Box::new(Document(
            self.clone(),
            to.path().map(PathBuf::from),
        )))
    }
}

struct Document(MlxDevice, Option<PathBuf>);

impl Running for Document {
    fn stop(&mut self) -> Result<(), NotCaptured> {
        self.0.note("stop");
        if let Some(path) = &self.1 {
            std::fs::write(path, "document").unwrap();
        }
        Ok(())
    }
}

/// Locks the environment and the one capture, which all tests of the process share.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

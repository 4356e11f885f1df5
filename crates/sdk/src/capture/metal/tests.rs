//! Tests the Metal backend of captures with a fake of Apple's capture manager.

use super::wgpu_device::from_wgpu;
use super::*;
use crate::capture::Capture;
use crate::capture::tests::assert_refused;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// A capture manager that writes a file when it is stopped.
#[derive(Default)]
struct FakeManager {
    unsupported: bool,
    start_error: Option<ManagerError>,
    /// The manager writes no file.
    broken: bool,
    capturing: AtomicBool,
    log: Arc<Mutex<Vec<&'static str>>>,
    path: Mutex<Option<std::path::PathBuf>>,
}

impl CaptureManager for FakeManager {
    fn supports(&self, document: bool) -> bool {
        document && !self.unsupported
    }

    fn is_capturing(&self) -> bool {
        self.capturing.load(Relaxed)
    }

    fn start(&self, destination: &Destination) -> Result<(), ManagerError> {
        if let Some(error) = &self.start_error {
            return Err(error.clone());
        }
        self.log.lock().unwrap().push("start");
        self.capturing.store(true, Relaxed);
        *self.path.lock().unwrap() = destination.path().map(Into::into);
        Ok(())
    }

    fn stop(&self) {
        self.log.lock().unwrap().push("stop");
        if self.capturing.swap(false, Relaxed)
            && !self.broken
            && let Some(path) = self.path.lock().unwrap().take()
        {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join("capture"), "document").unwrap();
        }
    }

    fn synchronise(&self) -> Result<(), WaitError> {
        self.log.lock().unwrap().push("synchronise");
        Ok(())
    }
}

fn capture(manager: FakeManager, gate: Gate, path: &std::path::Path) -> Result<(), NotCaptured> {
    let device = MetalCapture::with_gate(manager, gate).device();
    let mut capture = Capture::to(&device, Destination::from_path(path))?;
    capture.begin()?;
    capture.end().map(drop)
}

#[test]
fn captures_are_synchronised_in_and_out_and_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("with space.gputrace");
    let manager = FakeManager::default();
    let log = manager.log.clone();
    capture(manager, Gate::Open, &path).unwrap();
    assert_eq!(
        *log.lock().unwrap(),
        ["synchronise", "start", "synchronise", "stop"]
    );
    assert!(path.join("capture").is_file());
    let again = capture(FakeManager::default(), Gate::Open, &path).unwrap_err();
    assert!(matches!(again, NotCaptured::Exists { .. }), "{again}");
}

#[test]
fn what_prevents_a_capture_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gputrace");
    let unsupported = || FakeManager {
        unsupported: true,
        ..FakeManager::default()
    };
    let closed = capture(unsupported(), Gate::Closed, &path).unwrap_err();
    assert!(
        matches!(closed, NotCaptured::Gate { .. })
            && closed.to_string().contains("MTL_CAPTURE_ENABLED=1"),
        "{closed}"
    );
    let open = capture(unsupported(), Gate::Open, &path).unwrap_err();
    assert!(matches!(open, NotCaptured::Unsupported { .. }), "{open}");
    assert!(
        open.to_string()
            .contains("although MTL_CAPTURE_ENABLED is set"),
        "{open}"
    );
    let older = capture(unsupported(), Gate::Older, &path).unwrap_err();
    assert_eq!(
        older.to_string(),
        "Metal does not allow captures: METAL_CAPTURE_ENABLED is set, which is the variable of before macOS 14: start the \
         program with MTL_CAPTURE_ENABLED=1 in its environment as well"
    );
    let error = |code| FakeManager {
        start_error: Some(ManagerError {
            code,
            description: "Capture layer is not inserted.".to_owned(),
        }),
        ..FakeManager::default()
    };
    let refused = capture(error(1), Gate::Closed, &path).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("Capture layer is not inserted"),
        "{refused}"
    );
    assert_eq!(
        capture(error(2), Gate::Open, &path),
        Err(NotCaptured::AlreadyCapturing)
    );
    assert_refused!(capture(error(3), Gate::Open, &path), Start);
    let capturing = FakeManager::default();
    capturing
        .capturing
        .store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(
        capture(capturing, Gate::Open, &path),
        Err(NotCaptured::AlreadyCapturing)
    );
    let broken = FakeManager {
        broken: true,
        ..FakeManager::default()
    };
    assert_refused!(capture(broken, Gate::Open, &path), NotWritten);
    let wrong = folder.path().join("x.trace");
    assert_refused!(
        capture(FakeManager::default(), Gate::Open, &wrong),
        Extension
    );
}

#[test]
fn a_device_of_wgpu_is_waited_for_by_polling_it() {
    let folder = tempfile::tempdir().unwrap();
    let manager = FakeManager::default();
    let log = manager.log.clone();
    let polled = log.clone();
    let device = from_wgpu(Some(manager), move || {
        polled.lock().unwrap().push("poll");
        Ok(())
    });
    let path = folder.path().join("x.gputrace");
    let mut capture = Capture::to(&device, Destination::from_path(&path)).unwrap();
    capture.begin().unwrap();
    capture.end().unwrap();
    assert_eq!(*log.lock().unwrap(), ["poll", "start", "poll", "stop"]);

    let other = from_wgpu(None::<FakeManager>, || Ok(()));
    let why = Capture::to(
        &other,
        Destination::from_path(folder.path().join("y.gputrace")),
    )
    .unwrap_err();
    assert!(
        matches!(&why, NotCaptured::Unsupported { reason, .. } if reason.contains("Backends::METAL")),
        "{why}"
    );
}

#[test]
fn a_capture_that_is_dropped_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let manager = FakeManager::default();
    let log = manager.log.clone();
    let device = MetalCapture::with_gate(manager, Gate::Open).device();
    let mut capture = Capture::to(
        &device,
        Destination::from_path(folder.path().join("x.gputrace")),
    )
    .unwrap();
    capture.begin().unwrap();
    drop(capture);
    assert_eq!(log.lock().unwrap().last(), Some(&"stop"));
}

//! Tests that moving from mlx-native is a rename: the tests of mlx-native's `metal_capture`, and entries as its
//! encoder records them, are the same here but for the name of the crate.

use gapscope_sdk::capture::{Backend, CaptureDevice, Destination, NotCaptured, Running};
use gapscope_sdk::mlx::kernel_profile::{
    self, DispatchEntry, dump, dump_dispatches, record, record_dispatch,
};
use gapscope_sdk::mlx::metal_capture::{MetalCapture, reset_capture_consumed_for_test};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A device of the program, whose operations are noted in `log`.
#[derive(Clone, Default)]
struct MlxDevice {
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl MlxDevice {
    fn new() -> Result<MlxDevice, NotCaptured> {
        Ok(MlxDevice::default())
    }

    fn note(&self, what: &'static str) {
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
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
#[expect(clippy::undocumented_unsafe_blocks, reason = "as mlx-native has it")]
fn from_env_returns_none_when_unset() {
    let _alone = alone();
    // Ensure the var is unset (does not affect other tests because
    // the latch is process-global; this test just verifies the
    // env-empty path).
    unsafe { std::env::remove_var("MLX_METAL_CAPTURE") };
    reset_capture_consumed_for_test();
    let device = MlxDevice::new().expect("MlxDevice::new");
    assert!(
        MetalCapture::from_env(&device).is_none(),
        "MLX_METAL_CAPTURE unset → from_env must return None"
    );
}

#[test]
#[expect(clippy::undocumented_unsafe_blocks, reason = "as mlx-native has it")]
fn from_env_returns_none_on_empty_string() {
    let _alone = alone();
    unsafe { std::env::set_var("MLX_METAL_CAPTURE", "") };
    reset_capture_consumed_for_test();
    let device = MlxDevice::new().expect("device");
    assert!(
        MetalCapture::from_env(&device).is_none(),
        "MLX_METAL_CAPTURE=\"\" → from_env must return None"
    );
    unsafe { std::env::remove_var("MLX_METAL_CAPTURE") };
}

/// A forward pass as mlx-native's graph makes it: the capture begins with the session and ends when it is dropped.
struct GraphSession {
    metal_capture: Option<MetalCapture>,
}

impl GraphSession {
    fn begin(device: &MlxDevice) -> GraphSession {
        let metal_capture = {
            let mut c = MetalCapture::from_env(device);
            if let Some(ref mut cap) = c {
                cap.begin();
            }
            c
        };
        device.note("encode");
        GraphSession { metal_capture }
    }

    fn commit(&mut self) {
        if let Some(cap) = self.metal_capture.as_mut() {
            cap.end();
        }
    }
}

/// Runs a test with a path to capture to in the environment.
fn capturing(test: impl FnOnce(&Path, &MlxDevice)) {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output.gputrace");
    // SAFETY: the other tests of this program wait.
    unsafe { std::env::set_var("MLX_METAL_CAPTURE", &path) };
    reset_capture_consumed_for_test();
    test(&path, &MlxDevice::default());
    // SAFETY: as above.
    unsafe { std::env::remove_var("MLX_METAL_CAPTURE") };
}

#[test]
fn the_first_forward_pass_is_captured() {
    capturing(|path, device| {
        GraphSession::begin(device).commit();
        drop(GraphSession::begin(device));
        assert_eq!(
            *device.log.lock().unwrap(),
            ["wait", "start", "encode", "wait", "stop", "encode"]
        );
        assert!(path.is_file());
    });
}

#[test]
fn what_came_of_a_capture_is_a_value() {
    capturing(|path, device| {
        let mut first = MetalCapture::from_env(device).unwrap();
        first.end();
        assert!(first.outcome().is_none(), "it has not begun");
        // Another program takes the path in the meantime.
        std::fs::write(path, "other").unwrap();
        first.begin();
        first.end();
        let why = first.outcome().unwrap().clone().unwrap_err();
        assert!(matches!(why, NotCaptured::Exists { .. }), "{why}");
        // The failure has not used up the only capture.
        std::fs::remove_file(path).unwrap();
        let mut second = MetalCapture::from_env(device).unwrap();
        second.begin();
        second.end();
        let captured = second.outcome().unwrap().clone().unwrap();
        assert_eq!(captured.path(), Some(path));
    });
}

#[test]
fn entries_are_recorded_as_they_are() {
    let _alone = alone();
    kernel_profile::reset();
    record("layer.attn", 1_500);
    record_dispatch(DispatchEntry {
        cb_label: "layer.attn[0]".into(),
        op_kind: "RmsNorm",
        dispatch_index: 0,
        gpu_ns: 100,
        start_gpu_ns: 1_000,
        end_gpu_ns: 1_100,
    });
    record_dispatch(DispatchEntry {
        cb_label: "layer.ffn[0]".into(),
        op_kind: "Other",
        ..Default::default()
    });
    let (label, times) = &dump()[0];
    assert_eq!(
        (label.as_str(), times.count, times.total_ns),
        ("layer.attn", 1, 1_500)
    );
    let dumps = dump_dispatches();
    assert_eq!(dumps[0].0, "layer.attn[0]");
    assert_eq!(dumps[0].1[0].op_kind, "RmsNorm");
    assert_eq!(dumps[0].1[0].gpu_ns, Some(100));
    // Two zeros, which some drivers deliver for missing times, are no time.
    assert_eq!(dumps[1].1[0].gpu_ns, None);
}

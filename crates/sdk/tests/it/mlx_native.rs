//! Tests that moving from mlx-native is a rename: the tests of mlx-native's `metal_capture`, the items of its
//! documentation, and entries as its encoder records them, are the same here but for the name of the crate.

use crate::device::{MlxDevice, alone};
use gapscope_sdk::capture::NotCaptured;
use gapscope_sdk::mlx::kernel_profile::{
    self, DispatchEntry, ProfileEntry, convert_gpu_ticks_to_ns, dump, dump_dispatches,
    is_dispatch_enabled, is_enabled, record, record_clock_pair, record_dispatch, reset,
};
use gapscope_sdk::mlx::metal_capture::{MetalCapture, reset_capture_consumed_for_test};
use std::path::Path;
use std::process::Command;

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
    // A duration alone, as of programs that have no start and end.
    record_dispatch(DispatchEntry {
        cb_label: "layer.head[0]".into(),
        gpu_ns: 12_000,
        ..Default::default()
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
    assert_eq!(dumps[1].1[0].gpu_ns, Some(12_000));
    assert_eq!(dumps[1].1[0].start_gpu_ns, None);
    assert_eq!(dumps[2].1[0].gpu_ns, None);
}

/// The forward pass of mlx-native's documentation of `MetalCapture`.
fn documented_forward_pass(device: &MlxDevice) {
    let mut capture = MetalCapture::from_env(device);
    if let Some(ref mut c) = capture {
        c.begin();
    }
    device.note("encode");
    if let Some(ref mut c) = capture {
        c.begin(); // idempotent
        c.end();
        c.end();
    }
}

/// The decode loop of mlx-native's documentation of `kernel_profile`.
fn documented_decode() -> Vec<String> {
    kernel_profile::reset();
    if !kernel_profile::is_enabled() {
        record("output_head", 42_000);
    }
    if !kernel_profile::is_dispatch_enabled() {
        kernel_profile::record_clock_pair(1_000, 24);
    }
    let mut lines = Vec::new();
    for (label, entry) in dump() {
        lines.push(format!("{label}: {} x {} ns", entry.count, entry.total_ns));
    }
    for (cb_label, dispatches) in dump_dispatches() {
        for dispatch in dispatches {
            lines.push(format!("{cb_label}: {}", dispatch.op_kind));
        }
    }
    lines
}

/// The functions of the documentation of `kernel_profile`, with the signatures that callers use.
#[test]
fn the_documented_functions_are_called_as_there() {
    let _alone = alone();
    let _: [fn() -> bool; 2] = [is_enabled, is_dispatch_enabled];
    let _: fn() -> Vec<(String, ProfileEntry)> = dump;
    reset();
    record_clock_pair(1_000, 24);
    record_clock_pair(2_000, 48);
    // mlx-native returns the number itself, also for times that it cannot know.
    assert_eq!(convert_gpu_ticks_to_ns(36), Some(1_500));
    record("head", 5);
    let ProfileEntry {
        count,
        total_ns,
        min_ns,
        max_ns,
        ..
    } = dump()[0].1;
    assert_eq!((count, total_ns, min_ns, max_ns), (1, 5, 5, 5));
    reset();
    assert!(dump().is_empty() && dump_dispatches().is_empty());
}

/// Runs in a process of its own: see [`the_switches_of_the_documentation_are_read`].
#[test]
#[ignore = "another test runs it with the switches set"]
fn switches() {
    println!("[switches] {} {}", is_enabled(), is_dispatch_enabled());
}

#[test]
fn the_switches_of_the_documentation_are_read() {
    let switches = |variable: &str| {
        let mut command = again("mlx_native::switches");
        let ran = command.env(variable, "1").output().unwrap();
        let said = String::from_utf8(ran.stdout).unwrap();
        let line = said.lines().find_map(|line| line.split_once("[switches] "));
        line.expect("it says them").1.to_owned()
    };
    assert_eq!(switches("MLX_PROFILE_CB"), "true false");
    // Dispatches imply command buffers, as mlx-native's documentation says.
    assert_eq!(switches("MLX_PROFILE_DISPATCH"), "true true");
}

#[test]
fn a_panic_in_the_forward_pass_still_flushes_the_trace() {
    capturing(|path, device| {
        let pass = std::panic::catch_unwind(|| {
            let _session = GraphSession::begin(device);
            panic!("mid-forward-pass");
        });
        assert!(pass.is_err() && path.is_file());
        let log = device.log.lock().unwrap().join(" ");
        assert_eq!(log, "wait start encode wait stop");
    });
}

#[test]
fn the_snippets_of_the_documentation_run_as_they_are() {
    capturing(|path, device| {
        documented_forward_pass(device);
        documented_forward_pass(device);
        assert!(path.is_file());
        let log = device.log.lock().unwrap().join(" ");
        assert_eq!(log, "wait start encode wait stop encode");
    });
    let _alone = alone();
    assert_eq!(documented_decode(), ["output_head: 1 x 42000 ns"]);
}

#[test]
fn last_outcome_also_tells_of_a_capture_that_did_not_start() {
    let _alone = alone();
    // SAFETY: the other tests of this program wait.
    unsafe { std::env::set_var("MLX_METAL_CAPTURE", "/nowhere/a.wrong") };
    reset_capture_consumed_for_test();
    assert!(MetalCapture::from_env(&MlxDevice::default()).is_none());
    let last = gapscope_sdk::capture::last_outcome().expect("it was refused");
    assert!(
        matches!(last, Err(NotCaptured::Extension { .. })),
        "{last:?}"
    );
    // SAFETY: as above.
    unsafe { std::env::remove_var("MLX_METAL_CAPTURE") };
}

/// Returns a command that runs a test of this program again in a process of its own.
fn again(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--ignored"]);
    command
}

/// Runs a test again with a path to capture to, and returns its lines of the SDK on standard error.
fn lines_of(test: &str, capture: &Path) -> Vec<String> {
    let mut command = again(test);
    let ran = command.env("MLX_METAL_CAPTURE", capture).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let said = String::from_utf8_lossy(&ran.stderr);
    let lines = said.lines().filter(|line| line.starts_with("[gapscope]"));
    lines.map(str::to_owned).collect()
}

/// Runs in a process of its own: see [`lines_of`].
#[test]
#[ignore = "another test runs it with a path to capture to"]
fn five_passes() {
    for _ in 0..5 {
        documented_forward_pass(&MlxDevice::default());
    }
}

#[test]
fn each_reason_is_said_once_and_start_and_stop_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.gputrace");
    let name = "mlx_native::five_passes";
    let said = lines_of(name, &path);
    let path = path.display();
    assert_eq!(
        said,
        [
            format!("[gapscope] MetalCapture: starting capture to {path}"),
            format!("[gapscope] MetalCapture: stopped (trace at {path})"),
        ]
    );
    let wrong = folder.path().join("a.wrong");
    let said = lines_of(name, &wrong);
    assert_eq!(said.len(), 1, "five passes, one reason: {said:?}");
    assert!(said[0].contains("must end in .gputrace"), "{said:?}");
    assert_eq!(lines_of(name, Path::new("")), [""; 0]);
}

//! Tests the program of MLX's guide to the Metal debugger, which captures ten additions, as it is ported to Rust. The
//! example `start_stop_capture` is the same on a GPU.

use crate::device::{MlxDevice, alone};
use gapscope_sdk::capture::{NotCaptured, start_capture_on, stop_capture};

/// Ports the guide's program: `mx.metal.start_capture(trace_file)`, ten times `mx.eval(mx.add(a, b))`,
/// `mx.metal.stop_capture()`.
fn ten_additions(device: &MlxDevice, trace_file: &str) -> Result<(), NotCaptured> {
    start_capture_on(device, trace_file)?;
    for _ in 0..10 {
        device.note("add");
    }
    stop_capture().map(drop)
}

#[test]
fn the_guides_program_captures_its_additions() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let trace_file = folder.path().join("mlx_trace.gputrace");
    let trace_file = trace_file.to_str().unwrap();
    let device = MlxDevice::default();
    ten_additions(&device, trace_file).unwrap();
    let log = device.log.lock().unwrap().join(" ");
    assert_eq!(log, format!("wait start{} wait stop", " add".repeat(10)));
    // "Make sure that the path does not already exist": the refusal says so, and the program goes on.
    let why = ten_additions(&device, trace_file).unwrap_err();
    assert!(matches!(why, NotCaptured::Exists { .. }), "{why}");
    // The guide's workflow inside of Xcode has no path.
    ten_additions(&device, "").unwrap();
}

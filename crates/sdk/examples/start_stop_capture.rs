//! Captures ten additions, as in MLX's guide to the Metal debugger:
//!
//! ```text
//! mx.metal.start_capture("mlx_trace.gputrace"); …; mx.metal.stop_capture()
//! ```
//!
//! Run it as
//! `gapscope record --capture-only -- target/debug/examples/start_stop_capture steps.gapscope`, on a Mac as
//! `MTL_CAPTURE_ENABLED=1 target/debug/examples/start_stop_capture steps.gputrace`. A second argument is how often a step
//! does its work, for steps that keep the GPU busy.

#[allow(dead_code)]
mod gpu;

use gapscope_sdk::capture::{start_capture_on, stop_capture};
use gapscope_sdk::label::label;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let default = match cfg!(target_vendor = "apple") {
        true => "steps.gputrace",
        false => "steps.gapscope",
    };
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| default.to_owned());
    let rounds = arguments.next().map_or(Ok(1), |n| n.parse::<u32>())?;
    for layer in 0..5 {
        // The recorder comes into the process with the GPU: these labels are in no recording.
        let _loading = label(&format!("load layer {layer}"));
    }
    let mut gpu = gpu::Gpu::open(false)?;
    // Warm-up: compiles the kernels, and is not in the capture.
    for _ in 0..3 {
        gpu.forward("warm-up", 1, false);
    }
    gpu.rounds = rounds;
    if let Err(why) = start_capture_on(&gpu.device, &path) {
        println!("not captured: {why}");
    }
    for step in 0..10 {
        let _step = label(&format!("step {step}"));
        gpu.forward("step", 1, false);
        gpu.wait()?;
    }
    match stop_capture() {
        Ok(captured) => println!("captured {:?}", captured.path().unwrap_or(path.as_ref())),
        Err(why) => println!("not captured: {why}"),
    }
    // This is not in the capture either.
    gpu.forward("afterwards", 1, false);
    gpu.wait()
}

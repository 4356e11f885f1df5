//! A program with forward passes, one of which the environment may ask to capture, as mlx-native's `MetalCapture`:
//!
//! `GAPSCOPE_CAPTURE=pass.gapscope gapscope record --capture-only -- target/debug/examples/capture_forward_pass`

#[allow(dead_code)]
mod gpu;

use gapscope_sdk::Capture;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = gpu::Gpu::open(false)?;
    for pass in 1..=4 {
        let mut capture = Capture::from_env(&gpu.device);
        // Before the first command buffer of the pass is made.
        let started = capture
            .as_mut()
            .map_err(|why| why.clone())
            .and_then(|c| c.begin());
        gpu.forward("forward", 4, false);
        let outcome = started.and_then(|()| capture.and_then(|mut capture| capture.end()));
        match outcome {
            Ok(captured) => println!("pass {pass}: captured {:?}", captured.destination),
            Err(why) => println!("pass {pass}: {why}"),
        }
    }
    gpu.wait()
}

//! A server that decodes tokens, the trigger's units, and captures some when the environment or a signal says so.
//!
//! `GAPSCOPE_CAPTURE=tokens.gapscope GAPSCOPE_CAPTURE_SKIP=10 GAPSCOPE_CAPTURE_TAKE=3 \
//!  gapscope record --capture-only -- target/debug/examples/capture_trigger 100`
//!
//! While it runs, `kill -USR2 PID` captures the next three tokens once more.

#[allow(dead_code)]
mod gpu;

use gapscope_sdk::Trigger;
use signal_hook::consts::SIGUSR2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tokens = std::env::args()
        .nth(1)
        .map_or(Ok(20), |n| n.parse::<u32>())?;
    let gpu = gpu::Gpu::open(false)?;
    let trigger = Trigger::from_env();
    trigger.arm_on_signal(SIGUSR2)?;
    for token in 1..=tokens {
        let unit = trigger.unit(&gpu.device);
        if unit.captured().is_ok() {
            println!("token {token} is captured");
        }
        gpu.forward("token", 2, true);
        if let Some(outcome) = unit.end() {
            match outcome {
                Ok(captured) => println!("captured {:?}", captured.destination),
                Err(why) => println!("not captured: {why}"),
            }
        }
    }
    gpu.wait()
}

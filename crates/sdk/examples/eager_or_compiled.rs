//! Compares an eager with a compiled model that do the same work: the kernels that they ran, the GPU times, and the
//! total times, as in the guide to profiling MLX with Instruments. Eager means a kernel for each operation, compiled
//! one for all of them. Busy time alone misleads: the compiled model may keep the GPU less busy because it has less
//! to do.

#[allow(dead_code)]
mod gpu;

use gapscope_sdk::kernel_profile::Snapshot;
use std::time::{Duration, Instant};

/// The layers of the model.
const LAYERS: u32 = 16;
/// The forward passes of each kind that are timed.
const RUNS: u32 = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gpu = gpu::Gpu::open(true)?;
    let mut results = Vec::new();
    for (name, fused) in [("eager", false), ("compiled", true)] {
        gpu.forward("warm-up", LAYERS, fused);
        gpu.wait()?;
        gpu.profiler.profile().reset();
        let started = Instant::now();
        for _ in 0..RUNS {
            gpu.forward(name, LAYERS, fused);
        }
        gpu.wait()?;
        results.push((name, started.elapsed(), gpu.profiler.profile().snapshot()));
    }
    for (name, took, snapshot) in &results {
        println!(
            "{name:>8}: {:>4} dispatches, GPU {:>8.2} ms, in all {:>8.2} ms",
            dispatches(snapshot),
            gpu_time(snapshot).as_secs_f64() * 1e3,
            took.as_secs_f64() * 1e3
        );
    }
    let [(_, eager, _), (_, compiled, _)] = results.as_slice() else {
        return Ok(());
    };
    println!(
        "compiled is {:.2} times as fast",
        eager.as_secs_f64() / compiled.as_secs_f64()
    );
    Ok(())
}

/// Returns the number of dispatches that were timed.
fn dispatches(snapshot: &Snapshot) -> u64 {
    snapshot
        .kernels
        .iter()
        .map(|kernel| kernel.times.count)
        .sum()
}

/// Returns the sum of the times of command buffers.
fn gpu_time(snapshot: &Snapshot) -> Duration {
    Duration::from_nanos(
        snapshot
            .labels
            .iter()
            .map(|(_, times)| times.total_ns)
            .sum(),
    )
}

//! Times each kernel of a program from inside it: as a table, as JSON, and as a trace that `gapscope report` opens.
//!
//! `target/debug/examples/kernel_profile [--json] [--dispatches] [--trace profile.gapscope]`
//!
//! `--passes` times passes as a whole, as Apple's GPUs do; `--all` counts the warm-up as well.

#[allow(dead_code)]
mod gpu;

use gapscope_sdk::kernel_profile;
use gapscope_sdk::wgpu::Capability;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given = |option: &str| std::env::args().any(|word| word == option);
    let mut gpu = gpu::Gpu::open(true)?;
    if given("--passes") {
        gpu.profiler = gpu.profiler.at_most(Capability::Passes);
    }
    // Compiles the kernels, which would count as their first runs' time.
    gpu.forward("warm-up", 1, false);
    gpu.wait()?;
    if !given("--all") {
        kernel_profile::reset();
    }
    for _ in 0..5 {
        gpu.forward("forward", 8, false);
        gpu.wait()?;
    }
    let profile = gpu.profiler.profile();
    let mut arguments = std::env::args().skip(1);
    let mut printed = false;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--all" | "--passes" => continue,
            "--json" => println!("{}", profile.snapshot().to_json()),
            "--dispatches" => println!("{}", serde_json::to_string(&profile.dump_dispatches())?),
            "--trace" => profile.write_trace(arguments.next().ok_or("--trace wants a path")?)?,
            other => return Err(format!("{other} is not an option").into()),
        }
        printed = true;
    }
    if !printed {
        print!("{}", profile.snapshot());
    }
    Ok(())
}

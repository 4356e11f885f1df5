//! Labels work in every way: by guards that end in any order, by macros, and by spans of `tracing`.
//!
//! `gapscope record -- target/debug/examples/labels`

#[allow(dead_code)]
mod gpu;

use gapscope_sdk::label::label;
use gapscope_sdk::tracing::Labels;
use gapscope_sdk::{label_function, label_scope};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

fn of_a_function(gpu: &gpu::Gpu) {
    label_function!();
    gpu.forward("", 1, true);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A program has its own layers beside this one.
    tracing_subscriber::registry().with(Labels::new()).init();
    let gpu = gpu::Gpu::open(false)?;
    of_a_function(&gpu);
    for step in 0..2 {
        label_scope!("step {step}");
        gpu.forward("", 1, true);
    }
    let outer = label("outer");
    let inner = label("inner");
    gpu.forward("", 1, true);
    drop(outer);
    gpu.forward("", 1, true);
    drop(inner);
    gpu.forward("", 1, true);
    tracing::info_span!("span").in_scope(|| gpu.forward("", 1, true));
    // Two spans that take turns on the thread, as tasks do.
    let [first, second] = [tracing::info_span!("first"), tracing::info_span!("second")];
    let first = first.entered();
    let second = second.entered();
    let first = first.exit();
    gpu.forward("", 1, true);
    drop((second, first));
    gpu.wait()
}

//! Labels work in every way: by guards that end in any order, by macros, and by spans of `tracing`.
//!
//! `gapscope record -- target/debug/examples/labels`

#[allow(dead_code)]
mod gpu;

use gapscope_sdk::label::label;
use gapscope_sdk::tracing::Labels;
use gapscope_sdk::{label_function, label_scope};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Dispatch, Event, Metadata, Subscriber, dispatcher};

/// The program's subscriber, which only numbers spans; programs have that of `tracing-subscriber`.
struct Numbers(AtomicU64);

impl Subscriber for Numbers {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.0.fetch_add(1, Relaxed))
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

fn of_a_function(gpu: &gpu::Gpu) {
    label_function!();
    gpu.forward("", 1, true);
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    dispatcher::set_global_default(Dispatch::new(Labels::around(Numbers(AtomicU64::new(1)))))?;
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

//! Notes conditions of the machine that may have changed the speed of the program: heat, power supply, lack of
//! memory, of processors or of disks.
//!
//! The conditions come from the counters that a recording measures beside the program
//! ([`Condition`](gapscope_trace::tables::Condition)). The manifest's `unmeasured` has the reasons why a counter is missing.
//!
//! Order: [`conditions`] is called once for a trace; `gpu.rs`, `machine.rs` and `pressure.rs` make the notes, with the helpers of
//! `note.rs`.

mod gpu;
mod machine;
mod note;
mod pressure;

pub use note::{ConditionKind, ConditionNote};
pub use pressure::Pressure;

use gapscope_timeline::Timeline;
use gapscope_timeline::counters::Counter;
use gapscope_timeline::vocabulary::Gpus;

/// Returns the notes on all conditions that `counters`, the recorded ones of the trace, show. Notes on GPUs come
/// first, then notes on the machine.
pub fn conditions(timeline: &Timeline, counters: &[Counter]) -> Vec<ConditionNote> {
    if counters.is_empty() {
        return Vec::new();
    }
    let gpus = Gpus::new(&timeline.trace.manifest);
    let mut notes = Vec::new();
    for gpu in 0..gpus.count() {
        let name = gpus.distinct_name(gpu);
        notes.extend(gpu::notes(timeline, counters, gpu, &name));
    }
    notes.extend(machine::notes(timeline, counters));
    notes.extend(pressure::notes(timeline, counters));
    notes
}

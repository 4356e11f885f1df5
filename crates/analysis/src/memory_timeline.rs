//! Memory timeline: what was allocated when.
//!
//! Figures are of device memory that the recorded programs asked the API for: not what the driver takes for itself, nor
//! what other programs hold. How much of an allocation is in use, the API does not say.

use crate::allocations::{Change, MemoryStep, each_step};
use crate::timeline::Timeline;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Device memory over the recording, by device and heap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct MemoryRow {
    /// Index of the device in the findings.
    pub device: u32,
    /// The heap; absent in the row for the whole device.
    pub heap: Option<u32>,
    /// Size of the heap, or of all heaps; absent when it is not known.
    pub heap_bytes: Option<u64>,
    /// Allocations made.
    pub allocation_count: u64,
    /// Allocations freed.
    pub free_count: u64,
    /// Sum of the sizes of all allocations.
    pub total_bytes: u64,
    /// Most that was allocated at one time.
    pub peak_bytes: u64,
    /// When that was first reached.
    pub peak_at_ns: Option<i64>,
    /// Still allocated at the end.
    pub live_bytes: u64,
    /// Allocations still live at the end.
    pub live_count: u64,
    /// Frees of what the trace does not show allocated: the figures may lack that.
    pub unmatched_free_count: u64,
}

/// Device memory by device, each followed by its heaps.
pub fn memory_timeline(timeline: &Timeline) -> Vec<MemoryRow> {
    let mut result: BTreeMap<(u32, Option<u32>), MemoryRow> = BTreeMap::new();
    each_step(timeline, |step| {
        let gpu = step.gpu as u32;
        for heap in [None, Some(step.heap)] {
            let memory = result.entry((gpu, heap)).or_insert_with(|| MemoryRow {
                device: gpu,
                heap,
                heap_bytes: heap_bytes(timeline, gpu, heap),
                ..MemoryRow::default()
            });
            memory.add(&step);
        }
    });
    result.into_values().collect()
}

impl MemoryRow {
    fn add(&mut self, step: &MemoryStep) {
        match step.change {
            Change::Allocated { bytes } => {
                self.allocation_count += 1;
                self.live_count += 1;
                self.total_bytes = self.total_bytes.saturating_add(bytes);
                self.live_bytes = self.live_bytes.saturating_add(bytes);
                if self.live_bytes > self.peak_bytes {
                    self.peak_bytes = self.live_bytes;
                    self.peak_at_ns = Some(step.at_ns);
                }
            }
            Change::Freed { bytes } => {
                self.free_count += 1;
                self.live_count = self.live_count.saturating_sub(1);
                self.live_bytes = self.live_bytes.saturating_sub(bytes);
            }
            Change::FreedUnknown => self.unmatched_free_count += 1,
        }
    }
}

fn heap_bytes(timeline: &Timeline, gpu: u32, heap: Option<u32>) -> Option<u64> {
    let device = timeline.gpus[gpu as usize].devices.first()?;
    let heaps = &timeline.trace.manifest.devices[*device].heaps;
    match heap {
        Some(heap) => heaps.get(heap as usize).copied(),
        None if heaps.is_empty() => None,
        None => Some(
            heaps
                .iter()
                .fold(0, |sum: u64, bytes| sum.saturating_add(*bytes)),
        ),
    }
}

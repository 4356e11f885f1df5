//! Sums up the allocations of device memory over the recording, by device and heap: peak, total and remaining bytes.
//!
//! Figures are of device memory that the recorded programs asked the API for, without memory that the driver takes for
//! itself or that other programs hold. The API does not tell how much of an allocation is in use.

use crate::memory_owners::{AllocatorPeak, MemoryOwner, memory_owners};
use gapscope_timeline::Timeline;
use gapscope_timeline::allocations::{MemoryChange, MemoryStep, each_step};
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
    /// How many allocations were made.
    pub allocation_count: u64,
    /// How many allocations were freed.
    pub free_count: u64,
    /// Sum of the sizes of all allocations.
    pub total_bytes: u64,
    /// The most memory that was allocated at one time.
    pub peak_bytes: u64,
    /// When the peak was first reached.
    pub peak_at_ns: Option<i64>,
    /// Memory that was still allocated at the end.
    pub live_bytes: u64,
    /// Allocations still live at the end.
    pub live_count: u64,
    /// Frees of memory whose allocation is not in the trace: the figures may lack that memory.
    pub unmatched_free_count: u64,
    /// The memory of the program's own allocator, such as PyTorch's, when its blocks took most; absent without its
    /// history, and in rows of heaps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocator: Option<AllocatorPeak>,
    /// Who holds that memory then, the greatest first; empty without the history.
    pub owners: Vec<MemoryOwner>,
}

/// Returns the device memory by device, each followed by its heaps.
pub fn memory_timeline(timeline: &Timeline) -> Vec<MemoryRow> {
    let mut result: BTreeMap<(u32, Option<u32>), MemoryRow> = BTreeMap::new();
    for (gpu, (peak, owners)) in memory_owners(timeline) {
        let row = MemoryRow {
            device: gpu,
            heap_bytes: heap_bytes(timeline, gpu, None),
            allocator: Some(peak),
            owners,
            ..MemoryRow::default()
        };
        result.insert((gpu, None), row);
    }
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
            MemoryChange::Allocated { bytes } => {
                self.allocation_count += 1;
                self.live_count += 1;
                self.total_bytes = self.total_bytes.saturating_add(bytes);
                self.live_bytes = self.live_bytes.saturating_add(bytes);
                if self.live_bytes > self.peak_bytes {
                    self.peak_bytes = self.live_bytes;
                    self.peak_at_ns = Some(step.at_ns);
                }
            }
            MemoryChange::Freed { bytes } => {
                self.free_count += 1;
                self.live_count = self.live_count.saturating_sub(1);
                self.live_bytes = self.live_bytes.saturating_sub(bytes);
            }
            MemoryChange::FreedUnknown => self.unmatched_free_count += 1,
        }
    }
}

/// Returns the size of a heap, or of all heaps for `None`, or `None` where it is not known.
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

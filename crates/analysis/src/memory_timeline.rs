//! Memory timeline: what was allocated when.
//!
//! Figures are of device memory that the recorded programs asked the API for: not what the driver takes for itself, nor
//! what other programs hold. How much of an allocation is in use, the API does not say.

use crate::timeline::Timeline;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId};
use gapscope_trace::tables::{MemoryEvent, Table};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Device memory over the recording, by device and heap.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
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
    let rows = &timeline.trace.tables.memory;
    let devices = &timeline.trace.manifest.devices;
    let mut gpu_of: HashMap<DeviceId, u32> = HashMap::new();
    for (index, gpu) in timeline.gpus.iter().enumerate() {
        for row in &gpu.devices {
            gpu_of.insert(devices[*row].id, index as u32);
        }
    }
    let mut order: Vec<usize> = (0..rows.len())
        .filter(|row| gpu_of.contains_key(&rows.device[*row]))
        .collect();
    // At one time, what is freed makes room for what is allocated.
    order.sort_by_key(|row| {
        let allocates = rows.event[*row] != MemoryEvent::Free;
        (rows.at_ns[*row], allocates, rows.allocation[*row])
    });
    let mut result: BTreeMap<(u32, Option<u32>), MemoryRow> = BTreeMap::new();
    let mut live: HashMap<(ProcessId, DeviceId, AllocationId), (u64, u32)> = HashMap::new();
    for row in order {
        let gpu = gpu_of[&rows.device[row]];
        let key = (rows.process[row], rows.device[row], rows.allocation[row]);
        let (event, heap, bytes) = (rows.event[row], rows.heap[row], rows.bytes[row]);
        let freed = match event {
            MemoryEvent::Allocate => {
                live.insert(key, (bytes, heap));
                None
            }
            MemoryEvent::Free => live.remove(&key),
            MemoryEvent::Unknown => continue,
        };
        let heap = freed.map_or(heap, |(_, heap)| heap);
        for heap in [None, Some(heap)] {
            let memory = result.entry((gpu, heap)).or_insert_with(|| MemoryRow {
                device: gpu,
                heap,
                heap_bytes: heap_bytes(timeline, gpu, heap),
                ..MemoryRow::default()
            });
            match (event, freed) {
                (MemoryEvent::Allocate, _) => {
                    memory.allocation_count += 1;
                    memory.live_count += 1;
                    memory.total_bytes = memory.total_bytes.saturating_add(bytes);
                    memory.live_bytes = memory.live_bytes.saturating_add(bytes);
                    if memory.live_bytes > memory.peak_bytes {
                        memory.peak_bytes = memory.live_bytes;
                        memory.peak_at_ns = Some(rows.at_ns[row]);
                    }
                }
                (_, Some((bytes, _))) => {
                    memory.free_count += 1;
                    memory.live_count = memory.live_count.saturating_sub(1);
                    memory.live_bytes = memory.live_bytes.saturating_sub(bytes);
                }
                (_, None) => memory.unmatched_free_count += 1,
            }
        }
    }
    result.into_values().collect()
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

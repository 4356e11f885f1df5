//! Visits allocations and frees of device memory in order of time, each free with the size that it frees, which is
//! that of its allocation.

use crate::timeline::Timeline;
use crate::vocabulary::Gpus;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId};
use gapscope_trace::tables::{MemoryEvent, Table};
use std::collections::HashMap;

/// An allocation or a free of memory on a GPU.
#[derive(Debug, Clone, Copy)]
pub struct MemoryStep {
    /// The index of the GPU in [`Timeline::gpus`].
    pub gpu: usize,
    /// The time of the change.
    pub at_ns: i64,
    /// The index of the heap that holds the memory.
    pub heap: u32,
    /// The kind of the change.
    pub change: MemoryChange,
}

/// The kind of a change of memory, with its size where that is known.
#[derive(Debug, Clone, Copy)]
pub enum MemoryChange {
    /// Memory was allocated.
    Allocated {
        /// The size of the allocation.
        bytes: u64,
    },
    /// Memory was freed.
    Freed {
        /// The size of the freed allocation.
        bytes: u64,
    },
    /// Memory was freed whose allocation is not in the trace.
    FreedUnknown,
}

/// Calls `visit` with each change of all GPUs in order of time. Changes on devices that the manifest does not list
/// are left out.
pub fn each_step(timeline: &Timeline, mut visit: impl FnMut(MemoryStep)) {
    // An allocation that has not been freed.
    struct Live {
        bytes: u64,
        heap: u32,
    }
    let rows = &timeline.trace.tables.memory;
    let gpus = Gpus::new(&timeline.trace.manifest);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    // Of steps at the same time frees come first: they make room for the allocations.
    order.sort_by_key(|row| {
        let allocates = rows.event[*row] != MemoryEvent::Free;
        (rows.at_ns[*row], allocates, rows.allocation[*row])
    });
    let mut live: HashMap<(ProcessId, DeviceId, AllocationId), Live> = HashMap::new();
    for row in order {
        let Some(gpu) = gpus.of_device(rows.device[row]) else {
            continue;
        };
        let key = (rows.process[row], rows.device[row], rows.allocation[row]);
        let (bytes, heap) = (rows.bytes[row], rows.heap[row]);
        let (heap, change) = match rows.event[row] {
            MemoryEvent::Allocate => {
                live.insert(key, Live { bytes, heap });
                (heap, MemoryChange::Allocated { bytes })
            }
            MemoryEvent::Free => match live.remove(&key) {
                Some(Live { bytes, heap }) => (heap, MemoryChange::Freed { bytes }),
                None => (heap, MemoryChange::FreedUnknown),
            },
            MemoryEvent::Unknown => continue,
        };
        visit(MemoryStep {
            gpu,
            at_ns: rows.at_ns[row],
            heap,
            change,
        });
    }
}

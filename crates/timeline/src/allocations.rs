//! Visits allocations and frees of device memory in order of time, each free with the size that it frees.

use crate::timeline::Timeline;
use crate::vocabulary::Gpus;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId};
use gapscope_trace::tables::{MemoryEvent, Table};
use std::collections::HashMap;

/// A change of the memory of a GPU.
#[derive(Debug, Clone, Copy)]
pub struct MemoryStep {
    /// Index of [`Timeline::gpus`].
    pub gpu: usize,
    /// When it happened.
    pub at_ns: i64,
    /// The heap.
    pub heap: u32,
    /// What happened.
    pub change: MemoryChange,
}

/// An allocation or a free.
#[derive(Debug, Clone, Copy)]
pub enum MemoryChange {
    /// Memory was allocated.
    Allocated {
        /// Its size.
        bytes: u64,
    },
    /// Memory was freed.
    Freed {
        /// Its size.
        bytes: u64,
    },
    /// Memory was freed whose allocation is not in the trace.
    FreedUnknown,
}

/// Visits the steps of all GPUs, except those of devices that the manifest does not list.
pub fn each_step(timeline: &Timeline, mut visit: impl FnMut(MemoryStep)) {
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

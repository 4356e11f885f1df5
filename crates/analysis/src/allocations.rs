//! Allocations and frees of device memory, in order of time, each free with what it frees.

use crate::timeline::Timeline;
use crate::vocabulary::Gpus;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId};
use gapscope_trace::tables::{MemoryEvent, Table};
use std::collections::HashMap;

/// A step of the memory of a GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemoryStep {
    /// Index of [`Timeline::gpus`].
    pub(crate) gpu: usize,
    pub(crate) at_ns: i64,
    pub(crate) heap: u32,
    pub(crate) change: Change,
}

/// What a step does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Allocated {
        bytes: u64,
    },
    Freed {
        bytes: u64,
    },
    /// What was freed the trace does not show allocated.
    FreedUnknown,
}

/// Visits the steps of all GPUs. What is on a device that the manifest does not list is left out.
pub(crate) fn each_step(timeline: &Timeline, mut visit: impl FnMut(MemoryStep)) {
    struct Live {
        bytes: u64,
        heap: u32,
    }
    let rows = &timeline.trace.tables.memory;
    let gpus = Gpus::of(&timeline.trace.manifest);
    let mut order: Vec<usize> = (0..rows.len()).collect();
    // At one time, what is freed makes room for what is allocated.
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
                (heap, Change::Allocated { bytes })
            }
            MemoryEvent::Free => match live.remove(&key) {
                Some(Live { bytes, heap }) => (heap, Change::Freed { bytes }),
                None => (heap, Change::FreedUnknown),
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

//! Buffers and the allocations behind them.

use gapscope_trace::ids::{AllocationId, BufferId, DeviceId, ProcessId};
use gapscope_trace::tables::{Buffer, Table, Tables};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Buffers that exist now; those that are gone have become rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Buffers {
    next: u32,
    alive: FxHashMap<BufferId, LiveBuffer>,
}

#[derive(Debug, Serialize, Deserialize)]
struct LiveBuffer {
    process: ProcessId,
    device: DeviceId,
    bytes: u64,
    allocation: Option<AllocationId>,
    offset: Option<u64>,
    name: Option<String>,
}

impl Buffers {
    /// A new buffer. Returns its id.
    pub fn add(&mut self, process: ProcessId, device: DeviceId, bytes: u64) -> BufferId {
        let id = BufferId(self.next);
        self.next += 1;
        let (allocation, offset, name) = (None, None, None);
        self.alive.insert(
            id,
            LiveBuffer {
                process,
                device,
                bytes,
                allocation,
                offset,
                name,
            },
        );
        id
    }

    /// The size of a buffer that exists.
    pub fn bytes(&self, id: BufferId) -> Option<u64> {
        self.alive.get(&id).map(|b| b.bytes)
    }

    /// A buffer got its memory.
    pub fn bind(&mut self, id: BufferId, allocation: Option<AllocationId>, offset: u64) {
        if let Some(buffer) = self.alive.get_mut(&id) {
            buffer.allocation = allocation;
            buffer.offset = Some(offset);
        }
    }

    /// The program named a buffer.
    pub fn name(&mut self, id: BufferId, name: Option<String>) {
        if let Some(buffer) = self.alive.get_mut(&id) {
            buffer.name = name;
        }
    }

    /// A buffer is gone: nothing can change any more, so it becomes a row.
    pub fn end(&mut self, id: BufferId, tables: &mut Tables) {
        if let Some(buffer) = self.alive.remove(&id) {
            buffer.write(id, tables);
        }
    }

    /// Appends a row for each buffer that still exists.
    pub fn write(&mut self, tables: &mut Tables) {
        let mut rest: Vec<_> = self.alive.drain().collect();
        rest.sort_unstable_by_key(|(id, _)| *id);
        for (id, buffer) in rest {
            buffer.write(id, tables);
        }
    }
}

impl LiveBuffer {
    fn write(self, id: BufferId, tables: &mut Tables) {
        tables.buffers.push(Buffer {
            id,
            process: self.process,
            device: self.device,
            bytes: self.bytes,
            allocation: self.allocation,
            offset_bytes: self.offset,
            name: self.name.map(Into::into),
        });
    }
}

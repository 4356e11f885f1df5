//! Tracks Vulkan buffers and the allocations behind them; each buffer becomes a row when it ends, or at the end of
//! the trace.

use gapscope_trace::ids::{AllocationId, BufferId, DeviceId, ProcessId};
use gapscope_trace::tables::{Buffer, Table, Tables};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// The buffers that exist; destroyed buffers have become rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Buffers {
    /// The id of the next buffer.
    next: u32,
    alive: FxHashMap<BufferId, LiveBuffer>,
}

/// A buffer that exists, with its place in an allocation, once it has one.
#[derive(Debug, Serialize, Deserialize)]
struct LiveBuffer {
    process: ProcessId,
    device: DeviceId,
    bytes: u64,
    allocation: Option<AllocationId>,
    /// The place in the allocation, in bytes.
    offset: Option<u64>,
    name: Option<String>,
}

impl Buffers {
    /// Adds a buffer and returns its id.
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

    /// Returns the size of an existing buffer.
    pub fn bytes(&self, id: BufferId) -> Option<u64> {
        self.alive.get(&id).map(|b| b.bytes)
    }

    /// Records the memory of a buffer.
    pub fn bind(&mut self, id: BufferId, allocation: Option<AllocationId>, offset: u64) {
        if let Some(buffer) = self.alive.get_mut(&id) {
            buffer.allocation = allocation;
            buffer.offset = Some(offset);
        }
    }

    /// Records the name that the program gave a buffer.
    pub fn name(&mut self, id: BufferId, name: Option<String>) {
        if let Some(buffer) = self.alive.get_mut(&id) {
            buffer.name = name;
        }
    }

    /// Ends a buffer, which can no longer change and becomes a row.
    pub fn end(&mut self, id: BufferId, tables: &mut Tables) {
        if let Some(buffer) = self.alive.remove(&id) {
            buffer.write(id, tables);
        }
    }

    /// Appends a row for each existing buffer.
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

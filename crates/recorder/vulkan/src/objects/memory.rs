//! Keeps the device memory and the buffers of a device. As the program creates, binds and frees them, their events
//! are written; other modules ask for the id of a buffer by its handle.

use crate::handles::Handles;
use crate::recorder::Recorder;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{CommonEvent, VulkanEvent};
use gapscope_spool::{ids, monotonic_ns};

#[derive(Clone, Copy)]
struct Buffer {
    id: ids::Buffer,
    bytes: u64,
}

/// The memory and the buffers of a device.
pub struct Memory {
    recorder: &'static Recorder,
    device: ids::Device,
    /// The memory types and heaps of the device.
    properties: vk::PhysicalDeviceMemoryProperties,
    buffers: Handles<Buffer>,
    allocations: Handles<ids::Allocation>,
}

impl Memory {
    pub fn new(
        recorder: &'static Recorder,
        device: ids::Device,
        properties: vk::PhysicalDeviceMemoryProperties,
    ) -> Memory {
        Memory {
            recorder,
            device,
            properties,
            buffers: Handles::default(),
            allocations: Handles::default(),
        }
    }

    /// Returns the id of a buffer, or [`ids::Buffer::NONE`] for an unknown one.
    pub fn buffer_id(&self, buffer: vk::Buffer) -> ids::Buffer {
        let id = self.buffers.with(buffer.as_raw(), |b| b.id);
        id.unwrap_or_default()
    }

    /// Returns the size of a buffer; `None` for an unknown one.
    pub fn buffer_bytes(&self, buffer: vk::Buffer) -> Option<u64> {
        self.buffers.with(buffer.as_raw(), |b| b.bytes)
    }

    /// Writes that a buffer was created, and keeps its id and size.
    pub fn add_buffer(&self, handle: vk::Buffer, bytes: u64) {
        let id = self.recorder.ids.buffer.next();
        self.buffers.insert(handle.as_raw(), Buffer { id, bytes });
        self.recorder.write(&VulkanEvent::Buffer {
            buffer: id,
            device: self.device,
            bytes,
            at_ns: monotonic_ns(),
        });
    }

    /// Writes that a buffer is destroyed, and forgets it.
    pub fn remove_buffer(&self, handle: vk::Buffer) {
        if let Some(buffer) = self.buffers.remove(handle.as_raw()) {
            self.recorder.write(&VulkanEvent::BufferEnd {
                buffer: buffer.id,
                at_ns: monotonic_ns(),
            });
        }
    }

    /// Writes at which offset of which allocation a buffer lies; nothing where either is unknown.
    pub fn bind_buffer(&self, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64) {
        let (Some(buffer), Some(memory)) = (
            self.buffers.get(buffer.as_raw()),
            self.allocations.get(memory.as_raw()),
        ) else {
            return;
        };
        self.recorder.write(&VulkanEvent::BufferMemory {
            buffer: buffer.id,
            memory,
            offset,
        });
    }

    /// Writes that memory was allocated, with its heap and size, and keeps its id.
    pub fn add_allocation(&self, handle: vk::DeviceMemory, info: &vk::MemoryAllocateInfo<'_>) {
        let types = &self.properties.memory_types;
        let memory_type = types.get(info.memory_type_index as usize);
        let memory = self.recorder.ids.memory.next();
        self.allocations.insert(handle.as_raw(), memory);
        self.recorder.write(&CommonEvent::Allocate {
            memory,
            device: self.device,
            heap: memory_type.map_or(0, |memory_type| memory_type.heap_index),
            bytes: info.allocation_size,
            at_ns: monotonic_ns(),
        });
    }

    /// Writes that memory is freed, and forgets it.
    pub fn remove_allocation(&self, handle: vk::DeviceMemory) {
        if let Some(memory) = self.allocations.remove(handle.as_raw()) {
            self.recorder.write(&CommonEvent::Free {
                memory,
                at_ns: monotonic_ns(),
            });
        }
    }
}

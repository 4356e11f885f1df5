//! Device memory and buffers.

use crate::device::{self, Device};
use crate::host_calls::HostCallTimer;
use crate::instance::slice;
use crate::recorder::next_id;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{CommonEvent, HostCallKind as Call, VulkanEvent};
use gapscope_spool::hook::guard;
use gapscope_spool::{ids, monotonic_ns};

/// A buffer.
#[derive(Clone, Copy)]
pub struct Buffer {
    id: ids::Buffer,
    bytes: u64,
}

impl Device {
    /// The id of a buffer; none where it is not known.
    pub fn buffer_id(&self, buffer: vk::Buffer) -> ids::Buffer {
        let id = self.buffers.with(buffer.as_raw(), |b| b.id);
        id.unwrap_or_default()
    }

    pub fn buffer_bytes(&self, buffer: vk::Buffer) -> Option<u64> {
        self.buffers.with(buffer.as_raw(), |b| b.bytes)
    }

    fn bind(&self, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64) {
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
}

pub unsafe extern "system" fn allocate_memory(
    handle: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.allocate_memory) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, info, allocator, out);
        guard(|| {
            let bytes = (*info).allocation_size;
            timer.finish(
                device,
                Call::AllocateMemory,
                result.as_raw(),
                None,
                Some(bytes),
            );
            if result == vk::Result::SUCCESS {
                let types = &device.physical.memory.memory_types;
                let kind = types
                    .get((*info).memory_type_index as usize)
                    .copied()
                    .unwrap_or_default();
                let memory = next_id(&device.recorder.ids.memory);
                device.allocations.insert((*out).as_raw(), memory);
                device.recorder.write(&CommonEvent::Allocate {
                    memory,
                    device: device.id,
                    heap: kind.heap_index,
                    bytes,
                    at_ns: monotonic_ns(),
                });
            }
        });
        result
    }
}

pub unsafe extern "system" fn free_memory(
    handle: vk::Device,
    memory: vk::DeviceMemory,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.free_memory) else {
            return;
        };
        let timer = HostCallTimer::start(device);
        guard(|| {
            if let Some(memory) = device.allocations.remove(memory.as_raw()) {
                device.recorder.write(&CommonEvent::Free {
                    memory,
                    at_ns: monotonic_ns(),
                });
            }
        });
        call(handle, memory, allocator);
        guard(|| timer.finish(device, Call::FreeMemory, 0, None, None));
    }
}

pub unsafe extern "system" fn map_memory(
    handle: vk::Device,
    memory: vk::DeviceMemory,
    offset: u64,
    size: u64,
    flags: vk::MemoryMapFlags,
    out: *mut *mut std::ffi::c_void,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.map_memory) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device);
        let result = call(handle, memory, offset, size, flags, out);
        let bytes = (size != vk::WHOLE_SIZE).then_some(size);
        guard(|| timer.finish(device, Call::MapMemory, result.as_raw(), None, bytes));
        result
    }
}

pub unsafe extern "system" fn create_buffer(
    handle: vk::Device,
    info: *const vk::BufferCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Buffer,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.create_buffer) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let buffer = Buffer {
                    id: next_id(&device.recorder.ids.buffer),
                    bytes: (*info).size,
                };
                device.buffers.insert((*out).as_raw(), buffer);
                device.recorder.write(&VulkanEvent::Buffer {
                    buffer: buffer.id,
                    device: device.id,
                    bytes: buffer.bytes,
                    at_ns: monotonic_ns(),
                });
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_buffer(
    handle: vk::Device,
    buffer: vk::Buffer,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.destroy_buffer) else {
            return;
        };
        guard(|| {
            if let Some(buffer) = device.buffers.remove(buffer.as_raw()) {
                device.recorder.write(&VulkanEvent::BufferEnd {
                    buffer: buffer.id,
                    at_ns: monotonic_ns(),
                });
            }
        });
        call(handle, buffer, allocator);
    }
}

pub unsafe extern "system" fn bind_buffer_memory(
    handle: vk::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    offset: u64,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.bind_buffer_memory) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, buffer, memory, offset);
        guard(|| device.bind(buffer, memory, offset));
        result
    }
}

pub unsafe extern "system" fn bind_buffer_memory2(
    handle: vk::Device,
    count: u32,
    infos: *const vk::BindBufferMemoryInfo<'_>,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.bind_buffer_memory2) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, count, infos);
        guard(|| {
            for info in slice(infos, count) {
                device.bind(info.buffer, info.memory, info.memory_offset);
            }
        });
        result
    }
}

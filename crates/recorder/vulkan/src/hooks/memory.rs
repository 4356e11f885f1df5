//! Device memory and buffers as programs allocate, create and free them.

use crate::api::arguments::slice;
use crate::devices;
use crate::host_call::HostCallTimer;
use ash::vk;
use gapscope_spool::event::HostCallKind;
use gapscope_spool::hook::guard;

pub unsafe extern "system" fn allocate_memory(
    handle: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.allocate_memory) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device.recorder);
        let result = call(handle, info, allocator, out);
        guard(|| {
            let bytes = Some((*info).allocation_size);
            timer.finish_with_bytes(HostCallKind::AllocateMemory, result, bytes);
            if result == vk::Result::SUCCESS {
                device.memory.add_allocation(*out, &*info);
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
        let Some((device, call)) = devices::with(handle, |f| f.free_memory) else {
            return;
        };
        let timer = HostCallTimer::start(device.recorder);
        guard(|| device.memory.remove_allocation(memory));
        call(handle, memory, allocator);
        guard(|| timer.finish(HostCallKind::FreeMemory, vk::Result::SUCCESS));
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
        let Some((device, call)) = devices::with(handle, |f| f.map_memory) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device.recorder);
        let result = call(handle, memory, offset, size, flags, out);
        let bytes = (size != vk::WHOLE_SIZE).then_some(size);
        guard(|| timer.finish_with_bytes(HostCallKind::MapMemory, result, bytes));
        result
    }
}

pub unsafe extern "system" fn map_memory2(
    handle: vk::Device,
    info: *const vk::MemoryMapInfoKHR<'_>,
    out: *mut *mut std::ffi::c_void,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.map_memory2) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let timer = HostCallTimer::start(device.recorder);
        let result = call(handle, info, out);
        guard(|| {
            let bytes = Some((*info).size).filter(|size| *size != vk::WHOLE_SIZE);
            timer.finish_with_bytes(HostCallKind::MapMemory, result, bytes);
        });
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
        let Some((device, call)) = devices::with(handle, |f| f.create_buffer) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| device.memory.add_buffer(*out, (*info).size));
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
        let Some((device, call)) = devices::with(handle, |f| f.destroy_buffer) else {
            return;
        };
        guard(|| device.memory.remove_buffer(buffer));
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
        let Some((device, call)) = devices::with(handle, |f| f.bind_buffer_memory) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, buffer, memory, offset);
        guard(|| device.memory.bind_buffer(buffer, memory, offset));
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
        let Some((device, call)) = devices::with(handle, |f| f.bind_buffer_memory2) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, count, infos);
        guard(|| {
            for info in slice(infos, count) {
                device
                    .memory
                    .bind_buffer(info.buffer, info.memory, info.memory_offset);
            }
        });
        result
    }
}

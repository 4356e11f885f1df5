//! Allocations, and buffers, which get a usage more: to be copied from.

use std::sync::{Arc, Mutex, OnceLock};

use ash::vk::{self, Handle};
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::arguments::{find, slice};

use crate::api::device::{self, Device};
use crate::objects::Serial;
use crate::objects::memory::{Buffer, Memory, refusal};

pub unsafe extern "system" fn allocate_memory(
    handle: vk::Device,
    info: *const vk::MemoryAllocateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DeviceMemory,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let result = (device.next.fp_v1_0().allocate_memory)(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let memory = Memory {
                    serial: Serial::next(),
                    bytes: (*info).allocation_size,
                    properties: device.properties_of((*info).memory_type_index),
                    refusal: refusal((*info).p_next),
                };
                device
                    .objects
                    .memories
                    .insert((*out).as_raw(), Arc::new(memory));
            });
        }
        result
    }
}

pub unsafe extern "system" fn free_memory(
    handle: vk::Device,
    memory: vk::DeviceMemory,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| device.objects.memories.remove(memory.as_raw()));
        (device.next.fp_v1_0().free_memory)(handle, memory, allocator);
    }
}

/// VkBufferUsageFlags2CreateInfo
#[repr(C)]
struct Usage2 {
    head: vk::BaseInStructure<'static>,
    usage: u64,
}

/// What the program asked for, wherever it said so.
///
/// # Safety
/// `info` is valid.
unsafe fn usage(info: &vk::BufferCreateInfo<'_>) -> (u64, bool) {
    let wanted = vk::StructureType::BUFFER_USAGE_FLAGS_2_CREATE_INFO_KHR;
    // SAFETY: as the caller promises.
    match unsafe { find::<Usage2>(info.p_next, wanted) } {
        Some(usage) => (usage.usage, true),
        None => (info.usage.as_raw().into(), false),
    }
}

const SOURCE: u64 = vk::BufferUsageFlags::TRANSFER_SRC.as_raw() as u64;

/// Calls with a create-info that has our usage, too. Its chain is the program's; a usage inside of it is changed for the call.
///
/// # Safety
/// `info` is the program's, during its call.
unsafe fn with_source<R>(
    info: &vk::BufferCreateInfo<'_>,
    call: impl FnOnce(&vk::BufferCreateInfo<'_>) -> R,
) -> Option<R> {
    // SAFETY: as the caller promises.
    let (asked, is_chained) = unsafe { usage(info) };
    let is_protected = info.flags.contains(vk::BufferCreateFlags::PROTECTED);
    // A usage in the chain is the program's memory, which may be constant: it is left alone.
    if is_chained || is_protected || asked & SOURCE != 0 {
        return None;
    }
    let mut ours = *info;
    ours.usage |= vk::BufferUsageFlags::TRANSFER_SRC;
    Some(call(&ours))
}

pub unsafe extern "system" fn create_buffer(
    handle: vk::Device,
    info: *const vk::BufferCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Buffer,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let create = device.next.fp_v1_0().create_buffer;
        let added = with_source(&*info, |ours| create(handle, ours, allocator, out));
        let is_added = added == Some(vk::Result::SUCCESS);
        let result = if is_added {
            vk::Result::SUCCESS
        } else {
            create(handle, info, allocator, out)
        };
        if result == vk::Result::SUCCESS {
            guard(|| {
                let (usage, _) = usage(&*info);
                let buffer = Buffer {
                    serial: Serial::next(),
                    handle: *out,
                    bytes: (*info).size,
                    usage,
                    flags: (*info).flags,
                    is_readable: is_added || usage & SOURCE != 0,
                    place: OnceLock::new(),
                    name: Mutex::default(),
                };
                device
                    .objects
                    .buffers
                    .insert((*out).as_raw(), Arc::new(buffer));
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
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| device.objects.buffers.remove(buffer.as_raw()));
        (device.next.fp_v1_0().destroy_buffer)(handle, buffer, allocator);
    }
}

/// Answers for the buffer that [`create_buffer`] would make.
pub unsafe extern "system" fn get_device_buffer_memory_requirements(
    handle: vk::Device,
    info: *const vk::DeviceBufferMemoryRequirements<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        let call = device.next.fp_v1_3().get_device_buffer_memory_requirements;
        let done = with_source(&*(*info).p_create_info, |ours| {
            let mut asked = *info;
            asked.p_create_info = ours;
            call(handle, &asked, out);
        });
        if done.is_none() {
            call(handle, info, out);
        }
    }
}

fn bind(device: &Device, buffer: vk::Buffer, memory: vk::DeviceMemory, offset: u64) {
    let memory = device.objects.memories.get(memory.as_raw());
    let buffer = device.objects.buffers.get(buffer.as_raw());
    if let (Some(memory), Some(buffer)) = (memory, buffer) {
        let _ = buffer.place.set((memory, offset));
    }
}

pub unsafe extern "system" fn bind_buffer_memory(
    handle: vk::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    offset: vk::DeviceSize,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let result = (device.next.fp_v1_0().bind_buffer_memory)(handle, buffer, memory, offset);
        if result == vk::Result::SUCCESS {
            guard(|| bind(device, buffer, memory, offset));
        }
        result
    }
}

pub unsafe extern "system" fn bind_buffer_memory2(
    handle: vk::Device,
    count: u32,
    infos: *const vk::BindBufferMemoryInfo<'_>,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let result = (device.next.fp_v1_1().bind_buffer_memory2)(handle, count, infos);
        if result == vk::Result::SUCCESS {
            guard(|| {
                for info in slice(infos, count) {
                    bind(device, info.buffer, info.memory, info.memory_offset);
                }
            });
        }
        result
    }
}

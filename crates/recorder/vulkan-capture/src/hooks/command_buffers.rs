//! Command pools and command buffers.

use ash::vk::{self, Handle};
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::arguments::slice;
use gapscope_vulkan_layer::handles::lock;

use crate::api::device::{self, Device};

pub unsafe extern "system" fn create_command_pool(
    handle: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::CommandPool,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        (device.next.fp_v1_0().create_command_pool)(handle, info, allocator, out)
    }
}

pub unsafe extern "system" fn destroy_command_pool(
    handle: vk::Device,
    pool: vk::CommandPool,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| {
            let members = lock(&device.objects.command_pools).remove(&pool.as_raw());
            for buffer in members.unwrap_or_default() {
                device.objects.command_buffers.remove(buffer.as_raw());
            }
        });
        (device.next.fp_v1_0().destroy_command_pool)(handle, pool, allocator);
    }
}

pub unsafe extern "system" fn reset_command_pool(
    handle: vk::Device,
    pool: vk::CommandPool,
    flags: vk::CommandPoolResetFlags,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        guard(|| {
            let members = lock(&device.objects.command_pools)
                .get(&pool.as_raw())
                .cloned();
            for buffer in members.unwrap_or_default() {
                empty(device, buffer);
            }
        });
        (device.next.fp_v1_0().reset_command_pool)(handle, pool, flags)
    }
}

pub unsafe extern "system" fn allocate_command_buffers(
    handle: vk::Device,
    info: *const vk::CommandBufferAllocateInfo<'_>,
    out: *mut vk::CommandBuffer,
) -> vk::Result {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        let result = (device.next.fp_v1_0().allocate_command_buffers)(handle, info, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let made = slice(out, (*info).command_buffer_count);
                for buffer in made {
                    device
                        .objects
                        .command_buffers
                        .insert(buffer.as_raw(), Default::default());
                }
                let mut pools = lock(&device.objects.command_pools);
                pools
                    .entry((*info).command_pool.as_raw())
                    .or_default()
                    .extend(made);
            });
        }
        result
    }
}

pub unsafe extern "system" fn free_command_buffers(
    handle: vk::Device,
    pool: vk::CommandPool,
    count: u32,
    buffers: *const vk::CommandBuffer,
) {
    // SAFETY: the program's own call on a live device.
    unsafe {
        let Some(device) = device::of(handle) else {
            return;
        };
        guard(|| {
            let freed = slice(buffers, count);
            for buffer in freed {
                device.objects.command_buffers.remove(buffer.as_raw());
            }
            if let Some(members) = lock(&device.objects.command_pools).get_mut(&pool.as_raw()) {
                members.retain(|buffer| !freed.contains(buffer));
            }
        });
        (device.next.fp_v1_0().free_command_buffers)(handle, pool, count, buffers);
    }
}

pub unsafe extern "system" fn begin_command_buffer(
    buffer: vk::CommandBuffer,
    info: *const vk::CommandBufferBeginInfo<'_>,
) -> vk::Result {
    // SAFETY: the program's own call on a live command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        guard(|| empty(device, buffer));
        (device.next.fp_v1_0().begin_command_buffer)(buffer, info)
    }
}

pub unsafe extern "system" fn reset_command_buffer(
    buffer: vk::CommandBuffer,
    flags: vk::CommandBufferResetFlags,
) -> vk::Result {
    // SAFETY: the program's own call on a live command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return vk::Result::ERROR_DEVICE_LOST;
        };
        guard(|| empty(device, buffer));
        (device.next.fp_v1_0().reset_command_buffer)(buffer, flags)
    }
}

fn empty(device: &Device, buffer: vk::CommandBuffer) {
    if let Some(state) = device.objects.command_buffers.get(buffer.as_raw()) {
        lock(&state).commands.clear();
    }
}

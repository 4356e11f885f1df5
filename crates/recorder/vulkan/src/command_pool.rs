//! Command pools: where command buffers come from, and which queue family they are for.

use crate::command_buffer::{CommandBuffer, state};
use crate::device::{self, Device};
use crate::handles::{HandleMap, lock};
use crate::instance::slice;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::hook::guard;
use std::sync::MutexGuard;

/// What is known of a command pool.
pub struct CommandPool {
    family: u32,
    members: Vec<vk::CommandBuffer>,
}

fn pools(device: &Device) -> MutexGuard<'_, HandleMap<CommandPool>> {
    lock(&device.command_pools)
}

pub unsafe extern "system" fn create_command_pool(
    handle: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::CommandPool,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.create_command_pool) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let pool = CommandPool {
                    family: (*info).queue_family_index,
                    members: Vec::new(),
                };
                pools(device).insert((*out).as_raw(), pool);
            });
        }
        result
    }
}

pub unsafe extern "system" fn destroy_command_pool(
    handle: vk::Device,
    pool: vk::CommandPool,
    allocator: *const vk::AllocationCallbacks<'_>,
) {
    // SAFETY: the program's own call; the members of the pool are free now.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.destroy_command_pool) else {
            return;
        };
        guard(|| {
            let members = pools(device).remove(&pool.as_raw()).map(|p| p.members);
            members
                .into_iter()
                .flatten()
                .for_each(|cb| CommandBuffer::remove(cb));
        });
        call(handle, pool, allocator);
    }
}

pub unsafe extern "system" fn reset_command_pool(
    handle: vk::Device,
    pool: vk::CommandPool,
    flags: vk::CommandPoolResetFlags,
) -> vk::Result {
    // SAFETY: the program's own call; the members of the pool are not pending.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.reset_command_pool) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| {
            let pools = pools(device);
            for member in pools.get(&pool.as_raw()).iter().flat_map(|p| &p.members) {
                if let Some(state) = state(*member) {
                    state.forget_recording();
                }
            }
        });
        call(handle, pool, flags)
    }
}

pub unsafe extern "system" fn allocate_command_buffers(
    handle: vk::Device,
    info: *const vk::CommandBufferAllocateInfo<'_>,
    out: *mut vk::CommandBuffer,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.allocate_command_buffers) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let made = slice(out.cast_const(), (*info).command_buffer_count);
                let secondary = (*info).level == vk::CommandBufferLevel::SECONDARY;
                let mut pools = pools(device);
                let Some(pool) = pools.get_mut(&(*info).command_pool.as_raw()) else {
                    return;
                };
                for cb in made {
                    CommandBuffer::add(device, *cb, pool.family, secondary);
                }
                pool.members.extend(made);
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
    // SAFETY: the program's own call; the command buffers are free now.
    unsafe {
        let Some((device, call)) = device::with(handle, |f| f.free_command_buffers) else {
            return;
        };
        guard(|| {
            let freed = slice(buffers, count);
            freed.iter().for_each(|cb| CommandBuffer::remove(*cb));
            if let Some(pool) = pools(device).get_mut(&pool.as_raw()) {
                pool.members.retain(|cb| !freed.contains(cb));
            }
        });
        call(handle, pool, count, buffers);
    }
}

//! Command pools as programs create, reset and destroy them, and their command buffers.

use crate::api::arguments::slice;
use crate::command_buffer::CommandBuffer;
use crate::command_buffers;
use crate::devices;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::hook::guard;

pub unsafe extern "system" fn create_command_pool(
    handle: vk::Device,
    info: *const vk::CommandPoolCreateInfo<'_>,
    allocator: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::CommandPool,
) -> vk::Result {
    // SAFETY: the program's own call.
    unsafe {
        let Some((device, call)) = devices::with(handle, |f| f.create_command_pool) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            guard(|| device.command_pools.add(*out, &*info));
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
        let Some((device, call)) = devices::with(handle, |f| f.destroy_command_pool) else {
            return;
        };
        guard(|| {
            let removed = device.command_pools.lock().remove(&pool.as_raw());
            for member in removed.into_iter().flat_map(|pool| pool.members) {
                command_buffers::remove(member);
            }
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
        let Some((device, call)) = devices::with(handle, |f| f.reset_command_pool) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        guard(|| {
            let pools = device.command_pools.lock();
            for member in pools.get(&pool.as_raw()).iter().flat_map(|p| &p.members) {
                if let Some(state) = command_buffers::state(*member) {
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
        let Some((device, call)) = devices::with(handle, |f| f.allocate_command_buffers) else {
            return vk::Result::ERROR_INITIALIZATION_FAILED;
        };
        let result = call(handle, info, out);
        if result == vk::Result::SUCCESS {
            guard(|| {
                let made = slice(out.cast_const(), (*info).command_buffer_count);
                let secondary = (*info).level == vk::CommandBufferLevel::SECONDARY;
                let mut pools = device.command_pools.lock();
                let Some(pool) = pools.get_mut(&(*info).command_pool.as_raw()) else {
                    return;
                };
                for cb in made {
                    let state = CommandBuffer::new(device, *cb, pool, secondary);
                    command_buffers::add(*cb, state);
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
        let Some((device, call)) = devices::with(handle, |f| f.free_command_buffers) else {
            return;
        };
        guard(|| {
            let freed = slice(buffers, count);
            freed.iter().for_each(|cb| command_buffers::remove(*cb));
            if let Some(pool) = device.command_pools.lock().get_mut(&pool.as_raw()) {
                pool.members.retain(|cb| !freed.contains(cb));
            }
        });
        call(handle, pool, count, buffers);
    }
}

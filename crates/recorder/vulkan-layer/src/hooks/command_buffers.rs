//! Hooks of command pools and command buffers: their creation, begin, reset and end of life.

use ash::vk;
use ash::vk::Handle;

use super::{Allocator, hooks};
use crate::arguments::slice;

hooks! {
    L: CommandHooks;

    fn create_command_pool(
        handle: vk::Device,
        info: *const vk::CommandPoolCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::CommandPool,
    ) -> vk::Result = |device, call| {
        let result = call(handle, info, allocator, out);
        if result == vk::Result::SUCCESS {
            L::guard(|| device.command_pools().add(*out, &*info));
        }
        result
    }

    fn destroy_command_pool(handle: vk::Device, pool: vk::CommandPool, allocator: Allocator<'_>) = |device, call| {
        L::guard(|| {
            let removed = device.command_pools().lock().remove(&pool.as_raw());
            for member in removed.into_iter().flat_map(|pool| pool.members) {
                device.remove_command_buffer(member);
            }
        });
        call(handle, pool, allocator);
    }

    fn reset_command_pool(
        handle: vk::Device,
        pool: vk::CommandPool,
        flags: vk::CommandPoolResetFlags,
    ) -> vk::Result = |device, call| {
        L::guard(|| {
            let pools = device.command_pools().lock();
            for member in pools.get(&pool.as_raw()).iter().flat_map(|pool| &pool.members) {
                device.reset(*member);
            }
        });
        call(handle, pool, flags)
    }

    fn allocate_command_buffers(
        handle: vk::Device,
        info: *const vk::CommandBufferAllocateInfo<'_>,
        out: *mut vk::CommandBuffer,
    ) -> vk::Result = |device, call| {
        let result = call(handle, info, out);
        if result == vk::Result::SUCCESS {
            L::guard(|| {
                let made = slice(out.cast_const(), (*info).command_buffer_count);
                let mut pools = device.command_pools().lock();
                let Some(pool) = pools.get_mut(&(*info).command_pool.as_raw()) else {
                    return;
                };
                for command_buffer in made {
                    device.add_command_buffer(*command_buffer, pool, (*info).level);
                }
                pool.members.extend(made);
            });
        }
        result
    }

    fn free_command_buffers(
        handle: vk::Device,
        pool: vk::CommandPool,
        count: u32,
        command_buffers: *const vk::CommandBuffer,
    ) = |device, call| {
        L::guard(|| {
            let freed = slice(command_buffers, count);
            for command_buffer in freed {
                device.remove_command_buffer(*command_buffer);
            }
            if let Some(pool) = device.command_pools().lock().get_mut(&pool.as_raw()) {
                pool.members.retain(|member| !freed.contains(member));
            }
        });
        call(handle, pool, count, command_buffers);
    }

    fn begin_command_buffer(
        handle: vk::CommandBuffer,
        info: *const vk::CommandBufferBeginInfo<'_>,
    ) -> vk::Result = |device, call| {
        let result = call(handle, info);
        if result == vk::Result::SUCCESS {
            L::guard(|| device.begin(handle, &*info));
        }
        result
    }

    fn reset_command_buffer(handle: vk::CommandBuffer, flags: vk::CommandBufferResetFlags) -> vk::Result = |device, call| {
        L::guard(|| device.reset(handle));
        call(handle, flags)
    }
}

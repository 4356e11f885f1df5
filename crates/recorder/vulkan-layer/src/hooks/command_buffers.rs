//! Hooks the creation, begin, reset and destruction of command pools and command buffers, and tells the layer through
//! [`CommandHooks`](crate::layer::CommandHooks). The macro `device_hooks` says when the work after `=` runs: before the call is passed on, or
//! after it has succeeded.

use ash::vk;
use ash::vk::Handle;

use super::Allocator;
use crate::arguments::slice;
use crate::device_hooks;

device_hooks! {
    [L: CommandHooks]

    fn create_command_pool(
        handle: vk::Device,
        info: *const vk::CommandPoolCreateInfo<'_>,
        allocator: Allocator<'_>,
        out: *mut vk::CommandPool,
    ) -> vk::Result = after |device| device.command_pools().add(*out, &*info);

    fn destroy_command_pool(handle: vk::Device, pool: vk::CommandPool, allocator: Allocator<'_>) = before |device| {
        let removed = device.command_pools().lock().remove(&pool.as_raw());
        for member in removed.into_iter().flat_map(|pool| pool.members) {
            device.remove_command_buffer(member);
        }
    };

    fn reset_command_pool(
        handle: vk::Device,
        pool: vk::CommandPool,
        flags: vk::CommandPoolResetFlags,
    ) -> vk::Result = before |device| {
        let pools = device.command_pools().lock();
        for member in pools.get(&pool.as_raw()).iter().flat_map(|pool| &pool.members) {
            device.reset(*member);
        }
    };

    fn allocate_command_buffers(
        handle: vk::Device,
        info: *const vk::CommandBufferAllocateInfo<'_>,
        out: *mut vk::CommandBuffer,
    ) -> vk::Result = after |device| {
        let made = slice(out.cast_const(), (*info).command_buffer_count);
        let mut pools = device.command_pools().lock();
        if let Some(pool) = pools.get_mut(&(*info).command_pool.as_raw()) {
            for command_buffer in made {
                device.add_command_buffer(*command_buffer, pool, (*info).level);
            }
            pool.members.extend(made);
        }
    };

    fn free_command_buffers(
        handle: vk::Device,
        pool: vk::CommandPool,
        count: u32,
        command_buffers: *const vk::CommandBuffer,
    ) = before |device| {
        let freed = slice(command_buffers, count);
        for command_buffer in freed {
            device.remove_command_buffer(*command_buffer);
        }
        if let Some(pool) = device.command_pools().lock().get_mut(&pool.as_raw()) {
            pool.members.retain(|member| !freed.contains(member));
        }
    };

    fn begin_command_buffer(
        handle: vk::CommandBuffer,
        info: *const vk::CommandBufferBeginInfo<'_>,
    ) -> vk::Result = after |device| device.begin(handle, &*info);

    fn reset_command_buffer(
        handle: vk::CommandBuffer,
        flags: vk::CommandBufferResetFlags,
    ) -> vk::Result = before |device| device.reset(handle);
}

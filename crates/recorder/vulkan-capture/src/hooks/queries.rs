//! Keeps what a capture needs of queries (measurements inside command buffers): the sizes of their results, by the
//! creation of their pools; copies of results, which a capture keeps as data; and that a command buffer with queries
//! cannot be recorded a second time ([`Command::Once`]).

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::device_hooks;

use crate::api::device::Device;
use crate::hooks::command::commands;
use crate::objects::command::Command;
use crate::objects::query_pool::QueryPool;

device_hooks! {
    [Device]

    fn create_query_pool(
        handle: vk::Device,
        info: *const vk::QueryPoolCreateInfo<'_>,
        allocator: *const vk::AllocationCallbacks<'_>,
        out: *mut vk::QueryPool,
    ) -> vk::Result = after |device| {
        let pool = QueryPool::from_info(&*info);
        device.objects.query_pools.insert((*out).as_raw(), pool);
    };

    fn destroy_query_pool(
        handle: vk::Device,
        pool: vk::QueryPool,
        allocator: *const vk::AllocationCallbacks<'_>,
    ) = before |device| device.objects.query_pools.remove(pool.as_raw());
}

commands! {
    fn cmd_begin_query(pool: vk::QueryPool, query: u32, flags: vk::QueryControlFlags) = |_| Command::Once;
    fn cmd_end_query(pool: vk::QueryPool, query: u32) = |_| Command::Once;
    fn cmd_reset_query_pool(pool: vk::QueryPool, first: u32, count: u32) = |_| Command::Once;
    fn cmd_write_timestamp(stage: vk::PipelineStageFlags, pool: vk::QueryPool, query: u32) = |_| Command::Once;
    fn cmd_write_timestamp2(stage: vk::PipelineStageFlags2, pool: vk::QueryPool, query: u32) = |_| Command::Once;
    fn cmd_copy_query_pool_results(
        pool: vk::QueryPool,
        first: u32,
        count: u32,
        target: vk::Buffer,
        offset: u64,
        stride: u64,
        flags: vk::QueryResultFlags,
    ) = |device| {
        let pool = device.objects.query_pools.get(pool.as_raw());
        match pool.and_then(|pool| pool.copied_bytes(count, stride, flags)) {
            Some(0) => Command::Once,
            Some(bytes) => Command::QueryResults { buffer: target, offset, bytes },
            None => Command::Refused("vkCmdCopyQueryPoolResults of queries whose size is not known"),
        }
    };
}

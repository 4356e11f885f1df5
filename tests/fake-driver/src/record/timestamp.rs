//! Records timestamps and their queries.

use ash::vk::{self, BufferUsageFlags};

use super::stages::{waits_for_work, widen};
use super::{ANYWHERE, QUERY_POOL, Recorder, record};
use crate::command::{Command, CopyQueries};
use crate::query::{check_results, result_bytes};

pub unsafe extern "system" fn reset_query_pool(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
) {
    record("vkCmdResetQueryPool", buffer, QUERY_POOL, |recorder| {
        if let Some(range) = recorder.query_range(pool, first, count) {
            recorder.push(Command::ResetQueries(range));
        }
    });
}

pub unsafe extern "system" fn write_timestamp(
    buffer: vk::CommandBuffer,
    stage: vk::PipelineStageFlags,
    pool: vk::QueryPool,
    query: u32,
) {
    record("vkCmdWriteTimestamp", buffer, ANYWHERE, |recorder| {
        recorder.timestamp(widen(stage), pool, query)
    });
}

pub unsafe extern "system" fn write_timestamp2(
    buffer: vk::CommandBuffer,
    stage: vk::PipelineStageFlags2,
    pool: vk::QueryPool,
    query: u32,
) {
    record("vkCmdWriteTimestamp2", buffer, ANYWHERE, |recorder| {
        recorder.require_synchronization2();
        recorder.timestamp(stage, pool, query);
    });
}

impl Recorder<'_> {
    fn timestamp(&mut self, stage: vk::PipelineStageFlags2, pool: vk::QueryPool, query: u32) {
        let family = self.buffer.pool.family;
        if self.buffer.pool.timestamp_bits == 0 {
            return self.report(format_args!("queue family {family} has no timestamps"));
        }
        self.check_stages(stage);
        if let Some(range) = self.query_range(pool, query, 1) {
            self.push(Command::Timestamp {
                pool: range.pool,
                query,
                at_top: !waits_for_work(stage),
            });
        }
    }
}

pub unsafe extern "system" fn copy_query_pool_results(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    to: vk::Buffer,
    offset: u64,
    stride: u64,
    flags: vk::QueryResultFlags,
) {
    record(
        "vkCmdCopyQueryPoolResults",
        buffer,
        QUERY_POOL,
        |recorder| {
            check_results(recorder.call, &[], stride, flags);
            let Some(range) = recorder.query_range(pool, first, count) else {
                return;
            };
            let bytes = u64::from(count.saturating_sub(1)) * stride + result_bytes(flags);
            let usage = BufferUsageFlags::TRANSFER_DST;
            if let Some(to) = recorder.buffer_address(to, offset, bytes, usage) {
                let copy = CopyQueries {
                    range,
                    to,
                    stride,
                    flags,
                };
                recorder.push(Command::CopyQueries(Box::new(copy)));
            }
        },
    );
}

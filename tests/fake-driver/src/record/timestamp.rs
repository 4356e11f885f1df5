//! Records timestamps and their queries.

use ash::vk::{self, BufferUsageFlags};

use super::stages::{check_stages, require_synchronization2, waits_for_work, widen};
use super::{ANYWHERE, QUERY_POOL, buffer_address, record};
use crate::command::{Command, CommandBuffer, CopyQueries, QueryRange, Recording};
use crate::misuse;
use crate::object::{self, Object};
use crate::query::{QueryPool, check_results, result_bytes};

pub unsafe extern "system" fn reset_query_pool(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
) {
    const CALL: &str = "vkCmdResetQueryPool";
    record(CALL, buffer, QUERY_POOL, |_, recording| {
        if let Some(range) = query_range(CALL, recording, pool, first, count) {
            recording
                .program
                .commands
                .push(Command::ResetQueries(range));
        }
    });
}

/// Returns a range of queries which the submission will use.
pub fn query_range(
    call: &str,
    recording: &mut Recording,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
) -> Option<QueryRange> {
    let pool = object::get::<QueryPool>(call, pool)?;
    pool.range(call, first, count)?;
    let range = QueryRange { pool, first, count };
    recording.program.uses_queries(range);
    Some(range)
}

pub unsafe extern "system" fn write_timestamp(
    buffer: vk::CommandBuffer,
    stage: vk::PipelineStageFlags,
    pool: vk::QueryPool,
    query: u32,
) {
    const CALL: &str = "vkCmdWriteTimestamp";
    record(CALL, buffer, ANYWHERE, |buffer, recording| {
        timestamp(CALL, buffer, recording, widen(stage), pool, query)
    });
}

pub unsafe extern "system" fn write_timestamp2(
    buffer: vk::CommandBuffer,
    stage: vk::PipelineStageFlags2,
    pool: vk::QueryPool,
    query: u32,
) {
    const CALL: &str = "vkCmdWriteTimestamp2";
    record(CALL, buffer, ANYWHERE, |buffer, recording| {
        require_synchronization2(CALL, buffer);
        timestamp(CALL, buffer, recording, stage, pool, query);
    });
}

fn timestamp(
    call: &str,
    buffer: &Object<CommandBuffer>,
    recording: &mut Recording,
    stage: vk::PipelineStageFlags2,
    pool: vk::QueryPool,
    query: u32,
) {
    if buffer.pool.timestamp_bits == 0 {
        misuse::report(
            call,
            format_args!("queue family {} has no timestamps", buffer.pool.family),
        );
        return;
    }
    check_stages(call, buffer, stage);
    if let Some(range) = query_range(call, recording, pool, query, 1) {
        let at_top = !waits_for_work(stage);
        recording.program.commands.push(Command::Timestamp {
            pool: range.pool,
            query,
            at_top,
        });
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
    const CALL: &str = "vkCmdCopyQueryPoolResults";
    record(CALL, buffer, QUERY_POOL, |_, recording| {
        check_results(CALL, &[], stride, flags);
        let Some(range) = query_range(CALL, recording, pool, first, count) else {
            return;
        };
        let bytes = u64::from(count.saturating_sub(1)) * stride + result_bytes(flags);
        if let Some(to) = buffer_address(
            CALL,
            recording,
            to,
            offset,
            bytes,
            BufferUsageFlags::TRANSFER_DST,
        ) {
            let copy = CopyQueries {
                range,
                to,
                stride,
                flags,
            };
            recording
                .program
                .commands
                .push(Command::CopyQueries(Box::new(copy)));
        }
    });
}

//! Records performance queries.

use ash::vk;

use crate::command::Command;
use crate::record::{QUERY_POOL, record};

pub unsafe extern "system" fn begin_query(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    query: u32,
    flags: vk::QueryControlFlags,
) {
    record("vkCmdBeginQuery", buffer, QUERY_POOL, |recorder| {
        if recorder.buffer.level != vk::CommandBufferLevel::PRIMARY {
            recorder.report("a performance query of a secondary command buffer");
        }
        if !flags.is_empty() {
            recorder.report(format_args!("{flags:?}"));
        }
        if recorder.recording.counting.is_some() {
            recorder.report("another query is active");
        }
        let range = recorder.query_range(pool, query, 1);
        if range.is_some_and(|range| range.pool.counters.is_empty()) {
            recorder.report("the query is a timestamp");
        }
        recorder.recording.counting = range;
        recorder.push(Command::StartCounting);
    });
}

pub unsafe extern "system" fn end_query(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    query: u32,
) {
    record("vkCmdEndQuery", buffer, QUERY_POOL, |recorder| {
        let range = recorder.query_range(pool, query, 1);
        match (recorder.recording.counting.take(), range) {
            (Some(active), Some(range))
                if std::ptr::eq(active.pool, range.pool) && active.first == range.first =>
            {
                recorder.push(Command::StopCounting(active));
            }
            _ => recorder.report("the query is not active"),
        }
    });
}

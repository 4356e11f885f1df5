//! Records performance queries.

use ash::vk;

use crate::command::Command;
use crate::misuse;
use crate::record::timestamp::query_range;
use crate::record::{QUERY_POOL, record};

pub unsafe extern "system" fn begin_query(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    query: u32,
    flags: vk::QueryControlFlags,
) {
    const CALL: &str = "vkCmdBeginQuery";
    record(CALL, buffer, QUERY_POOL, |buffer, recording| {
        if buffer.level != vk::CommandBufferLevel::PRIMARY {
            misuse::report(CALL, "a performance query of a secondary command buffer");
        }
        if !flags.is_empty() {
            misuse::report(CALL, format_args!("{flags:?}"));
        }
        if recording.counting.is_some() {
            misuse::report(CALL, "another query is active");
        }
        let range = query_range(CALL, recording, pool, query, 1);
        if range.is_some_and(|range| range.pool.counters.is_empty()) {
            misuse::report(CALL, "the query is a timestamp");
        }
        recording.counting = range;
        recording.program.commands.push(Command::StartCounting);
    });
}

pub unsafe extern "system" fn end_query(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    query: u32,
) {
    const CALL: &str = "vkCmdEndQuery";
    record(CALL, buffer, QUERY_POOL, |_, recording| {
        let asked = query_range(CALL, recording, pool, query, 1);
        match (recording.counting.take(), asked) {
            (Some(active), Some(asked))
                if std::ptr::eq(active.pool, asked.pool) && active.first == asked.first =>
            {
                recording
                    .program
                    .commands
                    .push(Command::StopCounting(active));
            }
            _ => misuse::report(CALL, "the query is not active"),
        }
    });
}

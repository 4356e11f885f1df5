//! Notes queries (measurements inside command buffers): they touch no memory that a capture holds, but a command
//! buffer with some cannot be recorded a second time ([`Command::Once`]).

use ash::vk;

use crate::hooks::command::commands;
use crate::objects::command::Command;

commands! {
    fn cmd_begin_query(pool: vk::QueryPool, query: u32, flags: vk::QueryControlFlags) = |_| Command::Once;
    fn cmd_end_query(pool: vk::QueryPool, query: u32) = |_| Command::Once;
    fn cmd_reset_query_pool(pool: vk::QueryPool, first: u32, count: u32) = |_| Command::Once;
    fn cmd_write_timestamp(stage: vk::PipelineStageFlags, pool: vk::QueryPool, query: u32) = |_| Command::Once;
    fn cmd_write_timestamp2(stage: vk::PipelineStageFlags2, pool: vk::QueryPool, query: u32) = |_| Command::Once;
}

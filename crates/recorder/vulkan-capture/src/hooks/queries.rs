//! Queries: they touch no memory that a capture holds, but what has some cannot be recorded a second time.

use ash::vk;

use crate::command::Command;
use crate::hooks::commands::push;

macro_rules! queries {
    ($($hook:ident $table:ident.$function:ident($($argument:ident: $type:ty),*);)+) => {$(
        pub unsafe extern "system" fn $hook(buffer: vk::CommandBuffer $(, $argument: $type)*) {
            // SAFETY: the program's own call on a command buffer.
            unsafe {
                let Some(device) = push(buffer, || Command::Once) else {
                    return;
                };
                (device.next.$table().$function)(buffer $(, $argument)*);
            }
        }
    )+};
}

queries! {
    begin_query fp_v1_0.cmd_begin_query(pool: vk::QueryPool, query: u32, flags: vk::QueryControlFlags);
    end_query fp_v1_0.cmd_end_query(pool: vk::QueryPool, query: u32);
    reset_query_pool fp_v1_0.cmd_reset_query_pool(pool: vk::QueryPool, first: u32, count: u32);
    write_timestamp fp_v1_0.cmd_write_timestamp(stage: vk::PipelineStageFlags, pool: vk::QueryPool, query: u32);
    write_timestamp2 fp_v1_3.cmd_write_timestamp2(stage: vk::PipelineStageFlags2, pool: vk::QueryPool, query: u32);
}

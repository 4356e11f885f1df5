//! Commands that are recorded by what they are and not by what they are given: those that neither layer follows, and some more.

use gapscope_vulkan_layer::function_table;
use gapscope_vulkan_layer::table::Pointer;

/// Calls a macro with the table, as [`gapscope_vulkan_layer::opaque_commands`] does.
macro_rules! work_commands {
    ($with:ident) => {
        gapscope_vulkan_layer::opaque_commands! {
            $with
            // The ends of scopes: what is inside is part of them.
            end_render_pass "vkCmdEndRenderPass" () = Work::ScopeEnd;
            end_render_pass2 "vkCmdEndRenderPass2" "vkCmdEndRenderPass2KHR" (a: Pointer) = Work::ScopeEnd;
            end_rendering "vkCmdEndRendering" "vkCmdEndRenderingKHR" () = Work::RenderingEnd;
            end_rendering2 "vkCmdEndRendering2KHR" "vkCmdEndRendering2EXT" (a: Pointer) = Work::RenderingEnd;
            end_video_coding "vkCmdEndVideoCodingKHR" (a: Pointer) = Work::ScopeEnd;
            // Results of queries, which the copy waits for.
            copy_query_results "vkCmdCopyQueryPoolResults" (a: u64, b: u32, c: u32, d: u64, e: u64, f: u64, g: u32) = Work::Opaque(Kind::QueryResults);
        }
    };
}
pub(crate) use work_commands;

macro_rules! functions {
    ($($row:tt)+) => {
        function_table! {
            /// The next layer's functions of these commands; `None` where it has none.
            WorkFunctions(ash::vk::CommandBuffer) -> ():
            $($row)+
        }
    };
}
work_commands!(functions);

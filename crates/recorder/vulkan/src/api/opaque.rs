//! Lists the commands that are recorded by their effect, with none or few of their arguments: those that neither
//! layer follows (opaque work, timed as a whole), the ends of scopes such as render passes, and copies of query
//! results. Hooks and functions are generated from the table.

use gapscope_vulkan_layer::function_table;
use gapscope_vulkan_layer::table::Pointer;

/// Calls a macro with the table, as [`gapscope_vulkan_layer::opaque_commands!`] does.
macro_rules! recorded_commands {
    ($with:ident) => {
        gapscope_vulkan_layer::opaque_commands! {
            $with
            // The ends of scopes. What is inside a scope is part of it.
            end_render_pass "vkCmdEndRenderPass" () = Effect::ScopeEnd;
            end_render_pass2 "vkCmdEndRenderPass2" "vkCmdEndRenderPass2KHR" (a: Pointer) = Effect::ScopeEnd;
            end_rendering "vkCmdEndRendering" "vkCmdEndRenderingKHR" () = Effect::RenderingEnd;
            end_rendering2 "vkCmdEndRendering2KHR" "vkCmdEndRendering2EXT" (a: Pointer) = Effect::RenderingEnd;
            end_video_coding "vkCmdEndVideoCodingKHR" (a: Pointer) = Effect::ScopeEnd;
            // Copies of query results wait for the queries.
            copy_query_results "vkCmdCopyQueryPoolResults" (a: u64, b: u32, c: u32, d: u64, e: u64, f: u64, g: u32) = Effect::Opaque(Kind::QueryResults);
        }
    };
}
pub(crate) use recorded_commands;

/// Makes the table of the next layer's functions from the rows.
macro_rules! functions {
    ($($row:tt)+) => {
        function_table! {
            /// The next layer's functions of these commands; `None` where it has none.
            OpaqueFunctions(ash::vk::CommandBuffer) -> ():
            $($row)+
        }
    };
}
recorded_commands!(functions);

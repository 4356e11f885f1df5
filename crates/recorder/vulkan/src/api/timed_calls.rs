//! Lists the host calls that may take long, such as the creation of pipelines, and of which only the time is
//! recorded. Hooks and functions are generated from the table.

use gapscope_vulkan_layer::function_table;
use gapscope_vulkan_layer::table::Pointer;

/// Calls a macro with the table: the call's field and hook, its names, its parameters after the device, and its kind.
macro_rules! timed_calls {
    ($with:ident) => {
        $with! {
            create_graphics_pipelines "vkCreateGraphicsPipelines" (a: u64, b: u32, c: Pointer, d: Pointer, e: Pointer) = HostCallKind::CreatePipelines;
            create_ray_tracing_pipelines "vkCreateRayTracingPipelinesKHR" (a: u64, b: u64, c: u32, d: Pointer, e: Pointer, f: Pointer) = HostCallKind::CreatePipelines;
            create_ray_tracing_pipelines_nv "vkCreateRayTracingPipelinesNV" (a: u64, b: u32, c: Pointer, d: Pointer, e: Pointer) = HostCallKind::CreatePipelines;
            create_execution_graph_pipelines "vkCreateExecutionGraphPipelinesAMDX" (a: u64, b: u32, c: Pointer, d: Pointer, e: Pointer) = HostCallKind::CreatePipelines;
            create_data_graph_pipelines "vkCreateDataGraphPipelinesARM" (a: u64, b: u64, c: u32, d: Pointer, e: Pointer, f: Pointer) = HostCallKind::CreatePipelines;
            compile_deferred_nv "vkCompileDeferredNV" (a: u64, b: u32) = HostCallKind::CreatePipelines;
            join_deferred_operation "vkDeferredOperationJoinKHR" (a: u64) = HostCallKind::JoinDeferred;
            acquire_next_image "vkAcquireNextImageKHR" (a: u64, b: u64, c: u64, d: u64, e: Pointer) = HostCallKind::AcquireImage;
            acquire_next_image2 "vkAcquireNextImage2KHR" (a: Pointer, b: Pointer) = HostCallKind::AcquireImage;
            wait_for_present "vkWaitForPresentKHR" (a: u64, b: u64, c: u64) = HostCallKind::WaitPresent;
            wait_for_present2 "vkWaitForPresent2KHR" (a: u64, b: Pointer) = HostCallKind::WaitPresent;
            copy_memory_to_image "vkCopyMemoryToImage" "vkCopyMemoryToImageEXT" (a: Pointer) = HostCallKind::CopyImage;
            copy_image_to_memory "vkCopyImageToMemory" "vkCopyImageToMemoryEXT" (a: Pointer) = HostCallKind::CopyImage;
            copy_image_to_image "vkCopyImageToImage" "vkCopyImageToImageEXT" (a: Pointer) = HostCallKind::CopyImage;
            transition_image_layout "vkTransitionImageLayout" "vkTransitionImageLayoutEXT" (a: u32, b: Pointer) = HostCallKind::CopyImage;
        }
    };
}
pub(crate) use timed_calls;

macro_rules! functions {
    ($($row:tt)+) => {
        function_table! {
            /// The next layer's functions of these calls; `None` where it has none.
            TimedCallFunctions(ash::vk::Device) -> ash::vk::Result:
            $($row)+
        }
    };
}
timed_calls!(functions);

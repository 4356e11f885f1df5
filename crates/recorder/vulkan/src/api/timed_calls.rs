//! Lists the host calls that may take long, such as the creation of pipelines, and of which only the time is
//! recorded. The table of next-layer functions is generated here from the list; the hooks are generated from it in
//! [`crate::hooks::timed_calls`].

use gapscope_vulkan_layer::function_table;
use gapscope_vulkan_layer::table::Pointer;

/// Calls the macro `$with` with the list. A row has the name of the hook (and of the field with the next layer's
/// function), the call's names in Vulkan, its parameters after the device, which are only passed on and so have
/// letters for names, and the kind under which the call is recorded.
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

/// Makes [`TimedCallFunctions`] from the rows.
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

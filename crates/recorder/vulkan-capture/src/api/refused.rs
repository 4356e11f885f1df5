//! Lists the commands that no capture can hold, such as copies of images. Their hooks (functions that the program
//! calls instead), and the next layer's functions, are generated from the table.

use ash::vk;
use gapscope_vulkan_layer::function_table;
use gapscope_vulkan_layer::table::Pointer;

/// Calls a macro with the table, as [`gapscope_vulkan_layer::opaque_commands!`] does. Only the layer that records uses
/// the last column.
macro_rules! refused_commands {
    ($with:ident) => {
        gapscope_vulkan_layer::opaque_commands! {
            $with
                begin_conditional_rendering2_ext "vkCmdBeginConditionalRendering2EXT" (a: Pointer) = ();
                begin_conditional_rendering_ext "vkCmdBeginConditionalRenderingEXT" (a: Pointer) = ();
                begin_gpa_sample_amd "vkCmdBeginGpaSampleAMD" (a: u64, b: Pointer, c: Pointer) = ();
                begin_gpa_session_amd "vkCmdBeginGpaSessionAMD" (a: u64) = ();
                bind_descriptor_buffer_embedded_samplers_ext "vkCmdBindDescriptorBufferEmbeddedSamplersEXT" (a: i32, b: u64, c: u32) = ();
                bind_descriptor_buffers_ext "vkCmdBindDescriptorBuffersEXT" (a: u32, b: Pointer) = ();
                bind_invocation_mask_huawei "vkCmdBindInvocationMaskHUAWEI" (a: u64, b: i32) = ();
                bind_sampler_heap_ext "vkCmdBindSamplerHeapEXT" (a: Pointer) = ();
                bind_shaders_ext "vkCmdBindShadersEXT" (a: u32, b: Pointer, c: Pointer) = ();
                copy_buffer_to_image "vkCmdCopyBufferToImage" (a: u64, b: u64, c: i32, d: u32, e: Pointer) = ();
                copy_buffer_to_image2 "vkCmdCopyBufferToImage2" "vkCmdCopyBufferToImage2KHR" (a: Pointer) = ();
                copy_gpa_session_results_amd "vkCmdCopyGpaSessionResultsAMD" (a: u64) = ();
                copy_image "vkCmdCopyImage" (a: u64, b: i32, c: u64, d: i32, e: u32, f: Pointer) = ();
                copy_image2 "vkCmdCopyImage2" "vkCmdCopyImage2KHR" (a: Pointer) = ();
                copy_image_to_buffer "vkCmdCopyImageToBuffer" (a: u64, b: i32, c: u64, d: u32, e: Pointer) = ();
                copy_image_to_buffer2 "vkCmdCopyImageToBuffer2" "vkCmdCopyImageToBuffer2KHR" (a: Pointer) = ();
                push_data_ext "vkCmdPushDataEXT" (a: Pointer) = ();
                set_descriptor_buffer_offsets2_ext "vkCmdSetDescriptorBufferOffsets2EXT" (a: Pointer) = ();
                set_descriptor_buffer_offsets_ext "vkCmdSetDescriptorBufferOffsetsEXT" (a: i32, b: u64, c: u32, d: u32, e: Pointer, f: Pointer) = ();
                set_dispatch_parameters_arm "vkCmdSetDispatchParametersARM" (a: Pointer) = ();
                write_buffer_marker2_amd "vkCmdWriteBufferMarker2AMD" (a: u64, b: u64, c: u64, d: u32) = ();
                write_buffer_marker_amd "vkCmdWriteBufferMarkerAMD" (a: u32, b: u64, c: u64, d: u32) = ();
                write_marker_to_memory_amd "vkCmdWriteMarkerToMemoryAMD" (a: Pointer) = ();
        }
    };
}
pub(crate) use refused_commands;

/// Makes the table of the next layer's functions from the list.
macro_rules! functions {
    ($($hook:ident $($name:literal)+ ($($argument:ident: $type:ty),*) = $effect:expr;)+) => {
        function_table! {
            /// The next layer's functions of these commands; `None` where it has none.
            RefusedCommands(vk::CommandBuffer) -> ():
            $($hook $($name)+ ($($argument: $type),*) = ();)+
        }
    };
}
refused_commands!(functions);

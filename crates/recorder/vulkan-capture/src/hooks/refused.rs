//! Commands that no capture can hold: they are passed on, and a window ends before a command buffer with one of them. Parameters
//! have the types of the binary interface, so that commands are in this table of which ash knows nothing.

use ash::vk;

use crate::command::Command;
use crate::hooks::commands::push;

/// A parameter that points to structures, arrays or a dispatchable handle.
type Pointer = *const std::ffi::c_void;

macro_rules! refused_commands {
    ($($hook:ident $name:literal $($alias:literal)* ($($argument:ident: $type:ty),*);)+) => {
        /// The next layer's functions of these commands.
        pub struct RefusedCommands {
            $($hook: Option<unsafe extern "system" fn(vk::CommandBuffer $(, $type)*)>,)+
        }

        impl RefusedCommands {
            /// `find` gives the first function that the next layer has of some names, each ended by NUL.
            pub fn load(find: impl Fn(&[&str]) -> vk::PFN_vkVoidFunction) -> RefusedCommands {
                RefusedCommands {
                    $($hook: find(&[concat!($name, "\0"), $(concat!($alias, "\0")),*]).map(|function| {
                        // SAFETY: a function of that name has these parameters.
                        unsafe {
                            std::mem::transmute::<
                                unsafe extern "system" fn(),
                                unsafe extern "system" fn(vk::CommandBuffer $(, $type)*),
                            >(function)
                        }
                    }),)+
                }
            }
        }

        $(unsafe extern "system" fn $hook(buffer: vk::CommandBuffer $(, $argument: $type)*) {
            // SAFETY: the program's own call.
            unsafe {
                let Some(device) = push(buffer, || Command::Refused($name)) else { return };
                if let Some(call) = device.refused.$hook {
                    call(buffer $(, $argument)*);
                }
            }
        })+

        /// The hook of such a command.
        pub fn hook(name: &str) -> vk::PFN_vkVoidFunction {
            let function = match name {
                $($name $(| $alias)* => $hook as *const (),)+
                _ => return None,
            };
            // SAFETY: it points to a function, which is called only after the cast back.
            unsafe { std::mem::transmute(function) }
        }
    };
}

refused_commands! {
    begin_conditional_rendering2_ext "vkCmdBeginConditionalRendering2EXT" (a: Pointer);
    begin_conditional_rendering_ext "vkCmdBeginConditionalRenderingEXT" (a: Pointer);
    begin_gpa_sample_amd "vkCmdBeginGpaSampleAMD" (a: u64, b: Pointer, c: Pointer);
    begin_gpa_session_amd "vkCmdBeginGpaSessionAMD" (a: u64);
    begin_render_pass "vkCmdBeginRenderPass" (a: Pointer, b: i32);
    begin_render_pass2 "vkCmdBeginRenderPass2" "vkCmdBeginRenderPass2KHR" (a: Pointer, b: Pointer);
    begin_rendering "vkCmdBeginRendering" "vkCmdBeginRenderingKHR" (a: Pointer);
    begin_video_coding_khr "vkCmdBeginVideoCodingKHR" (a: Pointer);
    bind_descriptor_buffer_embedded_samplers_ext "vkCmdBindDescriptorBufferEmbeddedSamplersEXT" (a: i32, b: u64, c: u32);
    bind_descriptor_buffers_ext "vkCmdBindDescriptorBuffersEXT" (a: u32, b: Pointer);
    bind_invocation_mask_huawei "vkCmdBindInvocationMaskHUAWEI" (a: u64, b: i32);
    bind_resource_heap_ext "vkCmdBindResourceHeapEXT" (a: Pointer);
    bind_sampler_heap_ext "vkCmdBindSamplerHeapEXT" (a: Pointer);
    bind_shaders_ext "vkCmdBindShadersEXT" (a: u32, b: Pointer, c: Pointer);
    blit_image "vkCmdBlitImage" (a: u64, b: i32, c: u64, d: i32, e: u32, f: Pointer, g: i32);
    blit_image2 "vkCmdBlitImage2" "vkCmdBlitImage2KHR" (a: Pointer);
    build_acceleration_structure_nv "vkCmdBuildAccelerationStructureNV" (a: Pointer, b: u64, c: u64, d: u32, e: u64, f: u64, g: u64, h: u64);
    build_acceleration_structures_indirect_khr "vkCmdBuildAccelerationStructuresIndirectKHR" (a: u32, b: Pointer, c: Pointer, d: Pointer, e: Pointer);
    build_acceleration_structures_khr "vkCmdBuildAccelerationStructuresKHR" (a: u32, b: Pointer, c: Pointer);
    build_cluster_acceleration_structure_indirect_nv "vkCmdBuildClusterAccelerationStructureIndirectNV" (a: Pointer);
    build_micromaps_ext "vkCmdBuildMicromapsEXT" (a: u32, b: Pointer);
    build_partitioned_acceleration_structures_nv "vkCmdBuildPartitionedAccelerationStructuresNV" (a: Pointer);
    clear_color_image "vkCmdClearColorImage" (a: u64, b: i32, c: Pointer, d: u32, e: Pointer);
    clear_depth_stencil_image "vkCmdClearDepthStencilImage" (a: u64, b: i32, c: Pointer, d: u32, e: Pointer);
    convert_cooperative_vector_matrix_nv "vkCmdConvertCooperativeVectorMatrixNV" (a: u32, b: Pointer);
    copy_acceleration_structure_khr "vkCmdCopyAccelerationStructureKHR" (a: Pointer);
    copy_acceleration_structure_nv "vkCmdCopyAccelerationStructureNV" (a: u64, b: u64, c: i32);
    copy_acceleration_structure_to_memory_khr "vkCmdCopyAccelerationStructureToMemoryKHR" (a: Pointer);
    copy_buffer_to_image "vkCmdCopyBufferToImage" (a: u64, b: u64, c: i32, d: u32, e: Pointer);
    copy_buffer_to_image2 "vkCmdCopyBufferToImage2" "vkCmdCopyBufferToImage2KHR" (a: Pointer);
    copy_gpa_session_results_amd "vkCmdCopyGpaSessionResultsAMD" (a: u64);
    copy_image "vkCmdCopyImage" (a: u64, b: i32, c: u64, d: i32, e: u32, f: Pointer);
    copy_image2 "vkCmdCopyImage2" "vkCmdCopyImage2KHR" (a: Pointer);
    copy_image_to_buffer "vkCmdCopyImageToBuffer" (a: u64, b: i32, c: u64, d: u32, e: Pointer);
    copy_image_to_buffer2 "vkCmdCopyImageToBuffer2" "vkCmdCopyImageToBuffer2KHR" (a: Pointer);
    copy_image_to_memory_khr "vkCmdCopyImageToMemoryKHR" (a: Pointer);
    copy_memory_indirect_khr "vkCmdCopyMemoryIndirectKHR" (a: Pointer);
    copy_memory_indirect_nv "vkCmdCopyMemoryIndirectNV" (a: u64, b: u32, c: u32);
    copy_memory_khr "vkCmdCopyMemoryKHR" (a: Pointer);
    copy_memory_to_acceleration_structure_khr "vkCmdCopyMemoryToAccelerationStructureKHR" (a: Pointer);
    copy_memory_to_image_indirect_khr "vkCmdCopyMemoryToImageIndirectKHR" (a: Pointer);
    copy_memory_to_image_indirect_nv "vkCmdCopyMemoryToImageIndirectNV" (a: u64, b: u32, c: u32, d: u64, e: i32, f: Pointer);
    copy_memory_to_image_khr "vkCmdCopyMemoryToImageKHR" (a: Pointer);
    copy_memory_to_micromap_ext "vkCmdCopyMemoryToMicromapEXT" (a: Pointer);
    copy_micromap_ext "vkCmdCopyMicromapEXT" (a: Pointer);
    copy_micromap_to_memory_ext "vkCmdCopyMicromapToMemoryEXT" (a: Pointer);
    copy_query_pool_results_to_memory_khr "vkCmdCopyQueryPoolResultsToMemoryKHR" (a: u64, b: u32, c: u32, d: Pointer, e: u32, f: u32);
    copy_tensor_arm "vkCmdCopyTensorARM" (a: Pointer);
    cu_launch_kernel_nvx "vkCmdCuLaunchKernelNVX" (a: Pointer);
    cuda_launch_kernel_nv "vkCmdCudaLaunchKernelNV" (a: Pointer);
    decompress_memory_ext "vkCmdDecompressMemoryEXT" (a: Pointer);
    decompress_memory_indirect_count_ext "vkCmdDecompressMemoryIndirectCountEXT" (a: u64, b: u64, c: u64, d: u32, e: u32);
    decompress_memory_indirect_count_nv "vkCmdDecompressMemoryIndirectCountNV" (a: u64, b: u64, c: u32);
    decompress_memory_nv "vkCmdDecompressMemoryNV" (a: u32, b: Pointer);
    dispatch_data_graph_arm "vkCmdDispatchDataGraphARM" (a: u64, b: Pointer);
    dispatch_graph_amdx "vkCmdDispatchGraphAMDX" (a: u64, b: u64, c: Pointer);
    dispatch_graph_indirect_amdx "vkCmdDispatchGraphIndirectAMDX" (a: u64, b: u64, c: Pointer);
    dispatch_graph_indirect_count_amdx "vkCmdDispatchGraphIndirectCountAMDX" (a: u64, b: u64, c: u64);
    dispatch_indirect2_khr "vkCmdDispatchIndirect2KHR" (a: Pointer);
    execute_generated_commands_ext "vkCmdExecuteGeneratedCommandsEXT" (a: u32, b: Pointer);
    fill_memory_khr "vkCmdFillMemoryKHR" (a: Pointer, b: u32, c: u32);
    initialize_graph_scratch_memory_amdx "vkCmdInitializeGraphScratchMemoryAMDX" (a: u64, b: u64, c: u64);
    optical_flow_execute_nv "vkCmdOpticalFlowExecuteNV" (a: u64, b: Pointer);
    preprocess_generated_commands_ext "vkCmdPreprocessGeneratedCommandsEXT" (a: Pointer, b: Pointer);
    preprocess_generated_commands_nv "vkCmdPreprocessGeneratedCommandsNV" (a: Pointer);
    push_data_ext "vkCmdPushDataEXT" (a: Pointer);
    refresh_objects_khr "vkCmdRefreshObjectsKHR" (a: Pointer);
    resolve_image "vkCmdResolveImage" (a: u64, b: i32, c: u64, d: i32, e: u32, f: Pointer);
    resolve_image2 "vkCmdResolveImage2" "vkCmdResolveImage2KHR" (a: Pointer);
    set_descriptor_buffer_offsets2_ext "vkCmdSetDescriptorBufferOffsets2EXT" (a: Pointer);
    set_descriptor_buffer_offsets_ext "vkCmdSetDescriptorBufferOffsetsEXT" (a: i32, b: u64, c: u32, d: u32, e: Pointer, f: Pointer);
    set_dispatch_parameters_arm "vkCmdSetDispatchParametersARM" (a: Pointer);
    trace_rays_indirect2_khr "vkCmdTraceRaysIndirect2KHR" (a: u64);
    trace_rays_indirect_khr "vkCmdTraceRaysIndirectKHR" (a: Pointer, b: Pointer, c: Pointer, d: Pointer, e: u64);
    trace_rays_khr "vkCmdTraceRaysKHR" (a: Pointer, b: Pointer, c: Pointer, d: Pointer, e: u32, f: u32, g: u32);
    trace_rays_nv "vkCmdTraceRaysNV" (a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64, i: u64, j: u64, k: u64, l: u32, m: u32, n: u32);
    update_memory_khr "vkCmdUpdateMemoryKHR" (a: Pointer, b: u32, c: u64, d: Pointer);
    update_pipeline_indirect_buffer_nv "vkCmdUpdatePipelineIndirectBufferNV" (a: i32, b: u64);
    write_acceleration_structures_properties_khr "vkCmdWriteAccelerationStructuresPropertiesKHR" (a: u32, b: Pointer, c: i32, d: u64, e: u32);
    write_acceleration_structures_properties_nv "vkCmdWriteAccelerationStructuresPropertiesNV" (a: u32, b: Pointer, c: i32, d: u64, e: u32);
    write_buffer_marker2_amd "vkCmdWriteBufferMarker2AMD" (a: u64, b: u64, c: u64, d: u32);
    write_buffer_marker_amd "vkCmdWriteBufferMarkerAMD" (a: u32, b: u64, c: u64, d: u32);
    write_marker_to_memory_amd "vkCmdWriteMarkerToMemoryAMD" (a: Pointer);
    write_micromaps_properties_ext "vkCmdWriteMicromapsPropertiesEXT" (a: u32, b: Pointer, c: i32, d: u64, e: u32);
}

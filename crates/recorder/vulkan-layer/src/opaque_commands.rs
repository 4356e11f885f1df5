//! Lists the commands that neither layer follows in detail. The layer that records keeps an effect for each: most
//! are opaque work (timed as a whole), some are transfers or dispatches. No capture can hold them. Parameters have
//! the types of the binary interface, so that the table has commands that ash (the crate with Vulkan's functions)
//! does not know.

/// Calls a macro with the table and more rows of the layer: the command's field and hook, its names in the order in
/// which a driver is asked for them, its parameters after the command buffer, and its `Effect` in the layer that
/// records.
#[macro_export]
macro_rules! opaque_commands {
    ($with:ident $($more:tt)*) => {
        $with! {
            // Render passes and other scopes.
            begin_render_pass "vkCmdBeginRenderPass" (a: Pointer, b: i32) = Effect::ScopeStart(Kind::RenderPass);
            begin_render_pass2 "vkCmdBeginRenderPass2" "vkCmdBeginRenderPass2KHR" (a: Pointer, b: Pointer) = Effect::ScopeStart(Kind::RenderPass);
            begin_rendering "vkCmdBeginRendering" "vkCmdBeginRenderingKHR" (a: Pointer) = Effect::RenderingStart(rendering_flags(a));
            begin_video_coding "vkCmdBeginVideoCodingKHR" (a: Pointer) = Effect::ScopeStart(Kind::VideoCoding);
            // Images
            blit_image "vkCmdBlitImage" (a: u64, b: i32, c: u64, d: i32, e: u32, f: Pointer, g: i32) = Effect::Opaque(Kind::Other);
            blit_image2 "vkCmdBlitImage2" "vkCmdBlitImage2KHR" (a: Pointer) = Effect::Opaque(Kind::Other);
            resolve_image "vkCmdResolveImage" (a: u64, b: i32, c: u64, d: i32, e: u32, f: Pointer) = Effect::Opaque(Kind::ClearImage);
            resolve_image2 "vkCmdResolveImage2" "vkCmdResolveImage2KHR" (a: Pointer) = Effect::Opaque(Kind::ClearImage);
            clear_color_image "vkCmdClearColorImage" (a: u64, b: i32, c: Pointer, d: u32, e: Pointer) = Effect::Opaque(Kind::ClearImage);
            clear_depth_stencil_image "vkCmdClearDepthStencilImage" (a: u64, b: i32, c: Pointer, d: u32, e: Pointer) = Effect::Opaque(Kind::ClearImage);
            // Ray tracing
            trace_rays "vkCmdTraceRaysKHR" (a: Pointer, b: Pointer, c: Pointer, d: Pointer, e: u32, f: u32, g: u32) = Effect::Opaque(Kind::RayTracing);
            trace_rays_indirect "vkCmdTraceRaysIndirectKHR" (a: Pointer, b: Pointer, c: Pointer, d: Pointer, e: u64) = Effect::Opaque(Kind::RayTracing);
            trace_rays_indirect2 "vkCmdTraceRaysIndirect2KHR" (a: u64) = Effect::Opaque(Kind::RayTracing);
            trace_rays_nv "vkCmdTraceRaysNV" (a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64, i: u64, j: u64, k: u64, l: u32, m: u32, n: u32) = Effect::Opaque(Kind::RayTracing);
            // Acceleration structures
            build_structures "vkCmdBuildAccelerationStructuresKHR" (a: u32, b: Pointer, c: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            build_structures_indirect "vkCmdBuildAccelerationStructuresIndirectKHR" (a: u32, b: Pointer, c: Pointer, d: Pointer, e: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            build_structure_nv "vkCmdBuildAccelerationStructureNV" (a: Pointer, b: u64, c: u64, d: u32, e: u64, f: u64, g: u64, h: u64) = Effect::Opaque(Kind::AccelerationStructure);
            build_clusters_nv "vkCmdBuildClusterAccelerationStructureIndirectNV" (a: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            build_partitions_nv "vkCmdBuildPartitionedAccelerationStructuresNV" (a: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            build_micromaps "vkCmdBuildMicromapsEXT" (a: u32, b: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            copy_structure "vkCmdCopyAccelerationStructureKHR" (a: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            copy_structure_nv "vkCmdCopyAccelerationStructureNV" (a: u64, b: u64, c: i32) = Effect::Opaque(Kind::AccelerationStructure);
            copy_structure_to_memory "vkCmdCopyAccelerationStructureToMemoryKHR" (a: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            copy_memory_to_structure "vkCmdCopyMemoryToAccelerationStructureKHR" (a: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            copy_micromap "vkCmdCopyMicromapEXT" (a: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            copy_micromap_to_memory "vkCmdCopyMicromapToMemoryEXT" (a: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            copy_memory_to_micromap "vkCmdCopyMemoryToMicromapEXT" (a: Pointer) = Effect::Opaque(Kind::AccelerationStructure);
            write_structure_properties "vkCmdWriteAccelerationStructuresPropertiesKHR" (a: u32, b: Pointer, c: i32, d: u64, e: u32) = Effect::Opaque(Kind::AccelerationStructure);
            write_structure_properties_nv "vkCmdWriteAccelerationStructuresPropertiesNV" (a: u32, b: Pointer, c: i32, d: u64, e: u32) = Effect::Opaque(Kind::AccelerationStructure);
            write_micromap_properties "vkCmdWriteMicromapsPropertiesEXT" (a: u32, b: Pointer, c: i32, d: u64, e: u32) = Effect::Opaque(Kind::AccelerationStructure);
            // Commands that the device makes
            execute_generated "vkCmdExecuteGeneratedCommandsEXT" (a: u32, b: Pointer) = Effect::Opaque(Kind::GeneratedCommands);
            execute_generated_nv "vkCmdExecuteGeneratedCommandsNV" (a: u32, b: Pointer) = Effect::Opaque(Kind::GeneratedCommands);
            preprocess_generated "vkCmdPreprocessGeneratedCommandsEXT" (a: Pointer, b: Pointer) = Effect::Opaque(Kind::GeneratedCommands);
            preprocess_generated_nv "vkCmdPreprocessGeneratedCommandsNV" (a: Pointer) = Effect::Opaque(Kind::GeneratedCommands);
            update_indirect_pipeline_nv "vkCmdUpdatePipelineIndirectBufferNV" (a: i32, b: u64) = Effect::Opaque(Kind::GeneratedCommands);
            dispatch_graph "vkCmdDispatchGraphAMDX" (a: u64, b: u64, c: Pointer) = Effect::Opaque(Kind::GeneratedCommands);
            dispatch_graph_indirect "vkCmdDispatchGraphIndirectAMDX" (a: u64, b: u64, c: Pointer) = Effect::Opaque(Kind::GeneratedCommands);
            dispatch_graph_indirect_count "vkCmdDispatchGraphIndirectCountAMDX" (a: u64, b: u64, c: u64) = Effect::Opaque(Kind::GeneratedCommands);
            initialize_graph_scratch "vkCmdInitializeGraphScratchMemoryAMDX" (a: u64, b: u64, c: u64) = Effect::Opaque(Kind::GeneratedCommands);
            // Machine learning, video and other engines
            dispatch_data_graph "vkCmdDispatchDataGraphARM" (a: u64, b: Pointer) = Effect::Opaque(Kind::DataGraph);
            convert_vector_matrix_nv "vkCmdConvertCooperativeVectorMatrixNV" (a: u32, b: Pointer) = Effect::Opaque(Kind::Other);
            launch_cuda_kernel_nvx "vkCmdCuLaunchKernelNVX" (a: Pointer) = Effect::Opaque(Kind::Other);
            launch_cuda_kernel_nv "vkCmdCudaLaunchKernelNV" (a: Pointer) = Effect::Opaque(Kind::Other);
            execute_optical_flow "vkCmdOpticalFlowExecuteNV" (a: u64, b: Pointer) = Effect::Opaque(Kind::Other);
            decompress "vkCmdDecompressMemoryEXT" (a: Pointer) = Effect::Opaque(Kind::Decompression);
            decompress_indirect "vkCmdDecompressMemoryIndirectCountEXT" (a: u64, b: u64, c: u64, d: u32, e: u32) = Effect::Opaque(Kind::Decompression);
            decompress_nv "vkCmdDecompressMemoryNV" (a: u32, b: Pointer) = Effect::Opaque(Kind::Decompression);
            decompress_indirect_nv "vkCmdDecompressMemoryIndirectCountNV" (a: u64, b: u64, c: u32) = Effect::Opaque(Kind::Decompression);
            refresh_objects "vkCmdRefreshObjectsKHR" (a: Pointer) = Effect::Opaque(Kind::Other);
            // Descriptors that are in no set
            bind_resource_heap "vkCmdBindResourceHeapEXT" (a: Pointer) = Effect::ForgetBindings;
            // Results of queries.
            copy_query_results_to_memory "vkCmdCopyQueryPoolResultsToMemoryKHR" (a: u64, b: u32, c: u32, d: Pointer, e: u32, f: u32) = Effect::Opaque(Kind::QueryResults);
            // Work that is given device addresses
            dispatch_indirect2 "vkCmdDispatchIndirect2KHR" (a: Pointer) = Effect::DispatchIndirect;
            fill_memory "vkCmdFillMemoryKHR" (a: Pointer, b: u32, c: u32) = Effect::Transfer(Op::FillBuffer, range_bytes(a));
            update_memory "vkCmdUpdateMemoryKHR" (a: Pointer, b: u32, c: u64, d: Pointer) = Effect::Transfer(Op::UpdateBuffer, Some(c));
            copy_memory "vkCmdCopyMemoryKHR" (a: Pointer) = Effect::Transfer(Op::CopyBuffer, copied_bytes(a));
            copy_memory_to_image "vkCmdCopyMemoryToImageKHR" (a: Pointer) = Effect::Transfer(Op::CopyImage, None);
            copy_image_to_memory "vkCmdCopyImageToMemoryKHR" (a: Pointer) = Effect::Transfer(Op::CopyImage, None);
            copy_memory_indirect "vkCmdCopyMemoryIndirectKHR" (a: Pointer) = Effect::Transfer(Op::CopyBuffer, None);
            copy_memory_indirect_nv "vkCmdCopyMemoryIndirectNV" (a: u64, b: u32, c: u32) = Effect::Transfer(Op::CopyBuffer, None);
            copy_memory_to_image_indirect "vkCmdCopyMemoryToImageIndirectKHR" (a: Pointer) = Effect::Transfer(Op::CopyImage, None);
            copy_memory_to_image_indirect_nv "vkCmdCopyMemoryToImageIndirectNV" (a: u64, b: u32, c: u32, d: u64, e: i32, f: Pointer) = Effect::Transfer(Op::CopyImage, None);
            copy_tensor "vkCmdCopyTensorARM" (a: Pointer) = Effect::Transfer(Op::CopyImage, None);
            $($more)*
        }
    };
}

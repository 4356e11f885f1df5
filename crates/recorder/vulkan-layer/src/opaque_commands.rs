//! Commands that neither layer follows in detail: the layer that records takes them for what they are, and no capture can hold
//! them. Parameters have the types of the binary interface, so that commands are in the table of which ash knows nothing.

/// Calls a macro with the table and more rows of the layer: the command's field and hook, its names in the order in which a driver
/// is asked for them, its parameters after the command buffer, and the `Work` that the layer that records takes it for.
#[macro_export]
macro_rules! opaque_commands {
    ($with:ident $($more:tt)*) => {
        $with! {
            // Render passes and other scopes.
            begin_render_pass "vkCmdBeginRenderPass" (a: Pointer, b: i32) = Work::ScopeStart(Kind::RenderPass);
            begin_render_pass2 "vkCmdBeginRenderPass2" "vkCmdBeginRenderPass2KHR" (a: Pointer, b: Pointer) = Work::ScopeStart(Kind::RenderPass);
            begin_rendering "vkCmdBeginRendering" "vkCmdBeginRenderingKHR" (a: Pointer) = Work::RenderingStart(rendering_flags(a));
            begin_video_coding "vkCmdBeginVideoCodingKHR" (a: Pointer) = Work::ScopeStart(Kind::VideoCoding);
            // Images
            blit_image "vkCmdBlitImage" (a: u64, b: i32, c: u64, d: i32, e: u32, f: Pointer, g: i32) = Work::Opaque(Kind::Other);
            blit_image2 "vkCmdBlitImage2" "vkCmdBlitImage2KHR" (a: Pointer) = Work::Opaque(Kind::Other);
            resolve_image "vkCmdResolveImage" (a: u64, b: i32, c: u64, d: i32, e: u32, f: Pointer) = Work::Opaque(Kind::ClearImage);
            resolve_image2 "vkCmdResolveImage2" "vkCmdResolveImage2KHR" (a: Pointer) = Work::Opaque(Kind::ClearImage);
            clear_color_image "vkCmdClearColorImage" (a: u64, b: i32, c: Pointer, d: u32, e: Pointer) = Work::Opaque(Kind::ClearImage);
            clear_depth_stencil_image "vkCmdClearDepthStencilImage" (a: u64, b: i32, c: Pointer, d: u32, e: Pointer) = Work::Opaque(Kind::ClearImage);
            // Ray tracing
            trace_rays "vkCmdTraceRaysKHR" (a: Pointer, b: Pointer, c: Pointer, d: Pointer, e: u32, f: u32, g: u32) = Work::Opaque(Kind::RayTracing);
            trace_rays_indirect "vkCmdTraceRaysIndirectKHR" (a: Pointer, b: Pointer, c: Pointer, d: Pointer, e: u64) = Work::Opaque(Kind::RayTracing);
            trace_rays_indirect2 "vkCmdTraceRaysIndirect2KHR" (a: u64) = Work::Opaque(Kind::RayTracing);
            trace_rays_nv "vkCmdTraceRaysNV" (a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64, i: u64, j: u64, k: u64, l: u32, m: u32, n: u32) = Work::Opaque(Kind::RayTracing);
            // Acceleration structures
            build_structures "vkCmdBuildAccelerationStructuresKHR" (a: u32, b: Pointer, c: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            build_structures_indirect "vkCmdBuildAccelerationStructuresIndirectKHR" (a: u32, b: Pointer, c: Pointer, d: Pointer, e: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            build_structure_nv "vkCmdBuildAccelerationStructureNV" (a: Pointer, b: u64, c: u64, d: u32, e: u64, f: u64, g: u64, h: u64) = Work::Opaque(Kind::AccelerationStructure);
            build_clusters_nv "vkCmdBuildClusterAccelerationStructureIndirectNV" (a: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            build_partitions_nv "vkCmdBuildPartitionedAccelerationStructuresNV" (a: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            build_micromaps "vkCmdBuildMicromapsEXT" (a: u32, b: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            copy_structure "vkCmdCopyAccelerationStructureKHR" (a: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            copy_structure_nv "vkCmdCopyAccelerationStructureNV" (a: u64, b: u64, c: i32) = Work::Opaque(Kind::AccelerationStructure);
            copy_structure_to_memory "vkCmdCopyAccelerationStructureToMemoryKHR" (a: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            copy_memory_to_structure "vkCmdCopyMemoryToAccelerationStructureKHR" (a: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            copy_micromap "vkCmdCopyMicromapEXT" (a: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            copy_micromap_to_memory "vkCmdCopyMicromapToMemoryEXT" (a: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            copy_memory_to_micromap "vkCmdCopyMemoryToMicromapEXT" (a: Pointer) = Work::Opaque(Kind::AccelerationStructure);
            write_structure_properties "vkCmdWriteAccelerationStructuresPropertiesKHR" (a: u32, b: Pointer, c: i32, d: u64, e: u32) = Work::Opaque(Kind::AccelerationStructure);
            write_structure_properties_nv "vkCmdWriteAccelerationStructuresPropertiesNV" (a: u32, b: Pointer, c: i32, d: u64, e: u32) = Work::Opaque(Kind::AccelerationStructure);
            write_micromap_properties "vkCmdWriteMicromapsPropertiesEXT" (a: u32, b: Pointer, c: i32, d: u64, e: u32) = Work::Opaque(Kind::AccelerationStructure);
            // Commands that the device makes
            execute_generated "vkCmdExecuteGeneratedCommandsEXT" (a: u32, b: Pointer) = Work::Opaque(Kind::GeneratedCommands);
            execute_generated_nv "vkCmdExecuteGeneratedCommandsNV" (a: u32, b: Pointer) = Work::Opaque(Kind::GeneratedCommands);
            preprocess_generated "vkCmdPreprocessGeneratedCommandsEXT" (a: Pointer, b: Pointer) = Work::Opaque(Kind::GeneratedCommands);
            preprocess_generated_nv "vkCmdPreprocessGeneratedCommandsNV" (a: Pointer) = Work::Opaque(Kind::GeneratedCommands);
            update_indirect_pipeline_nv "vkCmdUpdatePipelineIndirectBufferNV" (a: i32, b: u64) = Work::Opaque(Kind::GeneratedCommands);
            dispatch_graph "vkCmdDispatchGraphAMDX" (a: u64, b: u64, c: Pointer) = Work::Opaque(Kind::GeneratedCommands);
            dispatch_graph_indirect "vkCmdDispatchGraphIndirectAMDX" (a: u64, b: u64, c: Pointer) = Work::Opaque(Kind::GeneratedCommands);
            dispatch_graph_indirect_count "vkCmdDispatchGraphIndirectCountAMDX" (a: u64, b: u64, c: u64) = Work::Opaque(Kind::GeneratedCommands);
            initialize_graph_scratch "vkCmdInitializeGraphScratchMemoryAMDX" (a: u64, b: u64, c: u64) = Work::Opaque(Kind::GeneratedCommands);
            // Machine learning, video and other engines
            dispatch_data_graph "vkCmdDispatchDataGraphARM" (a: u64, b: Pointer) = Work::Opaque(Kind::DataGraph);
            convert_vector_matrix_nv "vkCmdConvertCooperativeVectorMatrixNV" (a: u32, b: Pointer) = Work::Opaque(Kind::Other);
            launch_cuda_kernel_nvx "vkCmdCuLaunchKernelNVX" (a: Pointer) = Work::Opaque(Kind::Other);
            launch_cuda_kernel_nv "vkCmdCudaLaunchKernelNV" (a: Pointer) = Work::Opaque(Kind::Other);
            execute_optical_flow "vkCmdOpticalFlowExecuteNV" (a: u64, b: Pointer) = Work::Opaque(Kind::Other);
            decompress "vkCmdDecompressMemoryEXT" (a: Pointer) = Work::Opaque(Kind::Decompression);
            decompress_indirect "vkCmdDecompressMemoryIndirectCountEXT" (a: u64, b: u64, c: u64, d: u32, e: u32) = Work::Opaque(Kind::Decompression);
            decompress_nv "vkCmdDecompressMemoryNV" (a: u32, b: Pointer) = Work::Opaque(Kind::Decompression);
            decompress_indirect_nv "vkCmdDecompressMemoryIndirectCountNV" (a: u64, b: u64, c: u32) = Work::Opaque(Kind::Decompression);
            refresh_objects "vkCmdRefreshObjectsKHR" (a: Pointer) = Work::Opaque(Kind::Other);
            // Descriptors that are in no set
            bind_resource_heap "vkCmdBindResourceHeapEXT" (a: Pointer) = Work::ForgetBindings;
            // Results of queries.
            copy_query_results_to_memory "vkCmdCopyQueryPoolResultsToMemoryKHR" (a: u64, b: u32, c: u32, d: Pointer, e: u32, f: u32) = Work::Opaque(Kind::QueryResults);
            // Work that is given device addresses
            dispatch_indirect2 "vkCmdDispatchIndirect2KHR" (a: Pointer) = Work::DispatchIndirect;
            fill_memory "vkCmdFillMemoryKHR" (a: Pointer, b: u32, c: u32) = Work::Transfer(Op::FillBuffer, range_bytes(a));
            update_memory "vkCmdUpdateMemoryKHR" (a: Pointer, b: u32, c: u64, d: Pointer) = Work::Transfer(Op::UpdateBuffer, Some(c));
            copy_memory "vkCmdCopyMemoryKHR" (a: Pointer) = Work::Transfer(Op::CopyBuffer, copied_bytes(a));
            copy_memory_to_image "vkCmdCopyMemoryToImageKHR" (a: Pointer) = Work::Transfer(Op::CopyImage, None);
            copy_image_to_memory "vkCmdCopyImageToMemoryKHR" (a: Pointer) = Work::Transfer(Op::CopyImage, None);
            copy_memory_indirect "vkCmdCopyMemoryIndirectKHR" (a: Pointer) = Work::Transfer(Op::CopyBuffer, None);
            copy_memory_indirect_nv "vkCmdCopyMemoryIndirectNV" (a: u64, b: u32, c: u32) = Work::Transfer(Op::CopyBuffer, None);
            copy_memory_to_image_indirect "vkCmdCopyMemoryToImageIndirectKHR" (a: Pointer) = Work::Transfer(Op::CopyImage, None);
            copy_memory_to_image_indirect_nv "vkCmdCopyMemoryToImageIndirectNV" (a: u64, b: u32, c: u32, d: u64, e: i32, f: Pointer) = Work::Transfer(Op::CopyImage, None);
            copy_tensor "vkCmdCopyTensorARM" (a: Pointer) = Work::Transfer(Op::CopyImage, None);
            $($more)*
        }
    };
}

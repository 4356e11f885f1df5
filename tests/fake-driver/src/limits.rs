//! Gives the limits of the fake GPU.

use ash::vk;

use crate::config::config;
use crate::memory::ATOM_BYTES;

const MAX_ALLOCATIONS: u32 = 4096;
pub const MAX_DESCRIPTORS: u32 = 1 << 20;
pub const MAX_DYNAMIC_BUFFERS: u32 = 16;

pub fn core() -> vk::PhysicalDeviceLimits {
    let every_family_has_timestamps = config()
        .families
        .iter()
        .all(|family| family.timestamp_bits > 0);
    let samples = vk::SampleCountFlags::TYPE_1 | vk::SampleCountFlags::TYPE_4;
    vk::PhysicalDeviceLimits {
        max_image_dimension1_d: 16384,
        max_image_dimension2_d: 16384,
        max_image_dimension3_d: 2048,
        max_image_dimension_cube: 16384,
        max_image_array_layers: 2048,
        max_texel_buffer_elements: 1 << 27,
        max_uniform_buffer_range: 65536,
        max_storage_buffer_range: u32::MAX,
        max_push_constants_size: 256,
        max_memory_allocation_count: MAX_ALLOCATIONS,
        max_sampler_allocation_count: 4000,
        buffer_image_granularity: 1,
        max_bound_descriptor_sets: 32,
        max_per_stage_descriptor_samplers: MAX_DESCRIPTORS,
        max_per_stage_descriptor_uniform_buffers: MAX_DESCRIPTORS,
        max_per_stage_descriptor_storage_buffers: MAX_DESCRIPTORS,
        max_per_stage_descriptor_sampled_images: MAX_DESCRIPTORS,
        max_per_stage_descriptor_storage_images: MAX_DESCRIPTORS,
        max_per_stage_descriptor_input_attachments: MAX_DESCRIPTORS,
        max_per_stage_resources: MAX_DESCRIPTORS,
        max_descriptor_set_samplers: MAX_DESCRIPTORS,
        max_descriptor_set_uniform_buffers: MAX_DESCRIPTORS,
        max_descriptor_set_uniform_buffers_dynamic: MAX_DYNAMIC_BUFFERS,
        max_descriptor_set_storage_buffers: MAX_DESCRIPTORS,
        max_descriptor_set_storage_buffers_dynamic: MAX_DYNAMIC_BUFFERS,
        max_descriptor_set_sampled_images: MAX_DESCRIPTORS,
        max_descriptor_set_storage_images: MAX_DESCRIPTORS,
        max_descriptor_set_input_attachments: MAX_DESCRIPTORS,
        max_vertex_input_attributes: 32,
        max_vertex_input_bindings: 32,
        max_vertex_input_attribute_offset: 2047,
        max_vertex_input_binding_stride: 2048,
        max_vertex_output_components: 128,
        max_fragment_input_components: 128,
        max_fragment_output_attachments: 8,
        max_fragment_dual_src_attachments: 1,
        max_fragment_combined_output_resources: 16,
        max_compute_shared_memory_size: 49152,
        max_compute_work_group_count: [i32::MAX as u32, 65535, 65535],
        max_compute_work_group_invocations: 1024,
        max_compute_work_group_size: [1024, 1024, 64],
        sub_pixel_precision_bits: 8,
        sub_texel_precision_bits: 8,
        mipmap_precision_bits: 8,
        max_draw_indexed_index_value: u32::MAX,
        max_draw_indirect_count: u32::MAX,
        max_sampler_lod_bias: 15.0,
        max_sampler_anisotropy: 16.0,
        max_viewports: 16,
        max_viewport_dimensions: [16384; 2],
        viewport_bounds_range: [-32768.0, 32767.0],
        viewport_sub_pixel_bits: 8,
        min_memory_map_alignment: 4096,
        min_texel_buffer_offset_alignment: 16,
        min_uniform_buffer_offset_alignment: 64,
        min_storage_buffer_offset_alignment: 16,
        min_texel_offset: -8,
        max_texel_offset: 7,
        min_texel_gather_offset: -8,
        max_texel_gather_offset: 7,
        min_interpolation_offset: -0.5,
        max_interpolation_offset: 0.4375,
        sub_pixel_interpolation_offset_bits: 4,
        max_framebuffer_width: 16384,
        max_framebuffer_height: 16384,
        max_framebuffer_layers: 2048,
        framebuffer_color_sample_counts: samples,
        framebuffer_depth_sample_counts: samples,
        framebuffer_stencil_sample_counts: samples,
        framebuffer_no_attachments_sample_counts: samples,
        max_color_attachments: 8,
        sampled_image_color_sample_counts: samples,
        sampled_image_integer_sample_counts: samples,
        sampled_image_depth_sample_counts: samples,
        sampled_image_stencil_sample_counts: samples,
        storage_image_sample_counts: samples,
        max_sample_mask_words: 1,
        timestamp_compute_and_graphics: every_family_has_timestamps.into(),
        timestamp_period: config().timestamp_period,
        max_clip_distances: 8,
        max_cull_distances: 8,
        max_combined_clip_and_cull_distances: 8,
        discrete_queue_priorities: 2,
        point_size_range: [1.0, 64.0],
        line_width_range: [1.0, 1.0],
        point_size_granularity: 1.0,
        optimal_buffer_copy_offset_alignment: 1,
        optimal_buffer_copy_row_pitch_alignment: 1,
        non_coherent_atom_size: ATOM_BYTES,
        ..vk::PhysicalDeviceLimits::default()
    }
}

/// Makes properties of Vulkan with the limits of descriptors that are updated after they are bound, which are no lower than the others.
macro_rules! with_descriptor_indexing {
    ($properties:expr) => {
        $properties
            .max_per_stage_descriptor_update_after_bind_samplers($crate::limits::MAX_DESCRIPTORS)
            .max_per_stage_descriptor_update_after_bind_uniform_buffers(
                $crate::limits::MAX_DESCRIPTORS,
            )
            .max_per_stage_descriptor_update_after_bind_storage_buffers(
                $crate::limits::MAX_DESCRIPTORS,
            )
            .max_per_stage_descriptor_update_after_bind_sampled_images(
                $crate::limits::MAX_DESCRIPTORS,
            )
            .max_per_stage_descriptor_update_after_bind_storage_images(
                $crate::limits::MAX_DESCRIPTORS,
            )
            .max_per_stage_descriptor_update_after_bind_input_attachments(
                $crate::limits::MAX_DESCRIPTORS,
            )
            .max_per_stage_update_after_bind_resources($crate::limits::MAX_DESCRIPTORS)
            .max_descriptor_set_update_after_bind_samplers($crate::limits::MAX_DESCRIPTORS)
            .max_descriptor_set_update_after_bind_uniform_buffers($crate::limits::MAX_DESCRIPTORS)
            .max_descriptor_set_update_after_bind_storage_buffers($crate::limits::MAX_DESCRIPTORS)
            .max_descriptor_set_update_after_bind_sampled_images($crate::limits::MAX_DESCRIPTORS)
            .max_descriptor_set_update_after_bind_storage_images($crate::limits::MAX_DESCRIPTORS)
            .max_descriptor_set_update_after_bind_input_attachments($crate::limits::MAX_DESCRIPTORS)
            .max_descriptor_set_update_after_bind_uniform_buffers_dynamic(
                $crate::limits::MAX_DYNAMIC_BUFFERS,
            )
            .max_descriptor_set_update_after_bind_storage_buffers_dynamic(
                $crate::limits::MAX_DYNAMIC_BUFFERS,
            )
            .max_update_after_bind_descriptors_in_all_pools($crate::limits::MAX_DESCRIPTORS)
    };
}
pub(crate) use with_descriptor_indexing;

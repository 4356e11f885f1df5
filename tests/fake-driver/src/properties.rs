//! Properties and limits of the fake GPU.

use std::ffi::CStr;

use ash::vk;

use crate::chain;
use crate::config::config;
use crate::instance::API_VERSION;
use crate::memory::{ATOM_BYTES, HEAP_BYTES};

const NAME: &CStr = c"gapscope fake GPU";
const UUID: [u8; 16] = *b"gapscopefake-gpu";
const SUBGROUP_SIZE: u32 = 32;
const VENDOR_ID: u32 = 0x1_FA4E;
const MAX_ALLOCATIONS: u32 = 4096;

fn limits() -> vk::PhysicalDeviceLimits {
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
        max_per_stage_descriptor_samplers: 1 << 20,
        max_per_stage_descriptor_uniform_buffers: 1 << 20,
        max_per_stage_descriptor_storage_buffers: 1 << 20,
        max_per_stage_descriptor_sampled_images: 1 << 20,
        max_per_stage_descriptor_storage_images: 1 << 20,
        max_per_stage_descriptor_input_attachments: 1 << 20,
        max_per_stage_resources: 1 << 20,
        max_descriptor_set_samplers: 1 << 20,
        max_descriptor_set_uniform_buffers: 1 << 20,
        max_descriptor_set_uniform_buffers_dynamic: 15,
        max_descriptor_set_storage_buffers: 1 << 20,
        max_descriptor_set_storage_buffers_dynamic: 16,
        max_descriptor_set_sampled_images: 1 << 20,
        max_descriptor_set_storage_images: 1 << 20,
        max_descriptor_set_input_attachments: 1 << 20,
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

fn core() -> vk::PhysicalDeviceProperties {
    vk::PhysicalDeviceProperties {
        api_version: API_VERSION,
        driver_version: 1,
        vendor_id: VENDOR_ID,
        device_id: 1,
        // Programs that refuse CPU devices must run on it.
        device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
        device_name: chain::fixed(NAME),
        pipeline_cache_uuid: UUID,
        limits: limits(),
        sparse_properties: vk::PhysicalDeviceSparseProperties::default(),
    }
}

fn v11() -> vk::PhysicalDeviceVulkan11Properties<'static> {
    vk::PhysicalDeviceVulkan11Properties::default()
        .device_uuid(UUID)
        .driver_uuid(UUID)
        .device_node_mask(1)
        .subgroup_size(SUBGROUP_SIZE)
        .subgroup_supported_stages(vk::ShaderStageFlags::ALL)
        .subgroup_supported_operations(
            vk::SubgroupFeatureFlags::BASIC
                | vk::SubgroupFeatureFlags::VOTE
                | vk::SubgroupFeatureFlags::ARITHMETIC
                | vk::SubgroupFeatureFlags::BALLOT
                | vk::SubgroupFeatureFlags::SHUFFLE,
        )
        .max_multiview_view_count(6)
        .max_multiview_instance_index((1 << 27) - 1)
        .max_per_set_descriptors(1 << 20)
        .max_memory_allocation_size(HEAP_BYTES)
}

fn v12() -> vk::PhysicalDeviceVulkan12Properties<'static> {
    vk::PhysicalDeviceVulkan12Properties {
        driver_name: chain::fixed(c"gapscope-fake"),
        driver_info: chain::fixed(c"tests only: no GPU work is done"),
        conformance_version: vk::ConformanceVersion::default(),
        max_timeline_semaphore_value_difference: i64::MAX as u64,
        framebuffer_integer_color_sample_counts: vk::SampleCountFlags::TYPE_1,
        supported_depth_resolve_modes: vk::ResolveModeFlags::SAMPLE_ZERO,
        supported_stencil_resolve_modes: vk::ResolveModeFlags::SAMPLE_ZERO,
        ..vk::PhysicalDeviceVulkan12Properties::default()
    }
}

fn v13() -> vk::PhysicalDeviceVulkan13Properties<'static> {
    vk::PhysicalDeviceVulkan13Properties::default()
        .min_subgroup_size(SUBGROUP_SIZE)
        .max_subgroup_size(SUBGROUP_SIZE)
        .max_compute_workgroup_subgroups(32)
        .required_subgroup_size_stages(vk::ShaderStageFlags::COMPUTE)
        .storage_texel_buffer_offset_alignment_bytes(16)
        .uniform_texel_buffer_offset_alignment_bytes(16)
        .max_buffer_size(HEAP_BYTES)
}

pub unsafe extern "system" fn get_properties(
    _: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties,
) {
    *out = core();
}

pub unsafe extern "system" fn get_properties2(
    _: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceProperties2<'_>,
) {
    (*out).properties = core();
    for item in chain::structures((*out).p_next) {
        match (*item).s_type {
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES => {
                let out = item.cast::<vk::PhysicalDeviceVulkan11Properties<'_>>();
                *out = vk::PhysicalDeviceVulkan11Properties {
                    p_next: (*out).p_next,
                    ..v11()
                };
            }
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES => {
                let out = item.cast::<vk::PhysicalDeviceVulkan12Properties<'_>>();
                *out = vk::PhysicalDeviceVulkan12Properties {
                    p_next: (*out).p_next,
                    ..v12()
                };
            }
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES => {
                let out = item.cast::<vk::PhysicalDeviceVulkan13Properties<'_>>();
                *out = vk::PhysicalDeviceVulkan13Properties {
                    p_next: (*out).p_next,
                    ..v13()
                };
            }
            vk::StructureType::PHYSICAL_DEVICE_ID_PROPERTIES => {
                let out = &mut *item.cast::<vk::PhysicalDeviceIDProperties<'_>>();
                (out.device_uuid, out.driver_uuid) = (UUID, UUID);
                out.device_node_mask = 1;
                out.device_luid_valid = vk::FALSE;
            }
            vk::StructureType::PHYSICAL_DEVICE_DRIVER_PROPERTIES => {
                let (out, source) = (
                    &mut *item.cast::<vk::PhysicalDeviceDriverProperties<'_>>(),
                    v12(),
                );
                out.driver_id = source.driver_id;
                out.driver_name = source.driver_name;
                out.driver_info = source.driver_info;
                out.conformance_version = source.conformance_version;
            }
            vk::StructureType::PHYSICAL_DEVICE_SUBGROUP_PROPERTIES => {
                let (out, source) = (
                    &mut *item.cast::<vk::PhysicalDeviceSubgroupProperties<'_>>(),
                    v11(),
                );
                out.subgroup_size = source.subgroup_size;
                out.supported_stages = source.subgroup_supported_stages;
                out.supported_operations = source.subgroup_supported_operations;
            }
            vk::StructureType::PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES => {
                let out = &mut *item.cast::<vk::PhysicalDeviceSubgroupSizeControlProperties<'_>>();
                (out.min_subgroup_size, out.max_subgroup_size) = (SUBGROUP_SIZE, SUBGROUP_SIZE);
                out.max_compute_workgroup_subgroups = 32;
                out.required_subgroup_size_stages = vk::ShaderStageFlags::COMPUTE;
            }
            vk::StructureType::PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES => {
                let out = &mut *item.cast::<vk::PhysicalDeviceMaintenance3Properties<'_>>();
                out.max_per_set_descriptors = 1 << 20;
                out.max_memory_allocation_size = HEAP_BYTES;
            }
            vk::StructureType::PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES => {
                (*item.cast::<vk::PhysicalDeviceMaintenance4Properties<'_>>()).max_buffer_size =
                    HEAP_BYTES;
            }
            vk::StructureType::PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_PROPERTIES => {
                let out = &mut *item.cast::<vk::PhysicalDeviceTimelineSemaphoreProperties<'_>>();
                out.max_timeline_semaphore_value_difference = i64::MAX as u64;
            }
            vk::StructureType::PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR => {
                (*item.cast::<vk::PhysicalDevicePushDescriptorPropertiesKHR<'_>>())
                    .max_push_descriptors = 32;
            }
            _ => {}
        }
    }
}

//! Gives the properties of the fake GPU.

use std::ffi::CStr;

use ash::vk;

use crate::chain;
use crate::config::{Vendor, config};
use crate::instance::API_VERSION;
use crate::limits::{self, MAX_DESCRIPTORS, with_descriptor_indexing};
use crate::memory::HEAP_BYTES;

const NAME: &CStr = c"gapscope fake GPU";
const UUID: [u8; 16] = *b"gapscopefake-gpu";
const SUBGROUP_SIZE: u32 = 32;
const VENDOR_ID: u32 = 0x1_FA4E;

fn core() -> vk::PhysicalDeviceProperties {
    vk::PhysicalDeviceProperties {
        api_version: API_VERSION,
        driver_version: 1,
        vendor_id: VENDOR_ID,
        device_id: 1,
        // Programs that refuse CPU devices must run on this one.
        device_type: vk::PhysicalDeviceType::DISCRETE_GPU,
        device_name: chain::fixed(NAME),
        pipeline_cache_uuid: UUID,
        limits: limits::core(),
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
        .max_per_set_descriptors(MAX_DESCRIPTORS)
        .max_memory_allocation_size(HEAP_BYTES)
}

fn v12() -> vk::PhysicalDeviceVulkan12Properties<'static> {
    with_descriptor_indexing!(vk::PhysicalDeviceVulkan12Properties {
        driver_name: chain::fixed(c"gapscope-fake"),
        driver_info: chain::fixed(c"tests only: no GPU work is done"),
        // This claim is as false as the others: wgpu ignores a driver that does not make it.
        conformance_version: vk::ConformanceVersion {
            major: 1,
            minor: 3,
            ..Default::default()
        },
        max_timeline_semaphore_value_difference: i64::MAX as u64,
        framebuffer_integer_color_sample_counts: vk::SampleCountFlags::TYPE_1,
        supported_depth_resolve_modes: vk::ResolveModeFlags::SAMPLE_ZERO,
        supported_stencil_resolve_modes: vk::ResolveModeFlags::SAMPLE_ZERO,
        ..vk::PhysicalDeviceVulkan12Properties::default()
    })
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
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES => chain::fill(item, v11()),
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES => chain::fill(item, v12()),
            vk::StructureType::PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES => chain::fill(item, v13()),
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
                out.max_per_set_descriptors = MAX_DESCRIPTORS;
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
            vk::StructureType::PHYSICAL_DEVICE_DESCRIPTOR_INDEXING_PROPERTIES => {
                let empty = vk::PhysicalDeviceDescriptorIndexingProperties::default();
                chain::fill(item, with_descriptor_indexing!(empty));
            }
            vk::StructureType::PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR => {
                (*item.cast::<vk::PhysicalDevicePushDescriptorPropertiesKHR<'_>>())
                    .max_push_descriptors = 32;
            }
            _ => write_size(item),
        }
    }
}

/// Writes how large the GPU is, where the structure asks for that.
unsafe fn write_size(item: *mut vk::BaseOutStructure<'_>) {
    let Some(size) = config().size else { return };
    match (size.vendor, (*item).s_type) {
        (Vendor::Nvidia, vk::StructureType::PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV) => {
            let out = &mut *item.cast::<vk::PhysicalDeviceShaderSMBuiltinsPropertiesNV<'_>>();
            (out.shader_sm_count, out.shader_warps_per_sm) = (size.multiprocessors, size.warps);
        }
        (Vendor::Amd, vk::StructureType::PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD) => {
            let out = &mut *item.cast::<vk::PhysicalDeviceShaderCorePropertiesAMD<'_>>();
            (out.simd_per_compute_unit, out.wavefronts_per_simd) = (2, size.warps / 2);
            out.wavefront_size = 64;
        }
        (Vendor::Amd, vk::StructureType::PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD) => {
            let out = &mut *item.cast::<vk::PhysicalDeviceShaderCoreProperties2AMD<'_>>();
            out.active_compute_unit_count = size.multiprocessors;
        }
        (Vendor::Arm, vk::StructureType::PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM) => {
            let out = &mut *item.cast::<vk::PhysicalDeviceShaderCoreBuiltinsPropertiesARM<'_>>();
            (out.shader_core_count, out.shader_warps_per_core) = (size.multiprocessors, size.warps);
        }
        _ => {}
    }
}

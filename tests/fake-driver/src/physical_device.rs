//! Describes the one physical device: its queue families, memory types, formats and extensions.

use std::ffi::{CStr, c_char};

use ash::vk;

use crate::config::{Calibrated, Family, Vendor, config};
use crate::object::Body;
use crate::{chain, memory};

pub struct PhysicalDevice {
    /// The extensions and version that the instance was created with decide which functions a device offers.
    pub api_version: u32,
    pub instance_extensions: Vec<&'static CStr>,
}

impl Body for PhysicalDevice {
    type Handle = vk::PhysicalDevice;
}

const EXTENSIONS: &[&CStr] = &[
    ash::ext::descriptor_indexing::NAME,
    ash::ext::host_query_reset::NAME,
    ash::ext::scalar_block_layout::NAME,
    ash::ext::subgroup_size_control::NAME,
    ash::khr::_16bit_storage::NAME,
    ash::khr::_8bit_storage::NAME,
    ash::khr::bind_memory2::NAME,
    ash::khr::buffer_device_address::NAME,
    ash::khr::copy_commands2::NAME,
    ash::khr::create_renderpass2::NAME,
    ash::khr::dedicated_allocation::NAME,
    ash::khr::depth_stencil_resolve::NAME,
    ash::khr::descriptor_update_template::NAME,
    ash::khr::device_group::NAME,
    ash::khr::driver_properties::NAME,
    ash::khr::dynamic_rendering::NAME,
    ash::khr::get_memory_requirements2::NAME,
    ash::khr::image_format_list::NAME,
    ash::khr::imageless_framebuffer::NAME,
    ash::khr::maintenance1::NAME,
    ash::khr::maintenance2::NAME,
    ash::khr::maintenance3::NAME,
    ash::khr::maintenance4::NAME,
    ash::khr::multiview::NAME,
    ash::khr::push_descriptor::NAME,
    ash::khr::relaxed_block_layout::NAME,
    ash::khr::shader_atomic_int64::NAME,
    ash::khr::shader_float16_int8::NAME,
    ash::khr::shader_integer_dot_product::NAME,
    ash::khr::shader_non_semantic_info::NAME,
    ash::khr::shader_subgroup_extended_types::NAME,
    ash::khr::spirv_1_4::NAME,
    ash::khr::storage_buffer_storage_class::NAME,
    ash::khr::synchronization2::NAME,
    ash::khr::timeline_semaphore::NAME,
    ash::khr::uniform_buffer_standard_layout::NAME,
    ash::khr::variable_pointers::NAME,
    ash::khr::vulkan_memory_model::NAME,
    ash::khr::zero_initialize_workgroup_memory::NAME,
    ash::nv::memory_decompression::NAME,
    crate::availability::FRAGMENT_DENSITY_MAP_OFFSET,
];

pub fn extensions() -> Vec<&'static CStr> {
    let mut names = EXTENSIONS.to_vec();
    if !config().host_query_reset {
        names.retain(|&name| name != ash::ext::host_query_reset::NAME);
    }
    names.extend(match config().size.map(|size| size.vendor) {
        Some(Vendor::Nvidia) => vec![ash::nv::shader_sm_builtins::NAME],
        Some(Vendor::Amd) => vec![
            ash::amd::shader_core_properties::NAME,
            ash::amd::shader_core_properties2::NAME,
        ],
        Some(Vendor::Arm) => vec![ash::arm::shader_core_builtins::NAME],
        None => Vec::new(),
    });
    if config().counters.is_some() {
        names.push(ash::khr::performance_query::NAME);
    }
    if config().calibrated != Calibrated::No {
        names.extend([
            ash::ext::calibrated_timestamps::NAME,
            ash::khr::calibrated_timestamps::NAME,
        ]);
    }
    names
}

pub unsafe extern "system" fn enumerate_device_extension_properties(
    _: vk::PhysicalDevice,
    _: *const c_char,
    count: *mut u32,
    out: *mut vk::ExtensionProperties,
) -> vk::Result {
    chain::enumerate(&chain::extension_properties(&extensions()), count, out)
}

pub unsafe extern "system" fn enumerate_device_layer_properties(
    _: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::LayerProperties,
) -> vk::Result {
    chain::enumerate(&[], count, out)
}

fn queue_family(family: &Family) -> vk::QueueFamilyProperties {
    vk::QueueFamilyProperties {
        queue_flags: family.flags,
        queue_count: family.queues,
        timestamp_valid_bits: family.timestamp_bits,
        min_image_transfer_granularity: vk::Extent3D {
            width: 1,
            height: 1,
            depth: 1,
        },
    }
}

pub unsafe extern "system" fn get_queue_families(
    _: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties,
) {
    let _ = chain::enumerate_into(&config().families, count, out, |family, slot| {
        *slot = queue_family(family)
    });
}

pub unsafe extern "system" fn get_queue_families2(
    _: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::QueueFamilyProperties2<'_>,
) {
    let _ = chain::enumerate_into(&config().families, count, out, |family, slot| {
        (*slot).queue_family_properties = queue_family(family);
    });
}

pub unsafe extern "system" fn get_memory(
    _: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties,
) {
    *out = memory::properties();
}

pub unsafe extern "system" fn get_memory2(
    _: vk::PhysicalDevice,
    out: *mut vk::PhysicalDeviceMemoryProperties2<'_>,
) {
    (*out).memory_properties = memory::properties();
}

fn format_features(format: vk::Format) -> vk::FormatProperties {
    if format == vk::Format::UNDEFINED {
        return vk::FormatProperties::default();
    }
    let both = vk::FormatFeatureFlags::SAMPLED_IMAGE
        | vk::FormatFeatureFlags::STORAGE_IMAGE
        | vk::FormatFeatureFlags::COLOR_ATTACHMENT
        | vk::FormatFeatureFlags::COLOR_ATTACHMENT_BLEND
        | vk::FormatFeatureFlags::DEPTH_STENCIL_ATTACHMENT
        | vk::FormatFeatureFlags::BLIT_SRC
        | vk::FormatFeatureFlags::BLIT_DST
        | vk::FormatFeatureFlags::SAMPLED_IMAGE_FILTER_LINEAR
        | vk::FormatFeatureFlags::TRANSFER_SRC
        | vk::FormatFeatureFlags::TRANSFER_DST;
    vk::FormatProperties {
        linear_tiling_features: both,
        optimal_tiling_features: both,
        buffer_features: vk::FormatFeatureFlags::UNIFORM_TEXEL_BUFFER
            | vk::FormatFeatureFlags::STORAGE_TEXEL_BUFFER
            | vk::FormatFeatureFlags::VERTEX_BUFFER,
    }
}

pub unsafe extern "system" fn get_format(
    _: vk::PhysicalDevice,
    format: vk::Format,
    out: *mut vk::FormatProperties,
) {
    *out = format_features(format);
}

pub unsafe extern "system" fn get_format2(
    _: vk::PhysicalDevice,
    format: vk::Format,
    out: *mut vk::FormatProperties2<'_>,
) {
    (*out).format_properties = format_features(format);
}

const IMAGE_FORMAT: vk::ImageFormatProperties = vk::ImageFormatProperties {
    max_extent: vk::Extent3D {
        width: 16384,
        height: 16384,
        depth: 2048,
    },
    max_mip_levels: 15,
    max_array_layers: 2048,
    sample_counts: vk::SampleCountFlags::from_raw(
        vk::SampleCountFlags::TYPE_1.as_raw() | vk::SampleCountFlags::TYPE_4.as_raw(),
    ),
    max_resource_size: memory::HEAP_BYTES,
};

pub unsafe extern "system" fn get_image_format(
    _: vk::PhysicalDevice,
    _: vk::Format,
    _: vk::ImageType,
    _: vk::ImageTiling,
    _: vk::ImageUsageFlags,
    _: vk::ImageCreateFlags,
    out: *mut vk::ImageFormatProperties,
) -> vk::Result {
    *out = IMAGE_FORMAT;
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn get_image_format2(
    _: vk::PhysicalDevice,
    _: *const vk::PhysicalDeviceImageFormatInfo2<'_>,
    out: *mut vk::ImageFormatProperties2<'_>,
) -> vk::Result {
    (*out).image_format_properties = IMAGE_FORMAT;
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn get_sparse_image_format(
    _: vk::PhysicalDevice,
    _: vk::Format,
    _: vk::ImageType,
    _: vk::SampleCountFlags,
    _: vk::ImageUsageFlags,
    _: vk::ImageTiling,
    count: *mut u32,
    _: *mut vk::SparseImageFormatProperties,
) {
    *count = 0;
}

pub unsafe extern "system" fn get_sparse_image_format2(
    _: vk::PhysicalDevice,
    _: *const vk::PhysicalDeviceSparseImageFormatInfo2<'_>,
    count: *mut u32,
    _: *mut vk::SparseImageFormatProperties2<'_>,
) {
    *count = 0;
}

pub unsafe extern "system" fn get_external_buffer(
    _: vk::PhysicalDevice,
    _: *const vk::PhysicalDeviceExternalBufferInfo<'_>,
    out: *mut vk::ExternalBufferProperties<'_>,
) {
    (*out).external_memory_properties = vk::ExternalMemoryProperties::default();
}

pub unsafe extern "system" fn get_external_fence(
    _: vk::PhysicalDevice,
    _: *const vk::PhysicalDeviceExternalFenceInfo<'_>,
    out: *mut vk::ExternalFenceProperties<'_>,
) {
    (*out).external_fence_features = vk::ExternalFenceFeatureFlags::empty();
}

pub unsafe extern "system" fn get_external_semaphore(
    _: vk::PhysicalDevice,
    _: *const vk::PhysicalDeviceExternalSemaphoreInfo<'_>,
    out: *mut vk::ExternalSemaphoreProperties<'_>,
) {
    (*out).external_semaphore_features = vk::ExternalSemaphoreFeatureFlags::empty();
}

pub unsafe extern "system" fn get_tools(
    _: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::PhysicalDeviceToolProperties<'_>,
) -> vk::Result {
    chain::enumerate(&[], count, out)
}

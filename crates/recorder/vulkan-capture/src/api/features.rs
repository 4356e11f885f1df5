//! Describes a device for the header of a capture: its properties, and the extensions and features that the program
//! enabled.

use std::ffi::CStr;

use ash::vk;
use gapscope_capture::model;
use gapscope_vulkan_layer::arguments::{chain, find, slice, text_in};
use gapscope_vulkan_layer::physical_device::PhysicalDevice;

/// The structures that may be chained to VkDeviceCreateInfo and consist of features alone: lines of the structure's
/// VkStructureType, its name, and the names of its features in their order.
const STRUCTURES: &str = include_str!("../../registry/features.tsv");

/// Returns the names of a structure's features in their order; none for a structure that is not in the table.
fn feature_names(kind: vk::StructureType) -> Vec<&'static str> {
    let kind = kind.as_raw().to_string();
    let mut rows = STRUCTURES.lines().map(|line| line.split('\t'));
    let row = rows.find_map(|mut columns| (columns.next()? == kind).then(|| columns.nth(1))?);
    row.unwrap_or_default().split_whitespace().collect()
}

/// Returns the names of the extensions in a create-info.
///
/// # Safety
/// The create-info is valid.
unsafe fn extensions(info: &vk::DeviceCreateInfo<'_>) -> Vec<String> {
    // SAFETY: as the caller promises.
    unsafe {
        let names = slice(
            info.pp_enabled_extension_names,
            info.enabled_extension_count,
        );
        names
            .iter()
            .map(|name| CStr::from_ptr(*name).to_string_lossy().into_owned())
            .collect()
    }
}

/// Returns whether the device stands for several GPUs.
///
/// # Safety
/// The create-info is valid.
pub unsafe fn is_group(info: &vk::DeviceCreateInfo<'_>) -> bool {
    let wanted = vk::StructureType::DEVICE_GROUP_DEVICE_CREATE_INFO;
    // SAFETY: as the caller promises.
    let group = unsafe { find::<vk::DeviceGroupDeviceCreateInfo<'_>>(info.p_next, wanted) };
    group.is_some_and(|group| group.physical_device_count > 1)
}

/// Describes a device.
///
/// # Safety
/// `info` is valid.
pub unsafe fn describe(physical: PhysicalDevice, info: &vk::DeviceCreateInfo<'_>) -> model::Device {
    let instance = physical.instance;
    let mut driver = vk::PhysicalDeviceDriverProperties::default();
    let mut subgroup = vk::PhysicalDeviceSubgroupProperties::default();
    let properties = physical.properties();
    if instance.has_properties2
        && properties.api_version >= vk::API_VERSION_1_1
        && let Some(get) = physical.properties2()
    {
        let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut subgroup);
        if properties.api_version >= vk::API_VERSION_1_2 {
            all = all.push_next(&mut driver);
        }
        // SAFETY: the device knows these structures.
        unsafe { get(physical.handle, &mut all) };
    }
    let driver_name = text_in(&driver.driver_name);
    let driver_info = text_in(&driver.driver_info);
    model::Device {
        name: text_in(&properties.device_name).into_owned(),
        vendor_id: properties.vendor_id,
        device_id: properties.device_id,
        driver: format!("{driver_name} {driver_info}").trim().to_owned(),
        driver_version: properties.driver_version,
        api_version: properties.api_version.min(instance.api_version),
        pipeline_cache_uuid: (properties.pipeline_cache_uuid.iter())
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        subgroup_size: subgroup.subgroup_size,
        // SAFETY: as the caller promises.
        extensions: unsafe { extensions(info) },
        // SAFETY: as the caller promises.
        features: unsafe { enabled(info) },
    }
}

/// Returns the names of the features that are enabled, each once.
///
/// # Safety
/// The create-info is valid.
unsafe fn enabled(info: &vk::DeviceCreateInfo<'_>) -> Vec<String> {
    let mut enabled = Vec::new();
    let mut add = |first: *const vk::Bool32, kind: vk::StructureType| {
        let names = feature_names(kind);
        // SAFETY: a structure of this type has one word for each of its features, of which `first` is the first.
        let values = unsafe { slice(first, names.len() as u32) };
        let pairs = names.into_iter().zip(values);
        enabled.extend(pairs.filter_map(|(name, value)| (*value != vk::FALSE).then_some(name)));
    };
    // SAFETY: as the caller promises; a structure is a head and its features.
    unsafe {
        add(
            info.p_enabled_features.cast(),
            vk::StructureType::PHYSICAL_DEVICE_FEATURES_2,
        );
        for structure in chain(info.p_next) {
            add(structure.add(1).cast(), (*structure).s_type);
        }
    }
    enabled.sort_unstable();
    enabled.dedup();
    enabled.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enabled_features_are_named_by_their_places_in_their_structures() {
        let mut core12 = vk::PhysicalDeviceVulkan12Features::default()
            .sampler_mirror_clamp_to_edge(true)
            .host_query_reset(true)
            .subgroup_broadcast_dynamic_id(true);
        let core = vk::PhysicalDeviceFeatures::default()
            .robust_buffer_access(true)
            .inherited_queries(true);
        let info = vk::DeviceCreateInfo::default()
            .enabled_features(&core)
            .push_next(&mut core12);
        // SAFETY: the structures are valid.
        let enabled = unsafe { enabled(&info) };
        let expected = [
            "hostQueryReset",
            "inheritedQueries",
            "robustBufferAccess",
            "samplerMirrorClampToEdge",
            "subgroupBroadcastDynamicId",
        ];
        assert_eq!(enabled, expected);
    }
}

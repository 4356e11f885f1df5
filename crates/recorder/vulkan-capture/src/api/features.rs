//! Describes a device for the header of a capture: its properties, and the extensions and features that the program
//! enabled.

mod names;

use std::ffi::CStr;

use ash::vk;
use gapscope_capture::model;
use gapscope_vulkan_layer::arguments::{chain, find, slice, text_in};
use gapscope_vulkan_layer::physical_device::PhysicalDevice;

use names::{CORE, STRUCTURES};

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
    let mut names = Vec::new();
    // SAFETY: as the caller promises. Each structure of features is a head and a word for each feature.
    unsafe {
        if !info.p_enabled_features.is_null() {
            add(&mut names, info.p_enabled_features.cast(), CORE);
        }
        for structure in chain(info.p_next) {
            let kind = (*structure).s_type;
            let known = match kind {
                vk::StructureType::PHYSICAL_DEVICE_FEATURES_2 => Some(CORE),
                kind => (STRUCTURES.iter().find(|(known, _)| *known == kind)).map(|known| known.1),
            };
            if let Some(known) = known {
                add(&mut names, structure.add(1).cast(), known);
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(str::to_owned).collect()
}

/// # Safety
/// Adds the names of the features that are set.
unsafe fn add(enabled: &mut Vec<&'static str>, first: *const vk::Bool32, names: &[&'static str]) {
    // SAFETY: as the caller promises.
    let values = unsafe { slice(first, names.len() as u32) };
    let set = names
        .iter()
        .zip(values)
        .filter(|(_, value)| **value != vk::FALSE);
    enabled.extend(set.map(|(name, _)| *name));
}

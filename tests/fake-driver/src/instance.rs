//! Simulates instances: creates and destroys them, and lists their one physical device and their extensions.

use std::ffi::{CStr, c_char};

use ash::vk;

use crate::chain;
use crate::object::{self, Body, Object};
use crate::physical_device::PhysicalDevice;

pub const API_VERSION: u32 = vk::make_api_version(0, 1, 3, 280);

const EXTENSIONS: &[&CStr] = &[
    ash::ext::debug_utils::NAME,
    ash::khr::device_group_creation::NAME,
    ash::khr::external_fence_capabilities::NAME,
    ash::khr::external_memory_capabilities::NAME,
    ash::khr::external_semaphore_capabilities::NAME,
    ash::khr::get_physical_device_properties2::NAME,
];

pub struct Instance {
    physical_device: vk::PhysicalDevice,
}

impl Body for Instance {
    type Handle = vk::Instance;
}

pub unsafe extern "system" fn enumerate_instance_version(version: *mut u32) -> vk::Result {
    *version = API_VERSION;
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn enumerate_instance_extension_properties(
    _: *const c_char,
    count: *mut u32,
    out: *mut vk::ExtensionProperties,
) -> vk::Result {
    chain::enumerate(&chain::extension_properties(EXTENSIONS), count, out)
}

pub unsafe extern "system" fn create_instance(
    info: *const vk::InstanceCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Instance,
) -> vk::Result {
    let info = &*info;
    let asked = info
        .p_application_info
        .as_ref()
        .map_or(0, |application| application.api_version);
    let mut instance_extensions = Vec::new();
    for name in chain::names(
        info.pp_enabled_extension_names,
        info.enabled_extension_count,
    ) {
        // The loader has extensions of its own (surfaces, debug report) and passes on only what the driver lists.
        let Some(&known) = EXTENSIONS.iter().find(|&&known| known == name) else {
            return vk::Result::ERROR_EXTENSION_NOT_PRESENT;
        };
        instance_extensions.push(known);
    }
    let api_version = asked.max(vk::API_VERSION_1_0);
    let physical_device = object::create(PhysicalDevice {
        api_version,
        instance_extensions,
    });
    *out = object::create(Instance { physical_device });
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn destroy_instance(
    instance: vk::Instance,
    _: *const vk::AllocationCallbacks<'_>,
) {
    if let Some(instance) = object::destroy::<Instance>("vkDestroyInstance", instance) {
        object::destroy::<PhysicalDevice>("vkDestroyInstance", instance.physical_device);
    }
}

pub unsafe extern "system" fn enumerate_physical_devices(
    instance: vk::Instance,
    count: *mut u32,
    out: *mut vk::PhysicalDevice,
) -> vk::Result {
    let Some(instance) = get("vkEnumeratePhysicalDevices", instance) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    chain::enumerate(&[instance.physical_device], count, out)
}

pub unsafe extern "system" fn enumerate_physical_device_groups(
    instance: vk::Instance,
    count: *mut u32,
    out: *mut vk::PhysicalDeviceGroupProperties<'_>,
) -> vk::Result {
    let Some(instance) = get("vkEnumeratePhysicalDeviceGroups", instance) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    chain::enumerate_into(&[instance.physical_device], count, out, |&device, group| {
        (*group).physical_device_count = 1;
        (*group).physical_devices[0] = device;
        (*group).subset_allocation = vk::FALSE;
    })
}

fn get(call: &str, instance: vk::Instance) -> Option<&'static Object<Instance>> {
    object::get::<Instance>(call, instance)
}

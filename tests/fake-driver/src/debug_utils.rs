//! Simulates VK_EXT_debug_utils: names, labels and messengers are taken and dropped.

use ash::vk;

use crate::device::Device;
use crate::object::{self, Body};

pub struct DebugUtilsMessengerEXT;

impl Body for DebugUtilsMessengerEXT {
    type Handle = vk::DebugUtilsMessengerEXT;
}

pub unsafe extern "system" fn create_messenger(
    _: vk::Instance,
    _: *const vk::DebugUtilsMessengerCreateInfoEXT<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::DebugUtilsMessengerEXT,
) -> vk::Result {
    *out = object::create(DebugUtilsMessengerEXT);
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn destroy_messenger(
    _: vk::Instance,
    messenger: vk::DebugUtilsMessengerEXT,
    _: *const vk::AllocationCallbacks<'_>,
) {
    object::destroy::<DebugUtilsMessengerEXT>("vkDestroyDebugUtilsMessengerEXT", messenger);
}

pub unsafe extern "system" fn submit_message(
    _: vk::Instance,
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    _: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
) {
}

pub unsafe extern "system" fn set_object_name(
    device: vk::Device,
    _: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
) -> vk::Result {
    known_device("vkSetDebugUtilsObjectNameEXT", device)
}

pub unsafe extern "system" fn set_object_tag(
    device: vk::Device,
    _: *const vk::DebugUtilsObjectTagInfoEXT<'_>,
) -> vk::Result {
    known_device("vkSetDebugUtilsObjectTagEXT", device)
}

fn known_device(call: &str, device: vk::Device) -> vk::Result {
    match object::get::<Device>(call, device) {
        Some(_) => vk::Result::SUCCESS,
        None => vk::Result::ERROR_UNKNOWN,
    }
}

pub unsafe extern "system" fn queue_label(_: vk::Queue, _: *const vk::DebugUtilsLabelEXT<'_>) {}

pub unsafe extern "system" fn queue_end_label(_: vk::Queue) {}

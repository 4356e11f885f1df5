//! Asks the next layer (the next library on the way to the driver) about a physical device (a GPU): its properties,
//! extensions, queue families and memory.

use std::ffi::CStr;

use ash::vk;

use crate::instance::Instance;

/// A physical device.
#[derive(Clone, Copy)]
pub struct PhysicalDevice {
    pub instance: &'static Instance,
    pub handle: vk::PhysicalDevice,
}

impl PhysicalDevice {
    /// # Safety
    /// `handle` is live and belongs to `instance`.
    pub unsafe fn new(instance: &'static Instance, handle: vk::PhysicalDevice) -> PhysicalDevice {
        PhysicalDevice { instance, handle }
    }

    pub fn properties(self) -> vk::PhysicalDeviceProperties {
        // SAFETY: the device is live.
        unsafe { (self.instance.next).get_physical_device_properties(self.handle) }
    }

    /// Returns vkGetPhysicalDeviceProperties2, where the next layer has it.
    pub fn properties2(self) -> Option<vk::PFN_vkGetPhysicalDeviceProperties2> {
        self.instance.properties2
    }

    /// Returns vkGetPhysicalDeviceFeatures2; `None` also where the program may not use it, on Vulkan 1.0 without the
    /// extension.
    pub fn features2(self) -> Option<vk::PFN_vkGetPhysicalDeviceFeatures2> {
        let instance = self.instance;
        instance.features2.filter(|_| instance.has_properties2)
    }

    pub fn memory(self) -> vk::PhysicalDeviceMemoryProperties {
        // SAFETY: the device is live.
        unsafe { (self.instance.next).get_physical_device_memory_properties(self.handle) }
    }

    pub fn queue_families(self) -> Vec<vk::QueueFamilyProperties> {
        // SAFETY: the device is live.
        unsafe { (self.instance.next).get_physical_device_queue_family_properties(self.handle) }
    }

    /// Returns whether the device has an extension.
    pub fn has_extension(self, wanted: &CStr) -> bool {
        let next = &self.instance.next;
        // SAFETY: the device is live.
        let extensions = unsafe { next.enumerate_device_extension_properties(self.handle) };
        let is_wanted =
            |extension: &vk::ExtensionProperties| extension.extension_name_as_c_str() == Ok(wanted);
        extensions.is_ok_and(|extensions| extensions.iter().any(is_wanted))
    }
}

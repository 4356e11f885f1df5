//! Asks the next layer about a physical device: its properties, extensions, queue families and memory.

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
        let mut properties = vk::PhysicalDeviceProperties::default();
        if let Some(get) = self.instance.properties {
            // SAFETY: fills the structure.
            unsafe { get(self.handle, &mut properties) };
        }
        properties
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
        let mut memory = vk::PhysicalDeviceMemoryProperties::default();
        if let Some(get) = self.instance.memory {
            // SAFETY: fills the structure.
            unsafe { get(self.handle, &mut memory) };
        }
        memory
    }

    pub fn queue_families(self) -> Vec<vk::QueueFamilyProperties> {
        let Some(get) = self.instance.queue_families else {
            return Vec::new();
        };
        let mut count = 0;
        // SAFETY: the two-call idiom.
        unsafe {
            get(self.handle, &mut count, std::ptr::null_mut());
            let mut families = vec![vk::QueueFamilyProperties::default(); count as usize];
            get(self.handle, &mut count, families.as_mut_ptr());
            families
        }
    }

    /// Returns whether the device has an extension.
    pub fn has_extension(self, wanted: &CStr) -> bool {
        let Some(enumerate) = self.instance.extensions else {
            return false;
        };
        let (device, mut count) = (self.handle, 0);
        // SAFETY: the two-call idiom; the second call writes at most `count` entries.
        unsafe {
            if enumerate(device, std::ptr::null(), &mut count, std::ptr::null_mut())
                != vk::Result::SUCCESS
            {
                return false;
            }
            let mut found = vec![vk::ExtensionProperties::default(); count as usize];
            let _ = enumerate(device, std::ptr::null(), &mut count, found.as_mut_ptr());
            found.truncate(count as usize);
            found
                .iter()
                .any(|e| e.extension_name_as_c_str() == Ok(wanted))
        }
    }
}

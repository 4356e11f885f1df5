//! Keeps the instances of Vulkan that the program creates, with the next layer's functions for each.

use std::ffi::CStr;
use std::sync::{PoisonError, RwLock};

use ash::vk;
use ash::vk::Handle;

use crate::arguments::slice;
use crate::loader::{self, GetInstanceProcAddr};

/// An instance. It is never freed, because devices keep pointers to it.
pub struct Instance {
    pub handle: vk::Instance,
    /// The next layer's vkGetInstanceProcAddr.
    pub get: GetInstanceProcAddr,
    /// The version that the program asked for.
    pub api_version: u32,
    /// Whether structures may be chained to queries of a physical device.
    pub has_properties2: bool,
    pub(crate) destroy: Option<vk::PFN_vkDestroyInstance>,
    pub(crate) queue_families: Option<vk::PFN_vkGetPhysicalDeviceQueueFamilyProperties>,
    pub(crate) properties: Option<vk::PFN_vkGetPhysicalDeviceProperties>,
    pub(crate) properties2: Option<vk::PFN_vkGetPhysicalDeviceProperties2>,
    pub(crate) features2: Option<vk::PFN_vkGetPhysicalDeviceFeatures2>,
    pub(crate) memory: Option<vk::PFN_vkGetPhysicalDeviceMemoryProperties>,
    pub(crate) extensions: Option<vk::PFN_vkEnumerateDeviceExtensionProperties>,
}

static INSTANCES: RwLock<Vec<(usize, &'static Instance)>> = RwLock::new(Vec::new());

impl Instance {
    /// Keeps an instance that has just been made.
    ///
    /// # Safety
    /// `handle` is live, and `get` belongs to the layer that made it as `info` says.
    pub(crate) unsafe fn add(
        handle: vk::Instance,
        get: GetInstanceProcAddr,
        info: &vk::InstanceCreateInfo<'_>,
    ) {
        // SAFETY: the program's structures are valid, and the names are NUL-terminated.
        let (asked, has_extension) = unsafe {
            let application = info.p_application_info.as_ref();
            let names = slice(
                info.pp_enabled_extension_names,
                info.enabled_extension_count,
            );
            let wanted = ash::khr::get_physical_device_properties2::NAME;
            (
                application.map_or(0, |application| application.api_version),
                names.iter().any(|name| CStr::from_ptr(*name) == wanted),
            )
        };
        macro_rules! function {
            ($type:ident, $($name:literal),+) => {
                // SAFETY: a function of that name has that type.
                [$($name),+].into_iter().find_map(|name: &CStr| unsafe {
                    get(handle, name.as_ptr())
                        .map(|f| std::mem::transmute::<unsafe extern "system" fn(), vk::$type>(f))
                })
            };
        }
        let instance = Instance {
            handle,
            get,
            api_version: asked.max(vk::API_VERSION_1_0),
            has_properties2: asked >= vk::API_VERSION_1_1 || has_extension,
            // The function is resolved now: asked for at the end, some chains answer with their top.
            destroy: function!(PFN_vkDestroyInstance, c"vkDestroyInstance"),
            queue_families: function!(
                PFN_vkGetPhysicalDeviceQueueFamilyProperties,
                c"vkGetPhysicalDeviceQueueFamilyProperties"
            ),
            properties: function!(
                PFN_vkGetPhysicalDeviceProperties,
                c"vkGetPhysicalDeviceProperties"
            ),
            properties2: function!(
                PFN_vkGetPhysicalDeviceProperties2,
                c"vkGetPhysicalDeviceProperties2",
                c"vkGetPhysicalDeviceProperties2KHR"
            ),
            features2: function!(
                PFN_vkGetPhysicalDeviceFeatures2,
                c"vkGetPhysicalDeviceFeatures2",
                c"vkGetPhysicalDeviceFeatures2KHR"
            ),
            memory: function!(
                PFN_vkGetPhysicalDeviceMemoryProperties,
                c"vkGetPhysicalDeviceMemoryProperties"
            ),
            extensions: function!(
                PFN_vkEnumerateDeviceExtensionProperties,
                c"vkEnumerateDeviceExtensionProperties"
            ),
        };
        // SAFETY: the instance has just been made.
        let key = unsafe { loader::dispatch_key(handle.as_raw()) };
        let mut instances = INSTANCES.write().unwrap_or_else(PoisonError::into_inner);
        instances.push((key, Box::leak(Box::new(instance))));
    }

    /// Returns the instance to which a VkInstance or VkPhysicalDevice belongs.
    ///
    /// # Safety
    /// `handle` is live.
    pub(crate) unsafe fn find(handle: u64) -> Option<&'static Instance> {
        // SAFETY: as the caller promises.
        let key = unsafe { loader::dispatch_key(handle) };
        let instances = INSTANCES.read().unwrap_or_else(PoisonError::into_inner);
        let found = instances.iter().find(|(k, _)| *k == key);
        found.map(|(_, instance)| *instance)
    }

    /// Forgets an instance that is about to be destroyed.
    pub(crate) fn remove(&'static self) {
        let mut instances = INSTANCES.write().unwrap_or_else(PoisonError::into_inner);
        instances.retain(|(_, instance)| !std::ptr::eq(*instance, self));
    }

    /// Returns the next layer's vkCreateDevice.
    ///
    /// # Safety
    /// `get` belongs to the layer that made the instance.
    pub(crate) unsafe fn create_device(
        &self,
        get: GetInstanceProcAddr,
    ) -> Option<vk::PFN_vkCreateDevice> {
        // SAFETY: the name has that type.
        unsafe {
            get(self.handle, c"vkCreateDevice".as_ptr()).map(|f| {
                std::mem::transmute::<unsafe extern "system" fn(), vk::PFN_vkCreateDevice>(f)
            })
        }
    }
}

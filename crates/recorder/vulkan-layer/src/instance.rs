//! Keeps the instances of Vulkan (connections of the program to Vulkan, from which devices are made) that the program
//! creates, with the next layer's functions for each.

use std::ffi::{CStr, c_void};
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
    /// The next layer's functions. All were found when the instance was made: when it ends, some chains of layers
    /// answer with the functions of their first layer.
    pub(crate) next: ash::Instance,
    pub(crate) properties2: Option<vk::PFN_vkGetPhysicalDeviceProperties2>,
    pub(crate) features2: Option<vk::PFN_vkGetPhysicalDeviceFeatures2>,
}

/// The instances, each with the key that its dispatchable handles share ([`loader::dispatch_key`]).
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
        let (api_version, has_extension) = unsafe {
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
        // SAFETY: as the caller promises; the names are NUL-terminated.
        let find = |name: &CStr| unsafe { get(handle, name.as_ptr()) };
        // SAFETY: a function of a name has the type of that name.
        let (next, properties2, features2) = unsafe {
            let properties2 = find(c"vkGetPhysicalDeviceProperties2")
                .or_else(|| find(c"vkGetPhysicalDeviceProperties2KHR"));
            let features2 = find(c"vkGetPhysicalDeviceFeatures2")
                .or_else(|| find(c"vkGetPhysicalDeviceFeatures2KHR"));
            let pointer = |name: &CStr| find(name).map_or(std::ptr::null(), |f| f as *const c_void);
            (
                ash::Instance::load_with(pointer, handle),
                std::mem::transmute::<
                    vk::PFN_vkVoidFunction,
                    Option<vk::PFN_vkGetPhysicalDeviceProperties2>,
                >(properties2),
                std::mem::transmute::<
                    vk::PFN_vkVoidFunction,
                    Option<vk::PFN_vkGetPhysicalDeviceFeatures2>,
                >(features2),
            )
        };
        let instance = Instance {
            handle,
            get,
            api_version: api_version.max(vk::API_VERSION_1_0),
            has_properties2: api_version >= vk::API_VERSION_1_1 || has_extension,
            next,
            properties2,
            features2,
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
        let entry = instances
            .iter()
            .find(|(instance_key, _)| *instance_key == key);
        entry.map(|(_, instance)| *instance)
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

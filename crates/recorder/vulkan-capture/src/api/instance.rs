//! Instances: the next layer's functions for each.

use std::ffi::{CStr, c_void};
use std::sync::{PoisonError, RwLock};

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::arguments::slice;
use gapscope_vulkan_layer::loader::{self, GetInstanceProcAddr};

/// An instance. It is leaked: devices keep pointers to it.
pub struct Instance {
    pub get: GetInstanceProcAddr,
    /// The next layer's functions.
    pub next: ash::Instance,
    /// The version that the program asked for.
    pub api_version: u32,
    /// Structures may be chained to queries of a physical device.
    pub has_properties2: bool,
}

static INSTANCES: RwLock<Vec<(usize, &'static Instance)>> = RwLock::new(Vec::new());

impl Instance {
    /// Keeps an instance that has just been made.
    ///
    /// # Safety
    /// `handle` is live, and `get` belongs to the layer that made it as `info` says.
    pub unsafe fn add(
        handle: vk::Instance,
        get: GetInstanceProcAddr,
        info: &vk::InstanceCreateInfo<'_>,
    ) {
        // SAFETY: the program's structures are valid, and the names are NUL-terminated.
        let (asked, names) = unsafe {
            let application = info.p_application_info.as_ref();
            let names = slice(
                info.pp_enabled_extension_names,
                info.enabled_extension_count,
            );
            let names = names.iter().map(|name| CStr::from_ptr(*name));
            (
                application.map_or(0, |application| application.api_version),
                names.collect::<Vec<_>>(),
            )
        };
        let find = |name: &CStr| {
            let suffixed = suffixed(name, "KHR");
            // SAFETY: the instance is live, and the names end with NUL.
            let function = unsafe {
                get(handle, name.as_ptr()).or_else(|| get(handle, suffixed.as_ptr().cast()))
            };
            function.map_or(std::ptr::null(), |function| function as *const c_void)
        };
        // SAFETY: the functions are the next layer's for this instance.
        let next = unsafe { ash::Instance::load_with(find, handle) };
        let has_properties2 = asked >= vk::API_VERSION_1_1
            || names.contains(&ash::khr::get_physical_device_properties2::NAME);
        let instance = Instance {
            get,
            next,
            api_version: asked.max(vk::API_VERSION_1_0),
            has_properties2,
        };
        // SAFETY: the instance has just been made.
        let key = unsafe { loader::dispatch_key(handle.as_raw()) };
        (INSTANCES.write().unwrap_or_else(PoisonError::into_inner))
            .push((key, Box::leak(Box::new(instance))));
    }

    /// The instance to which a VkInstance or VkPhysicalDevice belongs.
    ///
    /// # Safety
    /// `handle` is live.
    pub unsafe fn of(handle: u64) -> Option<&'static Instance> {
        // SAFETY: as the caller promises.
        let key = unsafe { loader::dispatch_key(handle) };
        let instances = INSTANCES.read().unwrap_or_else(PoisonError::into_inner);
        let found = instances.iter().find(|(k, _)| *k == key);
        found.map(|(_, instance)| *instance)
    }

    /// Forgets an instance that is about to be destroyed.
    pub fn remove(&'static self) {
        (INSTANCES.write().unwrap_or_else(PoisonError::into_inner))
            .retain(|(_, instance)| !std::ptr::eq(*instance, self));
    }
}

/// A name with a suffix, ended by NUL.
pub fn suffixed(name: &CStr, suffix: &str) -> Vec<u8> {
    [name.to_bytes(), suffix.as_bytes(), b"\0"].concat()
}

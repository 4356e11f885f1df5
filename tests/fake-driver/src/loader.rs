//! Exports what the Vulkan loader looks for in a driver library.

use std::ffi::{CStr, c_char};

use ash::vk;

use crate::entry_points::{self, Scope};

/// Since version 5 a driver must take any `apiVersion`; version 6 adds an entry point for Windows only.
const INTERFACE_VERSION: u32 = 5;

#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdNegotiateLoaderICDInterfaceVersion(
    version: *mut u32,
) -> vk::Result {
    if version.is_null() || *version < INTERFACE_VERSION {
        return vk::Result::ERROR_INCOMPATIBLE_DRIVER;
    }
    *version = INTERFACE_VERSION;
    vk::Result::SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetInstanceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    entry_points::get_instance_proc_addr(instance, name)
}

#[unsafe(no_mangle)]
pub unsafe extern "system" fn vk_icdGetPhysicalDeviceProcAddr(
    _: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    let entry = entry_points::find(CStr::from_ptr(name))?;
    (entry.scope == Scope::PhysicalDevice).then_some(entry.function)
}

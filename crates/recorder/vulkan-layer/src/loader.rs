//! Declares the structures and functions of the interface between Vulkan's loader and its layers (vk_layer.h), which
//! ash (the crate with Vulkan's functions) does not have: by them a layer finds the next one. The loader chains its
//! structures to the program's create-infos (`pNext`); each has the functions of the next layer, and the layer moves
//! the chain on before it calls them.

use ash::vk;
use std::ffi::{c_char, c_void};

/// vkGetInstanceProcAddr and vkGetDeviceProcAddr, which look up a function by its name.
pub type GetInstanceProcAddr =
    unsafe extern "system" fn(vk::Instance, *const c_char) -> vk::PFN_vkVoidFunction;
pub type GetDeviceProcAddr =
    unsafe extern "system" fn(vk::Device, *const c_char) -> vk::PFN_vkVoidFunction;
/// The loader's function that puts its dispatch table into a handle that a layer has made.
pub type SetDeviceLoaderData = unsafe extern "system" fn(vk::Device, *mut c_void) -> vk::Result;

/// VkLayerInstanceLink: the functions of the next layer, for an instance.
#[repr(C)]
pub struct InstanceLink {
    pub next: *mut InstanceLink,
    pub get_instance_proc_addr: GetInstanceProcAddr,
    pub get_physical_device_proc_addr: *const c_void,
}

/// VkLayerDeviceLink: the functions of the next layer, for a device.
#[repr(C)]
pub struct DeviceLink {
    pub next: *mut DeviceLink,
    pub get_instance_proc_addr: GetInstanceProcAddr,
    pub get_device_proc_addr: GetDeviceProcAddr,
}

/// VkLayerInstanceCreateInfo and VkLayerDeviceCreateInfo: they differ in what the union holds.
#[repr(C)]
struct CreateInfo {
    s_type: i32,
    next: *mut CreateInfo,
    /// What `payload` is: [`LAYER_LINK_INFO`] or [`LOADER_DATA_CALLBACK`].
    function: i32,
    payload: *mut c_void,
}

/// The structures' types, and the values of `function`.
const INSTANCE_CREATE_INFO: i32 = 47;
const DEVICE_CREATE_INFO: i32 = 48;
const LAYER_LINK_INFO: i32 = 0;
const LOADER_DATA_CALLBACK: i32 = 1;

/// VkNegotiateLayerInterface: the structure in which the loader and a layer agree on a version, and the layer gives
/// its functions.
#[repr(C)]
pub struct NegotiateLayerInterface {
    s_type: i32,
    next: *mut c_void,
    pub loader_layer_interface_version: u32,
    pub get_instance_proc_addr: Option<GetInstanceProcAddr>,
    pub get_device_proc_addr: Option<GetDeviceProcAddr>,
    pub get_physical_device_proc_addr: Option<GetInstanceProcAddr>,
}

/// Finds the loader's structure of one type and `function` in a pNext chain.
///
/// # Safety
/// `chain` is a valid pNext chain.
unsafe fn find(chain: *const c_void, s_type: i32, function: i32) -> Option<*mut CreateInfo> {
    let mut node = chain as *mut CreateInfo;
    while !node.is_null() {
        // SAFETY: every structure of a chain starts with sType and pNext; `function` is read only behind a matching
        // sType.
        unsafe {
            if (*node).s_type == s_type && (*node).function == function {
                return Some(node);
            }
            node = (*node).next;
        }
    }
    None
}

/// Returns the next layer's entry point, and moves the chain on for it.
///
/// # Safety
/// `chain` is the pNext chain of a VkInstanceCreateInfo that the loader passed.
pub unsafe fn next_instance(chain: *const c_void) -> Option<GetInstanceProcAddr> {
    // SAFETY: as the caller promises; the loader puts a VkLayerInstanceLink there.
    unsafe {
        let info = find(chain, INSTANCE_CREATE_INFO, LAYER_LINK_INFO)?;
        let link = (*info).payload.cast::<InstanceLink>();
        (*info).payload = (*link).next.cast();
        Some((*link).get_instance_proc_addr)
    }
}

/// The next layer, when a device is made.
pub struct NextLayer {
    info: *mut CreateInfo,
    /// The link that the next layer is to find.
    link: *mut c_void,
    pub get_instance_proc_addr: GetInstanceProcAddr,
    pub get_device_proc_addr: GetDeviceProcAddr,
}

impl NextLayer {
    /// Sets the chain to the next layer again, after layers have moved it on.
    ///
    /// # Safety
    /// The chain is still alive.
    pub unsafe fn restore(&self) {
        // SAFETY: as the caller promises.
        unsafe { (*self.info).payload = self.link };
    }
}

/// Returns the next layer of a device, and moves the chain on for it.
///
/// # Safety
/// `chain` is the pNext chain of a VkDeviceCreateInfo that the loader passed.
pub unsafe fn next_device(chain: *const c_void) -> Option<NextLayer> {
    // SAFETY: as the caller promises; the loader puts a VkLayerDeviceLink there.
    unsafe {
        let info = find(chain, DEVICE_CREATE_INFO, LAYER_LINK_INFO)?;
        let ours = (*info).payload.cast::<DeviceLink>();
        let link = (*ours).next.cast();
        (*info).payload = link;
        Some(NextLayer {
            info,
            link,
            get_instance_proc_addr: (*ours).get_instance_proc_addr,
            get_device_proc_addr: (*ours).get_device_proc_addr,
        })
    }
}

/// Returns the function that makes dispatchable handles of the layer usable.
///
/// # Safety
/// As [`next_device`].
pub unsafe fn set_device_loader_data(chain: *const c_void) -> Option<SetDeviceLoaderData> {
    // SAFETY: as the caller promises; with this function code the payload is the callback.
    unsafe {
        let info = find(chain, DEVICE_CREATE_INFO, LOADER_DATA_CALLBACK)?;
        std::mem::transmute::<*mut c_void, Option<SetDeviceLoaderData>>((*info).payload)
    }
}

/// Returns the first word of a dispatchable handle, which all handles of one instance or device share.
///
/// # Safety
/// `handle` is a live dispatchable handle that the loader has returned to the program.
pub unsafe fn dispatch_key(handle: u64) -> usize {
    // SAFETY: the loader's ABI: a dispatchable handle points to a pointer to its dispatch table.
    unsafe { *(handle as *const usize) }
}

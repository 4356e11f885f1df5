//! Hands a layer's functions to Vulkan's loader: the loader calls [`negotiate`] and then asks for each function by
//! its name. A hook (a function of the layer that the program calls instead of the next layer's) is the answer where
//! the layer has one, otherwise the next layer's function.

use std::ffi::{CStr, c_char};

use ash::vk;
use ash::vk::Handle;

use crate::functions::hooked_functions;
use crate::hooks::{self, devices, instances};
use crate::instance::Instance;
use crate::layer::Hooks;
use crate::loader::NegotiateLayerInterface;

/// Answers vkNegotiateLoaderLayerInterfaceVersion (layer interface version 2).
///
/// # Safety
/// `interface` is null or the loader's structure.
pub unsafe fn negotiate<L: Hooks>(interface: *mut NegotiateLayerInterface) -> vk::Result {
    // SAFETY: as the caller promises.
    let Some(interface) = (unsafe { interface.as_mut() }) else {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    };
    interface.loader_layer_interface_version = interface.loader_layer_interface_version.min(2);
    interface.get_instance_proc_addr = Some(get_instance_proc_addr::<L>);
    interface.get_device_proc_addr = Some(get_device_proc_addr::<L>);
    interface.get_physical_device_proc_addr = None;
    vk::Result::SUCCESS
}

/// Returns a function as the loader expects it; callers cast it back to the type of its name.
#[expect(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the function is not called here"
)]
pub fn erased(function: *const ()) -> vk::PFN_vkVoidFunction {
    // SAFETY: it points to a function, which is called only after the cast back.
    unsafe { std::mem::transmute(function) }
}

/// Defines the functions that only one layer hooks: `own_hooks! { "vkName" | "vkNameKHR" => module::function, …; name
/// => otherwise }`.
#[macro_export]
macro_rules! own_hooks {
    ($($name:literal $(| $alias:literal)* => $function:expr,)+ $else:ident => $otherwise:expr) => {
        /// Returns the hook of a function that only this layer hooks.
        pub fn own_hook(name: &str) -> ash::vk::PFN_vkVoidFunction {
            match name {
                $($name $(| $alias)* => $crate::entry::erased($function as *const ()),)+
                $else => $otherwise,
            }
        }
    };
}

/// vkGetInstanceProcAddr of the layer. A hook is handed out only for a function that the next layer has.
unsafe extern "system" fn get_instance_proc_addr<L: Hooks>(
    handle: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the name is NUL-terminated; the handle is live or null.
    unsafe {
        let name_bytes = CStr::from_ptr(name).to_bytes();
        let function = match name_bytes {
            b"vkGetInstanceProcAddr" => get_instance_proc_addr::<L> as *const (),
            b"vkGetDeviceProcAddr" => get_device_proc_addr::<L> as *const (),
            b"vkCreateInstance" => instances::create_instance::<L> as *const (),
            b"vkDestroyInstance" => instances::destroy_instance::<L> as *const (),
            b"vkCreateDevice" => devices::create_device::<L> as *const (),
            _ if handle == vk::Instance::null() => return None,
            _ => {
                let next = (Instance::find(handle.as_raw())?.get)(handle, name);
                return match next.is_some() && L::is_active() {
                    true => hook::<L>(name_bytes).or(next),
                    false => next,
                };
            }
        };
        erased(function)
    }
}

/// vkGetDeviceProcAddr of the layer, likewise for the functions of a device.
unsafe extern "system" fn get_device_proc_addr<L: Hooks>(
    handle: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the name is NUL-terminated; the handle is live.
    unsafe {
        let name_bytes = CStr::from_ptr(name).to_bytes();
        if name_bytes == b"vkGetDeviceProcAddr" {
            return erased(get_device_proc_addr::<L> as *const ());
        }
        let (get, is_hooked) = L::devices().get_device_proc_addr(handle)?;
        let next = get(handle, name);
        // Labels and names are followed even where the driver does not know them.
        match is_hooked && (next.is_some() || is_debug_utils(name_bytes)) {
            true => hook::<L>(name_bytes).or(next),
            false => next,
        }
    }
}

fn is_debug_utils(name: &[u8]) -> bool {
    name.ends_with(b"DebugUtilsLabelEXT") || name == b"vkSetDebugUtilsObjectNameEXT"
}

/// Returns the hook of a function by its name; `None` for a function that the layer does not hook.
pub fn hook<L: Hooks>(name: &[u8]) -> vk::PFN_vkVoidFunction {
    let name = std::str::from_utf8(name).ok()?;
    shared_hook::<L>(name).or_else(|| L::own_hook(name))
}

/// Makes the lookup of hooks by name from the rows of the table.
macro_rules! shared_hooks {
    ($($hook:ident: $type:ident = $($name:literal)+;)+) => {
        /// Returns the hook of a function that both layers hook.
        fn shared_hook<L: Hooks>(name: &str) -> vk::PFN_vkVoidFunction {
            match name {
                $($($name)|+ => erased(hooks::$hook::<L> as *const ()),)+
                _ => None,
            }
        }
    };
}
hooked_functions!(shared_hooks);

/// Checks that hooks answer for a device that was not made through the layer, for the tests of both layers.
///
/// # Panics
/// Panics if a hook answers otherwise.
pub fn check_unknown_device<L: Hooks>() {
    let dispatch_table = 0_usize;
    let handle = (&raw const dispatch_table) as u64;
    // SAFETY: hooks have the types of their names, and use no argument before the device is found, for which the handle has a key.
    unsafe {
        macro_rules! call {
            ($type:ident = $name:literal ($($argument:expr),*)) => {{
                let hook = hook::<L>($name.as_bytes()).expect($name);
                let hook = std::mem::transmute::<unsafe extern "system" fn(), vk::$type>(hook);
                assert_eq!(hook($($argument),*), vk::Result::ERROR_UNKNOWN, $name);
            }};
        }
        let (device, queue) = (vk::Device::from_raw(handle), vk::Queue::from_raw(handle));
        let memory = &mut vk::DeviceMemory::null();
        call!(
            PFN_vkAllocateMemory =
                "vkAllocateMemory"(device, std::ptr::null(), std::ptr::null(), memory)
        );
        call!(PFN_vkQueueSubmit = "vkQueueSubmit"(queue, 1, std::ptr::null(), vk::Fence::null()));
        call!(PFN_vkDeviceWaitIdle = "vkDeviceWaitIdle"(device));
        let buffer = vk::CommandBuffer::from_raw(handle);
        call!(PFN_vkBeginCommandBuffer = "vkBeginCommandBuffer"(buffer, std::ptr::null()));
    }
}

//! Devices: the next layer's functions for each, and what is known of its objects.

use std::ffi::{CStr, c_void};
use std::sync::{Mutex, PoisonError, RwLock};

use ash::vk::{self, Handle};
use gapscope_capture::model;
use gapscope_vulkan_layer::handles::lock;
use gapscope_vulkan_layer::loader::{self, GetDeviceProcAddr, SetDeviceLoaderData};

use crate::api::instance::suffixed;
use crate::hooks::refused::RefusedCommands;
use crate::objects::Objects;

/// A device. It is leaked: hooks may still run on other threads.
pub struct Device {
    pub handle: vk::Device,
    /// The next layer's functions, those of later versions by whichever name it has. One that it lacks aborts.
    pub next: ash::Device,
    pub push_descriptor: ash::khr::push_descriptor::DeviceFn,
    pub maintenance6: ash::khr::maintenance6::DeviceFn,
    pub debug_utils: DebugUtils,
    pub refused: RefusedCommands,
    /// Makes command buffers of ours usable for the layers below.
    pub set_loader_data: Option<SetDeviceLoaderData>,
    pub families: Vec<vk::QueueFamilyProperties>,
    pub memory: vk::PhysicalDeviceMemoryProperties,
    pub timestamp_period_ns: f32,
    /// What a capture says of it.
    pub described: model::Device,
    /// Several GPUs behind one device.
    pub is_group: bool,
    pub queues: Mutex<Vec<Queue>>,
    pub objects: Objects,
    /// Held by those who wait for queues, who must be alone with them.
    pub waits: RwLock<()>,
}

/// Functions that a driver may lack though the program can call them.
pub struct DebugUtils {
    pub cmd_begin_label: Option<vk::PFN_vkCmdBeginDebugUtilsLabelEXT>,
    pub cmd_end_label: Option<vk::PFN_vkCmdEndDebugUtilsLabelEXT>,
    pub cmd_insert_label: Option<vk::PFN_vkCmdInsertDebugUtilsLabelEXT>,
    pub queue_begin_label: Option<vk::PFN_vkQueueBeginDebugUtilsLabelEXT>,
    pub queue_end_label: Option<vk::PFN_vkQueueEndDebugUtilsLabelEXT>,
    pub set_object_name: Option<vk::PFN_vkSetDebugUtilsObjectNameEXT>,
}

impl DebugUtils {
    /// # Safety
    /// `device` has been made by the next layer, to which `get` belongs.
    pub unsafe fn load(device: vk::Device, get: GetDeviceProcAddr) -> DebugUtils {
        macro_rules! function {
            ($type:ident, $name:literal) => {
                // SAFETY: as the caller promises; a function of that name has that type.
                unsafe {
                    get(device, $name.as_ptr()).map(|function| {
                        std::mem::transmute::<unsafe extern "system" fn(), vk::$type>(function)
                    })
                }
            };
        }
        DebugUtils {
            cmd_begin_label: function!(
                PFN_vkCmdBeginDebugUtilsLabelEXT,
                c"vkCmdBeginDebugUtilsLabelEXT"
            ),
            cmd_end_label: function!(
                PFN_vkCmdEndDebugUtilsLabelEXT,
                c"vkCmdEndDebugUtilsLabelEXT"
            ),
            cmd_insert_label: function!(
                PFN_vkCmdInsertDebugUtilsLabelEXT,
                c"vkCmdInsertDebugUtilsLabelEXT"
            ),
            queue_begin_label: function!(
                PFN_vkQueueBeginDebugUtilsLabelEXT,
                c"vkQueueBeginDebugUtilsLabelEXT"
            ),
            queue_end_label: function!(
                PFN_vkQueueEndDebugUtilsLabelEXT,
                c"vkQueueEndDebugUtilsLabelEXT"
            ),
            set_object_name: function!(
                PFN_vkSetDebugUtilsObjectNameEXT,
                c"vkSetDebugUtilsObjectNameEXT"
            ),
        }
    }
}

/// A queue that the program has.
#[derive(Clone, Copy)]
pub struct Queue {
    pub handle: vk::Queue,
    pub family: u32,
    pub index: u32,
    pub protected: bool,
}

static DEVICES: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

struct Entry {
    key: usize,
    /// None: nothing was asked of this device.
    device: Option<&'static Device>,
    get: GetDeviceProcAddr,
}

/// Finds functions of the next layer, by their names or those that they have as an extension or in a later version.
///
/// # Safety
/// `device` has been made by the next layer, to which `get` belongs.
pub unsafe fn finder(
    device: vk::Device,
    get: GetDeviceProcAddr,
) -> impl Fn(&CStr) -> *const c_void + Copy {
    move |name: &CStr| {
        let bytes = name.to_bytes();
        let core = without_suffix(bytes);
        let mut found = None;
        for name in [
            name.to_bytes_with_nul().to_vec(),
            [core, b"\0"].concat(),
            suffixed(name, "KHR"),
            suffixed(name, "EXT"),
        ] {
            if found.is_none() {
                // SAFETY: as the caller promises; the name ends with NUL.
                found = unsafe { get(device, name.as_ptr().cast()) };
            }
        }
        found.map_or(std::ptr::null(), |function| function as *const c_void)
    }
}

/// The name without KHR or EXT.
pub fn without_suffix(name: &[u8]) -> &[u8] {
    (name.strip_suffix(b"KHR").or(name.strip_suffix(b"EXT"))).unwrap_or(name)
}

impl Device {
    pub fn properties_of(&self, memory_type: u32) -> vk::MemoryPropertyFlags {
        let types = self.memory.memory_types_as_slice();
        types
            .get(memory_type as usize)
            .map_or_else(Default::default, |kind| kind.property_flags)
    }

    pub fn queue(&self, handle: vk::Queue) -> Option<Queue> {
        let queues = lock(&self.queues);
        queues.iter().find(|queue| queue.handle == handle).copied()
    }

    pub fn add_queue(&self, queue: Queue) {
        let mut queues = lock(&self.queues);
        if !queues.iter().any(|known| known.handle == queue.handle) {
            queues.push(queue);
        }
    }
}

/// Keeps a device.
///
/// # Safety
/// `handle` is live, and `get` belongs to the next layer.
pub unsafe fn add(handle: vk::Device, device: Option<&'static Device>, get: GetDeviceProcAddr) {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle.as_raw()) };
    let mut devices = DEVICES.write().unwrap_or_else(PoisonError::into_inner);
    // A device that was not destroyed through us has left its key behind.
    devices.retain(|entry| entry.key != key);
    devices.push(Entry { key, device, get });
}

/// Forgets a device.
///
/// # Safety
/// `handle` is live.
pub unsafe fn remove(handle: vk::Device) {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle.as_raw()) };
    (DEVICES.write().unwrap_or_else(PoisonError::into_inner)).retain(|entry| entry.key != key);
}

/// The device to which a dispatchable handle belongs.
///
/// # Safety
/// `handle` is live.
pub unsafe fn of(handle: impl Handle) -> Option<&'static Device> {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle.as_raw()) };
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    devices
        .iter()
        .find(|entry| entry.key == key)
        .and_then(|entry| entry.device)
}

/// The next layer's vkGetDeviceProcAddr, and whether the device is one to capture from.
///
/// # Safety
/// `handle` is live.
pub unsafe fn get_device_proc_addr(handle: vk::Device) -> Option<(GetDeviceProcAddr, bool)> {
    // SAFETY: as the caller promises.
    let key = unsafe { loader::dispatch_key(handle.as_raw()) };
    let devices = DEVICES.read().unwrap_or_else(PoisonError::into_inner);
    let entry = devices.iter().find(|entry| entry.key == key)?;
    Some((entry.get, entry.device.is_some()))
}

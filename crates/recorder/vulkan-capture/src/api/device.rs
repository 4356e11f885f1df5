//! Keeps a logical device (`VkDevice`) of the program: the next layer's functions (those that this layer passes calls
//! on to), and the program's objects.

use std::sync::{Mutex, RwLock};

use ash::vk;
use gapscope_capture::model;
use gapscope_vulkan_layer::command_pools::CommandPools;
use gapscope_vulkan_layer::devices::Devices;
use gapscope_vulkan_layer::functions::{DeviceFunctions, ash_device};
use gapscope_vulkan_layer::handles::lock;
use gapscope_vulkan_layer::layer::{NewDevice, Queue};
use gapscope_vulkan_layer::loader::SetDeviceLoaderData;
use gapscope_vulkan_layer::physical_device::PhysicalDevice;

use crate::api::features;
use crate::api::refused::RefusedCommands;
use crate::objects::Objects;

/// A logical device. It is never freed, because hooks on other threads may still use it.
pub struct Device {
    pub handle: vk::Device,
    /// The next layer's functions, for calls of the program.
    pub functions: &'static DeviceFunctions,
    /// The next layer's functions of the commands that no capture can hold.
    pub refused: RefusedCommands,
    /// The same functions, for calls of this layer.
    pub next: ash::Device,
    /// Makes command buffers of the layer usable for the layers below.
    pub set_loader_data: Option<SetDeviceLoaderData>,
    pub families: Vec<vk::QueueFamilyProperties>,
    pub memory: vk::PhysicalDeviceMemoryProperties,
    pub timestamp_period_ns: f32,
    /// The description of the device in a capture.
    pub described: model::Device,
    /// Whether several GPUs are behind the device.
    pub is_group: bool,
    /// The queues that the program has asked for.
    pub queues: Mutex<Vec<Queue>>,
    pub command_pools: CommandPools,
    pub objects: Objects,
    /// Read-locked while the program waits for queues, write-locked while a window that begins waits for them.
    pub waits: RwLock<()>,
}

/// The devices of the program, by their handles.
pub static DEVICES: Devices<Device> = Devices::new();

impl Device {
    /// Creates the state of a device that has just been made.
    ///
    /// # Safety
    /// The device is live.
    pub unsafe fn new(made: &NewDevice<'_>) -> &'static Device {
        let (handle, get) = (made.handle, made.next.get_device_proc_addr);
        // SAFETY: as the caller promises.
        let device = unsafe {
            let physical = PhysicalDevice::new(made.instance, made.physical);
            Device {
                handle,
                functions: Box::leak(Box::new(DeviceFunctions::load(handle, get))),
                refused: RefusedCommands::load(handle, get),
                next: ash_device(handle, get),
                set_loader_data: made.set_loader_data,
                families: physical.queue_families(),
                memory: physical.memory(),
                timestamp_period_ns: physical.properties().limits.timestamp_period,
                described: features::describe(physical, made.info),
                is_group: features::is_group(made.info),
                queues: Mutex::default(),
                command_pools: CommandPools::default(),
                objects: Objects::default(),
                waits: RwLock::default(),
            }
        };
        Box::leak(Box::new(device))
    }

    /// Returns the properties of a memory type; none for an unknown one.
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

    /// Adds a queue, once.
    pub fn keep_queue(&self, queue: Queue) {
        let mut queues = lock(&self.queues);
        if !queues.iter().any(|known| known.handle == queue.handle) {
            queues.push(queue);
        }
    }
}

//! Implements what Vulkan's loader and the shared hooks (`gapscope-vulkan-layer`, the functions that the program
//! calls instead of the driver's) ask of a layer: which devices it has, what it changes of a new one (nothing), and
//! its own hooks.

use ash::vk;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::devices::Devices;
use gapscope_vulkan_layer::functions::DeviceFunctions;
use gapscope_vulkan_layer::instance::Instance;
use gapscope_vulkan_layer::layer::{DevicePlan, Layer, NewDevice, Queue};
use gapscope_vulkan_layer::loader::NegotiateLayerInterface;
use gapscope_vulkan_layer::{entry, own_hooks};

use crate::api::device::{DEVICES, Device};
use crate::hooks::{bindings, events, kernels, memory, queries, refused};
use crate::window;

/// Answers the loader: this is the one symbol that it looks for.
///
/// # Safety
/// Called by the loader with its structure.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    interface: *mut NegotiateLayerInterface,
) -> vk::Result {
    // SAFETY: as the caller promises.
    unsafe { entry::negotiate::<Device>(interface) }
}

/// The plan for a new device: it is made exactly as the program asks for it.
pub struct Unchanged;

impl DevicePlan for Unchanged {
    fn create_info<'a>(&'a mut self, info: &vk::DeviceCreateInfo<'a>) -> vk::DeviceCreateInfo<'a> {
        *info
    }

    fn drop_additions(&mut self) -> bool {
        false
    }
}

impl Layer for Device {
    type Plan = Unchanged;

    fn devices() -> &'static Devices<Device> {
        &DEVICES
    }

    fn is_active() -> bool {
        window::control().is_some()
    }

    fn own_hook(name: &str) -> vk::PFN_vkVoidFunction {
        own_hook(name)
    }

    fn guard<R>(work: impl FnOnce() -> R) -> Option<R> {
        guard(work)
    }

    fn functions(&self) -> &'static DeviceFunctions {
        self.functions
    }

    unsafe fn plan(
        _: &'static Instance,
        _: vk::PhysicalDevice,
        _: &vk::DeviceCreateInfo<'_>,
    ) -> Option<Unchanged> {
        window::control().map(|_| Unchanged)
    }

    unsafe fn new(_: &Unchanged, made: NewDevice<'_>) -> Option<&'static Device> {
        let control = window::control()?;
        // SAFETY: as the caller promises.
        let device = unsafe { Device::new(&made) };
        control.device_made();
        Some(device)
    }

    unsafe fn end(&self) {
        if let Some(control) = window::control() {
            control.device_ends(self);
        }
    }

    fn end_instance(_: &'static Instance) {}

    fn add_queue(&self, queue: Queue) {
        self.keep_queue(queue);
    }
}

own_hooks! {
    "vkCmdPushConstants" => bindings::cmd_push_constants,
    "vkCmdPushConstants2" | "vkCmdPushConstants2KHR" => bindings::cmd_push_constants2,
    "vkCreateQueryPool" => queries::create_query_pool,
    "vkDestroyQueryPool" => queries::destroy_query_pool,
    "vkCmdCopyQueryPoolResults" => queries::cmd_copy_query_pool_results,
    "vkCmdBeginQuery" => queries::cmd_begin_query,
    "vkCmdEndQuery" => queries::cmd_end_query,
    "vkCmdResetQueryPool" => queries::cmd_reset_query_pool,
    "vkCmdWriteTimestamp" => queries::cmd_write_timestamp,
    "vkCmdWriteTimestamp2" | "vkCmdWriteTimestamp2KHR" => queries::cmd_write_timestamp2,
    "vkCmdSetEvent" => events::cmd_set_event,
    "vkCmdSetEvent2" | "vkCmdSetEvent2KHR" => events::cmd_set_event2,
    "vkCmdResetEvent" => events::cmd_reset_event,
    "vkCmdResetEvent2" | "vkCmdResetEvent2KHR" => events::cmd_reset_event2,
    "vkCreatePipelineLayout" => kernels::create_pipeline_layout,
    "vkDestroyPipelineLayout" => kernels::destroy_pipeline_layout,
    "vkGetDeviceBufferMemoryRequirements" | "vkGetDeviceBufferMemoryRequirementsKHR"
        => memory::get_device_buffer_memory_requirements,
    name => refused::hook(name)
}

#[cfg(test)]
mod registry;

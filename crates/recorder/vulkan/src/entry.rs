//! Implements what the loader and the shared hooks (`gapscope-vulkan-layer`) ask of a layer: which devices it has,
//! what it adds to a new one, and its own hooks.

use crate::api::device_plan::RecordingPlan;
use crate::api::functions::DeviceFunctions;
use crate::api::instance::Instance;
use crate::api::loader::NegotiateLayerInterface;
use crate::api::physical_device::PhysicalDevice;
use crate::device::Device;
use crate::devices::{self, DEVICES};
use crate::hooks::{
    bindings, commands, host_calls, images, kernels, memory, opaque, timed_calls, transfers,
};
use crate::recorder::recorder;
use ash::vk;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::devices::Devices;
use gapscope_vulkan_layer::layer::{self, Layer, NewDevice};
use gapscope_vulkan_layer::{entry, own_hooks};

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

impl Layer for Device {
    type Plan = RecordingPlan;

    fn devices() -> &'static Devices<Device> {
        &DEVICES
    }

    fn is_active() -> bool {
        recorder().is_some()
    }

    fn own_hook(name: &str) -> vk::PFN_vkVoidFunction {
        own_hook(name)
    }

    #[inline]
    fn guard<R>(work: impl FnOnce() -> R) -> Option<R> {
        guard(work)
    }

    #[inline]
    fn functions(&self) -> &'static DeviceFunctions {
        self.functions
    }

    unsafe fn plan(
        instance: &'static Instance,
        physical: vk::PhysicalDevice,
        info: &vk::DeviceCreateInfo<'_>,
    ) -> Option<RecordingPlan> {
        recorder()?;
        // SAFETY: as the caller promises.
        unsafe {
            let physical = PhysicalDevice::new(instance, physical);
            Some(RecordingPlan::new(physical, info))
        }
    }

    unsafe fn new(plan: &RecordingPlan, made: NewDevice<'_>) -> Option<&'static Device> {
        // SAFETY: as the caller promises.
        let device = unsafe { Device::new(recorder()?, plan, &made) };
        devices::stop_at_exit();
        Some(device)
    }

    unsafe fn end(&self) {
        // SAFETY: as the caller promises.
        unsafe { self.finish() };
    }

    fn end_instance(instance: &'static Instance) {
        devices::stop_instance(instance);
    }

    fn add_queue(&self, queue: layer::Queue) {
        self.write_queue(queue);
    }
}

// This layer's hooks by the names of Vulkan's functions; the hooks that both layers share are listed in
// `gapscope-vulkan-layer`.
own_hooks! {
    "vkEndCommandBuffer" => commands::end_command_buffer,
    "vkCmdSetDescriptorBufferOffsetsEXT" => bindings::cmd_set_descriptor_buffer_offsets,
    "vkCmdSetDescriptorBufferOffsets2EXT" => bindings::cmd_set_descriptor_buffer_offsets2,
    "vkCmdBindShadersEXT" => bindings::cmd_bind_shaders,
    "vkCmdCopyImage" => transfers::cmd_copy_image,
    "vkCmdCopyImage2" | "vkCmdCopyImage2KHR" => transfers::cmd_copy_image2,
    "vkCmdCopyBufferToImage" => transfers::cmd_copy_buffer_to_image,
    "vkCmdCopyBufferToImage2" | "vkCmdCopyBufferToImage2KHR" => transfers::cmd_copy_buffer_to_image2,
    "vkCmdCopyImageToBuffer" => transfers::cmd_copy_image_to_buffer,
    "vkCmdCopyImageToBuffer2" | "vkCmdCopyImageToBuffer2KHR" => transfers::cmd_copy_image_to_buffer2,
    "vkWaitForFences" => host_calls::wait_for_fences,
    "vkGetFenceStatus" => host_calls::get_fence_status,
    "vkResetFences" => host_calls::reset_fences,
    "vkDestroyFence" => host_calls::destroy_fence,
    "vkImportFenceFdKHR" => host_calls::import_fence_fd,
    "vkWaitSemaphores" | "vkWaitSemaphoresKHR" => host_calls::wait_semaphores,
    "vkGetSemaphoreCounterValue" | "vkGetSemaphoreCounterValueKHR" => host_calls::get_semaphore_counter_value,
    "vkSignalSemaphore" | "vkSignalSemaphoreKHR" => host_calls::signal_semaphore,
    "vkGetQueryPoolResults" => host_calls::get_query_pool_results,
    "vkQueuePresentKHR" => host_calls::queue_present,
    "vkCreateShadersEXT" => kernels::create_shaders,
    "vkDestroyShaderEXT" => kernels::destroy_shader,
    "vkMapMemory" => memory::map_memory,
    "vkMapMemory2" | "vkMapMemory2KHR" => memory::map_memory2,
    "vkCreateImage" => images::create_image,
    "vkDestroyImage" => images::destroy_image,
    name => opaque::hook(name).or_else(|| timed_calls::hook(name))
}

#[cfg(test)]
mod registry;

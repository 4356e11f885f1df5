//! How the loader finds the layer's functions.

use crate::api::instance::Instance;
use crate::api::loader::NegotiateLayerInterface;
use crate::devices;
use crate::hooks::{
    bindings, command_buffers, command_pools, commands, descriptor_sets, devices as device_hooks,
    host_calls, images, instances, kernels, labels, memory, semaphores, submit, timed_calls,
    transfers, work,
};
use crate::recorder::recorder;
use ash::vk;
use ash::vk::Handle;
use std::ffi::{CStr, c_char};

/// The one symbol that the loader looks for (layer interface version 2).
///
/// # Safety
/// Called by the loader with its structure.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn vkNegotiateLoaderLayerInterfaceVersion(
    interface: *mut NegotiateLayerInterface,
) -> vk::Result {
    if interface.is_null() {
        return vk::Result::ERROR_INITIALIZATION_FAILED;
    }
    // SAFETY: the loader's structure, for us to fill.
    let interface = unsafe { &mut *interface };
    interface.loader_layer_interface_version = interface.loader_layer_interface_version.min(2);
    interface.get_instance_proc_addr = Some(get_instance_proc_addr);
    interface.get_device_proc_addr = Some(get_device_proc_addr);
    interface.get_physical_device_proc_addr = None;
    vk::Result::SUCCESS
}

/// A hook as the loader expects it; callers cast it back to the type of its name.
macro_rules! function {
    ($function:expr) => {
        erased($function as *const ())
    };
}

fn erased(function: *const ()) -> vk::PFN_vkVoidFunction {
    // SAFETY: it points to a function, which is called only after the cast back.
    unsafe { std::mem::transmute(function) }
}

unsafe extern "system" fn get_instance_proc_addr(
    handle: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the name is NUL-terminated; the handle is live or null.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes();
        match bytes {
            b"vkGetInstanceProcAddr" => return function!(get_instance_proc_addr),
            b"vkGetDeviceProcAddr" => return function!(get_device_proc_addr),
            b"vkCreateInstance" => return function!(instances::create_instance),
            b"vkDestroyInstance" => return function!(instances::destroy_instance),
            b"vkCreateDevice" => return function!(device_hooks::create_device),
            _ => {}
        }
        if handle == vk::Instance::null() {
            return None;
        }
        let next = (Instance::of(handle.as_raw())?.get)(handle, name);
        if recorder().is_none() {
            return next;
        }
        match next {
            Some(_) => hook(bytes).or(next),
            None => None,
        }
    }
}

unsafe extern "system" fn get_device_proc_addr(
    handle: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    // SAFETY: the name is NUL-terminated; the handle is live.
    unsafe {
        let bytes = CStr::from_ptr(name).to_bytes();
        if bytes == b"vkGetDeviceProcAddr" {
            return function!(get_device_proc_addr);
        }
        let (get, is_recorded) = devices::get_device_proc_addr(handle)?;
        let next = get(handle, name);
        // Labels and names are recorded even where the driver does not know them.
        if is_recorded && (next.is_some() || is_debug_utils(bytes)) {
            hook(bytes).or(next)
        } else {
            next
        }
    }
}

fn is_debug_utils(name: &[u8]) -> bool {
    name.ends_with(b"DebugUtilsLabelEXT") || name == b"vkSetDebugUtilsObjectNameEXT"
}

macro_rules! hooks {
    ($($name:literal $(| $alias:literal)* => $function:expr,)+) => {
        fn hook(name: &[u8]) -> vk::PFN_vkVoidFunction {
            let name = std::str::from_utf8(name).ok()?;
            match name {
                $($name $(| $alias)* => function!($function),)+
                name => work::hook(name).or_else(|| timed_calls::hook(name)),
            }
        }
    };
}

hooks! {
    "vkDestroyDevice" => device_hooks::destroy_device,
    "vkGetDeviceQueue" => device_hooks::get_device_queue,
    "vkGetDeviceQueue2" => device_hooks::get_device_queue2,
    "vkCreateCommandPool" => command_pools::create_command_pool,
    "vkDestroyCommandPool" => command_pools::destroy_command_pool,
    "vkResetCommandPool" => command_pools::reset_command_pool,
    "vkAllocateCommandBuffers" => command_pools::allocate_command_buffers,
    "vkFreeCommandBuffers" => command_pools::free_command_buffers,
    "vkBeginCommandBuffer" => command_buffers::begin_command_buffer,
    "vkEndCommandBuffer" => command_buffers::end_command_buffer,
    "vkResetCommandBuffer" => command_buffers::reset_command_buffer,
    "vkCmdBindPipeline" => commands::bind_pipeline,
    "vkCmdBindDescriptorSets" => bindings::bind_descriptor_sets,
    "vkCmdBindDescriptorSets2" | "vkCmdBindDescriptorSets2KHR" => bindings::bind_descriptor_sets2,
    "vkCmdPushDescriptorSet" | "vkCmdPushDescriptorSetKHR" => bindings::push_descriptor_set,
    "vkCmdPushDescriptorSet2" | "vkCmdPushDescriptorSet2KHR" => bindings::push_descriptor_set2,
    "vkCmdPushDescriptorSetWithTemplate" | "vkCmdPushDescriptorSetWithTemplateKHR"
        => bindings::push_descriptor_set_with_template,
    "vkCmdPushDescriptorSetWithTemplate2" | "vkCmdPushDescriptorSetWithTemplate2KHR"
        => bindings::push_descriptor_set_with_template2,
    "vkCmdSetDescriptorBufferOffsetsEXT" => bindings::set_descriptor_buffer_offsets,
    "vkCmdSetDescriptorBufferOffsets2EXT" => bindings::set_descriptor_buffer_offsets2,
    "vkCmdBindShadersEXT" => commands::bind_shaders,
    "vkCmdDispatch" => commands::dispatch,
    "vkCmdDispatchBase" | "vkCmdDispatchBaseKHR" => commands::dispatch_base,
    "vkCmdDispatchIndirect" => commands::dispatch_indirect,
    "vkCmdCopyBuffer" => transfers::copy_buffer,
    "vkCmdCopyBuffer2" | "vkCmdCopyBuffer2KHR" => transfers::copy_buffer2,
    "vkCmdFillBuffer" => transfers::fill_buffer,
    "vkCmdUpdateBuffer" => transfers::update_buffer,
    "vkCmdCopyImage" => transfers::copy_image,
    "vkCmdCopyImage2" | "vkCmdCopyImage2KHR" => transfers::copy_image2,
    "vkCmdCopyBufferToImage" => transfers::copy_buffer_to_image,
    "vkCmdCopyBufferToImage2" | "vkCmdCopyBufferToImage2KHR" => transfers::copy_buffer_to_image2,
    "vkCmdCopyImageToBuffer" => transfers::copy_image_to_buffer,
    "vkCmdCopyImageToBuffer2" | "vkCmdCopyImageToBuffer2KHR" => transfers::copy_image_to_buffer2,
    "vkCmdPipelineBarrier" => commands::pipeline_barrier,
    "vkCmdPipelineBarrier2" | "vkCmdPipelineBarrier2KHR" => commands::pipeline_barrier2,
    "vkCmdWaitEvents" => commands::wait_events,
    "vkCmdWaitEvents2" | "vkCmdWaitEvents2KHR" => commands::wait_events2,
    "vkCmdExecuteCommands" => commands::execute_commands,
    "vkCmdBeginDebugUtilsLabelEXT" => labels::cmd_begin_label,
    "vkCmdEndDebugUtilsLabelEXT" => labels::cmd_end_label,
    "vkCmdInsertDebugUtilsLabelEXT" => labels::cmd_insert_label,
    "vkQueueBeginDebugUtilsLabelEXT" => labels::queue_begin_label,
    "vkQueueEndDebugUtilsLabelEXT" => labels::queue_end_label,
    "vkQueueInsertDebugUtilsLabelEXT" => labels::queue_insert_label,
    "vkSetDebugUtilsObjectNameEXT" => labels::set_object_name,
    "vkQueueSubmit" => submit::queue_submit,
    "vkQueueSubmit2" | "vkQueueSubmit2KHR" => submit::queue_submit2,
    "vkQueueBindSparse" => submit::queue_bind_sparse,
    "vkCreateSemaphore" => semaphores::create_semaphore,
    "vkDestroySemaphore" => semaphores::destroy_semaphore,
    "vkQueueWaitIdle" => host_calls::queue_wait_idle,
    "vkDeviceWaitIdle" => host_calls::device_wait_idle,
    "vkWaitForFences" => host_calls::wait_for_fences,
    "vkGetFenceStatus" => host_calls::get_fence_status,
    "vkWaitSemaphores" | "vkWaitSemaphoresKHR" => host_calls::wait_semaphores,
    "vkGetSemaphoreCounterValue" | "vkGetSemaphoreCounterValueKHR" => host_calls::get_semaphore_counter_value,
    "vkSignalSemaphore" | "vkSignalSemaphoreKHR" => host_calls::signal_semaphore,
    "vkGetQueryPoolResults" => host_calls::get_query_pool_results,
    "vkQueuePresentKHR" => host_calls::queue_present,
    "vkAcquireNextImageKHR" => host_calls::acquire_next_image,
    "vkAcquireNextImage2KHR" => host_calls::acquire_next_image2,
    "vkCreateShaderModule" => kernels::create_shader_module,
    "vkDestroyShaderModule" => kernels::destroy_shader_module,
    "vkCreateComputePipelines" => kernels::create_compute_pipelines,
    "vkCreateShadersEXT" => kernels::create_shaders,
    "vkDestroyShaderEXT" => kernels::destroy_shader,
    "vkDestroyPipeline" => kernels::destroy_pipeline,
    "vkCreateDescriptorSetLayout" => descriptor_sets::create_descriptor_set_layout,
    "vkDestroyDescriptorSetLayout" => descriptor_sets::destroy_descriptor_set_layout,
    "vkAllocateDescriptorSets" => descriptor_sets::allocate_descriptor_sets,
    "vkFreeDescriptorSets" => descriptor_sets::free_descriptor_sets,
    "vkResetDescriptorPool" => descriptor_sets::reset_descriptor_pool,
    "vkDestroyDescriptorPool" => descriptor_sets::destroy_descriptor_pool,
    "vkUpdateDescriptorSets" => descriptor_sets::update_descriptor_sets,
    "vkCreateDescriptorUpdateTemplate" | "vkCreateDescriptorUpdateTemplateKHR"
        => descriptor_sets::create_descriptor_update_template,
    "vkDestroyDescriptorUpdateTemplate" | "vkDestroyDescriptorUpdateTemplateKHR"
        => descriptor_sets::destroy_descriptor_update_template,
    "vkUpdateDescriptorSetWithTemplate" | "vkUpdateDescriptorSetWithTemplateKHR"
        => descriptor_sets::update_descriptor_set_with_template,
    "vkAllocateMemory" => memory::allocate_memory,
    "vkFreeMemory" => memory::free_memory,
    "vkMapMemory" => memory::map_memory,
    "vkMapMemory2" | "vkMapMemory2KHR" => memory::map_memory2,
    "vkCreateImage" => images::create_image,
    "vkDestroyImage" => images::destroy_image,
    "vkCreateBuffer" => memory::create_buffer,
    "vkDestroyBuffer" => memory::destroy_buffer,
    "vkBindBufferMemory" => memory::bind_buffer_memory,
    "vkBindBufferMemory2" | "vkBindBufferMemory2KHR" => memory::bind_buffer_memory2,
}

#[cfg(test)]
mod registry;

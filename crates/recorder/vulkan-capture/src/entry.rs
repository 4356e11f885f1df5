//! How the loader finds the layer's functions.

use std::ffi::{CStr, c_char};

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::loader::NegotiateLayerInterface;

use crate::api::device::{self, without_suffix};
use crate::api::instance::Instance;
use crate::hooks::{
    barriers, bindings, command_buffers, commands, descriptors, devices, instances, kernels,
    labels, memory, queries, refused, semaphores, submit,
};
use crate::window;

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
            b"vkCreateDevice" => return function!(devices::create_device),
            _ => {}
        }
        if handle == vk::Instance::null() {
            return None;
        }
        let next = (Instance::of(handle.as_raw())?.get)(handle, name);
        match next {
            Some(_) if window::capture().is_some() => hook(bytes).or(next),
            next => next,
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
        let (get, is_captured) = device::get_device_proc_addr(handle)?;
        let next = get(handle, name);
        // Labels and names are kept even where the driver does not know them.
        let exists = next.is_some() || bytes.windows(10).any(|part| part == b"DebugUtils");
        match next {
            next if is_captured && exists => hook(bytes).or(next),
            next => next,
        }
    }
}

macro_rules! hooks {
    ($($name:literal => $function:expr,)+) => {
        /// The hook of a function, by its name without KHR and EXT: what is hooked has the same parameters under each.
        fn hook(name: &[u8]) -> vk::PFN_vkVoidFunction {
            match std::str::from_utf8(without_suffix(name)).ok()? {
                $($name => function!($function),)+
                _ => refused::hook(std::str::from_utf8(name).ok()?),
            }
        }
    };
}

hooks! {
    "vkDestroyDevice" => devices::destroy_device,
    "vkGetDeviceQueue" => devices::get_device_queue,
    "vkGetDeviceQueue2" => devices::get_device_queue2,
    "vkQueueWaitIdle" => devices::queue_wait_idle,
    "vkDeviceWaitIdle" => devices::device_wait_idle,
    "vkCreateCommandPool" => command_buffers::create_command_pool,
    "vkDestroyCommandPool" => command_buffers::destroy_command_pool,
    "vkResetCommandPool" => command_buffers::reset_command_pool,
    "vkAllocateCommandBuffers" => command_buffers::allocate_command_buffers,
    "vkFreeCommandBuffers" => command_buffers::free_command_buffers,
    "vkBeginCommandBuffer" => command_buffers::begin_command_buffer,
    "vkResetCommandBuffer" => command_buffers::reset_command_buffer,
    "vkCmdBindPipeline" => bindings::bind_pipeline,
    "vkCmdBindDescriptorSets" => bindings::bind_descriptor_sets,
    "vkCmdBindDescriptorSets2" => bindings::bind_descriptor_sets2,
    "vkCmdPushDescriptorSet" => bindings::push_descriptor_set,
    "vkCmdPushDescriptorSet2" => bindings::push_descriptor_set2,
    "vkCmdPushDescriptorSetWithTemplate" => bindings::push_descriptor_set_with_template,
    "vkCmdPushDescriptorSetWithTemplate2" => bindings::push_descriptor_set_with_template2,
    "vkCmdPushConstants" => bindings::push_constants,
    "vkCmdPushConstants2" => bindings::push_constants2,
    "vkCmdDispatch" => commands::dispatch,
    "vkCmdDispatchBase" => commands::dispatch_base,
    "vkCmdDispatchIndirect" => commands::dispatch_indirect,
    "vkCmdCopyBuffer" => commands::copy_buffer,
    "vkCmdCopyBuffer2" => commands::copy_buffer2,
    "vkCmdFillBuffer" => commands::fill_buffer,
    "vkCmdUpdateBuffer" => commands::update_buffer,
    "vkCmdCopyQueryPoolResults" => commands::copy_query_pool_results,
    "vkCmdBeginQuery" => queries::begin_query,
    "vkCmdEndQuery" => queries::end_query,
    "vkCmdResetQueryPool" => queries::reset_query_pool,
    "vkCmdWriteTimestamp" => queries::write_timestamp,
    "vkCmdWriteTimestamp2" => queries::write_timestamp2,
    "vkCmdExecuteCommands" => commands::execute_commands,
    "vkCmdPipelineBarrier" => barriers::pipeline_barrier,
    "vkCmdPipelineBarrier2" => barriers::pipeline_barrier2,
    "vkCmdSetEvent" => barriers::set_event,
    "vkCmdSetEvent2" => barriers::set_event2,
    "vkCmdResetEvent" => barriers::reset_event,
    "vkCmdResetEvent2" => barriers::reset_event2,
    "vkCmdWaitEvents" => barriers::wait_events,
    "vkCmdWaitEvents2" => barriers::wait_events2,
    "vkCmdBeginDebugUtilsLabel" => labels::cmd_begin_label,
    "vkCmdEndDebugUtilsLabel" => labels::cmd_end_label,
    "vkCmdInsertDebugUtilsLabel" => labels::cmd_insert_label,
    "vkQueueBeginDebugUtilsLabel" => labels::queue_begin_label,
    "vkQueueEndDebugUtilsLabel" => labels::queue_end_label,
    "vkSetDebugUtilsObjectName" => labels::set_object_name,
    "vkQueueSubmit" => submit::queue_submit,
    "vkQueueSubmit2" => submit::queue_submit2,
    "vkQueueBindSparse" => submit::queue_bind_sparse,
    "vkCreateSemaphore" => semaphores::create_semaphore,
    "vkDestroySemaphore" => semaphores::destroy_semaphore,
    "vkCreateShaderModule" => kernels::create_shader_module,
    "vkDestroyShaderModule" => kernels::destroy_shader_module,
    "vkCreatePipelineLayout" => kernels::create_pipeline_layout,
    "vkDestroyPipelineLayout" => kernels::destroy_pipeline_layout,
    "vkCreateComputePipelines" => kernels::create_compute_pipelines,
    "vkDestroyPipeline" => kernels::destroy_pipeline,
    "vkCreateDescriptorSetLayout" => descriptors::create_descriptor_set_layout,
    "vkDestroyDescriptorSetLayout" => descriptors::destroy_descriptor_set_layout,
    "vkAllocateDescriptorSets" => descriptors::allocate_descriptor_sets,
    "vkFreeDescriptorSets" => descriptors::free_descriptor_sets,
    "vkResetDescriptorPool" => descriptors::reset_descriptor_pool,
    "vkDestroyDescriptorPool" => descriptors::destroy_descriptor_pool,
    "vkUpdateDescriptorSets" => descriptors::update_descriptor_sets,
    "vkCreateDescriptorUpdateTemplate" => descriptors::create_descriptor_update_template,
    "vkDestroyDescriptorUpdateTemplate" => descriptors::destroy_descriptor_update_template,
    "vkUpdateDescriptorSetWithTemplate" => descriptors::update_descriptor_set_with_template,
    "vkAllocateMemory" => memory::allocate_memory,
    "vkFreeMemory" => memory::free_memory,
    "vkCreateBuffer" => memory::create_buffer,
    "vkDestroyBuffer" => memory::destroy_buffer,
    "vkGetDeviceBufferMemoryRequirements" => memory::get_device_buffer_memory_requirements,
    "vkBindBufferMemory" => memory::bind_buffer_memory,
    "vkBindBufferMemory2" => memory::bind_buffer_memory2,
}

#[cfg(test)]
mod registry;

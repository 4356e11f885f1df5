//! Looks up the next layer's functions (those of the next library on the way to the driver) when a device is made.
//! The table of functions is written once, as the macro `hooked_functions`, and becomes the structure
//! [`DeviceFunctions`] here and the list of hooks in [`crate::entry`].

use std::ffi::{CStr, c_void};

use ash::vk;

use crate::loader::GetDeviceProcAddr;

/// Calls a macro with the functions that both layers hook: the hook and field of each, its type, and its names in the order in
/// which the next layer is asked for them. More rows may follow.
macro_rules! hooked_functions {
    ($with:ident $($more:tt)*) => {
        $with! {
            destroy_device: PFN_vkDestroyDevice = "vkDestroyDevice";
            get_device_queue: PFN_vkGetDeviceQueue = "vkGetDeviceQueue";
            get_device_queue2: PFN_vkGetDeviceQueue2 = "vkGetDeviceQueue2";
            queue_wait_idle: PFN_vkQueueWaitIdle = "vkQueueWaitIdle";
            device_wait_idle: PFN_vkDeviceWaitIdle = "vkDeviceWaitIdle";
            create_command_pool: PFN_vkCreateCommandPool = "vkCreateCommandPool";
            destroy_command_pool: PFN_vkDestroyCommandPool = "vkDestroyCommandPool";
            reset_command_pool: PFN_vkResetCommandPool = "vkResetCommandPool";
            allocate_command_buffers: PFN_vkAllocateCommandBuffers = "vkAllocateCommandBuffers";
            free_command_buffers: PFN_vkFreeCommandBuffers = "vkFreeCommandBuffers";
            begin_command_buffer: PFN_vkBeginCommandBuffer = "vkBeginCommandBuffer";
            reset_command_buffer: PFN_vkResetCommandBuffer = "vkResetCommandBuffer";
            cmd_bind_pipeline: PFN_vkCmdBindPipeline = "vkCmdBindPipeline";
            cmd_bind_descriptor_sets: PFN_vkCmdBindDescriptorSets = "vkCmdBindDescriptorSets";
            cmd_bind_descriptor_sets2: PFN_vkCmdBindDescriptorSets2KHR = "vkCmdBindDescriptorSets2" "vkCmdBindDescriptorSets2KHR";
            cmd_push_descriptor_set: PFN_vkCmdPushDescriptorSetKHR = "vkCmdPushDescriptorSet" "vkCmdPushDescriptorSetKHR";
            cmd_push_descriptor_set2: PFN_vkCmdPushDescriptorSet2KHR = "vkCmdPushDescriptorSet2" "vkCmdPushDescriptorSet2KHR";
            cmd_push_descriptor_set_with_template: PFN_vkCmdPushDescriptorSetWithTemplateKHR = "vkCmdPushDescriptorSetWithTemplate" "vkCmdPushDescriptorSetWithTemplateKHR";
            cmd_push_descriptor_set_with_template2: PFN_vkCmdPushDescriptorSetWithTemplate2KHR = "vkCmdPushDescriptorSetWithTemplate2" "vkCmdPushDescriptorSetWithTemplate2KHR";
            cmd_dispatch: PFN_vkCmdDispatch = "vkCmdDispatch";
            cmd_dispatch_base: PFN_vkCmdDispatchBase = "vkCmdDispatchBase" "vkCmdDispatchBaseKHR";
            cmd_dispatch_indirect: PFN_vkCmdDispatchIndirect = "vkCmdDispatchIndirect";
            cmd_copy_buffer: PFN_vkCmdCopyBuffer = "vkCmdCopyBuffer";
            cmd_copy_buffer2: PFN_vkCmdCopyBuffer2 = "vkCmdCopyBuffer2" "vkCmdCopyBuffer2KHR";
            cmd_fill_buffer: PFN_vkCmdFillBuffer = "vkCmdFillBuffer";
            cmd_update_buffer: PFN_vkCmdUpdateBuffer = "vkCmdUpdateBuffer";
            cmd_pipeline_barrier: PFN_vkCmdPipelineBarrier = "vkCmdPipelineBarrier";
            cmd_pipeline_barrier2: PFN_vkCmdPipelineBarrier2 = "vkCmdPipelineBarrier2" "vkCmdPipelineBarrier2KHR";
            cmd_wait_events: PFN_vkCmdWaitEvents = "vkCmdWaitEvents";
            cmd_wait_events2: PFN_vkCmdWaitEvents2 = "vkCmdWaitEvents2" "vkCmdWaitEvents2KHR";
            cmd_execute_commands: PFN_vkCmdExecuteCommands = "vkCmdExecuteCommands";
            cmd_begin_debug_utils_label: PFN_vkCmdBeginDebugUtilsLabelEXT = "vkCmdBeginDebugUtilsLabelEXT";
            cmd_end_debug_utils_label: PFN_vkCmdEndDebugUtilsLabelEXT = "vkCmdEndDebugUtilsLabelEXT";
            cmd_insert_debug_utils_label: PFN_vkCmdInsertDebugUtilsLabelEXT = "vkCmdInsertDebugUtilsLabelEXT";
            queue_begin_debug_utils_label: PFN_vkQueueBeginDebugUtilsLabelEXT = "vkQueueBeginDebugUtilsLabelEXT";
            queue_end_debug_utils_label: PFN_vkQueueEndDebugUtilsLabelEXT = "vkQueueEndDebugUtilsLabelEXT";
            queue_insert_debug_utils_label: PFN_vkQueueInsertDebugUtilsLabelEXT = "vkQueueInsertDebugUtilsLabelEXT";
            set_debug_utils_object_name: PFN_vkSetDebugUtilsObjectNameEXT = "vkSetDebugUtilsObjectNameEXT";
            queue_submit: PFN_vkQueueSubmit = "vkQueueSubmit";
            queue_submit2: PFN_vkQueueSubmit2 = "vkQueueSubmit2";
            queue_submit2_khr: PFN_vkQueueSubmit2 = "vkQueueSubmit2KHR";
            queue_bind_sparse: PFN_vkQueueBindSparse = "vkQueueBindSparse";
            create_semaphore: PFN_vkCreateSemaphore = "vkCreateSemaphore";
            destroy_semaphore: PFN_vkDestroySemaphore = "vkDestroySemaphore";
            create_shader_module: PFN_vkCreateShaderModule = "vkCreateShaderModule";
            destroy_shader_module: PFN_vkDestroyShaderModule = "vkDestroyShaderModule";
            create_compute_pipelines: PFN_vkCreateComputePipelines = "vkCreateComputePipelines";
            destroy_pipeline: PFN_vkDestroyPipeline = "vkDestroyPipeline";
            create_descriptor_set_layout: PFN_vkCreateDescriptorSetLayout = "vkCreateDescriptorSetLayout";
            destroy_descriptor_set_layout: PFN_vkDestroyDescriptorSetLayout = "vkDestroyDescriptorSetLayout";
            allocate_descriptor_sets: PFN_vkAllocateDescriptorSets = "vkAllocateDescriptorSets";
            free_descriptor_sets: PFN_vkFreeDescriptorSets = "vkFreeDescriptorSets";
            reset_descriptor_pool: PFN_vkResetDescriptorPool = "vkResetDescriptorPool";
            destroy_descriptor_pool: PFN_vkDestroyDescriptorPool = "vkDestroyDescriptorPool";
            update_descriptor_sets: PFN_vkUpdateDescriptorSets = "vkUpdateDescriptorSets";
            create_descriptor_update_template: PFN_vkCreateDescriptorUpdateTemplate = "vkCreateDescriptorUpdateTemplate" "vkCreateDescriptorUpdateTemplateKHR";
            destroy_descriptor_update_template: PFN_vkDestroyDescriptorUpdateTemplate = "vkDestroyDescriptorUpdateTemplate" "vkDestroyDescriptorUpdateTemplateKHR";
            update_descriptor_set_with_template: PFN_vkUpdateDescriptorSetWithTemplate = "vkUpdateDescriptorSetWithTemplate" "vkUpdateDescriptorSetWithTemplateKHR";
            allocate_memory: PFN_vkAllocateMemory = "vkAllocateMemory";
            free_memory: PFN_vkFreeMemory = "vkFreeMemory";
            create_buffer: PFN_vkCreateBuffer = "vkCreateBuffer";
            destroy_buffer: PFN_vkDestroyBuffer = "vkDestroyBuffer";
            bind_buffer_memory: PFN_vkBindBufferMemory = "vkBindBufferMemory";
            bind_buffer_memory2: PFN_vkBindBufferMemory2 = "vkBindBufferMemory2" "vkBindBufferMemory2KHR";
            $($more)*
        }
    };
}
pub(crate) use hooked_functions;

/// Makes [`DeviceFunctions`] from the rows of the table.
macro_rules! device_functions {
    ($($field:ident: $type:ident = $($name:literal)+;)+) => {
        /// A device as the next layer knows it, with its functions; `None` where it has none.
        pub struct DeviceFunctions {
            pub device: vk::Device,
            $(pub $field: Option<vk::$type>,)+
        }

        impl DeviceFunctions {
            /// Looks up the next layer's functions of a device.
            ///
            /// # Safety
            /// `device` has been made by the next layer, to which `get` belongs.
            pub unsafe fn load(device: vk::Device, get: GetDeviceProcAddr) -> DeviceFunctions {
                DeviceFunctions {
                    device,
                    // SAFETY: as the caller promises; a function of that name has that type.
                    $($field: unsafe {
                        find(device, get, &[$(concat!($name, "\0")),+]).map(|function| {
                            std::mem::transmute::<unsafe extern "system" fn(), vk::$type>(function)
                        })
                    },)+
                }
            }
        }
    };
}

/// Returns the first function that the next layer has of some names, each ended by NUL.
///
/// # Safety
/// `device` has been made by the next layer, to which `get` belongs.
pub unsafe fn find(
    device: vk::Device,
    get: GetDeviceProcAddr,
    names: &[&str],
) -> vk::PFN_vkVoidFunction {
    // SAFETY: as the caller promises; the names are NUL-terminated.
    names
        .iter()
        .find_map(|name| unsafe { get(device, name.as_ptr().cast()) })
}

/// Returns the next layer's functions for calls that a layer makes itself. They are found by their names, or by those
/// that they have as an extension or in a later version. Calling a function that the next layer lacks aborts.
///
/// # Safety
/// `device` has been made by the next layer, to which `get` belongs.
pub unsafe fn ash_device(device: vk::Device, get: GetDeviceProcAddr) -> ash::Device {
    let find = |name: &CStr| {
        let name = name.to_bytes();
        let core = name.strip_suffix(b"KHR").or(name.strip_suffix(b"EXT"));
        let core = core.unwrap_or(name);
        let function = [(name, ""), (core, ""), (name, "KHR"), (name, "EXT")]
            .into_iter()
            .find_map(|(name, suffix)| {
                let name = [name, suffix.as_bytes(), b"\0"].concat();
                // SAFETY: as the caller promises; the name ends with NUL.
                unsafe { get(device, name.as_ptr().cast()) }
            });
        function.map_or(std::ptr::null(), |function| function as *const c_void)
    };
    // SAFETY: as the caller promises; a function of a name has the type of that name.
    unsafe { ash::Device::load_with(find, device) }
}

hooked_functions! {
    device_functions
    // These are hooked by one layer, or are of extensions and called by a layer itself.
    end_command_buffer: PFN_vkEndCommandBuffer = "vkEndCommandBuffer";
    cmd_set_descriptor_buffer_offsets: PFN_vkCmdSetDescriptorBufferOffsetsEXT = "vkCmdSetDescriptorBufferOffsetsEXT";
    cmd_set_descriptor_buffer_offsets2: PFN_vkCmdSetDescriptorBufferOffsets2EXT = "vkCmdSetDescriptorBufferOffsets2EXT";
    cmd_bind_shaders: PFN_vkCmdBindShadersEXT = "vkCmdBindShadersEXT";
    cmd_copy_image: PFN_vkCmdCopyImage = "vkCmdCopyImage";
    cmd_copy_image2: PFN_vkCmdCopyImage2 = "vkCmdCopyImage2" "vkCmdCopyImage2KHR";
    cmd_copy_buffer_to_image: PFN_vkCmdCopyBufferToImage = "vkCmdCopyBufferToImage";
    cmd_copy_buffer_to_image2: PFN_vkCmdCopyBufferToImage2 = "vkCmdCopyBufferToImage2" "vkCmdCopyBufferToImage2KHR";
    cmd_copy_image_to_buffer: PFN_vkCmdCopyImageToBuffer = "vkCmdCopyImageToBuffer";
    cmd_copy_image_to_buffer2: PFN_vkCmdCopyImageToBuffer2 = "vkCmdCopyImageToBuffer2" "vkCmdCopyImageToBuffer2KHR";
    wait_for_fences: PFN_vkWaitForFences = "vkWaitForFences";
    get_fence_status: PFN_vkGetFenceStatus = "vkGetFenceStatus";
    reset_fences: PFN_vkResetFences = "vkResetFences";
    destroy_fence: PFN_vkDestroyFence = "vkDestroyFence";
    import_fence_fd: PFN_vkImportFenceFdKHR = "vkImportFenceFdKHR";
    wait_semaphores: PFN_vkWaitSemaphores = "vkWaitSemaphores" "vkWaitSemaphoresKHR";
    get_semaphore_counter_value: PFN_vkGetSemaphoreCounterValue = "vkGetSemaphoreCounterValue" "vkGetSemaphoreCounterValueKHR";
    signal_semaphore: PFN_vkSignalSemaphore = "vkSignalSemaphore" "vkSignalSemaphoreKHR";
    queue_present: PFN_vkQueuePresentKHR = "vkQueuePresentKHR";
    create_shaders: PFN_vkCreateShadersEXT = "vkCreateShadersEXT";
    destroy_shader: PFN_vkDestroyShaderEXT = "vkDestroyShaderEXT";
    map_memory: PFN_vkMapMemory = "vkMapMemory";
    map_memory2: PFN_vkMapMemory2KHR = "vkMapMemory2" "vkMapMemory2KHR";
    create_image: PFN_vkCreateImage = "vkCreateImage";
    destroy_image: PFN_vkDestroyImage = "vkDestroyImage";
    get_query_pool_results: PFN_vkGetQueryPoolResults = "vkGetQueryPoolResults";
    cmd_reset_query_pool: PFN_vkCmdResetQueryPool = "vkCmdResetQueryPool";
    cmd_write_timestamp: PFN_vkCmdWriteTimestamp = "vkCmdWriteTimestamp";
    cmd_begin_query: PFN_vkCmdBeginQuery = "vkCmdBeginQuery";
    cmd_end_query: PFN_vkCmdEndQuery = "vkCmdEndQuery";
    acquire_profiling_lock: PFN_vkAcquireProfilingLockKHR = "vkAcquireProfilingLockKHR";
    release_profiling_lock: PFN_vkReleaseProfilingLockKHR = "vkReleaseProfilingLockKHR";
    cmd_copy_query_pool_results: PFN_vkCmdCopyQueryPoolResults = "vkCmdCopyQueryPoolResults";
    get_calibrated_timestamps: PFN_vkGetCalibratedTimestampsKHR = "vkGetCalibratedTimestampsKHR" "vkGetCalibratedTimestampsEXT";
    cmd_push_constants: PFN_vkCmdPushConstants = "vkCmdPushConstants";
    cmd_push_constants2: PFN_vkCmdPushConstants2KHR = "vkCmdPushConstants2" "vkCmdPushConstants2KHR";
    cmd_set_event: PFN_vkCmdSetEvent = "vkCmdSetEvent";
    cmd_set_event2: PFN_vkCmdSetEvent2 = "vkCmdSetEvent2" "vkCmdSetEvent2KHR";
    cmd_reset_event: PFN_vkCmdResetEvent = "vkCmdResetEvent";
    cmd_reset_event2: PFN_vkCmdResetEvent2 = "vkCmdResetEvent2" "vkCmdResetEvent2KHR";
    cmd_write_timestamp2: PFN_vkCmdWriteTimestamp2 = "vkCmdWriteTimestamp2" "vkCmdWriteTimestamp2KHR";
    create_query_pool: PFN_vkCreateQueryPool = "vkCreateQueryPool";
    destroy_query_pool: PFN_vkDestroyQueryPool = "vkDestroyQueryPool";
    create_pipeline_layout: PFN_vkCreatePipelineLayout = "vkCreatePipelineLayout";
    destroy_pipeline_layout: PFN_vkDestroyPipelineLayout = "vkDestroyPipelineLayout";
    get_device_buffer_memory_requirements: PFN_vkGetDeviceBufferMemoryRequirements = "vkGetDeviceBufferMemoryRequirements" "vkGetDeviceBufferMemoryRequirementsKHR";
}

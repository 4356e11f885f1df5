//! Lists every function of the driver, by name, with what must be enabled for it.

use std::ffi::{CStr, c_char};

use ash::vk::{self, *};

use crate::availability::{FRAGMENT_DENSITY_MAP_OFFSET, Since};
use crate::device::Device;
use crate::object;
use crate::record::{
    self, barrier, dispatch, graphics, label, performance_query, secondary, timestamp, transfer,
};
use crate::{
    buffer, calibration, command_buffer, debug_utils, descriptor, device_calls, features, image,
    instance, memory, performance, physical_device, pipeline, properties, query, queue, submit,
    sync,
};

#[derive(Clone, Copy, PartialEq)]
pub enum Scope {
    Instance,
    PhysicalDevice,
    Device,
}

pub struct EntryPoint {
    name: &'static str,
    pub scope: Scope,
    pub since: Since,
    pub function: unsafe extern "system" fn(),
}

pub fn find(name: &CStr) -> Option<&'static EntryPoint> {
    let name = name.to_str().ok()?;
    ENTRY_POINTS.iter().find(|entry| entry.name == name)
}

unsafe extern "system" fn get_device_proc_addr(
    device: vk::Device,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    let device = object::get::<Device>("vkGetDeviceProcAddr", device)?;
    let entry = find(CStr::from_ptr(name))?;
    (entry.scope == Scope::Device && device.offers(entry.since)).then_some(entry.function)
}

pub unsafe extern "system" fn get_instance_proc_addr(
    _: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    Some(find(CStr::from_ptr(name))?.function)
}

const V1_0: Since = Since::Core(vk::API_VERSION_1_0);
const V1_1: Since = Since::Core(vk::API_VERSION_1_1);
const V1_2: Since = Since::Core(vk::API_VERSION_1_2);
const V1_3: Since = Since::Core(vk::API_VERSION_1_3);

const fn extension(name: &'static CStr) -> Since {
    Since::DeviceExtension(name)
}

/// Makes an entry point. The compiler checks the function's signature.
macro_rules! entry_point {
    ($scope:ident, $since:expr, $name:literal, $type:ty, $function:path) => {
        EntryPoint {
            name: $name,
            scope: Scope::$scope,
            since: $since,
            function: {
                let function: $type = $function;
                // SAFETY: callers cast it back to the type of its name.
                unsafe { std::mem::transmute::<$type, unsafe extern "system" fn()>(function) }
            },
        }
    };
}

/// Makes the entry points of each function from its names and type. A name that a function has in an extension is followed by the
/// extension.
macro_rules! entry_points {
    ($($scope:ident, $since:expr => {
        $($name:literal $(| $alias:literal $(of $($extension:ident)::+)?)*: $type:ty = $function:path;)*
    })*) => {
        static ENTRY_POINTS: &[EntryPoint] = &[$($(
            entry_point!($scope, $since, $name, $type, $function),
            $(entry_point!(
                $scope,
                entry_points!(@since $since $(, $($extension)::+)?),
                $alias,
                $type,
                $function
            ),)*
        )*)*];
    };
    (@since $since:expr) => { $since };
    (@since $since:expr, $($extension:ident)::+) => { extension(ash::$($extension)::+::NAME) };
}

entry_points! {
    Instance, V1_0 => {
        "vkGetInstanceProcAddr": PFN_vkGetInstanceProcAddr = self::get_instance_proc_addr;
        "vkEnumerateInstanceVersion": PFN_vkEnumerateInstanceVersion = instance::enumerate_instance_version;
        "vkEnumerateInstanceExtensionProperties": PFN_vkEnumerateInstanceExtensionProperties = instance::enumerate_instance_extension_properties;
        "vkCreateInstance": PFN_vkCreateInstance = instance::create_instance;
        "vkDestroyInstance": PFN_vkDestroyInstance = instance::destroy_instance;
        "vkEnumeratePhysicalDevices": PFN_vkEnumeratePhysicalDevices = instance::enumerate_physical_devices;
        "vkEnumeratePhysicalDeviceGroups" | "vkEnumeratePhysicalDeviceGroupsKHR": PFN_vkEnumeratePhysicalDeviceGroups = instance::enumerate_physical_device_groups;
        "vkCreateDebugUtilsMessengerEXT": PFN_vkCreateDebugUtilsMessengerEXT = debug_utils::create_messenger;
        "vkDestroyDebugUtilsMessengerEXT": PFN_vkDestroyDebugUtilsMessengerEXT = debug_utils::destroy_messenger;
        "vkSubmitDebugUtilsMessageEXT": PFN_vkSubmitDebugUtilsMessageEXT = debug_utils::submit_message;
    }
    PhysicalDevice, V1_0 => {
        "vkGetPhysicalDeviceProperties": PFN_vkGetPhysicalDeviceProperties = properties::get_properties;
        "vkGetPhysicalDeviceProperties2" | "vkGetPhysicalDeviceProperties2KHR": PFN_vkGetPhysicalDeviceProperties2 = properties::get_properties2;
        "vkGetPhysicalDeviceFeatures": PFN_vkGetPhysicalDeviceFeatures = features::get_features;
        "vkGetPhysicalDeviceFeatures2" | "vkGetPhysicalDeviceFeatures2KHR": PFN_vkGetPhysicalDeviceFeatures2 = features::get_features2;
        "vkGetPhysicalDeviceQueueFamilyProperties": PFN_vkGetPhysicalDeviceQueueFamilyProperties = physical_device::get_queue_families;
        "vkGetPhysicalDeviceQueueFamilyProperties2" | "vkGetPhysicalDeviceQueueFamilyProperties2KHR": PFN_vkGetPhysicalDeviceQueueFamilyProperties2 = physical_device::get_queue_families2;
        "vkGetPhysicalDeviceMemoryProperties": PFN_vkGetPhysicalDeviceMemoryProperties = physical_device::get_memory;
        "vkGetPhysicalDeviceMemoryProperties2" | "vkGetPhysicalDeviceMemoryProperties2KHR": PFN_vkGetPhysicalDeviceMemoryProperties2 = physical_device::get_memory2;
        "vkGetPhysicalDeviceFormatProperties": PFN_vkGetPhysicalDeviceFormatProperties = physical_device::get_format;
        "vkGetPhysicalDeviceFormatProperties2" | "vkGetPhysicalDeviceFormatProperties2KHR": PFN_vkGetPhysicalDeviceFormatProperties2 = physical_device::get_format2;
        "vkGetPhysicalDeviceImageFormatProperties": PFN_vkGetPhysicalDeviceImageFormatProperties = physical_device::get_image_format;
        "vkGetPhysicalDeviceImageFormatProperties2" | "vkGetPhysicalDeviceImageFormatProperties2KHR": PFN_vkGetPhysicalDeviceImageFormatProperties2 = physical_device::get_image_format2;
        "vkGetPhysicalDeviceSparseImageFormatProperties": PFN_vkGetPhysicalDeviceSparseImageFormatProperties = physical_device::get_sparse_image_format;
        "vkGetPhysicalDeviceSparseImageFormatProperties2" | "vkGetPhysicalDeviceSparseImageFormatProperties2KHR": PFN_vkGetPhysicalDeviceSparseImageFormatProperties2 = physical_device::get_sparse_image_format2;
        "vkGetPhysicalDeviceExternalBufferProperties" | "vkGetPhysicalDeviceExternalBufferPropertiesKHR": PFN_vkGetPhysicalDeviceExternalBufferProperties = physical_device::get_external_buffer;
        "vkGetPhysicalDeviceExternalFenceProperties" | "vkGetPhysicalDeviceExternalFencePropertiesKHR": PFN_vkGetPhysicalDeviceExternalFenceProperties = physical_device::get_external_fence;
        "vkGetPhysicalDeviceExternalSemaphoreProperties" | "vkGetPhysicalDeviceExternalSemaphorePropertiesKHR": PFN_vkGetPhysicalDeviceExternalSemaphoreProperties = physical_device::get_external_semaphore;
        "vkGetPhysicalDeviceToolProperties": PFN_vkGetPhysicalDeviceToolProperties = physical_device::get_tools;
        "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT" | "vkGetPhysicalDeviceCalibrateableTimeDomainsKHR": PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR = calibration::get_domains;
        "vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR": PFN_vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR = performance::enumerate_counters;
        "vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR": PFN_vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR = performance::get_passes;
        "vkEnumerateDeviceExtensionProperties": PFN_vkEnumerateDeviceExtensionProperties = physical_device::enumerate_device_extension_properties;
        "vkEnumerateDeviceLayerProperties": PFN_vkEnumerateDeviceLayerProperties = physical_device::enumerate_device_layer_properties;
        "vkCreateDevice": PFN_vkCreateDevice = device_calls::create_device;
    }
    Device, V1_0 => {
        "vkGetDeviceProcAddr": PFN_vkGetDeviceProcAddr = self::get_device_proc_addr;
        "vkDestroyDevice": PFN_vkDestroyDevice = device_calls::destroy_device;
        "vkGetDeviceQueue": PFN_vkGetDeviceQueue = device_calls::get_device_queue;
        "vkDeviceWaitIdle": PFN_vkDeviceWaitIdle = device_calls::device_wait_idle;
        "vkQueueSubmit": PFN_vkQueueSubmit = submit::submit;
        "vkQueueWaitIdle": PFN_vkQueueWaitIdle = queue::wait_idle;
        "vkAllocateMemory": PFN_vkAllocateMemory = memory::allocate_memory;
        "vkFreeMemory": PFN_vkFreeMemory = memory::free_memory;
        "vkMapMemory": PFN_vkMapMemory = memory::map_memory;
        "vkUnmapMemory": PFN_vkUnmapMemory = memory::unmap_memory;
        "vkFlushMappedMemoryRanges": PFN_vkFlushMappedMemoryRanges = memory::flush_ranges;
        "vkInvalidateMappedMemoryRanges": PFN_vkInvalidateMappedMemoryRanges = memory::invalidate_ranges;
        "vkGetDeviceMemoryCommitment": PFN_vkGetDeviceMemoryCommitment = memory::get_commitment;
        "vkCreateBuffer": PFN_vkCreateBuffer = buffer::create_buffer;
        "vkDestroyBuffer": PFN_vkDestroyBuffer = buffer::destroy_buffer;
        "vkGetBufferMemoryRequirements": PFN_vkGetBufferMemoryRequirements = buffer::get_requirements;
        "vkBindBufferMemory": PFN_vkBindBufferMemory = buffer::bind_memory;
        "vkCreateBufferView": PFN_vkCreateBufferView = buffer::create_buffer_view;
        "vkDestroyBufferView": PFN_vkDestroyBufferView = buffer::destroy_buffer_view;
        "vkCreateImage": PFN_vkCreateImage = image::create_image;
        "vkDestroyImage": PFN_vkDestroyImage = image::destroy_image;
        "vkGetImageMemoryRequirements": PFN_vkGetImageMemoryRequirements = image::get_requirements;
        "vkGetImageSubresourceLayout": PFN_vkGetImageSubresourceLayout = image::get_subresource_layout;
        "vkBindImageMemory": PFN_vkBindImageMemory = image::bind_memory;
        "vkCreateImageView": PFN_vkCreateImageView = image::create_image_view;
        "vkDestroyImageView": PFN_vkDestroyImageView = image::destroy_image_view;
        "vkCreateSampler": PFN_vkCreateSampler = image::create_sampler;
        "vkDestroySampler": PFN_vkDestroySampler = image::destroy_sampler;
        "vkCreateShaderModule": PFN_vkCreateShaderModule = pipeline::create_shader_module;
        "vkDestroyShaderModule": PFN_vkDestroyShaderModule = pipeline::destroy_shader_module;
        "vkCreatePipelineCache": PFN_vkCreatePipelineCache = pipeline::create_cache;
        "vkDestroyPipelineCache": PFN_vkDestroyPipelineCache = pipeline::destroy_cache;
        "vkGetPipelineCacheData": PFN_vkGetPipelineCacheData = pipeline::get_cache_data;
        "vkMergePipelineCaches": PFN_vkMergePipelineCaches = pipeline::merge_caches;
        "vkCreatePipelineLayout": PFN_vkCreatePipelineLayout = pipeline::create_layout;
        "vkDestroyPipelineLayout": PFN_vkDestroyPipelineLayout = pipeline::destroy_layout;
        "vkCreateComputePipelines": PFN_vkCreateComputePipelines = pipeline::create_compute_pipelines;
        "vkCreateGraphicsPipelines": PFN_vkCreateGraphicsPipelines = pipeline::create_graphics_pipelines;
        "vkDestroyPipeline": PFN_vkDestroyPipeline = pipeline::destroy_pipeline;
        "vkCreateRenderPass": PFN_vkCreateRenderPass = pipeline::create_render_pass;
        "vkDestroyRenderPass": PFN_vkDestroyRenderPass = pipeline::destroy_render_pass;
        "vkGetRenderAreaGranularity": PFN_vkGetRenderAreaGranularity = pipeline::get_render_area_granularity;
        "vkCreateFramebuffer": PFN_vkCreateFramebuffer = pipeline::create_framebuffer;
        "vkDestroyFramebuffer": PFN_vkDestroyFramebuffer = pipeline::destroy_framebuffer;
        "vkCreateDescriptorSetLayout": PFN_vkCreateDescriptorSetLayout = descriptor::create_layout;
        "vkDestroyDescriptorSetLayout": PFN_vkDestroyDescriptorSetLayout = descriptor::destroy_layout;
        "vkCreateDescriptorPool": PFN_vkCreateDescriptorPool = descriptor::create_pool;
        "vkDestroyDescriptorPool": PFN_vkDestroyDescriptorPool = descriptor::destroy_pool;
        "vkResetDescriptorPool": PFN_vkResetDescriptorPool = descriptor::reset_pool;
        "vkAllocateDescriptorSets": PFN_vkAllocateDescriptorSets = descriptor::allocate_sets;
        "vkFreeDescriptorSets": PFN_vkFreeDescriptorSets = descriptor::free_sets;
        "vkUpdateDescriptorSets": PFN_vkUpdateDescriptorSets = descriptor::update_sets;
        "vkCreateFence": PFN_vkCreateFence = sync::create_fence;
        "vkDestroyFence": PFN_vkDestroyFence = sync::destroy_fence;
        "vkResetFences": PFN_vkResetFences = sync::reset_fences;
        "vkGetFenceStatus": PFN_vkGetFenceStatus = sync::get_fence_status;
        "vkWaitForFences": PFN_vkWaitForFences = sync::wait_for_fences;
        "vkCreateSemaphore": PFN_vkCreateSemaphore = sync::create_semaphore;
        "vkDestroySemaphore": PFN_vkDestroySemaphore = sync::destroy_semaphore;
        "vkCreateQueryPool": PFN_vkCreateQueryPool = query::create_pool;
        "vkDestroyQueryPool": PFN_vkDestroyQueryPool = query::destroy_pool;
        "vkGetQueryPoolResults": PFN_vkGetQueryPoolResults = query::get_results;
        "vkCreateCommandPool": PFN_vkCreateCommandPool = command_buffer::create_pool;
        "vkDestroyCommandPool": PFN_vkDestroyCommandPool = command_buffer::destroy_pool;
        "vkResetCommandPool": PFN_vkResetCommandPool = command_buffer::reset_pool;
        "vkAllocateCommandBuffers": PFN_vkAllocateCommandBuffers = command_buffer::allocate;
        "vkFreeCommandBuffers": PFN_vkFreeCommandBuffers = command_buffer::free_buffers;
        "vkBeginCommandBuffer": PFN_vkBeginCommandBuffer = command_buffer::begin;
        "vkEndCommandBuffer": PFN_vkEndCommandBuffer = command_buffer::end;
        "vkResetCommandBuffer": PFN_vkResetCommandBuffer = command_buffer::reset;
        "vkCmdDispatch": PFN_vkCmdDispatch = dispatch::dispatch;
        "vkCmdDispatchIndirect": PFN_vkCmdDispatchIndirect = dispatch::dispatch_indirect;
        "vkCmdBindPipeline": PFN_vkCmdBindPipeline = dispatch::bind_pipeline;
        "vkCmdBindDescriptorSets": PFN_vkCmdBindDescriptorSets = dispatch::bind_descriptor_sets;
        "vkCmdPushConstants": PFN_vkCmdPushConstants = dispatch::push_constants;
        "vkCmdCopyBuffer": PFN_vkCmdCopyBuffer = transfer::copy_buffer;
        "vkCmdFillBuffer": PFN_vkCmdFillBuffer = transfer::fill_buffer;
        "vkCmdUpdateBuffer": PFN_vkCmdUpdateBuffer = transfer::update_buffer;
        "vkCmdBeginQuery": PFN_vkCmdBeginQuery = performance_query::begin_query;
        "vkCmdEndQuery": PFN_vkCmdEndQuery = performance_query::end_query;
        "vkCmdResetQueryPool": PFN_vkCmdResetQueryPool = timestamp::reset_query_pool;
        "vkCmdWriteTimestamp": PFN_vkCmdWriteTimestamp = timestamp::write_timestamp;
        "vkCmdCopyQueryPoolResults": PFN_vkCmdCopyQueryPoolResults = timestamp::copy_query_pool_results;
        "vkCmdPipelineBarrier": PFN_vkCmdPipelineBarrier = barrier::pipeline_barrier;
        "vkCmdExecuteCommands": PFN_vkCmdExecuteCommands = secondary::execute_commands;
        "vkCmdBeginRenderPass": PFN_vkCmdBeginRenderPass = graphics::begin_render_pass;
        "vkCmdNextSubpass": PFN_vkCmdNextSubpass = graphics::next_subpass;
        "vkCmdEndRenderPass": PFN_vkCmdEndRenderPass = graphics::end_render_pass;
        "vkCmdDraw": PFN_vkCmdDraw = graphics::draw;
        "vkCmdDrawIndexed": PFN_vkCmdDrawIndexed = graphics::draw_indexed;
        "vkCmdSetViewport": PFN_vkCmdSetViewport = graphics::set_viewport;
        "vkCmdSetScissor": PFN_vkCmdSetScissor = graphics::set_scissor;
        "vkCmdBindVertexBuffers": PFN_vkCmdBindVertexBuffers = graphics::bind_vertex_buffers;
        "vkCmdBindIndexBuffer": PFN_vkCmdBindIndexBuffer = graphics::bind_index_buffer;
        "vkCmdCopyBufferToImage": PFN_vkCmdCopyBufferToImage = graphics::copy_buffer_to_image;
        "vkCmdCopyImageToBuffer": PFN_vkCmdCopyImageToBuffer = graphics::copy_image_to_buffer;
        "vkCmdCopyImage": PFN_vkCmdCopyImage = graphics::copy_image;
        "vkCmdClearColorImage": PFN_vkCmdClearColorImage = graphics::clear_color_image;
    }
    Device, V1_1 => {
        "vkGetDeviceQueue2": PFN_vkGetDeviceQueue2 = device_calls::get_device_queue2;
        "vkGetDeviceGroupPeerMemoryFeatures" | "vkGetDeviceGroupPeerMemoryFeaturesKHR" of khr::device_group: PFN_vkGetDeviceGroupPeerMemoryFeatures = device_calls::get_peer_memory_features;
        "vkGetBufferMemoryRequirements2" | "vkGetBufferMemoryRequirements2KHR" of khr::get_memory_requirements2: PFN_vkGetBufferMemoryRequirements2 = buffer::get_requirements2;
        "vkBindBufferMemory2" | "vkBindBufferMemory2KHR" of khr::bind_memory2: PFN_vkBindBufferMemory2 = buffer::bind_memory2;
        "vkGetImageMemoryRequirements2" | "vkGetImageMemoryRequirements2KHR" of khr::get_memory_requirements2: PFN_vkGetImageMemoryRequirements2 = image::get_requirements2;
        "vkBindImageMemory2" | "vkBindImageMemory2KHR" of khr::bind_memory2: PFN_vkBindImageMemory2 = image::bind_memory2;
        "vkTrimCommandPool" | "vkTrimCommandPoolKHR" of khr::maintenance1: PFN_vkTrimCommandPool = command_buffer::trim_pool;
        "vkGetDescriptorSetLayoutSupport" | "vkGetDescriptorSetLayoutSupportKHR" of khr::maintenance3: PFN_vkGetDescriptorSetLayoutSupport = descriptor::get_layout_support;
        "vkCreateDescriptorUpdateTemplate" | "vkCreateDescriptorUpdateTemplateKHR" of khr::descriptor_update_template: PFN_vkCreateDescriptorUpdateTemplate = descriptor::create_template;
        "vkDestroyDescriptorUpdateTemplate" | "vkDestroyDescriptorUpdateTemplateKHR" of khr::descriptor_update_template: PFN_vkDestroyDescriptorUpdateTemplate = descriptor::destroy_template;
        "vkUpdateDescriptorSetWithTemplate" | "vkUpdateDescriptorSetWithTemplateKHR" of khr::descriptor_update_template: PFN_vkUpdateDescriptorSetWithTemplate = descriptor::update_set_with_template;
        "vkCmdDispatchBase" | "vkCmdDispatchBaseKHR" of khr::device_group: PFN_vkCmdDispatchBase = dispatch::dispatch_base;
        "vkCmdSetDeviceMask" | "vkCmdSetDeviceMaskKHR" of khr::device_group: PFN_vkCmdSetDeviceMask = record::set_device_mask;
    }
    Device, V1_2 => {
        "vkResetQueryPool" | "vkResetQueryPoolEXT" of ext::host_query_reset: PFN_vkResetQueryPool = query::reset_pool;
        "vkGetSemaphoreCounterValue" | "vkGetSemaphoreCounterValueKHR" of khr::timeline_semaphore: PFN_vkGetSemaphoreCounterValue = sync::get_counter_value;
        "vkSignalSemaphore" | "vkSignalSemaphoreKHR" of khr::timeline_semaphore: PFN_vkSignalSemaphore = sync::signal_semaphore;
        "vkWaitSemaphores" | "vkWaitSemaphoresKHR" of khr::timeline_semaphore: PFN_vkWaitSemaphores = sync::wait_semaphores;
        "vkGetBufferDeviceAddress" | "vkGetBufferDeviceAddressKHR" of khr::buffer_device_address: PFN_vkGetBufferDeviceAddress = buffer::get_device_address;
        "vkGetBufferOpaqueCaptureAddress" | "vkGetBufferOpaqueCaptureAddressKHR" of khr::buffer_device_address: PFN_vkGetBufferOpaqueCaptureAddress = buffer::get_opaque_capture_address;
        "vkCreateRenderPass2" | "vkCreateRenderPass2KHR" of khr::create_renderpass2: PFN_vkCreateRenderPass2 = pipeline::create_render_pass2;
        "vkCmdBeginRenderPass2" | "vkCmdBeginRenderPass2KHR" of khr::create_renderpass2: PFN_vkCmdBeginRenderPass2 = graphics::begin_render_pass2;
        "vkCmdEndRenderPass2" | "vkCmdEndRenderPass2KHR" of khr::create_renderpass2: PFN_vkCmdEndRenderPass2 = graphics::end_render_pass2;
    }
    Device, V1_3 => {
        "vkQueueSubmit2" | "vkQueueSubmit2KHR" of khr::synchronization2: PFN_vkQueueSubmit2 = submit::submit2;
        "vkCmdPipelineBarrier2" | "vkCmdPipelineBarrier2KHR" of khr::synchronization2: PFN_vkCmdPipelineBarrier2 = barrier::pipeline_barrier2;
        "vkCmdWriteTimestamp2" | "vkCmdWriteTimestamp2KHR" of khr::synchronization2: PFN_vkCmdWriteTimestamp2 = timestamp::write_timestamp2;
        "vkCmdCopyBuffer2" | "vkCmdCopyBuffer2KHR" of khr::copy_commands2: PFN_vkCmdCopyBuffer2 = transfer::copy_buffer2;
        "vkCmdBeginRendering" | "vkCmdBeginRenderingKHR" of khr::dynamic_rendering: PFN_vkCmdBeginRendering = graphics::begin_rendering;
        "vkCmdEndRendering" | "vkCmdEndRenderingKHR" of khr::dynamic_rendering: PFN_vkCmdEndRendering = graphics::end_rendering;
        "vkGetDeviceBufferMemoryRequirements" | "vkGetDeviceBufferMemoryRequirementsKHR" of khr::maintenance4: PFN_vkGetDeviceBufferMemoryRequirements = buffer::get_device_requirements;
        "vkGetDeviceImageMemoryRequirements" | "vkGetDeviceImageMemoryRequirementsKHR" of khr::maintenance4: PFN_vkGetDeviceImageMemoryRequirements = image::get_device_requirements;
    }
    Device, extension(ash::khr::push_descriptor::NAME) => {
        "vkCmdPushDescriptorSetKHR": PFN_vkCmdPushDescriptorSetKHR = dispatch::push_descriptor_set;
        "vkCmdPushDescriptorSetWithTemplateKHR": PFN_vkCmdPushDescriptorSetWithTemplateKHR = dispatch::push_descriptor_set_with_template;
    }
    Device, extension(ash::ext::calibrated_timestamps::NAME) => {
        "vkGetCalibratedTimestampsEXT" | "vkGetCalibratedTimestampsKHR" of khr::calibrated_timestamps: PFN_vkGetCalibratedTimestampsKHR = calibration::get_timestamps;
    }
    Device, extension(ash::khr::performance_query::NAME) => {
        "vkAcquireProfilingLockKHR": PFN_vkAcquireProfilingLockKHR = performance::acquire_lock;
        "vkReleaseProfilingLockKHR": PFN_vkReleaseProfilingLockKHR = performance::release_lock;
    }
    Device, extension(ash::nv::memory_decompression::NAME) => {
        "vkCmdDecompressMemoryNV": PFN_vkCmdDecompressMemoryNV = graphics::decompress_memory;
    }
    Device, extension(FRAGMENT_DENSITY_MAP_OFFSET) => {
        "vkCmdEndRendering2EXT": graphics::EndRendering2 = graphics::end_rendering2;
    }
    Device, Since::InstanceExtension(ash::ext::debug_utils::NAME) => {
        "vkSetDebugUtilsObjectNameEXT": PFN_vkSetDebugUtilsObjectNameEXT = debug_utils::set_object_name;
        "vkSetDebugUtilsObjectTagEXT": PFN_vkSetDebugUtilsObjectTagEXT = debug_utils::set_object_tag;
        "vkQueueBeginDebugUtilsLabelEXT": PFN_vkQueueBeginDebugUtilsLabelEXT = debug_utils::queue_label;
        "vkQueueEndDebugUtilsLabelEXT": PFN_vkQueueEndDebugUtilsLabelEXT = debug_utils::queue_end_label;
        "vkQueueInsertDebugUtilsLabelEXT": PFN_vkQueueInsertDebugUtilsLabelEXT = debug_utils::queue_label;
        "vkCmdBeginDebugUtilsLabelEXT": PFN_vkCmdBeginDebugUtilsLabelEXT = label::begin_label;
        "vkCmdEndDebugUtilsLabelEXT": PFN_vkCmdEndDebugUtilsLabelEXT = label::end_label;
        "vkCmdInsertDebugUtilsLabelEXT": PFN_vkCmdInsertDebugUtilsLabelEXT = label::insert_label;
    }
}

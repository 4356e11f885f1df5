//! Adds a usage to each buffer that the program creates, so that the layer can copy from it.

use ash::vk;
use gapscope_vulkan_layer::arguments::find;
use gapscope_vulkan_layer::device_hooks;

use crate::api::device::Device;

/// VkBufferUsageFlags2CreateInfo: the usage of a buffer, in a structure of its own.
#[repr(C)]
struct Usage2 {
    head: vk::BaseInStructure<'static>,
    usage: u64,
}

/// Returns the usage that the program asked for, and whether it is in the chain.
///
/// # Safety
/// `info` is valid.
pub unsafe fn usage(info: &vk::BufferCreateInfo<'_>) -> (u64, bool) {
    let wanted = vk::StructureType::BUFFER_USAGE_FLAGS_2_CREATE_INFO_KHR;
    // SAFETY: as the caller promises.
    match unsafe { find::<Usage2>(info.p_next, wanted) } {
        Some(usage) => (usage.usage, true),
        None => (info.usage.as_raw().into(), false),
    }
}

/// The usage that the layer adds: to be copied from.
pub const SOURCE: u64 = vk::BufferUsageFlags::TRANSFER_SRC.as_raw() as u64;

/// Returns the create-info with the layer's usage added, or `None` if it is left as it is.
///
/// # Safety
/// `info` is valid.
pub unsafe fn with_source<'a>(info: &vk::BufferCreateInfo<'a>) -> Option<vk::BufferCreateInfo<'a>> {
    // SAFETY: as the caller promises.
    let (usage, is_chained) = unsafe { self::usage(info) };
    let is_protected = info.flags.contains(vk::BufferCreateFlags::PROTECTED);
    // A usage in the chain is the program's memory, which may be constant, so it is left alone.
    if is_chained || is_protected || usage & SOURCE != 0 {
        return None;
    }
    let mut ours = *info;
    ours.usage |= vk::BufferUsageFlags::TRANSFER_SRC;
    Some(ours)
}

device_hooks! {
    [Device]

    /// Answers for the buffer that vkCreateBuffer would make.
    fn get_device_buffer_memory_requirements(
        handle: vk::Device,
        info: *const vk::DeviceBufferMemoryRequirements<'_>,
        out: *mut vk::MemoryRequirements2<'_>,
    ) = around |_, call| {
        match with_source(&*(*info).p_create_info) {
            Some(ours) => {
                let mut question = *info;
                question.p_create_info = &ours;
                call(handle, &question, out);
            }
            None => call(handle, info, out),
        }
    };
}

//! Keeps allocations of device memory and buffers, and why the content of an allocation cannot be known.

use std::sync::{Arc, Mutex, OnceLock};

use ash::vk;
use gapscope_vulkan_layer::arguments::chain;
use gapscope_vulkan_layer::handles::Serial;

use super::refusal::Refusal;

/// An allocation of device memory.
pub struct Memory {
    pub serial: Serial,
    pub bytes: u64,
    /// The properties of its memory type.
    pub properties: vk::MemoryPropertyFlags,
    /// The reason why the content cannot be known; `None` if it can.
    pub refusal: Option<Refusal>,
}

impl Memory {
    /// Returns whether the host may write the memory at any time.
    pub fn is_host_visible(&self) -> bool {
        self.properties
            .contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
    }
}

/// A buffer.
pub struct Buffer {
    /// Tells it from a later buffer with the same handle.
    pub serial: Serial,
    pub handle: vk::Buffer,
    pub bytes: u64,
    /// The usage that the program asked for.
    pub usage: u64,
    pub flags: vk::BufferCreateFlags,
    /// Whether the buffer can be copied from.
    pub is_readable: bool,
    /// The buffer's memory, and where the buffer begins there.
    pub place: OnceLock<(Arc<Memory>, u64)>,
    pub name: Mutex<Option<String>>,
}

/// Returns the reason why the content of an allocation cannot be known, from the structures that are chained to its
/// create-info.
///
/// # Safety
/// `structures` is a valid pNext chain.
pub unsafe fn refusal(structures: *const std::ffi::c_void) -> Option<Refusal> {
    // SAFETY: as the caller promises; each structure is of the type that it says.
    unsafe { chain(structures).find_map(|structure| refusal_of(structure)) }
}

/// Returns the reason why a structure makes the content of its allocation unknown; `None` if it does not.
///
/// # Safety
/// `structure` is of the type that it says.
unsafe fn refusal_of(structure: *const vk::BaseInStructure<'_>) -> Option<Refusal> {
    use vk::StructureType as Type;
    // SAFETY: as the caller promises.
    let kind = unsafe { (*structure).s_type };
    match kind {
        // A host pointer is memory that the host may write, like any that is mapped.
        Type::MEMORY_DEDICATED_ALLOCATE_INFO
        | Type::MEMORY_PRIORITY_ALLOCATE_INFO_EXT
        | Type::MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO
        | Type::IMPORT_MEMORY_HOST_POINTER_INFO_EXT => None,
        Type::MEMORY_ALLOCATE_FLAGS_INFO => {
            // SAFETY: it is of this type.
            let info = unsafe { &*structure.cast::<vk::MemoryAllocateFlagsInfo<'_>>() };
            let is_of_several = info.flags.contains(vk::MemoryAllocateFlags::DEVICE_MASK)
                && info.device_mask.count_ones() > 1;
            is_of_several.then(|| "memory of several GPUs".into())
        }
        Type::EXPORT_MEMORY_ALLOCATE_INFO => {
            // SAFETY: it is of this type.
            let info = unsafe { &*structure.cast::<vk::ExportMemoryAllocateInfo<'_>>() };
            let is_shared = !info.handle_types.is_empty();
            is_shared
                .then(|| "memory that is shared with others (VkExportMemoryAllocateInfo)".into())
        }
        Type::IMPORT_MEMORY_FD_INFO_KHR => {
            Some("memory of others (VkImportMemoryFdInfoKHR)".into())
        }
        other => Some(format!("memory that was allocated with a {other:?}").into()),
    }
}

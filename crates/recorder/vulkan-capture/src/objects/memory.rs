//! Allocations and buffers.

use std::sync::{Arc, Mutex, OnceLock};

use ash::vk;
use gapscope_vulkan_layer::handles::Serial;

/// An allocation.
pub struct Memory {
    pub serial: Serial,
    pub bytes: u64,
    pub properties: vk::MemoryPropertyFlags,
    /// Why its content cannot be known.
    pub refusal: Option<String>,
}

impl Memory {
    /// The host may write it at any time.
    pub fn is_host_visible(&self) -> bool {
        self.properties
            .contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
    }
}

/// A buffer.
pub struct Buffer {
    pub serial: Serial,
    pub handle: vk::Buffer,
    pub bytes: u64,
    /// As the program asked for.
    pub usage: u64,
    pub flags: vk::BufferCreateFlags,
    /// It can be copied from.
    pub is_readable: bool,
    /// Its memory, and where it begins there.
    pub place: OnceLock<(Arc<Memory>, u64)>,
    pub name: Mutex<Option<String>>,
}

/// Why the content of an allocation cannot be known, from what is chained to its create-info.
///
/// # Safety
/// `chain` is a valid pNext chain.
pub unsafe fn refusal(chain: *const std::ffi::c_void) -> Option<String> {
    let mut node = chain.cast::<vk::BaseInStructure<'_>>();
    while !node.is_null() {
        // SAFETY: as the caller promises; each structure is of the type that it says.
        let (kind, next) = unsafe { ((*node).s_type, (*node).p_next) };
        use vk::StructureType as Type;
        match kind {
            // A host pointer is memory that the host may write, like any that is mapped.
            Type::MEMORY_DEDICATED_ALLOCATE_INFO
            | Type::MEMORY_PRIORITY_ALLOCATE_INFO_EXT
            | Type::MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO
            | Type::IMPORT_MEMORY_HOST_POINTER_INFO_EXT => {}
            Type::MEMORY_ALLOCATE_FLAGS_INFO => {
                // SAFETY: it is of this type.
                let info = unsafe { &*node.cast::<vk::MemoryAllocateFlagsInfo<'_>>() };
                if info.flags.contains(vk::MemoryAllocateFlags::DEVICE_MASK)
                    && info.device_mask.count_ones() > 1
                {
                    return Some("memory of several GPUs".to_owned());
                }
            }
            Type::EXPORT_MEMORY_ALLOCATE_INFO => {
                // SAFETY: it is of this type.
                let info = unsafe { &*node.cast::<vk::ExportMemoryAllocateInfo<'_>>() };
                if !info.handle_types.is_empty() {
                    return Some(
                        "memory that is shared with others (VkExportMemoryAllocateInfo)".to_owned(),
                    );
                }
            }
            Type::IMPORT_MEMORY_FD_INFO_KHR => {
                return Some("memory of others (VkImportMemoryFdInfoKHR)".to_owned());
            }
            other => return Some(format!("memory that was allocated with a {other:?}")),
        }
        node = next;
    }
    None
}

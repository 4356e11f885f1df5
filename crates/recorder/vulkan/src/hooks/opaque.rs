//! Hooks the commands that are recorded by their effect: opaque work (timed as a whole) such as render passes, ray
//! tracing and clears, and the others in the table of [`crate::api::opaque`].

use crate::api::arguments::slice;
use crate::api::opaque::recorded_commands;
use crate::command_buffer::Effect;
use crate::hooks::command::command_hooks;
use ash::vk;
use gapscope_spool::event::{Op, OpaqueWorkKind as Kind};
use gapscope_vulkan_layer::hook_table;
use gapscope_vulkan_layer::table::Pointer;

/// Makes the hooks from the rows of the table, and `FUNCTIONS`, the list by which they are found.
macro_rules! hooks {
    ($($hook:ident $($name:literal)+ ($($argument:ident: $type:ty),*) = $effect:expr;)+) => {
        command_hooks! {
            opaque;
            $(fn $hook($($argument: $type),*) =
                |state| state.before_effect($effect), |state, (effect, query)| state.after_effect(effect, query);)+
        }

        hook_table! { $($hook $($name)+ ($($argument: $type),*) = $effect;)+ }
    };
}
recorded_commands!(hooks);

/// Returns the flags of a rendering.
///
/// # Safety
/// `info` is a VkRenderingInfo.
unsafe fn rendering_flags(info: Pointer) -> vk::RenderingFlags {
    // SAFETY: as the caller promises.
    unsafe { (*info.cast::<vk::RenderingInfo<'_>>()).flags }
}

/// VkDeviceAddressRangeKHR, which ash does not know: a range of device memory, by its address.
#[repr(C)]
struct AddressRange {
    address: u64,
    size: u64,
}

/// VkDeviceMemoryCopyKHR: one copied range.
#[repr(C)]
struct MemoryCopy {
    head: vk::BaseInStructure<'static>,
    from: AddressRange,
    from_flags: u32,
    to: AddressRange,
    to_flags: u32,
}

/// VkCopyDeviceMemoryInfoKHR: the copied ranges of a command.
#[repr(C)]
struct MemoryCopies {
    head: vk::BaseInStructure<'static>,
    count: u32,
    regions: *const MemoryCopy,
}

/// Returns the size of a range of addresses.
///
/// # Safety
/// `range` is a VkDeviceAddressRangeKHR.
unsafe fn range_bytes(range: Pointer) -> Option<u64> {
    // SAFETY: as the caller promises.
    Some(unsafe { (*range.cast::<AddressRange>()).size })
}

/// Returns the sum of the sizes of all copied ranges.
///
/// # Safety
/// `info` is a VkCopyDeviceMemoryInfoKHR.
unsafe fn copied_bytes(info: Pointer) -> Option<u64> {
    // SAFETY: as the caller promises.
    unsafe {
        let info = &*info.cast::<MemoryCopies>();
        let regions = slice(info.regions, info.count);
        Some(regions.iter().map(|region| region.from.size).sum())
    }
}

//! Hooks the calls that map device memory, that is, make it accessible to the host; the time and the bytes of each
//! call are recorded.

use crate::device::Device;
use crate::hooks::timed_calls::timed_hooks;
use ash::vk;
use gapscope_spool::event::HostCallKind;
use std::ffi::c_void;

timed_hooks! {
    fn map_memory(
        handle: vk::Device,
        memory: vk::DeviceMemory,
        offset: u64,
        size: u64,
        flags: vk::MemoryMapFlags,
        out: *mut *mut c_void,
    ) = |_, timer, result| timer.finish_with_bytes(HostCallKind::MapMemory, result, mapped_bytes(size));

    fn map_memory2(handle: vk::Device, info: *const vk::MemoryMapInfoKHR<'_>, out: *mut *mut c_void) =
        |_, timer, result| timer.finish_with_bytes(HostCallKind::MapMemory, result, mapped_bytes((*info).size));
}

/// Returns the number of bytes that a call maps; `None` where the call maps the rest of an allocation.
fn mapped_bytes(size: u64) -> Option<u64> {
    (size != vk::WHOLE_SIZE).then_some(size)
}

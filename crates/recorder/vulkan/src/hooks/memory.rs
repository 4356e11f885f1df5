//! Hooks of the calls that map device memory; the time and the bytes of each call are recorded.

use crate::device::Device;
use crate::host_call::HostCallTimer;
use ash::vk;
use gapscope_spool::event::HostCallKind;
use gapscope_spool::hook::guard;
use gapscope_vulkan_layer::device_hooks;
use std::ffi::c_void;

device_hooks! {
    Device;

    fn map_memory(
        handle: vk::Device,
        memory: vk::DeviceMemory,
        offset: u64,
        size: u64,
        flags: vk::MemoryMapFlags,
        out: *mut *mut c_void,
    ) -> vk::Result = |device, call| {
        let timer = HostCallTimer::start(device.recorder);
        let result = call(handle, memory, offset, size, flags, out);
        guard(|| timer.finish_with_bytes(HostCallKind::MapMemory, result, mapped_bytes(size)));
        result
    }

    fn map_memory2(
        handle: vk::Device,
        info: *const vk::MemoryMapInfoKHR<'_>,
        out: *mut *mut c_void,
    ) -> vk::Result = |device, call| {
        let timer = HostCallTimer::start(device.recorder);
        let result = call(handle, info, out);
        guard(|| timer.finish_with_bytes(HostCallKind::MapMemory, result, mapped_bytes((*info).size)));
        result
    }
}

fn mapped_bytes(size: u64) -> Option<u64> {
    (size != vk::WHOLE_SIZE).then_some(size)
}

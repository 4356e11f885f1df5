//! Simulates buffers: creates them, binds them to memory, and finds the addresses of their parts for commands.

use std::sync::OnceLock;

use ash::vk;

use crate::device::{self, Device, destroy_functions, plain_objects};
use crate::memory::{self, DeviceMemory};
use crate::object::{self, Body, Object};
use crate::{chain, misuse};

pub struct Buffer {
    bytes: u64,
    usage: vk::BufferUsageFlags,
    bound: OnceLock<(&'static Object<DeviceMemory>, u64)>,
}

impl Body for Buffer {
    type Handle = vk::Buffer;
}

impl Buffer {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn memory(&self) -> Option<&'static Object<DeviceMemory>> {
        self.bound.get().map(|&(memory, _)| memory)
    }

    /// Returns where the GPU finds `bytes` of the buffer from `offset`, if it is bound and they are inside.
    pub fn device_address(
        &self,
        call: &str,
        offset: u64,
        bytes: u64,
        usage: vk::BufferUsageFlags,
    ) -> Option<usize> {
        let Some(&(memory, start)) = self.bound.get() else {
            misuse::report(call, "the buffer has no memory");
            return None;
        };
        if !self.usage.contains(usage) {
            misuse::report(
                call,
                format_args!("the buffer was created without {usage:?}"),
            );
        }
        if offset.saturating_add(bytes) > self.bytes {
            misuse::report(
                call,
                format_args!("{bytes} bytes at {offset} of a buffer of {}", self.bytes),
            );
            return None;
        }
        Some(memory.device_address(start + offset))
    }
}

plain_objects! {
    BufferView, create_buffer_view("vkCreateBufferView"), destroy_buffer_view("vkDestroyBufferView"),
        vk::BufferViewCreateInfo<'_>;
}

destroy_functions! {
    Buffer, destroy_buffer("vkDestroyBuffer");
}

pub unsafe extern "system" fn create_buffer(
    device: vk::Device,
    info: *const vk::BufferCreateInfo<'_>,
    _: *const vk::AllocationCallbacks<'_>,
    out: *mut vk::Buffer,
) -> vk::Result {
    const CALL: &str = "vkCreateBuffer";
    let info = &*info;
    if info.size == 0 {
        misuse::report(CALL, "a buffer of no bytes");
    }
    device::create(CALL, device, out, |_| Buffer {
        bytes: info.size,
        usage: info.usage,
        bound: OnceLock::new(),
    })
}

pub unsafe extern "system" fn get_requirements(
    _: vk::Device,
    buffer: vk::Buffer,
    out: *mut vk::MemoryRequirements,
) {
    if let Some(buffer) = object::get::<Buffer>("vkGetBufferMemoryRequirements", buffer) {
        *out = memory::requirements(buffer.bytes);
    }
}

pub unsafe extern "system" fn get_requirements2(
    device: vk::Device,
    info: *const vk::BufferMemoryRequirementsInfo2<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    get_requirements(device, (*info).buffer, &mut (*out).memory_requirements);
    memory_dedication((*out).p_next);
}

pub unsafe extern "system" fn get_device_requirements(
    _: vk::Device,
    info: *const vk::DeviceBufferMemoryRequirements<'_>,
    out: *mut vk::MemoryRequirements2<'_>,
) {
    (*out).memory_requirements = memory::requirements((*(*info).p_create_info).size);
    memory_dedication((*out).p_next);
}

/// No resource of the fake GPU prefers a dedicated allocation.
pub unsafe fn memory_dedication(p_next: *mut std::ffi::c_void) {
    for item in chain::structures(p_next) {
        if (*item).s_type == vk::StructureType::MEMORY_DEDICATED_REQUIREMENTS {
            let out = &mut *item.cast::<vk::MemoryDedicatedRequirements<'_>>();
            out.prefers_dedicated_allocation = vk::FALSE;
            out.requires_dedicated_allocation = vk::FALSE;
        }
    }
}

pub unsafe extern "system" fn bind_memory(
    _: vk::Device,
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    offset: u64,
) -> vk::Result {
    const CALL: &str = "vkBindBufferMemory";
    let (Some(buffer), Some(memory)) = (
        object::get::<Buffer>(CALL, buffer),
        object::get::<DeviceMemory>(CALL, memory),
    ) else {
        return vk::Result::ERROR_UNKNOWN;
    };
    let needed = memory::requirements(buffer.bytes);
    if !offset.is_multiple_of(needed.alignment)
        || offset.saturating_add(needed.size) > memory.bytes()
    {
        misuse::report(
            CALL,
            format_args!("{} bytes at {offset} of {}", needed.size, memory.bytes()),
        );
        return vk::Result::ERROR_UNKNOWN;
    }
    if buffer.bound.set((memory, offset)).is_err() {
        misuse::report(CALL, "the buffer already has memory");
    }
    vk::Result::SUCCESS
}

pub unsafe extern "system" fn bind_memory2(
    device: vk::Device,
    count: u32,
    infos: *const vk::BindBufferMemoryInfo<'_>,
) -> vk::Result {
    let bind = |info: &vk::BindBufferMemoryInfo<'_>| {
        bind_memory(device, info.buffer, info.memory, info.memory_offset)
    };
    memory::bind_all(chain::slice(infos, count), bind)
}

pub unsafe extern "system" fn get_device_address(
    device: vk::Device,
    info: *const vk::BufferDeviceAddressInfo<'_>,
) -> vk::DeviceAddress {
    const CALL: &str = "vkGetBufferDeviceAddress";
    let (Some(device), Some(buffer)) = (
        object::get::<Device>(CALL, device),
        object::get::<Buffer>(CALL, (*info).buffer),
    ) else {
        return 0;
    };
    device.requires(
        CALL,
        "bufferDeviceAddress",
        device.enabled.buffer_device_address,
    );
    let usage = vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    buffer
        .device_address(CALL, 0, buffer.bytes, usage)
        .map_or(0, |address| address as u64)
}

pub unsafe extern "system" fn get_opaque_capture_address(
    _: vk::Device,
    _: *const vk::BufferDeviceAddressInfo<'_>,
) -> u64 {
    0
}

//! Dispatches and transfers.

use ash::vk::{self, Handle};
use gapscope_capture::model::CopyRegion;
use gapscope_vulkan_layer::arguments::slice;
use gapscope_vulkan_layer::handles::lock;

use crate::api::device::{self, Device};
use crate::command::Command;
use crate::window;

/// Adds a command to what is known of a command buffer.
pub fn add(device: &Device, buffer: vk::CommandBuffer, command: Command) {
    if let Some(state) = device.objects.command_buffers.get(buffer.as_raw()) {
        lock(&state).commands.push(command);
    }
}

/// The same in a hook: gives the device.
///
/// # Safety
/// The command buffer is live.
pub unsafe fn push(
    buffer: vk::CommandBuffer,
    command: impl FnOnce() -> Command,
) -> Option<&'static Device> {
    // SAFETY: as the caller promises.
    let device = unsafe { device::of(buffer) }?;
    window::keep(|| add(device, buffer, command()));
    Some(device)
}

pub unsafe extern "system" fn dispatch(buffer: vk::CommandBuffer, x: u32, y: u32, z: u32) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || Command::Dispatch {
            base: [0; 3],
            groups: [x, y, z],
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_0().cmd_dispatch)(buffer, x, y, z);
    }
}

pub unsafe extern "system" fn dispatch_base(
    buffer: vk::CommandBuffer,
    from_x: u32,
    from_y: u32,
    from_z: u32,
    x: u32,
    y: u32,
    z: u32,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || Command::Dispatch {
            base: [from_x, from_y, from_z],
            groups: [x, y, z],
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_1().cmd_dispatch_base)(buffer, from_x, from_y, from_z, x, y, z);
    }
}

pub unsafe extern "system" fn dispatch_indirect(
    buffer: vk::CommandBuffer,
    arguments: vk::Buffer,
    offset: vk::DeviceSize,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || Command::DispatchIndirect {
            buffer: arguments,
            offset,
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_0().cmd_dispatch_indirect)(buffer, arguments, offset);
    }
}

pub unsafe extern "system" fn copy_buffer(
    buffer: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || {
            let region = |region: &vk::BufferCopy| CopyRegion {
                from: region.src_offset,
                to: region.dst_offset,
                bytes: region.size,
            };
            let regions = slice(regions, count).iter().map(region).collect();
            Command::Copy { from, to, regions }
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_0().cmd_copy_buffer)(buffer, from, to, count, regions);
    }
}

pub unsafe extern "system" fn copy_buffer2(
    buffer: vk::CommandBuffer,
    info: *const vk::CopyBufferInfo2<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || {
            let region = |region: &vk::BufferCopy2<'_>| CopyRegion {
                from: region.src_offset,
                to: region.dst_offset,
                bytes: region.size,
            };
            let regions = slice((*info).p_regions, (*info).region_count);
            Command::Copy {
                from: (*info).src_buffer,
                to: (*info).dst_buffer,
                regions: regions.iter().map(region).collect(),
            }
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_3().cmd_copy_buffer2)(buffer, info);
    }
}

pub unsafe extern "system" fn fill_buffer(
    buffer: vk::CommandBuffer,
    target: vk::Buffer,
    offset: vk::DeviceSize,
    bytes: vk::DeviceSize,
    value: u32,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || Command::Fill {
            buffer: target,
            offset,
            bytes,
            value,
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_0().cmd_fill_buffer)(buffer, target, offset, bytes, value);
    }
}

pub unsafe extern "system" fn update_buffer(
    buffer: vk::CommandBuffer,
    target: vk::Buffer,
    offset: vk::DeviceSize,
    bytes: vk::DeviceSize,
    data: *const std::ffi::c_void,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || {
            let data = slice(data.cast::<u8>(), bytes as u32).to_vec();
            Command::Update {
                buffer: target,
                offset,
                data,
            }
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_0().cmd_update_buffer)(buffer, target, offset, bytes, data);
    }
}

pub unsafe extern "system" fn copy_query_pool_results(
    buffer: vk::CommandBuffer,
    pool: vk::QueryPool,
    first: u32,
    count: u32,
    target: vk::Buffer,
    offset: vk::DeviceSize,
    stride: vk::DeviceSize,
    flags: vk::QueryResultFlags,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || {
            let bytes = stride
                .saturating_mul(u64::from(count.max(1)) - 1)
                .saturating_add(16);
            Command::QueryResults {
                buffer: target,
                offset,
                bytes,
            }
        };
        let Some(device) = push(buffer, command) else {
            return;
        };
        let call = device.next.fp_v1_0().cmd_copy_query_pool_results;
        call(buffer, pool, first, count, target, offset, stride, flags);
    }
}

pub unsafe extern "system" fn execute_commands(
    buffer: vk::CommandBuffer,
    count: u32,
    secondary: *const vk::CommandBuffer,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let command = || Command::Secondary(slice(secondary, count).to_vec());
        let Some(device) = push(buffer, command) else {
            return;
        };
        (device.next.fp_v1_0().cmd_execute_commands)(buffer, count, secondary);
    }
}

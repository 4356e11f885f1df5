//! Records transfers between buffers.

use ash::vk::{self, BufferUsageFlags};

use super::{TRANSFER, buffer_address, record};
use crate::buffer::Buffer;
use crate::command::{Command, Recording};
use crate::{chain, misuse, object};

pub unsafe extern "system" fn copy_buffer(
    buffer: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    const CALL: &str = "vkCmdCopyBuffer";
    record(CALL, buffer, TRANSFER, |_, recording| {
        for region in chain::slice(regions, count) {
            copy(
                CALL,
                recording,
                (from, region.src_offset),
                (to, region.dst_offset),
                region.size,
            );
        }
    });
}

pub unsafe extern "system" fn copy_buffer2(
    buffer: vk::CommandBuffer,
    info: *const vk::CopyBufferInfo2<'_>,
) {
    const CALL: &str = "vkCmdCopyBuffer2";
    record(CALL, buffer, TRANSFER, |_, recording| {
        let info = &*info;
        for region in chain::slice(info.p_regions, info.region_count) {
            let (from, to) = (
                (info.src_buffer, region.src_offset),
                (info.dst_buffer, region.dst_offset),
            );
            copy(CALL, recording, from, to, region.size);
        }
    });
}

fn copy(
    call: &str,
    recording: &mut Recording,
    from: (vk::Buffer, u64),
    to: (vk::Buffer, u64),
    bytes: u64,
) {
    let from = buffer_address(
        call,
        recording,
        from.0,
        from.1,
        bytes,
        BufferUsageFlags::TRANSFER_SRC,
    );
    let to = buffer_address(
        call,
        recording,
        to.0,
        to.1,
        bytes,
        BufferUsageFlags::TRANSFER_DST,
    );
    if let (Some(from), Some(to)) = (from, to) {
        recording
            .program
            .commands
            .push(Command::Copy { from, to, bytes });
    }
}

pub unsafe extern "system" fn fill_buffer(
    buffer: vk::CommandBuffer,
    to: vk::Buffer,
    offset: u64,
    bytes: u64,
    word: u32,
) {
    const CALL: &str = "vkCmdFillBuffer";
    record(CALL, buffer, TRANSFER, |_, recording| {
        let whole = object::get::<Buffer>(CALL, to).map_or(0, |buffer| buffer.bytes());
        let bytes = if bytes == vk::WHOLE_SIZE {
            whole.saturating_sub(offset) & !3
        } else {
            bytes
        };
        if !offset.is_multiple_of(4) || !bytes.is_multiple_of(4) {
            misuse::report(
                CALL,
                format_args!("{bytes} bytes at {offset} are not whole words"),
            );
            return;
        }
        if let Some(to) = buffer_address(
            CALL,
            recording,
            to,
            offset,
            bytes,
            BufferUsageFlags::TRANSFER_DST,
        ) {
            recording
                .program
                .commands
                .push(Command::Fill { to, bytes, word });
        }
    });
}

pub unsafe extern "system" fn update_buffer(
    buffer: vk::CommandBuffer,
    to: vk::Buffer,
    offset: u64,
    bytes: u64,
    data: *const std::ffi::c_void,
) {
    const CALL: &str = "vkCmdUpdateBuffer";
    const MAX_BYTES: u64 = 65536;
    record(CALL, buffer, TRANSFER, |_, recording| {
        if bytes > MAX_BYTES || !bytes.is_multiple_of(4) || !offset.is_multiple_of(4) {
            misuse::report(CALL, format_args!("{bytes} bytes at {offset}"));
            return;
        }
        if let Some(to) = buffer_address(
            CALL,
            recording,
            to,
            offset,
            bytes,
            BufferUsageFlags::TRANSFER_DST,
        ) {
            let data = chain::slice(data.cast::<u8>(), bytes as u32).into();
            recording
                .program
                .commands
                .push(Command::Update { to, data });
        }
    });
}

/// Records a transfer with an image.
pub unsafe fn image_transfer(call: &str, buffer: vk::CommandBuffer, bytes: u64) {
    record(call, buffer, TRANSFER, |_, recording| {
        recording
            .program
            .commands
            .push(Command::ImageTransfer { bytes });
    });
}

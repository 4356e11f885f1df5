//! Records transfers between buffers.

use ash::vk::{self, BufferUsageFlags};

use super::{Recorder, TRANSFER, record};
use crate::buffer::Buffer;
use crate::chain;
use crate::command::Command;

pub unsafe extern "system" fn copy_buffer(
    buffer: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferCopy,
) {
    record("vkCmdCopyBuffer", buffer, TRANSFER, |recorder| {
        for region in chain::slice(regions, count) {
            let (from, to) = ((from, region.src_offset), (to, region.dst_offset));
            recorder.copy(from, to, region.size);
        }
    });
}

pub unsafe extern "system" fn copy_buffer2(
    buffer: vk::CommandBuffer,
    info: *const vk::CopyBufferInfo2<'_>,
) {
    record("vkCmdCopyBuffer2", buffer, TRANSFER, |recorder| {
        let info = &*info;
        for region in chain::slice(info.p_regions, info.region_count) {
            let (from, to) = (
                (info.src_buffer, region.src_offset),
                (info.dst_buffer, region.dst_offset),
            );
            recorder.copy(from, to, region.size);
        }
    });
}

impl Recorder<'_> {
    /// Records a copy between buffers, each with an offset.
    fn copy(&mut self, from: (vk::Buffer, u64), to: (vk::Buffer, u64), bytes: u64) {
        let from = self.buffer_address(from.0, from.1, bytes, BufferUsageFlags::TRANSFER_SRC);
        let to = self.buffer_address(to.0, to.1, bytes, BufferUsageFlags::TRANSFER_DST);
        if let (Some(from), Some(to)) = (from, to) {
            self.push(Command::Copy { from, to, bytes });
        }
    }
}

pub unsafe extern "system" fn fill_buffer(
    buffer: vk::CommandBuffer,
    to: vk::Buffer,
    offset: u64,
    bytes: u64,
    word: u32,
) {
    record("vkCmdFillBuffer", buffer, TRANSFER, |recorder| {
        let whole = recorder
            .get::<Buffer>(to)
            .map_or(0, |buffer| buffer.bytes());
        let bytes = match bytes {
            vk::WHOLE_SIZE => whole.saturating_sub(offset) & !3,
            bytes => bytes,
        };
        if !offset.is_multiple_of(4) || !bytes.is_multiple_of(4) {
            return recorder.report(format_args!(
                "{bytes} bytes at {offset} are not whole words"
            ));
        }
        let usage = BufferUsageFlags::TRANSFER_DST;
        if let Some(to) = recorder.buffer_address(to, offset, bytes, usage) {
            recorder.push(Command::Fill { to, bytes, word });
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
    const MAX_BYTES: u64 = 65536;
    record("vkCmdUpdateBuffer", buffer, TRANSFER, |recorder| {
        if bytes > MAX_BYTES || !bytes.is_multiple_of(4) || !offset.is_multiple_of(4) {
            return recorder.report(format_args!("{bytes} bytes at {offset}"));
        }
        let usage = BufferUsageFlags::TRANSFER_DST;
        if let Some(to) = recorder.buffer_address(to, offset, bytes, usage) {
            let data = chain::slice(data.cast::<u8>(), bytes as u32).into();
            recorder.push(Command::Update { to, data });
        }
    });
}

/// Records a transfer with an image.
pub unsafe fn image_transfer(call: &str, buffer: vk::CommandBuffer, bytes: u64) {
    record(call, buffer, TRANSFER, |recorder| {
        recorder.push(Command::ImageTransfer { bytes });
    });
}

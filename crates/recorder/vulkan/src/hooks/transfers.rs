//! Hooks of the commands that copy from and to images, which are recorded as transfers with their bytes.

use crate::api::arguments::slice;
use crate::command_buffer::CommandBuffer;
use crate::hooks::command::command;
use ash::vk;
use gapscope_spool::event::{Command, Op};
use gapscope_spool::ids::Buffer;

/// Stands for a buffer where an image is copied.
const IMAGE: Buffer = Buffer::NONE;
/// Records a transfer; `bytes` is `None` where its size is not known.
pub fn transfer(
    state: &mut CommandBuffer,
    op: Op,
    query: u32,
    bytes: Option<u64>,
    from: Buffer,
    to: Buffer,
) {
    state.end_timing(query);
    let bytes = bytes.unwrap_or(u64::MAX);
    state.push(Command::new(
        op,
        query,
        [bytes as u32, (bytes >> 32) as u32, from.0, to.0],
    ));
}

pub unsafe extern "system" fn copy_image(
    cb: vk::CommandBuffer,
    from: vk::Image,
    from_layout: vk::ImageLayout,
    to: vk::Image,
    to_layout: vk::ImageLayout,
    count: u32,
    regions: *const vk::ImageCopy,
) {
    command!(
        cb,
        functions.cmd_copy_image(from, from_layout, to, to_layout, count, regions),
        |state| state.start_timing(),
        |state, query| {
            let regions = slice(regions, count).iter();
            let extents = regions.map(|r| (r.extent, r.src_subresource.layer_count));
            let bytes = state.device.images.copied_bytes(from, extents);
            transfer(state, Op::CopyImage, query, bytes, IMAGE, IMAGE);
        }
    );
}

pub unsafe extern "system" fn copy_image2(
    cb: vk::CommandBuffer,
    info: *const vk::CopyImageInfo2<'_>,
) {
    command!(
        cb,
        functions.cmd_copy_image2(info),
        |state| state.start_timing(),
        |state, query| {
            let info = &*info;
            let regions = slice(info.p_regions, info.region_count).iter();
            let extents = regions.map(|r| (r.extent, r.src_subresource.layer_count));
            let bytes = state.device.images.copied_bytes(info.src_image, extents);
            transfer(state, Op::CopyImage, query, bytes, IMAGE, IMAGE);
        }
    );
}

pub unsafe extern "system" fn copy_buffer_to_image(
    cb: vk::CommandBuffer,
    from: vk::Buffer,
    to: vk::Image,
    layout: vk::ImageLayout,
    count: u32,
    regions: *const vk::BufferImageCopy,
) {
    command!(
        cb,
        functions.cmd_copy_buffer_to_image(from, to, layout, count, regions),
        |state| state.start_timing(),
        |state, query| {
            let from = state.device.memory.buffer_id(from);
            let regions = slice(regions, count).iter();
            let extents = regions.map(|r| (r.image_extent, r.image_subresource.layer_count));
            let bytes = state.device.images.copied_bytes(to, extents);
            transfer(state, Op::CopyImage, query, bytes, from, IMAGE);
        }
    );
}

pub unsafe extern "system" fn copy_buffer_to_image2(
    cb: vk::CommandBuffer,
    info: *const vk::CopyBufferToImageInfo2<'_>,
) {
    command!(
        cb,
        functions.cmd_copy_buffer_to_image2(info),
        |state| state.start_timing(),
        |state, query| {
            let from = state.device.memory.buffer_id((*info).src_buffer);
            let info = &*info;
            let regions = slice(info.p_regions, info.region_count).iter();
            let extents = regions.map(|r| (r.image_extent, r.image_subresource.layer_count));
            let bytes = state.device.images.copied_bytes(info.dst_image, extents);
            transfer(state, Op::CopyImage, query, bytes, from, IMAGE);
        }
    );
}

pub unsafe extern "system" fn copy_image_to_buffer(
    cb: vk::CommandBuffer,
    from: vk::Image,
    layout: vk::ImageLayout,
    to: vk::Buffer,
    count: u32,
    regions: *const vk::BufferImageCopy,
) {
    command!(
        cb,
        functions.cmd_copy_image_to_buffer(from, layout, to, count, regions),
        |state| state.start_timing(),
        |state, query| {
            let to = state.device.memory.buffer_id(to);
            let regions = slice(regions, count).iter();
            let extents = regions.map(|r| (r.image_extent, r.image_subresource.layer_count));
            let bytes = state.device.images.copied_bytes(from, extents);
            transfer(state, Op::CopyImage, query, bytes, IMAGE, to);
        }
    );
}

pub unsafe extern "system" fn copy_image_to_buffer2(
    cb: vk::CommandBuffer,
    info: *const vk::CopyImageToBufferInfo2<'_>,
) {
    command!(
        cb,
        functions.cmd_copy_image_to_buffer2(info),
        |state| state.start_timing(),
        |state, query| {
            let to = state.device.memory.buffer_id((*info).dst_buffer);
            let info = &*info;
            let regions = slice(info.p_regions, info.region_count).iter();
            let extents = regions.map(|r| (r.image_extent, r.image_subresource.layer_count));
            let bytes = state.device.images.copied_bytes(info.src_image, extents);
            transfer(state, Op::CopyImage, query, bytes, IMAGE, to);
        }
    );
}

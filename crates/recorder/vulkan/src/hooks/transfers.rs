//! Hooks the commands that copy from and to images, which are recorded as transfers with their bytes.

use crate::api::arguments::slice;
use crate::command_buffer::CommandBuffer;
use crate::hooks::command::command_hooks;
use ash::vk;
use gapscope_spool::event::Op;
use gapscope_spool::ids::Buffer;

/// Stands for an image where a copy names a buffer.
const IMAGE: Buffer = Buffer::NONE;

/// A region of a copy from or to an image.
trait ImageRegion {
    /// Returns the extent of the region and the number of its layers.
    fn extent(&self) -> (vk::Extent3D, u32);
}

/// Implements [`ImageRegion`] for structures, by the names of their fields.
macro_rules! image_regions {
    ($($region:ty: $extent:ident, $subresource:ident;)+) => {
        $(impl ImageRegion for $region {
            fn extent(&self) -> (vk::Extent3D, u32) {
                (self.$extent, self.$subresource.layer_count)
            }
        })+
    };
}
image_regions! {
    vk::ImageCopy: extent, src_subresource;
    vk::ImageCopy2<'_>: extent, src_subresource;
    vk::BufferImageCopy: image_extent, image_subresource;
    vk::BufferImageCopy2<'_>: image_extent, image_subresource;
}

/// Records a copy of regions of `image`, whose texels give the bytes, from one buffer to another or [`IMAGE`].
fn copy(
    state: &mut CommandBuffer,
    query: u32,
    image: vk::Image,
    regions: &[impl ImageRegion],
    from: Buffer,
    to: Buffer,
) {
    let extents = regions.iter().map(ImageRegion::extent);
    let bytes = state.device.images.copied_bytes(image, extents);
    state.push_transfer(Op::CopyImage, query, bytes, from, to);
}

command_hooks! {
    functions;

    fn cmd_copy_image(
        from: vk::Image,
        from_layout: vk::ImageLayout,
        to: vk::Image,
        to_layout: vk::ImageLayout,
        count: u32,
        regions: *const vk::ImageCopy,
    ) = |state| state.start_timing(), |state, query| copy(state, query, from, slice(regions, count), IMAGE, IMAGE);

    fn cmd_copy_image2(info: *const vk::CopyImageInfo2<'_>) =
        |state| state.start_timing(), |state, query| {
            let regions = slice((*info).p_regions, (*info).region_count);
            copy(state, query, (*info).src_image, regions, IMAGE, IMAGE);
        };

    fn cmd_copy_buffer_to_image(
        from: vk::Buffer,
        to: vk::Image,
        layout: vk::ImageLayout,
        count: u32,
        regions: *const vk::BufferImageCopy,
    ) = |state| state.start_timing(), |state, query| {
        let from = state.device.memory.buffer_id(from);
        copy(state, query, to, slice(regions, count), from, IMAGE);
    };

    fn cmd_copy_buffer_to_image2(info: *const vk::CopyBufferToImageInfo2<'_>) =
        |state| state.start_timing(), |state, query| {
            let from = state.device.memory.buffer_id((*info).src_buffer);
            let regions = slice((*info).p_regions, (*info).region_count);
            copy(state, query, (*info).dst_image, regions, from, IMAGE);
        };

    fn cmd_copy_image_to_buffer(
        from: vk::Image,
        layout: vk::ImageLayout,
        to: vk::Buffer,
        count: u32,
        regions: *const vk::BufferImageCopy,
    ) = |state| state.start_timing(), |state, query| {
        let to = state.device.memory.buffer_id(to);
        copy(state, query, from, slice(regions, count), IMAGE, to);
    };

    fn cmd_copy_image_to_buffer2(info: *const vk::CopyImageToBufferInfo2<'_>) =
        |state| state.start_timing(), |state, query| {
            let to = state.device.memory.buffer_id((*info).dst_buffer);
            let regions = slice((*info).p_regions, (*info).region_count);
            copy(state, query, (*info).src_image, regions, IMAGE, to);
        };
}

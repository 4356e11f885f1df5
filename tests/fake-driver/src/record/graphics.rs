//! Records `vkCmd*` of graphics, as far as a profiler of compute meets them: they take time and draw nothing.

use ash::vk;

use super::transfer::image_transfer;
use super::{BEGIN_RENDER_PASS, IN_RENDER_PASS, ignored_commands, record};
use crate::chain;
use crate::command::Command;

pub unsafe extern "system" fn begin_render_pass(
    buffer: vk::CommandBuffer,
    _: *const vk::RenderPassBeginInfo<'_>,
    _: vk::SubpassContents,
) {
    begin("vkCmdBeginRenderPass", buffer);
}

pub unsafe extern "system" fn begin_render_pass2(
    buffer: vk::CommandBuffer,
    _: *const vk::RenderPassBeginInfo<'_>,
    _: *const vk::SubpassBeginInfo<'_>,
) {
    begin("vkCmdBeginRenderPass2", buffer);
}

pub unsafe extern "system" fn begin_rendering(
    buffer: vk::CommandBuffer,
    info: *const vk::RenderingInfo<'_>,
) {
    record(
        "vkCmdBeginRendering",
        buffer,
        BEGIN_RENDER_PASS,
        |recorder| {
            if !recorder.buffer.pool.enabled.dynamic_rendering {
                recorder.report("the device was created without the feature dynamicRendering");
            }
            let flags = (*info).flags;
            let recording = &mut *recorder.recording;
            recording.in_render_pass = true;
            recording.suspending = flags.contains(vk::RenderingFlags::SUSPENDING);
            if flags.contains(vk::RenderingFlags::RESUMING) {
                if !std::mem::take(&mut recording.suspended) {
                    recording.resumes = true;
                    if !recording.program.commands.is_empty() {
                        recorder.report("resumes a rendering behind other commands");
                    }
                }
            } else if recording.suspended {
                recorder.report("a rendering is suspended");
            }
            recorder.push(Command::RenderPass);
        },
    );
}

unsafe fn begin(call: &str, buffer: vk::CommandBuffer) {
    record(call, buffer, BEGIN_RENDER_PASS, |recorder| {
        recorder.recording.in_render_pass = true;
        recorder.push(Command::RenderPass);
    });
}

pub unsafe extern "system" fn end_render_pass(buffer: vk::CommandBuffer) {
    end("vkCmdEndRenderPass", buffer);
}

pub unsafe extern "system" fn end_render_pass2(
    buffer: vk::CommandBuffer,
    _: *const vk::SubpassEndInfo<'_>,
) {
    end("vkCmdEndRenderPass2", buffer);
}

pub unsafe extern "system" fn end_rendering(buffer: vk::CommandBuffer) {
    end("vkCmdEndRendering", buffer);
}

/// The type of vkCmdEndRendering2EXT, which ash does not know.
pub type EndRendering2 = unsafe extern "system" fn(vk::CommandBuffer, *const std::ffi::c_void);

pub unsafe extern "system" fn end_rendering2(
    buffer: vk::CommandBuffer,
    _: *const std::ffi::c_void,
) {
    end("vkCmdEndRendering2EXT", buffer);
}

pub unsafe extern "system" fn decompress_memory(
    buffer: vk::CommandBuffer,
    _: u32,
    _: *const vk::DecompressMemoryRegionNV,
) {
    image_transfer("vkCmdDecompressMemoryNV", buffer, 0);
}

unsafe fn end(call: &str, buffer: vk::CommandBuffer) {
    record(call, buffer, IN_RENDER_PASS, |recorder| {
        if !std::mem::take(&mut recorder.recording.in_render_pass) {
            recorder.report("no render pass is open");
        }
        let recording = &mut *recorder.recording;
        recording.suspended = std::mem::take(&mut recording.suspending);
    });
}

pub unsafe extern "system" fn draw(buffer: vk::CommandBuffer, _: u32, _: u32, _: u32, _: u32) {
    push_draw("vkCmdDraw", buffer);
}

pub unsafe extern "system" fn draw_indexed(
    buffer: vk::CommandBuffer,
    _: u32,
    _: u32,
    _: u32,
    _: i32,
    _: u32,
) {
    push_draw("vkCmdDrawIndexed", buffer);
}

unsafe fn push_draw(call: &str, buffer: vk::CommandBuffer) {
    record(call, buffer, IN_RENDER_PASS, |recorder| {
        if !recorder.recording.in_render_pass {
            recorder.report("no render pass is open");
        }
        let pipeline = recorder.recording.graphics_pipeline;
        recorder.push(Command::Draw { pipeline });
    });
}

ignored_commands! {
    fn next_subpass(vk::SubpassContents);
    fn set_viewport(u32, u32, *const vk::Viewport);
    fn set_scissor(u32, u32, *const vk::Rect2D);
    fn bind_vertex_buffers(u32, u32, *const vk::Buffer, *const u64);
    fn bind_index_buffer(vk::Buffer, u64, vk::IndexType);
}

/// The texel size of the common formats. Images hold nothing, so only the time depends on it.
const TEXEL_BYTES: u64 = 4;

fn bytes(extent: vk::Extent3D) -> u64 {
    u64::from(extent.width) * u64::from(extent.height) * u64::from(extent.depth) * TEXEL_BYTES
}

pub unsafe extern "system" fn copy_buffer_to_image(
    buffer: vk::CommandBuffer,
    _: vk::Buffer,
    _: vk::Image,
    _: vk::ImageLayout,
    count: u32,
    regions: *const vk::BufferImageCopy,
) {
    for region in chain::slice(regions, count) {
        image_transfer("vkCmdCopyBufferToImage", buffer, bytes(region.image_extent));
    }
}

pub unsafe extern "system" fn copy_image_to_buffer(
    buffer: vk::CommandBuffer,
    _: vk::Image,
    _: vk::ImageLayout,
    _: vk::Buffer,
    count: u32,
    regions: *const vk::BufferImageCopy,
) {
    for region in chain::slice(regions, count) {
        image_transfer("vkCmdCopyImageToBuffer", buffer, bytes(region.image_extent));
    }
}

pub unsafe extern "system" fn copy_image(
    buffer: vk::CommandBuffer,
    _: vk::Image,
    _: vk::ImageLayout,
    _: vk::Image,
    _: vk::ImageLayout,
    count: u32,
    regions: *const vk::ImageCopy,
) {
    for region in chain::slice(regions, count) {
        image_transfer("vkCmdCopyImage", buffer, bytes(region.extent));
    }
}

pub unsafe extern "system" fn clear_color_image(
    buffer: vk::CommandBuffer,
    _: vk::Image,
    _: vk::ImageLayout,
    _: *const vk::ClearColorValue,
    _: u32,
    _: *const vk::ImageSubresourceRange,
) {
    image_transfer("vkCmdClearColorImage", buffer, 0);
}

//! Runs command buffers whose only work is neither a dispatch nor a copy: resolves, which turn an image with several
//! samples for each pixel into one with one. Their number goes into the truth (what tests compare a trace with).

use anyhow::Result;
use ash::vk;

use crate::args::Args;
use crate::gpu::Gpu;
use crate::modes::render_pass::{image, square, transition};
use crate::setup::Setup;
use crate::truth::Truth;

const SIZE: u32 = 512;
const GENERAL: vk::ImageLayout = vk::ImageLayout::GENERAL;

/// Runs n resolves of an image in each command buffer, without a barrier.
pub fn resolve(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::with_queues(args, 1, vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS)?;
    let setup = Setup::on(gpu, args)?;
    let gpu = &setup.gpu;
    let usage = vk::ImageUsageFlags::TRANSFER_SRC
        | vk::ImageUsageFlags::TRANSFER_DST
        | vk::ImageUsageFlags::COLOR_ATTACHMENT;
    let from = image(gpu, SIZE, vk::SampleCountFlags::TYPE_4, usage)?;
    let to = image(gpu, SIZE, vk::SampleCountFlags::TYPE_1, usage)?;
    let recording = setup.recording()?;
    transition(&recording, &[from, to]);
    setup.run(&[&recording.end()?])?;
    let layers = vk::ImageSubresourceLayers::default()
        .aspect_mask(vk::ImageAspectFlags::COLOR)
        .layer_count(1);
    let region = [vk::ImageResolve::default()
        .src_subresource(layers)
        .dst_subresource(layers)
        .extent(square(SIZE))];
    for _ in 0..args.iterations {
        let recording = setup.recording()?;
        for _ in 0..args.n {
            unsafe {
                gpu.device
                    .cmd_resolve_image(recording.buffer, from, GENERAL, to, GENERAL, &region)
            };
        }
        setup.run(&[&recording.end_without_barrier()?])?;
    }
    truth.note("resolves", args.iterations * args.n);
    setup.report(truth)
}

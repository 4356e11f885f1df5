//! Runs command buffers whose only work is neither a dispatch nor a copy.

use anyhow::Result;
use ash::vk::{self, CommandBufferUsageFlags as Usage};

use crate::args::Args;
use crate::gpu::{Gpu, Object};
use crate::modes::render_pass::transition;
use crate::recording::Recording;
use crate::setup::Setup;
use crate::truth::Truth;

const SIZE: u32 = 512;
const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const GENERAL: vk::ImageLayout = vk::ImageLayout::GENERAL;

/// Runs n resolves of an image in each command buffer, without a barrier.
pub fn resolve(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::with_queues(args, 1, vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS)?;
    let setup = Setup::on(gpu, args)?;
    let gpu = &setup.gpu;
    let from = image(gpu, vk::SampleCountFlags::TYPE_4)?;
    let to = image(gpu, vk::SampleCountFlags::TYPE_1)?;
    let recording = Recording::start(gpu, setup.buffer, Usage::ONE_TIME_SUBMIT)?;
    transition(&recording, &[from, to]);
    gpu.submit(&[&recording.end()?], setup.fence)?;
    setup.wait()?;
    let layers = vk::ImageSubresourceLayers::default()
        .aspect_mask(vk::ImageAspectFlags::COLOR)
        .layer_count(1);
    let region = [vk::ImageResolve::default()
        .src_subresource(layers)
        .dst_subresource(layers)
        .extent(extent())];
    for _ in 0..args.iterations {
        let recording = Recording::start(gpu, setup.buffer, Usage::ONE_TIME_SUBMIT)?;
        for _ in 0..args.n {
            unsafe {
                gpu.device
                    .cmd_resolve_image(recording.buffer, from, GENERAL, to, GENERAL, &region)
            };
        }
        gpu.submit(&[&recording.end_without_barrier()?], setup.fence)?;
        setup.wait()?;
    }
    truth.note("resolves", args.iterations * args.n);
    setup.report(truth)
}

fn extent() -> vk::Extent3D {
    vk::Extent3D {
        width: SIZE,
        height: SIZE,
        depth: 1,
    }
}

fn image(gpu: &Gpu, samples: vk::SampleCountFlags) -> Result<vk::Image> {
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(FORMAT)
        .extent(extent())
        .mip_levels(1)
        .array_layers(1)
        .samples(samples)
        .usage(
            vk::ImageUsageFlags::TRANSFER_SRC
                | vk::ImageUsageFlags::TRANSFER_DST
                | vk::ImageUsageFlags::COLOR_ATTACHMENT,
        );
    let image = unsafe { gpu.device.create_image(&info, None)? };
    gpu.own(Object::Image(image));
    let needs = unsafe { gpu.device.get_image_memory_requirements(image) };
    let any = [vk::MemoryPropertyFlags::empty()];
    let (memory, _) = gpu.allocate(needs.size, needs.memory_type_bits, &any)?;
    gpu.own(Object::Memory(memory));
    unsafe { gpu.device.bind_image_memory(image, memory, 0)? };
    Ok(image)
}

//! A little graphics among the compute work: there, other rules apply to timestamps and resets of query pools.

use anyhow::{Result, bail};
use ash::vk::{self, CommandBufferUsageFlags as Usage};

use crate::Unsupported;
use crate::args::Args;
use crate::buffer::Buffer;
use crate::gpu::{Gpu, Object};
use crate::recording::Recording;
use crate::setup::Setup;
use crate::truth::Truth;

const SIZE: u32 = 64;
const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const COLOUR: vk::ImageSubresourceRange = vk::ImageSubresourceRange {
    aspect_mask: vk::ImageAspectFlags::COLOR,
    base_mip_level: 0,
    level_count: 1,
    base_array_layer: 0,
    layer_count: 1,
};

/// n times: a dispatch, a pass that clears an image, a dispatch. Then a copy of the image to the host.
pub fn render_pass(args: &Args, truth: &mut Truth) -> Result<()> {
    let gpu = Gpu::with_queues(args, 1, vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS)?;
    if !gpu.dynamic_rendering {
        bail!(Unsupported("the device has no dynamic rendering".into()));
    }
    let setup = Setup::on(gpu, args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let (image, view) = target(gpu)?;
    let pixels = Buffer::new(gpu, u64::from(SIZE * SIZE * 4))?;
    for _ in 0..args.iterations {
        let mut recording = Recording::start(gpu, setup.buffer, Usage::ONE_TIME_SUBMIT)?;
        spin.bind(&recording);
        transition(&recording, image, vk::ImageLayout::UNDEFINED);
        for _ in 0..args.n {
            recording.dispatch(spin.groups);
            recording.barrier();
            clear(&recording, view);
            recording.barrier();
            recording.dispatch(spin.groups);
            recording.barrier();
        }
        read_back(&mut recording, image, &pixels);
        gpu.submit(&[&recording.end()?], setup.fence)?;
        setup.wait()?;
    }
    truth.note("render_passes", args.iterations * args.n);
    truth.add_result(pixels.read(gpu)?);
    setup.report(truth)
}

fn target(gpu: &Gpu) -> Result<(vk::Image, vk::ImageView)> {
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(FORMAT)
        .extent(vk::Extent3D {
            width: SIZE,
            height: SIZE,
            depth: 1,
        })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC);
    let image = unsafe { gpu.device.create_image(&info, None)? };
    gpu.own(Object::Image(image));
    let needs = unsafe { gpu.device.get_image_memory_requirements(image) };
    let wanted = [
        vk::MemoryPropertyFlags::DEVICE_LOCAL,
        vk::MemoryPropertyFlags::empty(),
    ];
    let (memory, _) = gpu.allocate(needs.size, needs.memory_type_bits, &wanted)?;
    gpu.own(Object::Memory(memory));
    unsafe { gpu.device.bind_image_memory(image, memory, 0)? };
    let info = vk::ImageViewCreateInfo::default()
        .image(image)
        .view_type(vk::ImageViewType::TYPE_2D)
        .format(FORMAT)
        .subresource_range(COLOUR);
    let view = unsafe { gpu.device.create_image_view(&info, None)? };
    gpu.own(Object::ImageView(view));
    Ok((image, view))
}

/// The image stays in the general layout, which suits every use here.
fn transition(recording: &Recording, image: vk::Image, from: vk::ImageLayout) {
    let barrier = [vk::ImageMemoryBarrier::default()
        .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
        .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)
        .old_layout(from)
        .new_layout(vk::ImageLayout::GENERAL)
        .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
        .image(image)
        .subresource_range(COLOUR)];
    let all = vk::PipelineStageFlags::ALL_COMMANDS;
    let none = vk::DependencyFlags::empty();
    unsafe {
        recording.gpu.device.cmd_pipeline_barrier(
            recording.buffer,
            all,
            all,
            none,
            &[],
            &[],
            &barrier,
        )
    };
}

fn clear(recording: &Recording, view: vk::ImageView) {
    let attachment = [vk::RenderingAttachmentInfo::default()
        .image_view(view)
        .image_layout(vk::ImageLayout::GENERAL)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .store_op(vk::AttachmentStoreOp::STORE)
        .clear_value(vk::ClearValue {
            color: vk::ClearColorValue {
                float32: [1.0, 0.0, 1.0, 1.0],
            },
        })];
    let area = vk::Rect2D {
        offset: vk::Offset2D::default(),
        extent: vk::Extent2D {
            width: SIZE,
            height: SIZE,
        },
    };
    let info = vk::RenderingInfo::default()
        .render_area(area)
        .layer_count(1)
        .color_attachments(&attachment);
    unsafe {
        recording
            .gpu
            .device
            .cmd_begin_rendering(recording.buffer, &info);
        recording.gpu.device.cmd_end_rendering(recording.buffer);
    }
}

fn read_back(recording: &mut Recording, image: vk::Image, pixels: &Buffer) {
    let layers = vk::ImageSubresourceLayers {
        aspect_mask: COLOUR.aspect_mask,
        layer_count: 1,
        ..Default::default()
    };
    let region = [vk::BufferImageCopy::default()
        .image_subresource(layers)
        .image_extent(vk::Extent3D {
            width: SIZE,
            height: SIZE,
            depth: 1,
        })];
    let general = vk::ImageLayout::GENERAL;
    let (device, buffer) = (&recording.gpu.device, recording.buffer);
    unsafe { device.cmd_copy_image_to_buffer(buffer, image, general, pixels.handle, &region) };
    recording.count_transfer(pixels.bytes);
}

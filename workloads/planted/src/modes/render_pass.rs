//! Adds some graphics to the compute work, because other rules apply there to timestamps and resets of query pools.

use std::ffi::c_void;

use anyhow::{Result, bail, ensure};
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
/// All of an image with one level and one layer.
const COLOUR: vk::ImageSubresourceRange = vk::ImageSubresourceRange {
    aspect_mask: vk::ImageAspectFlags::COLOR,
    base_mip_level: 0,
    level_count: 1,
    base_array_layer: 0,
    layer_count: 1,
};

/// Runs n times a dispatch, a pass that clears an image, and a dispatch, and then copies the image to the host.
pub fn render_pass(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = graphics(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let (image, view) = target(gpu)?;
    let pixels = Buffer::new(gpu, u64::from(SIZE * SIZE * 4))?;
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        spin.bind(&recording);
        transition(&recording, &[image]);
        for _ in 0..args.n {
            recording.dispatch_in_order(spin.groups);
            clear(&recording, view, vk::RenderingFlags::empty());
            recording.barrier();
            recording.dispatch_in_order(spin.groups);
        }
        read_back(&mut recording, image, &pixels);
        setup.run(&[&recording.end()?])?;
    }
    truth.note("render_passes", args.iterations * args.n);
    truth.add_result(pixels.read(gpu)?);
    setup.report(truth)
}

/// Runs in turn one command buffer with a rendering in two parts, two command buffers with a part each, and one with
/// two secondary command buffers that have a part each.
pub fn suspended(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = graphics(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let (_, view) = prepared_target(&setup)?;
    let buffers = gpu.primaries(&gpu.queues[0], 2)?;
    let pool = gpu.command_pool(&gpu.queues[0])?;
    let secondaries = gpu.command_buffers(pool, vk::CommandBufferLevel::SECONDARY, 2)?;
    let [suspending, resuming] = [vk::RenderingFlags::SUSPENDING, vk::RenderingFlags::RESUMING];
    for iteration in 0..args.iterations {
        let [own, other] = match iteration % 3 {
            2 => [secondaries[0], secondaries[1]],
            _ => [buffers[0], buffers[1]],
        };
        let mut first = Recording::start(gpu, own, Usage::ONE_TIME_SUBMIT)?;
        spin.bind(&first);
        first.dispatch_in_order(spin.groups);
        clear(&first, view, suspending);
        let resume = |mut recording: Recording| {
            clear(&recording, view, resuming);
            recording.barrier();
            recording.dispatch(spin.groups);
            recording.end()
        };
        if iteration % 3 == 0 {
            setup.run(&[&resume(first)?])?;
            continue;
        }
        let second = Recording::start(gpu, other, Usage::ONE_TIME_SUBMIT)?;
        spin.bind(&second);
        let parts = [&first.end_without_barrier()?, &resume(second)?];
        if iteration % 3 == 1 {
            gpu.submit(&parts, setup.fence)?;
        } else {
            let mut primary = Recording::start(gpu, buffers[0], Usage::ONE_TIME_SUBMIT)?;
            primary.execute(&parts);
            gpu.submit(&[&primary.end()?], setup.fence)?;
        }
        setup.wait()?;
    }
    setup.report(truth)
}

/// Runs commands of extensions that the software GPU lacks.
pub fn extensions(args: &Args, truth: &mut Truth) -> Result<()> {
    type EndRendering2 = unsafe extern "system" fn(vk::CommandBuffer, *const c_void);
    let setup = graphics(args)?;
    let gpu = &setup.gpu;
    ensure!(
        gpu.function(c"vkCmdCudaLaunchKernelNV").is_none(),
        "there is a function of an extension that is not enabled"
    );
    let end = gpu.function(c"vkCmdEndRendering2EXT");
    let (Some(decompression), Some(end)) = (&gpu.decompression, end) else {
        bail!("the driver lacks a function of an extension that is enabled");
    };
    let end = unsafe { std::mem::transmute::<unsafe extern "system" fn(), EndRendering2>(end) };
    let (_, view) = prepared_target(&setup)?;
    for iteration in 0..args.iterations {
        let mut recording = setup.recording()?;
        for _ in 0..args.n {
            match iteration % 2 {
                0 => unsafe { decompression.cmd_decompress_memory(recording.buffer, &[]) },
                _ => {
                    begin_rendering(&recording, view, vk::RenderingFlags::empty());
                    unsafe { end(recording.buffer, std::ptr::null()) };
                    recording.barrier();
                    setup.spin.bind(&recording);
                    recording.dispatch_in_order(setup.spin.groups);
                }
            }
        }
        setup.run(&[&recording.end_without_barrier()?])?;
    }
    setup.report(truth)
}

fn graphics(args: &Args) -> Result<Setup> {
    let gpu = Gpu::with_queues(args, 1, vk::QueueFlags::COMPUTE | vk::QueueFlags::GRAPHICS)?;
    if !gpu.dynamic_rendering {
        bail!(Unsupported("the device has no dynamic rendering".into()));
    }
    Setup::on(gpu, args)
}

/// Creates an image that is ready to be rendered to.
fn prepared_target(setup: &Setup) -> Result<(vk::Image, vk::ImageView)> {
    let (image, view) = target(&setup.gpu)?;
    let recording = setup.recording()?;
    transition(&recording, &[image]);
    setup.run(&[&recording.end()?])?;
    Ok((image, view))
}

/// Creates an image to render to, with its view.
fn target(gpu: &Gpu) -> Result<(vk::Image, vk::ImageView)> {
    let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
    let image = image(gpu, SIZE, vk::SampleCountFlags::TYPE_1, usage)?;
    let info = vk::ImageViewCreateInfo::default()
        .image(image)
        .view_type(vk::ImageViewType::TYPE_2D)
        .format(FORMAT)
        .subresource_range(COLOUR);
    let view = unsafe { gpu.device.create_image_view(&info, None)? };
    gpu.own(Object::ImageView(view));
    Ok((image, view))
}

/// Returns the extent of a square image.
pub fn square(size: u32) -> vk::Extent3D {
    vk::Extent3D {
        width: size,
        height: size,
        depth: 1,
    }
}

/// Creates a square image with memory of its own.
pub fn image(
    gpu: &Gpu,
    size: u32,
    samples: vk::SampleCountFlags,
    usage: vk::ImageUsageFlags,
) -> Result<vk::Image> {
    let info = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(FORMAT)
        .extent(square(size))
        .mip_levels(1)
        .array_layers(1)
        .samples(samples)
        .usage(usage);
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
    Ok(image)
}

/// Changes new images to the general layout, which suits every use here.
pub fn transition(recording: &Recording, images: &[vk::Image]) {
    let barriers: Vec<_> = images
        .iter()
        .map(|&image| {
            vk::ImageMemoryBarrier::default()
                .src_access_mask(vk::AccessFlags::MEMORY_WRITE)
                .dst_access_mask(vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE)
                .new_layout(vk::ImageLayout::GENERAL)
                .src_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                .dst_queue_family_index(vk::QUEUE_FAMILY_IGNORED)
                .image(image)
                .subresource_range(COLOUR)
        })
        .collect();
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
            &barriers,
        )
    };
}

fn clear(recording: &Recording, view: vk::ImageView, flags: vk::RenderingFlags) {
    begin_rendering(recording, view, flags);
    unsafe { recording.gpu.device.cmd_end_rendering(recording.buffer) };
}

fn begin_rendering(recording: &Recording, view: vk::ImageView, flags: vk::RenderingFlags) {
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
        .flags(flags)
        .color_attachments(&attachment);
    unsafe {
        recording
            .gpu
            .device
            .cmd_begin_rendering(recording.buffer, &info);
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
        .image_extent(square(SIZE))];
    let general = vk::ImageLayout::GENERAL;
    let (device, buffer) = (&recording.gpu.device, recording.buffer);
    unsafe { device.cmd_copy_image_to_buffer(buffer, image, general, pixels.handle, &region) };
    recording.count_transfer(pixels.bytes);
}

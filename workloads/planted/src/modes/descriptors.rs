//! Binds buffers to kernels in different ways, of which a trace must name the right buffer for each dispatch.

use anyhow::{Result, bail};
use ash::vk;

use crate::Unsupported;
use crate::args::Args;
use crate::buffer::Buffer;
use crate::gpu::{Gpu, Object};
use crate::kernel::{SPIN_MULTIPLIER, Shader, compile, spin_wgsl};
use crate::layout::{Binding, Layout};
use crate::setup::Setup;
use crate::spin::data_bytes;
use crate::truth::Truth;

/// Pushes one buffer by writes and the other by a template, dispatch by dispatch in turn.
pub fn push_descriptors(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let gpu = &setup.gpu;
    let Some(push) = &gpu.push_descriptor else {
        bail!(Unsupported(
            "the device has no VK_KHR_push_descriptor".into()
        ));
    };
    let layout = Layout::new(gpu, Binding::Push)?;
    let spirv = compile(&spin_wgsl("pushed_spin", SPIN_MULTIPLIER))?;
    let pipeline = layout.pipeline(gpu, &Shader::new(&spirv, "pushed_spin"))?;
    let template = push_template(gpu, &layout)?;
    let buffers = [
        Buffer::new(gpu, data_bytes(args))?,
        Buffer::new(gpu, data_bytes(args))?,
    ];
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        recording.bind_pipeline(&layout, pipeline, args.spin);
        for dispatch in 0..args.n {
            let by_template = dispatch % 2 == 1;
            let buffer = &buffers[usize::from(by_template)];
            let info = [vk::DescriptorBufferInfo::default()
                .buffer(buffer.handle)
                .range(vk::WHOLE_SIZE)];
            if by_template {
                let data = info.as_ptr().cast();
                unsafe {
                    push.cmd_push_descriptor_set_with_template(
                        recording.buffer,
                        template,
                        layout.pipeline,
                        0,
                        data,
                    )
                };
            } else {
                let write = vk::WriteDescriptorSet::default()
                    .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
                    .buffer_info(&info);
                let point = vk::PipelineBindPoint::COMPUTE;
                unsafe {
                    push.cmd_push_descriptor_set(
                        recording.buffer,
                        point,
                        layout.pipeline,
                        0,
                        &[write],
                    )
                };
            }
            recording.dispatch_in_order(args.groups);
        }
        setup.run(&[&recording.end()?])?;
    }
    for buffer in &buffers {
        truth.add_result(buffer.read(gpu)?);
    }
    gpu.report(truth);
    Ok(())
}

fn push_template(gpu: &Gpu, layout: &Layout) -> Result<vk::DescriptorUpdateTemplate> {
    let entries = [vk::DescriptorUpdateTemplateEntry::default()
        .descriptor_count(1)
        .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)];
    let info = vk::DescriptorUpdateTemplateCreateInfo::default()
        .descriptor_update_entries(&entries)
        .template_type(vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR)
        .descriptor_set_layout(layout.set)
        .pipeline_bind_point(vk::PipelineBindPoint::COMPUTE)
        .pipeline_layout(layout.pipeline);
    let template = unsafe { gpu.device.create_descriptor_update_template(&info, None)? };
    gpu.own(Object::UpdateTemplate(template));
    Ok(template)
}

/// Points one descriptor set at two buffers in turn, from iteration to iteration.
pub fn updated_sets(args: &Args, truth: &mut Truth) -> Result<()> {
    let setup = Setup::open(args)?;
    let (gpu, spin) = (&setup.gpu, &setup.spin);
    let other = Buffer::new(gpu, data_bytes(args))?;
    for iteration in 0..args.iterations {
        let buffer = if iteration % 2 == 0 {
            &spin.data
        } else {
            &other
        };
        spin.layout.point(gpu, spin.set, buffer, vk::WHOLE_SIZE);
        setup.run_dispatches(args.n)?;
    }
    truth.add_result(other.read(gpu)?);
    setup.report(truth)
}

/// Binds one of four parts of a buffer in turn, by a dynamic offset.
pub fn dynamic_offsets(args: &Args, truth: &mut Truth) -> Result<()> {
    at_offsets(args, truth, Binding::DynamicOffset)
}

/// Does as `dynamic_offsets` does with the second of two dynamic descriptors; the first is never written.
pub fn partly_written(args: &Args, truth: &mut Truth) -> Result<()> {
    at_offsets(args, truth, Binding::SecondDynamicOffset)
}

/// Runs dispatches over the parts of a buffer in turn.
fn at_offsets(args: &Args, truth: &mut Truth, binding: Binding) -> Result<()> {
    // The number of parts of the buffer.
    const PARTS: u32 = 4;
    let setup = Setup::open(args)?;
    let gpu = &setup.gpu;
    let layout = Layout::new(gpu, binding)?;
    let is_second = binding == Binding::SecondDynamicOffset;
    let mut source = spin_wgsl("spin_at_offset", SPIN_MULTIPLIER);
    if is_second {
        source = source.replace("@binding(0)", "@binding(1)");
    }
    let spirv = compile(&source)?;
    let pipeline = layout.pipeline(gpu, &Shader::new(&spirv, "spin_at_offset"))?;
    // The offset is a multiple of 256, the coarsest alignment that Vulkan lets a device require.
    let part = data_bytes(args);
    let data = Buffer::new(gpu, part * u64::from(PARTS))?;
    let set = layout.allocate_set(gpu)?;
    layout.point(gpu, set, &data, part);
    for _ in 0..args.iterations {
        let mut recording = setup.recording()?;
        recording.bind_pipeline(&layout, pipeline, args.spin);
        for dispatch in 0..args.n {
            let offsets = [0, dispatch % PARTS * part as u32];
            let offsets = &offsets[usize::from(!is_second)..];
            recording.bind_set(&layout, set, offsets);
            recording.dispatch_in_order(args.groups);
        }
        setup.run(&[&recording.end()?])?;
    }
    truth.note("part_bytes", part);
    truth.add_result(data.read(gpu)?);
    gpu.report(truth);
    Ok(())
}

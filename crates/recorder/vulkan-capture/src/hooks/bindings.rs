//! What dispatches run with: pipelines, descriptor sets, pushed descriptors and constants.

use std::ffi::c_void;

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::arguments::slice;

use crate::api::device::{self, Device};
use crate::command::Command;
use crate::hooks::commands::add;
use crate::objects::descriptors::{Descriptor, SetLayout, written};
use crate::window;

const COMPUTE: vk::PipelineBindPoint = vk::PipelineBindPoint::COMPUTE;

pub unsafe extern "system" fn bind_pipeline(
    buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    pipeline: vk::Pipeline,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        if point == COMPUTE {
            window::keep(|| {
                let known = device.objects.pipelines.get(pipeline.as_raw());
                add(device, buffer, Command::Pipeline(known));
            });
        }
        (device.next.fp_v1_0().cmd_bind_pipeline)(buffer, point, pipeline);
    }
}

fn bind(
    device: &Device,
    buffer: vk::CommandBuffer,
    layout: vk::PipelineLayout,
    first: u32,
    sets: &[vk::DescriptorSet],
    offsets: &[u32],
) {
    let command = match device.objects.pipeline_layouts.get(layout.as_raw()) {
        Some(layout) => Command::Sets {
            layout,
            first,
            sets: sets.to_vec(),
            offsets: offsets.to_vec(),
        },
        None => Command::Refused("descriptor sets of a layout that is not known"),
    };
    add(device, buffer, command);
}

pub unsafe extern "system" fn bind_descriptor_sets(
    buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    first: u32,
    count: u32,
    sets: *const vk::DescriptorSet,
    offset_count: u32,
    offsets: *const u32,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        if point == COMPUTE {
            let (sets, offsets) = (slice(sets, count), slice(offsets, offset_count));
            window::keep(|| bind(device, buffer, layout, first, sets, offsets));
        }
        let call = device.next.fp_v1_0().cmd_bind_descriptor_sets;
        call(
            buffer,
            point,
            layout,
            first,
            count,
            sets,
            offset_count,
            offsets,
        );
    }
}

pub unsafe extern "system" fn bind_descriptor_sets2(
    buffer: vk::CommandBuffer,
    info: *const vk::BindDescriptorSetsInfoKHR<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        let i = &*info;
        if i.stage_flags.intersects(vk::ShaderStageFlags::COMPUTE) {
            let sets = slice(i.p_descriptor_sets, i.descriptor_set_count);
            let offsets = slice(i.p_dynamic_offsets, i.dynamic_offset_count);
            window::keep(|| bind(device, buffer, i.layout, i.first_set, sets, offsets));
        }
        (device.maintenance6.cmd_bind_descriptor_sets2_khr)(buffer, info);
    }
}

/// Adds what was pushed; `resolve` says what goes where in a set of the layout.
fn push_set(
    device: &Device,
    buffer: vk::CommandBuffer,
    layout: vk::PipelineLayout,
    set: u32,
    resolve: impl FnOnce(&SetLayout) -> Option<Vec<(u32, Descriptor)>>,
) {
    let pipeline_layout = device.objects.pipeline_layouts.get(layout.as_raw());
    let pushed = pipeline_layout.and_then(|pipeline_layout| {
        let layout = pipeline_layout.sets.get(set as usize).cloned().flatten()?;
        let written = resolve(&layout)?;
        Some(Command::PushDescriptors {
            pipeline_layout,
            set,
            layout,
            written,
        })
    });
    let unknown = Command::Refused("pushed descriptors of a layout that is not known");
    add(device, buffer, pushed.unwrap_or(unknown));
}

/// # Safety
/// The writes are valid.
unsafe fn push_writes(
    device: &Device,
    buffer: vk::CommandBuffer,
    layout: vk::PipelineLayout,
    set: u32,
    writes: &[vk::WriteDescriptorSet<'_>],
) {
    push_set(device, buffer, layout, set, |layout| {
        // SAFETY: as the caller promises.
        Some(
            writes
                .iter()
                .flat_map(|write| unsafe { written(layout, write) })
                .collect(),
        )
    });
}

pub unsafe extern "system" fn push_descriptor_set(
    buffer: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    set: u32,
    count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        if point == COMPUTE {
            window::keep(|| push_writes(device, buffer, layout, set, slice(writes, count)));
        }
        let call = device.push_descriptor.cmd_push_descriptor_set_khr;
        call(buffer, point, layout, set, count, writes);
    }
}

pub unsafe extern "system" fn push_descriptor_set2(
    buffer: vk::CommandBuffer,
    info: *const vk::PushDescriptorSetInfoKHR<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        let i = &*info;
        if i.stage_flags.intersects(vk::ShaderStageFlags::COMPUTE) {
            let writes = slice(i.p_descriptor_writes, i.descriptor_write_count);
            window::keep(|| push_writes(device, buffer, i.layout, i.set, writes));
        }
        (device.maintenance6.cmd_push_descriptor_set2_khr)(buffer, info);
    }
}

/// # Safety
/// `data` is what the template describes.
unsafe fn push_template(
    device: &Device,
    buffer: vk::CommandBuffer,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    set: u32,
    data: *const c_void,
) {
    let template = device.objects.descriptors.templates.get(template.as_raw());
    push_set(device, buffer, layout, set, |layout| {
        // SAFETY: as the caller promises.
        Some(unsafe { template?.written(layout, data) })
    });
}

pub unsafe extern "system" fn push_descriptor_set_with_template(
    buffer: vk::CommandBuffer,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    set: u32,
    data: *const c_void,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        window::keep(|| push_template(device, buffer, template, layout, set, data));
        let call = device
            .push_descriptor
            .cmd_push_descriptor_set_with_template_khr;
        call(buffer, template, layout, set, data);
    }
}

pub unsafe extern "system" fn push_descriptor_set_with_template2(
    buffer: vk::CommandBuffer,
    info: *const vk::PushDescriptorSetWithTemplateInfoKHR<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        let i = &*info;
        window::keep(|| {
            push_template(
                device,
                buffer,
                i.descriptor_update_template,
                i.layout,
                i.set,
                i.p_data,
            )
        });
        (device
            .maintenance6
            .cmd_push_descriptor_set_with_template2_khr)(buffer, info);
    }
}

fn constants(
    device: &Device,
    layout: vk::PipelineLayout,
    stages: vk::ShaderStageFlags,
    offset: u32,
    bytes: &[u8],
) -> Command {
    Command::PushConstants {
        layout: device.objects.pipeline_layouts.get(layout.as_raw()),
        stages,
        offset,
        bytes: bytes.to_vec(),
    }
}

pub unsafe extern "system" fn push_constants(
    buffer: vk::CommandBuffer,
    layout: vk::PipelineLayout,
    stages: vk::ShaderStageFlags,
    offset: u32,
    size: u32,
    values: *const c_void,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        window::keep(|| {
            let bytes = slice(values.cast::<u8>(), size);
            add(
                device,
                buffer,
                constants(device, layout, stages, offset, bytes),
            );
        });
        let call = device.next.fp_v1_0().cmd_push_constants;
        call(buffer, layout, stages, offset, size, values);
    }
}

pub unsafe extern "system" fn push_constants2(
    buffer: vk::CommandBuffer,
    info: *const vk::PushConstantsInfoKHR<'_>,
) {
    // SAFETY: the program's own call on a command buffer.
    unsafe {
        let Some(device) = device::of(buffer) else {
            return;
        };
        window::keep(|| {
            let i = &*info;
            let bytes = slice(i.p_values.cast::<u8>(), i.size);
            add(
                device,
                buffer,
                constants(device, i.layout, i.stage_flags, i.offset, bytes),
            );
        });
        (device.maintenance6.cmd_push_constants2_khr)(buffer, info);
    }
}

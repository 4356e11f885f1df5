//! Records the bindings with which dispatches run: descriptor sets (tables of buffers), pushed descriptors and push
//! constants (small values). A [`Command`] is what the layer keeps of a call that records one.

use std::ffi::c_void;

use ash::vk::{self, Handle};
use gapscope_vulkan_layer::arguments::slice;
use gapscope_vulkan_layer::command::PushedDescriptors;
use gapscope_vulkan_layer::descriptors::{for_each_in_template, for_each_written};

use crate::api::device::Device;
use crate::hooks::command::commands;
use crate::objects::command::Command;

/// Returns the command that binds descriptor sets from the index `first` on; a refused one when the layout is not
/// known.
pub fn bind_sets(
    device: &Device,
    layout: vk::PipelineLayout,
    first: u32,
    sets: &[vk::DescriptorSet],
    offsets: &[u32],
) -> Command {
    match device.objects.pipeline_layouts.get(layout.as_raw()) {
        Some(layout) => Command::Sets {
            layout,
            first,
            sets: sets.to_vec(),
            offsets: offsets.to_vec(),
        },
        None => Command::Refused("descriptor sets of a layout that is not known"),
    }
}

/// Returns the command that pushes descriptors for a set.
///
/// # Safety
/// The descriptors are the program's, during its call.
pub unsafe fn push_descriptors(
    device: &Device,
    layout: vk::PipelineLayout,
    set: u32,
    descriptors: PushedDescriptors<'_>,
) -> Option<Command> {
    if let PushedDescriptors::Template(template, _) = descriptors
        && let Some(template) = device.objects.descriptors.template(template)
        && template.pushes_for_others
    {
        return None;
    }
    // SAFETY: as the caller promises.
    let pushed = unsafe { pushed(device, layout, set, descriptors) };
    Some(pushed.unwrap_or(Command::Refused(
        "pushed descriptors of a layout that is not known",
    )))
}

/// Returns the command of [`push_descriptors`]; `None` if the layout or the template is not known.
///
/// # Safety
/// The descriptors are the program's, during its call.
unsafe fn pushed(
    device: &Device,
    layout: vk::PipelineLayout,
    set: u32,
    descriptors: PushedDescriptors<'_>,
) -> Option<Command> {
    let pipeline_layout = device.objects.pipeline_layouts.get(layout.as_raw())?;
    let layout = pipeline_layout.sets.get(set as usize).cloned().flatten()?;
    let mut written = Vec::new();
    // SAFETY: as the caller promises.
    unsafe {
        match descriptors {
            PushedDescriptors::Writes(writes) => {
                for write in writes {
                    for_each_written(Some(&layout), write, |slot, _, descriptor| {
                        written.push((slot.index, descriptor));
                    });
                }
            }
            PushedDescriptors::Template(template, data) => {
                let template = device.objects.descriptors.template(template)?;
                for_each_in_template(
                    Some(&layout),
                    &template.entries,
                    data,
                    |slot, _, descriptor| {
                        written.push((slot.index, descriptor));
                    },
                );
            }
        }
    }
    Some(Command::PushDescriptors {
        pipeline_layout,
        set,
        layout,
        written,
    })
}

/// Returns the command that sets bytes of the push constants.
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

commands! {
    fn cmd_push_constants(
        layout: vk::PipelineLayout,
        stages: vk::ShaderStageFlags,
        offset: u32,
        size: u32,
        values: *const c_void,
    ) = |device| constants(device, layout, stages, offset, slice(values.cast::<u8>(), size));

    fn cmd_push_constants2(info: *const vk::PushConstantsInfoKHR<'_>) = |device| {
        let info = &*info;
        let bytes = slice(info.p_values.cast::<u8>(), info.size);
        constants(device, info.layout, info.stage_flags, info.offset, bytes)
    };
}

//! Descriptor sets as command buffers bind and push them.

use crate::api::arguments::slice;
use crate::command_buffer::CommandBuffer;
use crate::hooks::command::command;
use crate::objects::descriptors::Set;
use ash::vk;
use gapscope_spool::event::{Command, NO_QUERY, Op};
use std::ffi::c_void;

impl CommandBuffer {
    fn bind_sets(&mut self, first: u32, sets: &[vk::DescriptorSet], mut offsets: &[u32]) {
        for (index, set) in (first..).zip(sets) {
            let recorder = self.device.recorder;
            let content = self
                .device
                .descriptors
                .with(*set, |set| set.content(recorder))
                .unwrap_or_default();
            self.bind_set(index, content.id);
            let (own, rest) = offsets.split_at((content.dynamic as usize).min(offsets.len()));
            for (which, offset) in (0..).zip(own) {
                self.push(Command::new(
                    Op::DynamicOffset,
                    NO_QUERY,
                    [index, which, *offset, 0],
                ));
            }
            offsets = rest;
        }
    }

    fn push_set(&mut self, index: u32, write: impl FnOnce(&mut Set)) {
        let recorder = self.device.recorder;
        let set = self.pushed_set(index);
        write(set);
        let content = set.content(recorder);
        self.bind_set(index, content.id);
    }
}

pub unsafe extern "system" fn bind_descriptor_sets(
    cb: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    first: u32,
    count: u32,
    sets: *const vk::DescriptorSet,
    offset_count: u32,
    offsets: *const u32,
) {
    command!(
        cb,
        cmd_bind_descriptor_sets(point, layout, first, count, sets, offset_count, offsets),
        |_state| (),
        |state, ()| {
            if point == vk::PipelineBindPoint::COMPUTE {
                state.bind_sets(first, slice(sets, count), slice(offsets, offset_count));
            }
        }
    );
}

pub unsafe extern "system" fn bind_descriptor_sets2(
    cb: vk::CommandBuffer,
    info: *const vk::BindDescriptorSetsInfoKHR<'_>,
) {
    command!(
        cb,
        cmd_bind_descriptor_sets2(info),
        |_state| (),
        |state, ()| {
            let info = &*info;
            if info.stage_flags.contains(vk::ShaderStageFlags::COMPUTE) {
                let sets = slice(info.p_descriptor_sets, info.descriptor_set_count);
                state.bind_sets(
                    info.first_set,
                    sets,
                    slice(info.p_dynamic_offsets, info.dynamic_offset_count),
                );
            }
        }
    );
}

pub unsafe extern "system" fn push_descriptor_set(
    cb: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    set: u32,
    count: u32,
    writes: *const vk::WriteDescriptorSet<'_>,
) {
    command!(
        cb,
        cmd_push_descriptor_set(point, layout, set, count, writes),
        |_state| (),
        |state, ()| {
            if point == vk::PipelineBindPoint::COMPUTE {
                let memory = &state.device.memory;
                state.push_set(set, |pushed| {
                    slice(writes, count)
                        .iter()
                        .for_each(|w| pushed.write(memory, w))
                });
            }
        }
    );
}

pub unsafe extern "system" fn push_descriptor_set2(
    cb: vk::CommandBuffer,
    info: *const vk::PushDescriptorSetInfoKHR<'_>,
) {
    command!(
        cb,
        cmd_push_descriptor_set2(info),
        |_state| (),
        |state, ()| {
            let info = &*info;
            if info.stage_flags.contains(vk::ShaderStageFlags::COMPUTE) {
                let memory = &state.device.memory;
                let writes = slice(info.p_descriptor_writes, info.descriptor_write_count);
                state.push_set(info.set, |pushed| {
                    writes.iter().for_each(|w| pushed.write(memory, w))
                });
            }
        }
    );
}

/// # Safety
/// `data` is what the template describes.
unsafe fn push_template(
    state: &mut CommandBuffer,
    template: vk::DescriptorUpdateTemplate,
    set: u32,
    data: *const c_void,
) {
    let device = state.device;
    let Some(entries) = device.descriptors.template(template) else {
        return;
    };
    // SAFETY: as the caller promises.
    state.push_set(set, |pushed| unsafe {
        pushed.write_template(&device.memory, &entries, data)
    });
}

pub unsafe extern "system" fn push_descriptor_set_with_template(
    cb: vk::CommandBuffer,
    template: vk::DescriptorUpdateTemplate,
    layout: vk::PipelineLayout,
    set: u32,
    data: *const c_void,
) {
    command!(
        cb,
        cmd_push_descriptor_set_with_template(template, layout, set, data),
        |_state| (),
        |state, ()| {
            push_template(state, template, set, data);
        }
    );
}

pub unsafe extern "system" fn push_descriptor_set_with_template2(
    cb: vk::CommandBuffer,
    info: *const vk::PushDescriptorSetWithTemplateInfoKHR<'_>,
) {
    command!(
        cb,
        cmd_push_descriptor_set_with_template2(info),
        |_state| (),
        |state, ()| {
            push_template(
                state,
                (*info).descriptor_update_template,
                (*info).set,
                (*info).p_data,
            );
        }
    );
}

pub unsafe extern "system" fn set_descriptor_buffer_offsets(
    cb: vk::CommandBuffer,
    point: vk::PipelineBindPoint,
    layout: vk::PipelineLayout,
    first: u32,
    count: u32,
    indices: *const u32,
    offsets: *const u64,
) {
    command!(
        cb,
        cmd_set_descriptor_buffer_offsets(point, layout, first, count, indices, offsets),
        |_state| (),
        |state, ()| {
            if point == vk::PipelineBindPoint::COMPUTE {
                (first..first.saturating_add(count)).for_each(|set| state.forget_set(set));
            }
        }
    );
}

pub unsafe extern "system" fn set_descriptor_buffer_offsets2(
    cb: vk::CommandBuffer,
    info: *const vk::SetDescriptorBufferOffsetsInfoEXT<'_>,
) {
    command!(
        cb,
        cmd_set_descriptor_buffer_offsets2(info),
        |_state| (),
        |state, ()| {
            let info = &*info;
            if info.stage_flags.contains(vk::ShaderStageFlags::COMPUTE) {
                let sets = info.first_set..info.first_set.saturating_add(info.set_count);
                sets.for_each(|set| state.forget_set(set));
            }
        }
    );
}

//! Descriptor sets: which buffer ranges kernels can reach.
//!
//! What a set holds at the moment in which it is bound is an immutable *content*, written once; a later update makes
//! a new content. So a bind costs two words in the recording. (A set that is updated after it was bound, which needs
//! `UPDATE_AFTER_BIND`, is recorded as it was when bound.)

use crate::command_buffer::{self, CommandBuffer};
use crate::commands::command;
use crate::device::{self, Device};
use crate::handles::{HandleMap, Handles};
use crate::instance::slice;
use crate::recorder::next_id;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{Binding, Command, NO_QUERY, Op, VulkanEvent};
use gapscope_spool::hook::guard;
use gapscope_spool::ids;
use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// The descriptor sets of a device.
#[derive(Default)]
pub struct Descriptors {
    pub sets: Handles<Set>,
    pub pools: Mutex<HandleMap<Vec<vk::DescriptorSet>>>,
    pub templates: Handles<Arc<[vk::DescriptorUpdateTemplateEntry]>>,
}

/// Buffer descriptors, sorted by binding and element.
#[derive(Clone, Default)]
pub struct Set {
    pub entries: Vec<Binding>,
    /// Id of the content as it is now; 0: not written yet.
    pub content: ids::BindingContent,
    /// Dynamic offsets that the content needs.
    dynamic: u32,
}

fn is_buffer(kind: vk::DescriptorType) -> bool {
    use vk::DescriptorType as T;
    matches!(
        kind,
        T::UNIFORM_BUFFER
            | T::STORAGE_BUFFER
            | T::UNIFORM_BUFFER_DYNAMIC
            | T::STORAGE_BUFFER_DYNAMIC
    )
}

fn is_dynamic(binding: &Binding) -> bool {
    let kind = vk::DescriptorType::from_raw(binding.kind as i32);
    matches!(
        kind,
        vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC | vk::DescriptorType::STORAGE_BUFFER_DYNAMIC
    )
}

impl Set {
    fn put(
        &mut self,
        device: &Device,
        kind: vk::DescriptorType,
        binding: u32,
        element: u32,
        info: &vk::DescriptorBufferInfo,
    ) {
        self.content = ids::BindingContent::NONE;
        let place = self
            .entries
            .binary_search_by_key(&(binding, element), |e| (e.binding, e.element));
        let entry = Binding {
            binding,
            element,
            buffer: device.buffer_id(info.buffer),
            offset: info.offset,
            bytes: info.range,
            kind: kind.as_raw() as u32,
        };
        match place {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
    }

    /// # Safety
    /// `write` is a valid VkWriteDescriptorSet.
    pub unsafe fn write(&mut self, device: &Device, write: &vk::WriteDescriptorSet<'_>) {
        if !is_buffer(write.descriptor_type) {
            return;
        }
        // SAFETY: as the caller promises, buffer descriptors come in that array.
        let infos = unsafe { slice(write.p_buffer_info, write.descriptor_count) };
        for (element, info) in (write.dst_array_element..).zip(infos) {
            self.put(
                device,
                write.descriptor_type,
                write.dst_binding,
                element,
                info,
            );
        }
    }

    /// # Safety
    /// `data` holds what the template's entries say.
    pub unsafe fn write_template(
        &mut self,
        device: &Device,
        template: &[vk::DescriptorUpdateTemplateEntry],
        data: *const c_void,
    ) {
        for entry in template.iter().filter(|e| is_buffer(e.descriptor_type)) {
            for index in 0..entry.descriptor_count {
                // SAFETY: as the caller promises; the data need not be aligned.
                let info = unsafe {
                    data.cast::<u8>()
                        .add(entry.offset + index as usize * entry.stride)
                        .cast::<vk::DescriptorBufferInfo>()
                        .read_unaligned()
                };
                self.put(
                    device,
                    entry.descriptor_type,
                    entry.dst_binding,
                    entry.dst_array_element + index,
                    &info,
                );
            }
        }
    }

    fn content(&mut self, device: &Device) -> ids::BindingContent {
        if self.content == ids::BindingContent::NONE {
            self.content = next_id(&device.recorder.ids.content);
            self.dynamic = self.entries.iter().filter(|e| is_dynamic(e)).count() as u32;
            let entries = Cow::Borrowed(self.entries.as_slice());
            device.recorder.write(&VulkanEvent::Bindings {
                content: self.content,
                entries,
            });
        }
        self.content
    }
}

impl Descriptors {
    pub fn forget(&self, sets: &[vk::DescriptorSet]) {
        for set in sets {
            self.sets.remove(set.as_raw());
        }
    }

    pub fn template(
        &self,
        template: vk::DescriptorUpdateTemplate,
    ) -> Option<Arc<[vk::DescriptorUpdateTemplateEntry]>> {
        self.templates.get(template.as_raw())
    }
}

impl CommandBuffer {
    fn bind_sets(&mut self, first: u32, sets: &[vk::DescriptorSet], mut offsets: &[u32]) {
        for (index, set) in (first..).zip(sets) {
            let device = self.device;
            let (content, dynamic) = device
                .descriptors
                .sets
                .with(set.as_raw(), |set| (set.content(device), set.dynamic))
                .unwrap_or_default();
            self.push(Command::new(
                Op::BindSet,
                NO_QUERY,
                [index, content.0, 0, 0],
            ));
            let (own, rest) = offsets.split_at((dynamic as usize).min(offsets.len()));
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
        let device = self.device;
        let place = match self.pushed.iter().position(|(set, _)| *set == index) {
            Some(place) => place,
            None => {
                self.pushed.push((index, Set::default()));
                self.pushed.len() - 1
            }
        };
        let set = &mut self.pushed[place].1;
        write(set);
        let content = set.content(device);
        self.push(Command::new(
            Op::BindSet,
            NO_QUERY,
            [index, content.0, 0, 0],
        ));
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
                let device = state.device;
                state.push_set(set, |pushed| {
                    slice(writes, count)
                        .iter()
                        .for_each(|w| pushed.write(device, w))
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
                let device = state.device;
                let writes = slice(info.p_descriptor_writes, info.descriptor_write_count);
                state.push_set(info.set, |pushed| {
                    writes.iter().for_each(|w| pushed.write(device, w))
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
        pushed.write_template(device, &entries, data)
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
                // What descriptor buffers hold is not followed: these sets are unknown from here on.
                for set in first..first.saturating_add(count) {
                    state.push(Command::new(Op::BindSet, NO_QUERY, [set, 0, 0, 0]));
                }
            }
        }
    );
}

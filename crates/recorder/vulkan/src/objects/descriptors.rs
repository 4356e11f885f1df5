//! Descriptor sets: which buffer ranges kernels can reach.
//!
//! What a set holds at the moment in which it is bound is an immutable *content*, written once; a later update makes
//! a new content. So binding it costs two words in the recording. (A set that is updated after it was bound, which needs
//! `UPDATE_AFTER_BIND`, is recorded as it was when bound.)

use crate::api::arguments::slice;
use crate::handles::{HandleMap, Handles, lock};
use crate::objects::memory::Memory;
use crate::recorder::Recorder;
use ash::vk;
use ash::vk::Handle;
use gapscope_spool::event::{Binding, VulkanEvent};
use gapscope_spool::ids::{self, BindingContent};
use std::borrow::Cow;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

/// The descriptor sets of a device.
#[derive(Default)]
pub struct Descriptors {
    /// The layouts that have dynamic descriptors.
    layouts: Handles<Arc<[Binding]>>,
    sets: Handles<Set>,
    /// The sets of each pool.
    pools: Mutex<HandleMap<Vec<vk::DescriptorSet>>>,
    templates: Handles<Arc<[vk::DescriptorUpdateTemplateEntry]>>,
}

impl Descriptors {
    /// Keeps the dynamic descriptors of a new layout: each takes an offset when a set is bound, written or not.
    pub fn add_layout(
        &self,
        layout: vk::DescriptorSetLayout,
        bindings: &[vk::DescriptorSetLayoutBinding<'_>],
    ) {
        let elements = |binding: &vk::DescriptorSetLayoutBinding<'_>| {
            let (kind, at) = (binding.descriptor_type, binding.binding);
            (0..binding.descriptor_count).map(move |element| Binding {
                binding: at,
                element,
                buffer: ids::Buffer::NONE,
                offset: 0,
                bytes: 0,
                kind: kind.as_raw() as u32,
            })
        };
        let dynamic = bindings
            .iter()
            .filter(|binding| is_dynamic(binding.descriptor_type));
        let mut entries: Vec<_> = dynamic.flat_map(elements).collect();
        if !entries.is_empty() {
            entries.sort_by_key(|entry| (entry.binding, entry.element));
            self.layouts.insert(layout.as_raw(), entries.into());
        }
    }

    pub fn remove_layout(&self, layout: vk::DescriptorSetLayout) {
        self.layouts.remove(layout.as_raw());
    }

    pub fn add(
        &self,
        pool: vk::DescriptorPool,
        layouts: &[vk::DescriptorSetLayout],
        made: &[vk::DescriptorSet],
    ) {
        for (set, layout) in made.iter().zip(layouts) {
            let dynamic = self.layouts.get(layout.as_raw());
            let entries = dynamic.map_or_else(Vec::new, |entries| entries.to_vec());
            let new = Set {
                entries,
                ..Set::default()
            };
            self.sets.insert(set.as_raw(), new);
        }
        lock(&self.pools)
            .entry(pool.as_raw())
            .or_default()
            .extend(made);
    }

    pub fn free(&self, pool: vk::DescriptorPool, freed: &[vk::DescriptorSet]) {
        self.forget(freed);
        if let Some(members) = lock(&self.pools).get_mut(&pool.as_raw()) {
            members.retain(|set| !freed.contains(set));
        }
    }

    /// A pool was reset or destroyed, and its sets with it.
    pub fn forget_pool(&self, pool: vk::DescriptorPool) {
        let members = lock(&self.pools).remove(&pool.as_raw());
        self.forget(&members.unwrap_or_default());
    }

    fn forget(&self, sets: &[vk::DescriptorSet]) {
        for set in sets {
            self.sets.remove(set.as_raw());
        }
    }

    pub fn with<R>(&self, set: vk::DescriptorSet, work: impl FnOnce(&mut Set) -> R) -> Option<R> {
        self.sets.with(set.as_raw(), work)
    }

    pub fn copy(&self, copy: &vk::CopyDescriptorSet<'_>) {
        let elements = copy.src_array_element..copy.src_array_element + copy.descriptor_count;
        let wanted = |e: &&Binding| e.binding == copy.src_binding && elements.contains(&e.element);
        let from: Option<Vec<Binding>> = self.with(copy.src_set, |set| {
            set.entries.iter().filter(wanted).copied().collect()
        });
        self.with(copy.dst_set, |set| {
            set.take_over(copy, &from.unwrap_or_default());
        });
    }

    pub fn add_template(
        &self,
        template: vk::DescriptorUpdateTemplate,
        entries: &[vk::DescriptorUpdateTemplateEntry],
    ) {
        self.templates.insert(template.as_raw(), entries.into());
    }

    pub fn remove_template(&self, template: vk::DescriptorUpdateTemplate) {
        self.templates.remove(template.as_raw());
    }

    pub fn template(
        &self,
        template: vk::DescriptorUpdateTemplate,
    ) -> Option<Arc<[vk::DescriptorUpdateTemplateEntry]>> {
        self.templates.get(template.as_raw())
    }
}

/// Buffer descriptors, sorted by binding and element: those that have been written, and all dynamic ones.
#[derive(Clone, Default)]
pub struct Set {
    entries: Vec<Binding>,
    /// The content as it is now; none: not written yet.
    content: BindingContent,
    /// Dynamic offsets that the written content needs.
    dynamic: u32,
}

/// What a set holds at one moment.
#[derive(Clone, Copy, Default)]
pub struct Content {
    /// None: unknown.
    pub id: BindingContent,
    /// Dynamic offsets that it needs.
    pub dynamic: u32,
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

fn is_dynamic(kind: vk::DescriptorType) -> bool {
    matches!(
        kind,
        vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC | vk::DescriptorType::STORAGE_BUFFER_DYNAMIC
    )
}

impl Set {
    fn put(
        &mut self,
        memory: &Memory,
        kind: vk::DescriptorType,
        binding: u32,
        element: u32,
        info: &vk::DescriptorBufferInfo,
    ) {
        self.content = BindingContent::NONE;
        let found = self
            .entries
            .binary_search_by_key(&(binding, element), |e| (e.binding, e.element));
        let entry = Binding {
            binding,
            element,
            buffer: memory.buffer_id(info.buffer),
            offset: info.offset,
            bytes: info.range,
            kind: kind.as_raw() as u32,
        };
        match found {
            Ok(at) => self.entries[at] = entry,
            Err(at) => self.entries.insert(at, entry),
        }
    }

    /// # Safety
    /// `write` is a valid VkWriteDescriptorSet.
    pub unsafe fn write(&mut self, memory: &Memory, write: &vk::WriteDescriptorSet<'_>) {
        if !is_buffer(write.descriptor_type) {
            return;
        }
        // SAFETY: as the caller promises, buffer descriptors come in that array.
        let infos = unsafe { slice(write.p_buffer_info, write.descriptor_count) };
        for (element, info) in (write.dst_array_element..).zip(infos) {
            self.put(
                memory,
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
        memory: &Memory,
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
                    memory,
                    entry.descriptor_type,
                    entry.dst_binding,
                    entry.dst_array_element + index,
                    &info,
                );
            }
        }
    }

    /// The content as it is now, which is written unless that has been done.
    pub fn content(&mut self, recorder: &Recorder) -> Content {
        if self.content == BindingContent::NONE {
            self.content = recorder.ids.content.next();
            let kinds = self.entries.iter().map(|entry| entry.kind as i32);
            let dynamic = kinds.filter(|kind| is_dynamic(vk::DescriptorType::from_raw(*kind)));
            self.dynamic = dynamic.count() as u32;
            let entries = Cow::Borrowed(self.entries.as_slice());
            recorder.write(&VulkanEvent::Bindings {
                content: self.content,
                entries,
            });
        }
        Content {
            id: self.content,
            dynamic: self.dynamic,
        }
    }

    /// Takes over the descriptors that a copy names, which another set holds.
    fn take_over(&mut self, copy: &vk::CopyDescriptorSet<'_>, from: &[Binding]) {
        for entry in from {
            let element = entry.element - copy.src_array_element + copy.dst_array_element;
            self.entries
                .retain(|e| (e.binding, e.element) != (copy.dst_binding, element));
            self.entries.push(Binding {
                binding: copy.dst_binding,
                element,
                ..*entry
            });
        }
        self.entries.sort_by_key(|e| (e.binding, e.element));
        self.content = BindingContent::NONE;
    }
}

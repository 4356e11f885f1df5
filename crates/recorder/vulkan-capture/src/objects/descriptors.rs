//! Descriptor set layouts, sets and what they hold, and update templates.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use ash::vk::{self, Handle};
use gapscope_capture::model;
use gapscope_vulkan_layer::arguments::slice;
use gapscope_vulkan_layer::handles::{HandleMap, Handles, lock};

use super::Serial;

/// The layout of a set.
pub struct SetLayout {
    pub serial: Serial,
    pub flags: u32,
    /// By number.
    pub bindings: Vec<model::LayoutBinding>,
    /// The place of each binding's first descriptor among all of the set.
    firsts: Vec<u32>,
}

/// A descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descriptor {
    /// A range of a buffer, which may be null; its size may be `VK_WHOLE_SIZE`.
    Buffer {
        buffer: vk::Buffer,
        offset: u64,
        range: u64,
    },
    /// An image, a sampler or anything else, which no capture can hold.
    Other,
}

/// The descriptors of a set, by their place among all of the set. What was never written is not there.
pub type Contents = BTreeMap<u32, Descriptor>;

/// A descriptor set.
pub struct Set {
    pub layout: Arc<SetLayout>,
    pub contents: Contents,
}

/// An update template.
pub struct Template {
    entries: Vec<vk::DescriptorUpdateTemplateEntry>,
}

impl SetLayout {
    pub fn new(flags: u32, mut bindings: Vec<model::LayoutBinding>) -> SetLayout {
        bindings.sort_by_key(|binding| binding.binding);
        let mut next = 0_u32;
        let firsts = bindings.iter().map(|binding| {
            let first = next;
            next = next.saturating_add(binding.count);
            first
        });
        SetLayout {
            serial: Serial::next(),
            flags,
            firsts: firsts.collect(),
            bindings,
        }
    }

    /// The place of a descriptor; elements past the end of a binding are those of the next one.
    pub fn place(&self, binding: u32, element: u32) -> Option<u32> {
        let index = self
            .bindings
            .binary_search_by_key(&binding, |b| b.binding)
            .ok()?;
        self.firsts[index].checked_add(element)
    }

    /// The bindings, each with the place of its first descriptor.
    pub fn places(&self) -> impl Iterator<Item = (&model::LayoutBinding, u32)> {
        self.bindings.iter().zip(self.firsts.iter().copied())
    }

    /// How many dynamic offsets a set of it takes.
    pub fn dynamic_count(&self) -> usize {
        let dynamic = self
            .bindings
            .iter()
            .filter(|b| is_dynamic(b.descriptor_type));
        dynamic.map(|binding| binding.count as usize).sum()
    }
}

/// Its range moves by an offset when the set is bound.
pub fn is_dynamic(kind: u32) -> bool {
    [
        vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC,
        vk::DescriptorType::STORAGE_BUFFER_DYNAMIC,
    ]
    .iter()
    .any(|dynamic| dynamic.as_raw() as u32 == kind)
}

/// A uniform or storage buffer.
pub fn is_buffer(kind: vk::DescriptorType) -> bool {
    matches!(
        kind,
        vk::DescriptorType::UNIFORM_BUFFER
            | vk::DescriptorType::STORAGE_BUFFER
            | vk::DescriptorType::UNIFORM_BUFFER_DYNAMIC
            | vk::DescriptorType::STORAGE_BUFFER_DYNAMIC
    )
}

fn buffer(info: &vk::DescriptorBufferInfo) -> Descriptor {
    let vk::DescriptorBufferInfo {
        buffer,
        offset,
        range,
    } = *info;
    Descriptor::Buffer {
        buffer,
        offset,
        range,
    }
}

/// What a write puts where, in a set of this layout.
///
/// # Safety
/// `write` is valid.
pub unsafe fn written(
    layout: &SetLayout,
    write: &vk::WriteDescriptorSet<'_>,
) -> Vec<(u32, Descriptor)> {
    let Some(first) = layout.place(write.dst_binding, write.dst_array_element) else {
        return Vec::new();
    };
    if !is_buffer(write.descriptor_type) {
        let count = match write.descriptor_type {
            // The count is of bytes, and it is one descriptor.
            vk::DescriptorType::INLINE_UNIFORM_BLOCK => 1,
            _ => write.descriptor_count,
        };
        return (first..first.saturating_add(count))
            .map(|at| (at, Descriptor::Other))
            .collect();
    }
    // SAFETY: as the caller promises.
    let infos = unsafe { slice(write.p_buffer_info, write.descriptor_count) };
    (first..).zip(infos.iter().map(buffer)).collect()
}

impl Template {
    /// What the template puts where, in a set of this layout.
    ///
    /// # Safety
    /// `data` is what the template describes.
    pub unsafe fn written(
        &self,
        layout: &SetLayout,
        data: *const c_void,
    ) -> Vec<(u32, Descriptor)> {
        let mut all = Vec::new();
        for entry in &self.entries {
            let Some(first) = layout.place(entry.dst_binding, entry.dst_array_element) else {
                continue;
            };
            let is_block = entry.descriptor_type == vk::DescriptorType::INLINE_UNIFORM_BLOCK;
            let count = if is_block { 1 } else { entry.descriptor_count };
            for index in 0..count {
                let descriptor = if is_buffer(entry.descriptor_type) {
                    // SAFETY: as the caller promises.
                    unsafe {
                        let at = data
                            .cast::<u8>()
                            .add(entry.offset + index as usize * entry.stride);
                        buffer(&at.cast::<vk::DescriptorBufferInfo>().read_unaligned())
                    }
                } else {
                    Descriptor::Other
                };
                all.push((first.saturating_add(index), descriptor));
            }
        }
        all
    }
}

/// The descriptor sets of a device.
#[derive(Default)]
pub struct Descriptors {
    pub layouts: Handles<Arc<SetLayout>>,
    pub sets: Handles<Set>,
    /// The sets of each pool.
    pools: Mutex<HandleMap<Vec<vk::DescriptorSet>>>,
    pub templates: Handles<Arc<Template>>,
}

impl Descriptors {
    pub fn add(
        &self,
        pool: vk::DescriptorPool,
        layouts: &[vk::DescriptorSetLayout],
        sets: &[vk::DescriptorSet],
    ) {
        for (set, layout) in sets.iter().zip(layouts) {
            if let Some(layout) = self.layouts.get(layout.as_raw()) {
                let contents = Contents::new();
                self.sets.insert(set.as_raw(), Set { layout, contents });
            }
        }
        lock(&self.pools)
            .entry(pool.as_raw())
            .or_default()
            .extend(sets);
    }

    pub fn free(&self, pool: vk::DescriptorPool, freed: &[vk::DescriptorSet]) {
        for set in freed {
            self.sets.remove(set.as_raw());
        }
        if let Some(members) = lock(&self.pools).get_mut(&pool.as_raw()) {
            members.retain(|set| !freed.contains(set));
        }
    }

    pub fn empty(&self, pool: vk::DescriptorPool) {
        let members = lock(&self.pools).remove(&pool.as_raw());
        for set in members.unwrap_or_default() {
            self.sets.remove(set.as_raw());
        }
    }

    /// # Safety
    /// `write` is valid.
    pub unsafe fn write(&self, write: &vk::WriteDescriptorSet<'_>) {
        self.sets.with(write.dst_set.as_raw(), |set| {
            // SAFETY: as the caller promises.
            let written = unsafe { written(&set.layout, write) };
            set.contents.extend(written);
        });
    }

    pub fn copy(&self, copy: &vk::CopyDescriptorSet<'_>) {
        let count = copy.descriptor_count;
        let from = self.sets.with(copy.src_set.as_raw(), |set| {
            let first = set.layout.place(copy.src_binding, copy.src_array_element)?;
            let places = first..first.saturating_add(count);
            Some(
                places
                    .map(|at| set.contents.get(&at).copied())
                    .collect::<Vec<_>>(),
            )
        });
        let Some(from) = from.flatten() else { return };
        self.sets.with(copy.dst_set.as_raw(), |set| {
            let first = set.layout.place(copy.dst_binding, copy.dst_array_element);
            let Some(first) = first else { return };
            for (at, descriptor) in (first..).zip(from) {
                match descriptor {
                    Some(descriptor) => set.contents.insert(at, descriptor),
                    None => set.contents.remove(&at),
                };
            }
        });
    }

    /// # Safety
    /// `info` is valid.
    pub unsafe fn template(&self, info: &vk::DescriptorUpdateTemplateCreateInfo<'_>) -> Template {
        // SAFETY: as the caller promises.
        let entries = unsafe {
            slice(
                info.p_descriptor_update_entries,
                info.descriptor_update_entry_count,
            )
        };
        Template {
            entries: entries.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(binding: u32, count: u32) -> model::LayoutBinding {
        model::LayoutBinding {
            binding,
            descriptor_type: 7,
            count,
            stages: 32,
            flags: 0,
        }
    }

    #[test]
    fn elements_past_the_end_of_a_binding_are_those_of_the_next() {
        let layout = SetLayout::new(0, vec![binding(5, 1), binding(0, 3), binding(2, 2)]);
        assert_eq!(layout.place(0, 3), layout.place(2, 0));
        assert_eq!(layout.place(0, 5), layout.place(5, 0));
        assert_eq!(layout.place(1, 0), None);
    }

    #[test]
    fn a_write_of_several_descriptors_runs_over_into_the_next_binding() {
        let layout = SetLayout::new(0, vec![binding(0, 1), binding(1, 1)]);
        let infos =
            [16, 32].map(|offset| vk::DescriptorBufferInfo::default().offset(offset).range(4));
        let write = vk::WriteDescriptorSet::default()
            .descriptor_type(vk::DescriptorType::STORAGE_BUFFER)
            .buffer_info(&infos);
        // SAFETY: the write is valid.
        let written = unsafe { written(&layout, &write) };
        let buffer = vk::Buffer::null();
        assert_eq!(
            written,
            [
                (
                    0,
                    Descriptor::Buffer {
                        buffer,
                        offset: 16,
                        range: 4
                    }
                ),
                (
                    1,
                    Descriptor::Buffer {
                        buffer,
                        offset: 32,
                        range: 4
                    }
                ),
            ]
        );
    }
}

//! Keeps descriptor sets (tables of buffers and images that programs bind for kernels) with their layouts and pools,
//! and decodes the writes, copies and templates that fill them. A descriptor has a slot: a binding (a number that the
//! kernel names), an element of it, and its index among all descriptors of the set. What is kept of a descriptor is
//! the layer's choice ([`SetContents`]).

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use ash::vk;
use ash::vk::Handle;

use crate::arguments::{find, slice};
use crate::handles::{HandleMap, Handles, Serial, lock};

/// A binding of a set layout.
#[derive(Debug, Clone, Copy)]
pub struct LayoutBinding {
    /// The number by which kernels name the binding.
    pub number: u32,
    pub kind: vk::DescriptorType,
    /// The number of its descriptors (elements).
    pub count: u32,
    pub stages: vk::ShaderStageFlags,
    pub flags: vk::DescriptorBindingFlags,
}

/// The layout of a descriptor set.
pub struct SetLayout {
    pub serial: Serial,
    pub flags: vk::DescriptorSetLayoutCreateFlags,
    /// The bindings, sorted by number.
    pub bindings: Vec<LayoutBinding>,
    /// The index of each binding's first descriptor.
    firsts: Vec<u32>,
    /// The number of descriptors of a set.
    count: u32,
}

/// The place of a descriptor in a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub binding: u32,
    pub element: u32,
    /// The index among all descriptors of the set.
    pub index: u32,
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
    /// An image, a sampler or anything else.
    Other,
}

impl From<&vk::DescriptorBufferInfo> for Descriptor {
    fn from(info: &vk::DescriptorBufferInfo) -> Descriptor {
        Descriptor::Buffer {
            buffer: info.buffer,
            offset: info.offset,
            range: info.range,
        }
    }
}

/// Returns whether descriptors of a kind are uniform or storage buffers.
pub fn is_buffer(kind: vk::DescriptorType) -> bool {
    use vk::DescriptorType as T;
    matches!(kind, T::UNIFORM_BUFFER | T::STORAGE_BUFFER) || is_dynamic(kind)
}

/// Returns whether the range of a descriptor moves by an offset when its set is bound.
pub fn is_dynamic(kind: vk::DescriptorType) -> bool {
    use vk::DescriptorType as T;
    matches!(kind, T::UNIFORM_BUFFER_DYNAMIC | T::STORAGE_BUFFER_DYNAMIC)
}

impl SetLayout {
    pub fn new(
        flags: vk::DescriptorSetLayoutCreateFlags,
        mut bindings: Vec<LayoutBinding>,
    ) -> SetLayout {
        bindings.sort_by_key(|binding| binding.number);
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
            count: next,
            bindings,
        }
    }

    /// Returns the layout that a create-info describes.
    ///
    /// # Safety
    /// `info` is valid.
    unsafe fn from_info(info: &vk::DescriptorSetLayoutCreateInfo<'_>) -> SetLayout {
        let kind = vk::StructureType::DESCRIPTOR_SET_LAYOUT_BINDING_FLAGS_CREATE_INFO;
        // SAFETY: as the caller promises.
        let (bindings, flags) = unsafe {
            let flags =
                find::<vk::DescriptorSetLayoutBindingFlagsCreateInfo<'_>>(info.p_next, kind);
            (
                slice(info.p_bindings, info.binding_count),
                flags.map_or(&[][..], |flags| {
                    slice(flags.p_binding_flags, flags.binding_count)
                }),
            )
        };
        let bindings = bindings
            .iter()
            .enumerate()
            .map(|(at, binding)| LayoutBinding {
                number: binding.binding,
                kind: binding.descriptor_type,
                count: binding.descriptor_count,
                stages: binding.stage_flags,
                flags: flags.get(at).copied().unwrap_or_default(),
            });
        SetLayout::new(info.flags, bindings.collect())
    }

    /// Iterates over the bindings, each with the index of its first descriptor.
    pub fn with_firsts(&self) -> impl Iterator<Item = (&LayoutBinding, u32)> {
        self.bindings.iter().zip(self.firsts.iter().copied())
    }

    /// Iterates over the slots of a binding from an element on. After the last element of a binding comes the first
    /// of the next one, as Vulkan's consecutive binding updates have it. The iterator ends with the set; it is empty
    /// if there is no such binding.
    pub fn slots(&self, binding: u32, element: u32) -> impl Iterator<Item = Slot> + '_ {
        let at = self.bindings.iter().position(|b| b.number == binding);
        let first = at.map(|at| self.firsts[at].saturating_add(element));
        first
            .into_iter()
            .flat_map(|first| first..self.count)
            .map(|index| {
                let at = self.firsts.partition_point(|first| *first <= index) - 1;
                Slot {
                    binding: self.bindings[at].number,
                    element: index - self.firsts[at],
                    index,
                }
            })
    }

    /// Returns the number of dynamic offsets that a set takes when it is bound.
    pub fn dynamic_count(&self) -> usize {
        let dynamic = self.bindings.iter().filter(|b| is_dynamic(b.kind));
        dynamic.map(|binding| binding.count as usize).sum()
    }
}

/// Visits each descriptor that a write puts into a set of this layout, with its slot. Without a layout, elements do
/// not run over into the next binding.
///
/// # Safety
/// `write` is valid.
pub unsafe fn for_each_written(
    layout: Option<&SetLayout>,
    write: &vk::WriteDescriptorSet<'_>,
    visit: impl FnMut(Slot, vk::DescriptorType, Descriptor),
) {
    let kind = write.descriptor_type;
    let first = (write.dst_binding, write.dst_array_element);
    if is_buffer(kind) {
        // SAFETY: as the caller promises, descriptors of buffers are in that array.
        let infos = unsafe { slice(write.p_buffer_info, write.descriptor_count) };
        place(
            layout,
            first,
            kind,
            infos.iter().map(Descriptor::from),
            visit,
        );
    } else {
        let count = descriptor_count(kind, write.descriptor_count);
        let others = std::iter::repeat_n(Descriptor::Other, count as usize);
        place(layout, first, kind, others, visit);
    }
}

/// Visits each descriptor that a template puts into a set of this layout, as [`for_each_written`] does.
///
/// # Safety
/// `data` is what the template describes.
pub unsafe fn for_each_in_template(
    layout: Option<&SetLayout>,
    template: &[vk::DescriptorUpdateTemplateEntry],
    data: *const c_void,
    mut visit: impl FnMut(Slot, vk::DescriptorType, Descriptor),
) {
    for entry in template {
        let kind = entry.descriptor_type;
        let count = descriptor_count(kind, entry.descriptor_count) as usize;
        let descriptors = (0..count).map(|index| {
            if !is_buffer(kind) {
                return Descriptor::Other;
            }
            // SAFETY: as the caller promises; the data need not be aligned.
            let info = unsafe {
                let at = data.cast::<u8>().add(entry.offset + index * entry.stride);
                at.cast::<vk::DescriptorBufferInfo>().read_unaligned()
            };
            Descriptor::from(&info)
        });
        let first = (entry.dst_binding, entry.dst_array_element);
        place(layout, first, kind, descriptors, &mut visit);
    }
}

/// Returns the number of descriptors that a count of Vulkan means: for an inline uniform block, which is one
/// descriptor, the count is of bytes.
fn descriptor_count(kind: vk::DescriptorType, count: u32) -> u32 {
    match kind {
        vk::DescriptorType::INLINE_UNIFORM_BLOCK => 1,
        _ => count,
    }
}

/// Visits descriptors that go into consecutive slots from a binding and element on.
fn place(
    layout: Option<&SetLayout>,
    (binding, element): (u32, u32),
    kind: vk::DescriptorType,
    descriptors: impl Iterator<Item = Descriptor>,
    mut visit: impl FnMut(Slot, vk::DescriptorType, Descriptor),
) {
    match layout {
        Some(layout) => {
            let slots = layout.slots(binding, element);
            slots
                .zip(descriptors)
                .for_each(|(slot, d)| visit(slot, kind, d));
        }
        None => {
            for (element, descriptor) in (element..).zip(descriptors) {
                let slot = Slot {
                    binding,
                    element,
                    index: element,
                };
                visit(slot, kind, descriptor);
            }
        }
    }
}

/// The descriptors of a set, as a layer keeps them.
pub trait SetContents {
    /// The state that the layer needs to keep a descriptor.
    type Context;
    /// A descriptor, as the layer keeps it.
    type Stored: Copy;

    /// Creates the contents of a new set.
    fn new(layout: &SetLayout) -> Self;

    /// Keeps a descriptor that the program writes into a slot.
    fn write(
        &mut self,
        context: &Self::Context,
        slot: Slot,
        kind: vk::DescriptorType,
        descriptor: Descriptor,
    );

    /// Returns what is kept of a slot; `None` if it was never written.
    fn get(&self, slot: Slot) -> Option<Self::Stored>;

    /// Puts a copy of a descriptor into a slot; `None` if that descriptor was never written.
    fn set(&mut self, slot: Slot, kept: Option<Self::Stored>);
}

/// Keeps the descriptors themselves, by index; those that were never written are absent.
impl SetContents for BTreeMap<u32, Descriptor> {
    type Context = ();
    type Stored = Descriptor;

    fn new(_: &SetLayout) -> Self {
        BTreeMap::new()
    }

    fn write(&mut self, (): &(), slot: Slot, _: vk::DescriptorType, descriptor: Descriptor) {
        self.insert(slot.index, descriptor);
    }

    fn get(&self, slot: Slot) -> Option<Descriptor> {
        BTreeMap::get(self, &slot.index).copied()
    }

    fn set(&mut self, slot: Slot, kept: Option<Descriptor>) {
        match kept {
            Some(descriptor) => self.insert(slot.index, descriptor),
            None => self.remove(&slot.index),
        };
    }
}

/// A descriptor set.
pub struct DescriptorSet<C> {
    pub layout: Arc<SetLayout>,
    pub contents: C,
}

/// An update template.
#[derive(Clone)]
pub struct Template {
    pub entries: Arc<[vk::DescriptorUpdateTemplateEntry]>,
    /// Descriptors that are pushed with the template are for another bind point than compute.
    pub pushes_for_others: bool,
}

impl Template {
    /// # Safety
    /// The information is the program's, during its call.
    unsafe fn new(info: &vk::DescriptorUpdateTemplateCreateInfo<'_>) -> Template {
        // SAFETY: as the caller promises.
        let entries = unsafe {
            slice(
                info.p_descriptor_update_entries,
                info.descriptor_update_entry_count,
            )
        };
        // A template for sets has no bind point, and what is in its place means nothing.
        let pushes = info.template_type == vk::DescriptorUpdateTemplateType::PUSH_DESCRIPTORS_KHR;
        Template {
            entries: entries.into(),
            pushes_for_others: pushes && info.pipeline_bind_point != vk::PipelineBindPoint::COMPUTE,
        }
    }
}

/// The descriptor sets of a device, with their layouts and update templates.
pub struct Descriptors<C> {
    layouts: Handles<Arc<SetLayout>>,
    sets: Handles<DescriptorSet<C>>,
    /// The sets of each pool.
    pools: Mutex<HandleMap<Vec<vk::DescriptorSet>>>,
    templates: Handles<Template>,
}

impl<C> Default for Descriptors<C> {
    fn default() -> Descriptors<C> {
        Descriptors {
            layouts: Handles::default(),
            sets: Handles::default(),
            pools: Mutex::default(),
            templates: Handles::default(),
        }
    }
}

impl<C: SetContents> Descriptors<C> {
    /// Keeps the layout of a handle.
    ///
    /// # Safety
    /// `info` is valid.
    pub(crate) unsafe fn add_layout(
        &self,
        layout: vk::DescriptorSetLayout,
        info: &vk::DescriptorSetLayoutCreateInfo<'_>,
    ) {
        // SAFETY: as the caller promises.
        let new = unsafe { SetLayout::from_info(info) };
        self.layouts.insert(layout.as_raw(), Arc::new(new));
    }

    pub(crate) fn remove_layout(&self, layout: vk::DescriptorSetLayout) {
        self.layouts.remove(layout.as_raw());
    }

    /// Returns the layout of a handle; `None` where the handle is not known.
    pub fn layout(&self, layout: vk::DescriptorSetLayout) -> Option<Arc<SetLayout>> {
        self.layouts.get(layout.as_raw())
    }

    /// Keeps the sets that the program has allocated from a pool; of those with unknown layouts, only the handles.
    pub(crate) fn add_sets(
        &self,
        pool: vk::DescriptorPool,
        layouts: &[vk::DescriptorSetLayout],
        made: &[vk::DescriptorSet],
    ) {
        for (set, layout) in made.iter().zip(layouts) {
            if let Some(layout) = self.layout(*layout) {
                let contents = C::new(&layout);
                self.sets
                    .insert(set.as_raw(), DescriptorSet { layout, contents });
            }
        }
        let mut pools = lock(&self.pools);
        pools.entry(pool.as_raw()).or_default().extend(made);
    }

    /// Forgets sets that the program frees.
    pub(crate) fn free(&self, pool: vk::DescriptorPool, freed: &[vk::DescriptorSet]) {
        self.forget(freed);
        if let Some(members) = lock(&self.pools).get_mut(&pool.as_raw()) {
            members.retain(|set| !freed.contains(set));
        }
    }

    /// Forgets the sets of a pool that is reset or destroyed.
    pub(crate) fn empty_pool(&self, pool: vk::DescriptorPool) {
        let members = lock(&self.pools).remove(&pool.as_raw());
        self.forget(&members.unwrap_or_default());
    }

    fn forget(&self, sets: &[vk::DescriptorSet]) {
        for set in sets {
            self.sets.remove(set.as_raw());
        }
    }

    /// Visits a set, which is locked meanwhile; `None` where the set is not known.
    pub fn with<R>(
        &self,
        set: vk::DescriptorSet,
        visit: impl FnOnce(&mut DescriptorSet<C>) -> R,
    ) -> Option<R> {
        self.sets.with(set.as_raw(), visit)
    }

    /// Puts the descriptors of a write into their set.
    ///
    /// # Safety
    /// `write` is valid.
    pub(crate) unsafe fn write(&self, context: &C::Context, write: &vk::WriteDescriptorSet<'_>) {
        self.with(write.dst_set, |DescriptorSet { layout, contents }| {
            // SAFETY: as the caller promises.
            unsafe {
                for_each_written(Some(layout), write, |slot, kind, descriptor| {
                    contents.write(context, slot, kind, descriptor);
                });
            }
        });
    }

    /// Puts copies of descriptors of one set into another, or the same.
    pub(crate) fn copy(&self, copy: &vk::CopyDescriptorSet<'_>) {
        let count = copy.descriptor_count as usize;
        let from: Option<Vec<_>> = self.with(copy.src_set, |set| {
            let slots = set.layout.slots(copy.src_binding, copy.src_array_element);
            slots
                .take(count)
                .map(|slot| set.contents.get(slot))
                .collect()
        });
        self.with(copy.dst_set, |DescriptorSet { layout, contents }| {
            let slots = layout.slots(copy.dst_binding, copy.dst_array_element);
            for (slot, kept) in slots.zip(from.unwrap_or_default()) {
                contents.set(slot, kept);
            }
        });
    }

    /// Keeps a template that the program has made.
    ///
    /// # Safety
    /// The information is the program's, during its call.
    pub(crate) unsafe fn add_template(
        &self,
        template: vk::DescriptorUpdateTemplate,
        info: &vk::DescriptorUpdateTemplateCreateInfo<'_>,
    ) {
        // SAFETY: as the caller promises.
        let info = unsafe { Template::new(info) };
        self.templates.insert(template.as_raw(), info);
    }

    pub(crate) fn remove_template(&self, template: vk::DescriptorUpdateTemplate) {
        self.templates.remove(template.as_raw());
    }

    /// Returns an update template; `None` where the template is not known.
    pub fn template(&self, template: vk::DescriptorUpdateTemplate) -> Option<Template> {
        self.templates.get(template.as_raw())
    }

    /// Puts the descriptors that a template describes into a set.
    ///
    /// # Safety
    /// `data` is what the template describes.
    pub(crate) unsafe fn write_template(
        &self,
        context: &C::Context,
        set: vk::DescriptorSet,
        template: vk::DescriptorUpdateTemplate,
        data: *const c_void,
    ) {
        let Some(template) = self.template(template) else {
            return;
        };
        self.with(set, |DescriptorSet { layout, contents }| {
            // SAFETY: as the caller promises.
            unsafe {
                for_each_in_template(
                    Some(layout),
                    &template.entries,
                    data,
                    |slot, kind, descriptor| {
                        contents.write(context, slot, kind, descriptor);
                    },
                );
            }
        });
    }
}

#[cfg(test)]
mod tests;

//! Keeps the buffer ranges in each descriptor set (a table of buffers that the program binds for kernels), so that
//! the trace has what each dispatch may access.
//!
//! The buffers of a set at the moment in which it is bound are an immutable *content*, written once; a later update
//! makes a new content. So binding a set costs two words in the command recording. (A set that is updated after it
//! was bound, which needs `UPDATE_AFTER_BIND`, is recorded as it was when bound.)

use crate::objects::memory::Memory;
use crate::recorder::Recorder;
use ash::vk;
use gapscope_spool::event::{Binding, VulkanEvent};
use gapscope_spool::ids::{self, BindingContent};
use gapscope_vulkan_layer::command::PushedDescriptors;
use gapscope_vulkan_layer::descriptors::{
    Descriptor, Descriptors, SetContents, SetLayout, Slot, for_each_in_template, for_each_written,
    is_dynamic,
};
use std::borrow::Cow;

/// The buffer descriptors of a set, sorted by binding and element: those that have been written, and all dynamic
/// ones.
#[derive(Clone, Default)]
pub struct Bindings {
    entries: Vec<Binding>,
    /// The id of the present content; [`BindingContent::NONE`] if it has not been written yet.
    content: BindingContent,
    /// The number of dynamic offsets that the written content needs.
    dynamic: u32,
}

/// The content of a set at the moment in which it is bound.
#[derive(Clone, Copy, Default)]
pub struct BoundContent {
    /// The id of the content; [`BindingContent::NONE`] if it is not known.
    pub id: BindingContent,
    /// The number of dynamic offsets that the content needs.
    pub dynamic: u32,
}

impl SetContents for Bindings {
    type Context = Memory;
    type Stored = Binding;

    /// Adds the dynamic descriptors: each takes an offset when a set is bound, written or not.
    fn new(layout: &SetLayout) -> Bindings {
        let dynamic = layout.bindings.iter().filter(|b| is_dynamic(b.kind));
        let entries = dynamic.flat_map(|binding| {
            (0..binding.count).map(|element| Binding {
                binding: binding.number,
                element,
                buffer: ids::Buffer::NONE,
                offset: 0,
                bytes: 0,
                kind: binding.kind.as_raw() as u32,
            })
        });
        Bindings {
            entries: entries.collect(),
            ..Bindings::default()
        }
    }

    fn write(
        &mut self,
        memory: &Memory,
        slot: Slot,
        kind: vk::DescriptorType,
        descriptor: Descriptor,
    ) {
        if let Descriptor::Buffer {
            buffer,
            offset,
            range,
        } = descriptor
        {
            let entry = Binding {
                binding: slot.binding,
                element: slot.element,
                buffer: memory.buffer_id(buffer),
                offset,
                bytes: range,
                kind: kind.as_raw() as u32,
            };
            self.set(slot, Some(entry));
        }
    }

    fn get(&self, slot: Slot) -> Option<Binding> {
        self.find(slot).ok().map(|at| self.entries[at])
    }

    fn set(&mut self, slot: Slot, kept: Option<Binding>) {
        self.content = BindingContent::NONE;
        let entry = kept.map(|entry| Binding {
            binding: slot.binding,
            element: slot.element,
            ..entry
        });
        match (self.find(slot), entry) {
            (Ok(at), Some(entry)) => self.entries[at] = entry,
            (Err(at), Some(entry)) => self.entries.insert(at, entry),
            (Ok(at), None) => {
                self.entries.remove(at);
            }
            (Err(_), None) => {}
        }
    }
}

impl Bindings {
    /// Returns the index of the entry of a slot, or the index at which it would be inserted.
    fn find(&self, slot: Slot) -> Result<usize, usize> {
        self.entries
            .binary_search_by_key(&(slot.binding, slot.element), |e| (e.binding, e.element))
    }

    /// Adds descriptors that a command buffer pushes.
    ///
    /// # Safety
    /// They are the program's, during its call.
    pub unsafe fn push(
        &mut self,
        memory: &Memory,
        known: &Descriptors<Bindings>,
        descriptors: PushedDescriptors<'_>,
    ) {
        let mut write = |slot, kind, descriptor| self.write(memory, slot, kind, descriptor);
        // SAFETY: as the caller promises.
        unsafe {
            match descriptors {
                PushedDescriptors::Writes(writes) => {
                    for one in writes {
                        for_each_written(None, one, &mut write);
                    }
                }
                PushedDescriptors::Template(template, data) => {
                    if let Some(template) = known.template(template) {
                        for_each_in_template(None, &template.entries, data, write);
                    }
                }
            }
        }
    }

    /// Returns the present content, and writes it unless that has been done.
    pub fn content(&mut self, recorder: &Recorder) -> BoundContent {
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
        BoundContent {
            id: self.content,
            dynamic: self.dynamic,
        }
    }
}

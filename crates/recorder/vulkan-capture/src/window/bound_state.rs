//! Follows the bindings of a command buffer, command by command, so that each dispatch gets the pipeline,
//! descriptors and push constants with which it runs.

use std::collections::HashMap;
use std::sync::Arc;

use ash::vk;
use gapscope_vulkan_layer::descriptors::{Descriptor, SetLayout, is_dynamic};

use crate::api::device::Device;
use crate::objects::Contents;
use crate::objects::command::Command;
use crate::objects::kernels::Pipeline;

/// The bindings of a command buffer.
#[derive(Default)]
pub struct BoundState {
    pub pipeline: Option<Arc<Pipeline>>,
    /// The descriptors by the index of their set.
    sets: HashMap<u32, BoundSet>,
    /// The push constants up to the last byte that was set.
    push_constants: Vec<u8>,
}

/// The descriptors that are bound at one index: those of a set, or descriptors that the command buffer pushed.
enum BoundSet {
    Set {
        set: vk::DescriptorSet,
        offsets: Vec<u32>,
    },
    Pushed {
        layout: Arc<SetLayout>,
        contents: Contents,
    },
}

/// The error that a kernel needs a descriptor set that is not known.
pub struct UnknownSet;

impl BoundState {
    /// Takes over the bindings that a command makes; other commands change nothing.
    pub fn set_up(&mut self, command: &Command) {
        match command {
            Command::Pipeline(pipeline) => self.pipeline.clone_from(pipeline),
            Command::Sets {
                layout,
                first,
                sets,
                offsets,
            } => {
                let mut offsets = offsets.iter().copied();
                for (number, set) in (*first..).zip(sets) {
                    let layout = layout.sets.get(number as usize).and_then(Option::as_ref);
                    let count = layout.map_or(0, |layout| layout.dynamic_count());
                    let offsets = offsets.by_ref().take(count).collect();
                    let bound = BoundSet::Set { set: *set, offsets };
                    self.sets.insert(number, bound);
                }
            }
            Command::PushDescriptors {
                set,
                layout,
                written,
                ..
            } => {
                let mut contents = match self.sets.remove(set) {
                    Some(BoundSet::Pushed { contents, .. }) => contents,
                    _ => Contents::new(),
                };
                contents.extend(written.iter().copied());
                let layout = layout.clone();
                self.sets
                    .insert(*set, BoundSet::Pushed { layout, contents });
            }
            Command::PushConstants { offset, bytes, .. } => {
                let (start, end) = (*offset as usize, *offset as usize + bytes.len());
                if self.push_constants.len() < end {
                    self.push_constants.resize(end, 0);
                }
                self.push_constants[start..end].copy_from_slice(bytes);
            }
            _ => {}
        }
    }

    /// Returns the first bytes of the push constants; those never set are 0.
    pub fn push_constants(&self, bytes: usize) -> Vec<u8> {
        let mut constants = self.push_constants.clone();
        constants.resize(bytes, 0);
        constants
    }

    /// Returns the descriptors of a binding of the set at index `set`, by their elements, with their dynamic offsets
    /// applied. Descriptors that were never written are left out. `layout` is the set's in the pipeline's layout.
    pub fn descriptors(
        &self,
        device: &Device,
        set: u32,
        binding: u32,
        layout: &SetLayout,
    ) -> Result<Vec<(u32, Descriptor)>, UnknownSet> {
        let read = |layout: &SetLayout, contents: &Contents| {
            let slot = layout
                .with_firsts()
                .find(|(slot, _)| slot.number == binding);
            let Some((slot, first)) = slot else {
                return Vec::new();
            };
            let range = contents.range(first..first.saturating_add(slot.count));
            range.map(|(place, d)| (place - first, *d)).collect()
        };
        match self.sets.get(&set) {
            Some(BoundSet::Set { set, offsets }) => {
                let sets = &device.objects.descriptors;
                let descriptors = sets.with(*set, |set| read(&set.layout, &set.contents));
                let descriptors: Vec<_> = descriptors.ok_or(UnknownSet)?;
                Ok(moved(layout, binding, offsets, descriptors))
            }
            Some(BoundSet::Pushed { layout, contents }) => Ok(read(layout, contents)),
            None => Ok(Vec::new()),
        }
    }
}

/// Moves dynamic descriptors by the offsets that they were bound with, which come in the order of bindings.
fn moved(
    layout: &SetLayout,
    binding: u32,
    offsets: &[u32],
    mut descriptors: Vec<(u32, Descriptor)>,
) -> Vec<(u32, Descriptor)> {
    let dynamic = (layout.bindings.iter()).filter(|slot| is_dynamic(slot.kind));
    let mut before = 0;
    let mut is_moved = false;
    for slot in dynamic {
        if slot.number < binding {
            before += slot.count as usize;
        }
        is_moved |= slot.number == binding;
    }
    if is_moved {
        for (element, descriptor) in &mut descriptors {
            if let Descriptor::Buffer { offset, .. } = descriptor {
                let by = offsets.get(before + *element as usize).copied();
                *offset = offset.saturating_add(by.unwrap_or(0).into());
            }
        }
    }
    descriptors
}

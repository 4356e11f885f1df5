//! Makes the descriptor sets (what is bound to a kernel) of all dispatches of a capture before it runs: dispatches
//! that bind the same buffers to a set of the same layout share one.

use std::collections::HashMap;
use std::rc::Rc;

use ash::vk;
use gapscope_capture::Capture;
use gapscope_capture::model::{Dispatch, SetLayoutId};

use crate::error::Error;
use crate::gpu::Gpu;
use crate::memory::Memory;
use crate::pipelines::{Pipelines, bindings};
use crate::program::Program;
use crate::regions::{RegionOffset, Regions};

/// The id of a set's layout, and the descriptors of the set: equal keys share a set.
type SetKey = (SetLayoutId, Vec<BoundDescriptor>);

/// A descriptor: binding, element, and the place and size of its buffer range; `None` for a null descriptor.
type BoundDescriptor = (u32, u32, Option<(RegionOffset, u64)>);

/// The descriptor sets of a program's dispatches.
pub struct Descriptors {
    gpu: Rc<Gpu>,
    pool: vk::DescriptorPool,
    /// The sets by what they bind.
    sets: HashMap<SetKey, vk::DescriptorSet>,
}

impl Descriptors {
    /// Makes and fills the sets of all dispatches.
    pub fn new(
        gpu: &Rc<Gpu>,
        capture: &Capture,
        program: &Program<'_>,
        regions: &Regions,
        memory: &Memory,
        pipelines: &Pipelines,
    ) -> Result<Descriptors, Error> {
        let mut made = Descriptors {
            gpu: Rc::clone(gpu),
            pool: vk::DescriptorPool::null(),
            sets: HashMap::new(),
        };
        for (_, dispatch) in program.dispatched() {
            for (_, key) in keys(capture, regions, dispatch) {
                made.sets.entry(key).or_insert(vk::DescriptorSet::null());
            }
        }
        if made.sets.is_empty() {
            return Ok(made);
        }
        let mut counts = HashMap::<vk::DescriptorType, u32>::new();
        for (layout, _) in made.sets.keys() {
            for (kind, count) in bindings(capture, *layout).values() {
                let sum = counts.entry(*kind).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        let sizes: Vec<_> = counts
            .iter()
            .map(|(kind, count)| {
                vk::DescriptorPoolSize::default()
                    .ty(*kind)
                    .descriptor_count(*count)
            })
            .collect();
        let info = vk::DescriptorPoolCreateInfo::default()
            .max_sets(made.sets.len() as u32)
            .pool_sizes(&sizes);
        // SAFETY: the structure is complete.
        made.pool = unsafe { gpu.raw.create_descriptor_pool(&info, None) }
            .map_err(Error::from_call("make a descriptor pool"))?;
        for ((layout, bound), set) in &mut made.sets {
            let layouts = [pipelines.set_layout(*layout)];
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(made.pool)
                .set_layouts(&layouts);
            // SAFETY: pool and layout are of this device.
            let sets = unsafe { gpu.raw.allocate_descriptor_sets(&info) }
                .map_err(Error::from_call("make a descriptor set"))?;
            *set = sets[0];
            write(gpu, capture, memory, *layout, bound, *set);
        }
        Ok(made)
    }

    /// Returns the sets of a dispatch as pairs of set number and set.
    pub fn sets(
        &self,
        capture: &Capture,
        regions: &Regions,
        dispatch: &Dispatch,
    ) -> Vec<(u32, vk::DescriptorSet)> {
        let keys = keys(capture, regions, dispatch);
        keys.into_iter()
            .map(|(number, key)| (number, self.sets[&key]))
            .collect()
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the pool is of this device or null, and nothing runs.
        unsafe {
            let _ = self.gpu.raw.device_wait_idle();
            self.gpu.raw.destroy_descriptor_pool(self.pool, None);
        }
    }
}

/// Returns the sets of a dispatch as pairs of set number and key; sets without descriptors are left out.
fn keys(capture: &Capture, regions: &Regions, dispatch: &Dispatch) -> Vec<(u32, SetKey)> {
    let layout = &capture.pipeline_layouts[&capture.pipelines[&dispatch.pipeline].layout];
    let numbered = (0..).zip(&layout.sets);
    let sets = numbered.filter_map(|(number, set)| Some((number, (*set)?)));
    sets.filter_map(|(number, set)| {
        let of_set = dispatch
            .bindings
            .iter()
            .filter(|binding| binding.set == number);
        let bound: Vec<_> = of_set
            .map(|binding| {
                let range = binding.range.and_then(|range| {
                    let place = regions.buffer_place(capture, range)?;
                    Some((place, range.bytes))
                });
                (binding.binding, binding.element, range)
            })
            .collect();
        (!bound.is_empty()).then_some((number, (set, bound)))
    })
    .collect()
}

/// Writes the descriptors into a new set.
fn write(
    gpu: &Gpu,
    capture: &Capture,
    memory: &Memory,
    layout: SetLayoutId,
    bound: &[BoundDescriptor],
    set: vk::DescriptorSet,
) {
    let kinds = bindings(capture, layout);
    let infos: Vec<_> = bound
        .iter()
        .map(|(_, _, range)| {
            [match range {
                Some((place, bytes)) => vk::DescriptorBufferInfo::default()
                    .buffer(memory.raw(place.region))
                    .offset(place.offset)
                    .range(*bytes),
                None => vk::DescriptorBufferInfo::default().range(vk::WHOLE_SIZE),
            }]
        })
        .collect();
    let writes: Vec<_> = bound
        .iter()
        .zip(&infos)
        .filter_map(|((binding, element, _), info)| {
            let (kind, _) = kinds.get(binding)?;
            let write = vk::WriteDescriptorSet::default()
                .dst_set(set)
                .dst_binding(*binding)
                .dst_array_element(*element)
                .descriptor_type(*kind)
                .buffer_info(info);
            Some(write)
        })
        .collect();
    // SAFETY: the set is new; each range is inside its buffer, of a type and an element that the layout has.
    unsafe { gpu.raw.update_descriptor_sets(&writes, &[]) };
}

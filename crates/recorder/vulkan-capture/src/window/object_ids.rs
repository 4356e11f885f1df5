//! Numbers the objects of a capture (kinds such as buffers and pipelines, each from 0). A record that describes an
//! object is written before the first record that names it: asking for a number adds the record of a new object, and
//! [`ObjectIds::write`] writes those that were added.

use std::collections::HashMap;
use std::sync::Arc;

use gapscope_capture::model::{self, BufferId, MemoryId, ModuleId, PipelineId, PipelineLayoutId};
use gapscope_capture::model::{QueueId, SemaphoreId, SetLayoutId};
use gapscope_capture::{Record, Writer};
use gapscope_vulkan_layer::descriptors::SetLayout;
use gapscope_vulkan_layer::handles::{Serial, lock};
use gapscope_vulkan_layer::layer::Queue;

use crate::api::device::Device;
use crate::objects::kernels::{Module, Pipeline, PipelineLayout};
use crate::objects::memory::{Buffer, Memory};

/// The numbers that a capture has given to objects, and the records that are still to be written.
#[derive(Default)]
pub struct ObjectIds {
    /// The numbers by the objects' serial numbers.
    numbers: HashMap<Serial, u32>,
    /// The next number of each [`ObjectKind`].
    counts: [u32; 7],
    /// The queues, at their numbers.
    queues: Vec<ash::vk::Queue>,
    new: Vec<NewRecord>,
}

/// A record of a new object that is still to be written.
enum NewRecord {
    Record(Box<Record>),
    /// A module, whose code is written first.
    Module(ModuleId, Arc<Module>),
}

/// The kinds of objects, each of which has its own numbers.
#[derive(Clone, Copy)]
enum ObjectKind {
    Memory,
    Buffer,
    Module,
    SetLayout,
    PipelineLayout,
    Pipeline,
    Semaphore,
}

impl ObjectIds {
    /// Returns the number of an object, and whether it is new.
    fn number(&mut self, serial: Serial, kind: ObjectKind) -> (u32, bool) {
        if let Some(number) = self.numbers.get(&serial) {
            return (*number, false);
        }
        let number = self.counts[kind as usize];
        self.counts[kind as usize] += 1;
        self.numbers.insert(serial, number);
        (number, true)
    }

    fn add(&mut self, record: Record) {
        self.new.push(NewRecord::Record(Box::new(record)));
    }

    /// Returns the number of an allocation; a new one gets a record.
    pub fn memory(&mut self, memory: &Memory) -> MemoryId {
        let (id, is_new) = self.number(memory.serial, ObjectKind::Memory);
        if is_new {
            self.add(Record::Memory(model::Memory {
                id: MemoryId(id),
                bytes: memory.bytes,
                properties: memory.properties.as_raw(),
            }));
        }
        MemoryId(id)
    }

    /// Returns the number of a buffer that is bound to the memory at the offset; a new one gets a record, as does its
    /// memory.
    pub fn buffer(&mut self, buffer: &Buffer, memory: &Memory, offset: u64) -> BufferId {
        let memory = self.memory(memory);
        let (id, is_new) = self.number(buffer.serial, ObjectKind::Buffer);
        if is_new {
            self.add(Record::Buffer(model::Buffer {
                id: BufferId(id),
                name: lock(&buffer.name).clone(),
                bytes: buffer.bytes,
                usage: buffer.usage,
                flags: buffer.flags.as_raw(),
                memory,
                offset,
            }));
        }
        BufferId(id)
    }

    /// Returns the number of a pipeline; a new one gets records of itself and of its module and layout.
    pub fn pipeline(&mut self, pipeline: &Pipeline) -> PipelineId {
        let layout = self.pipeline_layout(&pipeline.layout);
        let module = self.module(&pipeline.module);
        let (id, is_new) = self.number(pipeline.serial, ObjectKind::Pipeline);
        if is_new {
            self.add(Record::Pipeline(model::Pipeline {
                id: PipelineId(id),
                name: pipeline.name(),
                layout,
                module,
                entry: pipeline.entry.clone(),
                flags: pipeline.flags,
                stage_flags: pipeline.stage_flags,
                constants: pipeline.constants.clone(),
                required_subgroup_size: pipeline.required_subgroup_size,
                robustness: pipeline.robustness,
            }));
        }
        PipelineId(id)
    }

    fn module(&mut self, module: &Arc<Module>) -> ModuleId {
        let (id, is_new) = self.number(module.serial, ObjectKind::Module);
        if is_new {
            self.new
                .push(NewRecord::Module(ModuleId(id), module.clone()));
        }
        ModuleId(id)
    }

    fn pipeline_layout(&mut self, layout: &PipelineLayout) -> PipelineLayoutId {
        let sets = layout.sets.iter();
        let sets = sets
            .map(|set| set.as_ref().map(|set| self.set_layout(set)))
            .collect();
        let (id, is_new) = self.number(layout.serial, ObjectKind::PipelineLayout);
        if is_new {
            self.add(Record::PipelineLayout(model::PipelineLayout {
                id: PipelineLayoutId(id),
                flags: layout.flags,
                sets,
                push_constants: layout.push_constants.clone(),
            }));
        }
        PipelineLayoutId(id)
    }

    fn set_layout(&mut self, layout: &SetLayout) -> SetLayoutId {
        let (id, is_new) = self.number(layout.serial, ObjectKind::SetLayout);
        if is_new {
            let bindings = layout.bindings.iter().map(|binding| model::LayoutBinding {
                binding: binding.number,
                descriptor_type: binding.kind.as_raw() as u32,
                count: binding.count,
                stages: binding.stages.as_raw(),
                flags: binding.flags.as_raw(),
            });
            self.add(Record::SetLayout(model::SetLayout {
                id: SetLayoutId(id),
                flags: layout.flags.as_raw(),
                bindings: bindings.collect(),
            }));
        }
        SetLayoutId(id)
    }

    /// Returns the number of a queue; a new one gets a record.
    pub fn queue(&mut self, device: &Device, queue: &Queue) -> QueueId {
        let index = self
            .queues
            .iter()
            .position(|handle| *handle == queue.handle);
        let id = index.unwrap_or_else(|| {
            self.queues.push(queue.handle);
            self.queues.len() - 1
        });
        let id = QueueId(id as u32);
        if index.is_none() {
            let family = device.families.get(queue.family as usize);
            self.add(Record::Queue(model::Queue {
                id,
                family: queue.family,
                index: queue.index,
                flags: family.map_or(0, |family| family.queue_flags.as_raw()),
            }));
        }
        id
    }

    /// Returns the number of a semaphore, by its serial number.
    pub fn semaphore(&mut self, serial: Serial) -> SemaphoreId {
        SemaphoreId(self.number(serial, ObjectKind::Semaphore).0)
    }

    /// Writes the records of objects that have been named since the last call.
    pub fn write(&mut self, writer: &mut Writer) -> std::io::Result<()> {
        for new in self.new.drain(..) {
            match new {
                NewRecord::Record(record) => writer.record(&*record)?,
                NewRecord::Module(id, module) => {
                    let code = writer.chunk(&module.bytes())?;
                    writer.record(&Record::Module(model::Module { id, code }))?;
                }
            }
        }
        Ok(())
    }
}

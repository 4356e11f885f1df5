//! Adds records to a [`Capture`] one by one, and refuses a record that names an object that is not there, or a range
//! that is out of bounds. A fault is the reason for which a record is refused. An invalid record leaves the capture
//! as it was.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use crate::Capture;
use crate::capture::Step;
use crate::contents::{check_outcome, inside};
use crate::invalid::{Fault, Slot};
use crate::model::*;

/// The most bytes of push constants: no device has more. A layout with more is refused.
const MAX_PUSH_CONSTANT_BYTES: u64 = 64 << 10;
/// The most bytes of an update: `vkCmdUpdateBuffer` takes no more. A larger update is refused.
const MAX_UPDATE_BYTES: u64 = 64 << 10;
/// The fewest bytes of a module.
const SPIRV_HEADER_BYTES: u32 = 4 * gapscope_spirv::HEADER_WORDS as u32;
/// The most commands that a window runs; a submission beyond it is refused. Without a limit, a line of a few
/// kilobytes could run a long command buffer a thousand times.
const MAX_EXECUTED: u64 = 1 << 27;
/// `VkDescriptorType` of uniform and storage buffers, with and without dynamic offsets.
const BUFFER_DESCRIPTORS: std::ops::RangeInclusive<u32> = 6..=9;

impl Capture {
    /// Adds a record if everything that it names is there. An invalid record changes nothing.
    pub(crate) fn add(&mut self, record: Record) -> Result<(), Fault> {
        if self.end.is_some() {
            return Err(Fault::AfterEnd);
        }
        match record {
            Record::Capture(_) => return Err(Fault::SecondHeader),
            Record::Chunk(chunk) => self.contents.add(chunk)?,
            Record::Memory(memory) => new(&mut self.memories, memory.id, memory)?,
            Record::Buffer(buffer) => {
                let memory = known(&self.memories, buffer.memory, "memory")?;
                inside(buffer.offset, buffer.bytes, memory.bytes)?;
                new(&mut self.buffers, buffer.id, buffer)?;
            }
            Record::Module(module) => {
                let bytes = self.contents.has(module.code)?;
                if bytes < SPIRV_HEADER_BYTES || !bytes.is_multiple_of(4) {
                    return Err(Fault::Spirv(bytes));
                }
                new(&mut self.modules, module.id, module)?;
            }
            Record::SetLayout(layout) => self.add_set_layout(layout)?,
            Record::PipelineLayout(layout) => {
                for set in layout.sets.iter().flatten() {
                    known(&self.set_layouts, *set, "set layout")?;
                }
                for range in &layout.push_constants {
                    inside(
                        range.offset.into(),
                        range.bytes.into(),
                        MAX_PUSH_CONSTANT_BYTES,
                    )?;
                    words(range.offset.into(), range.bytes.into())?;
                }
                new(&mut self.pipeline_layouts, layout.id, layout)?;
            }
            Record::Pipeline(pipeline) => {
                self.check_pipeline(&pipeline)?;
                new(&mut self.pipelines, pipeline.id, pipeline)?;
            }
            Record::Queue(queue) => new(&mut self.queues, queue.id, queue)?,
            Record::Content(content) => {
                let memory = known(&self.memories, content.memory, "memory")?;
                self.contents.check_content(&content, memory.bytes)?;
                self.steps.push(Step::Content(content));
            }
            Record::Outcome(outcome) => {
                let memory = known(&self.memories, outcome.memory, "memory")?;
                check_outcome(&outcome, memory.bytes)?;
                self.steps.push(Step::Outcome(outcome));
            }
            Record::Commands(Commands { id, commands }) => {
                for (index, command) in commands.iter().enumerate() {
                    self.check(command).map_err(|fault| {
                        let fault = Box::new(fault);
                        Fault::Command { index, fault }
                    })?;
                }
                new(&mut self.commands, id, commands)?;
            }
            Record::Submission(submission) => {
                self.executed = self.check_submission(&submission)?;
                self.steps.push(Step::Submission(submission));
            }
            Record::End(end) => self.end = Some(end),
            // A check is about the file, and adds nothing to the capture.
            Record::Check(_) => {}
        }
        Ok(())
    }

    /// Adds the layout, and the type and count of each of its bindings to `slots`.
    fn add_set_layout(&mut self, layout: SetLayout) -> Result<(), Fault> {
        // Bindings are checked first, so that an invalid layout leaves nothing behind.
        let id = layout.id;
        if self.set_layouts.contains_key(&id) {
            return Err(Fault::TakenId(id.to_string()));
        }
        let mut slots = std::collections::HashMap::with_capacity(layout.bindings.len());
        for slot in &layout.bindings {
            let key = (id, slot.binding);
            if (slots.insert(key, (slot.descriptor_type, slot.count))).is_some() {
                return Err(Fault::SecondBinding(slot.binding));
            }
        }
        self.slots.extend(slots);
        new(&mut self.set_layouts, id, layout)
    }

    /// Checks that the objects are there, and that constants have whole sizes and different ids.
    fn check_pipeline(&self, pipeline: &Pipeline) -> Result<(), Fault> {
        known(&self.pipeline_layouts, pipeline.layout, "pipeline layout")?;
        known(&self.modules, pipeline.module, "module")?;
        text(&pipeline.entry)?;
        let mut ids = std::collections::HashSet::with_capacity(pipeline.constants.len());
        for Constant { id, value } in &pipeline.constants {
            if ![1, 2, 4, 8].contains(&value.len()) {
                return Err(Fault::ConstantBytes {
                    id: *id,
                    bytes: value.len(),
                });
            }
            if !ids.insert(*id) {
                return Err(Fault::SecondConstant(*id));
            }
        }
        Ok(())
    }

    /// Checks a submission, and returns the number of commands that have run after it.
    fn check_submission(&self, submission: &Submission) -> Result<u64, Fault> {
        known(&self.queues, submission.queue, "queue")?;
        let mut executed = self.executed;
        for id in submission.batches.iter().flat_map(|batch| &batch.commands) {
            executed += known(&self.commands, *id, "commands")?.len() as u64;
        }
        if executed > MAX_EXECUTED {
            return Err(Fault::TooManyCommands {
                found: executed,
                max: MAX_EXECUTED,
            });
        }
        Ok(executed)
    }

    fn check(&self, command: &Command) -> Result<(), Fault> {
        match command {
            Command::Dispatch(dispatch) => self.check_dispatch(dispatch)?,
            Command::Copy(copy) => {
                known(&self.buffers, copy.from, "buffer")?;
                known(&self.buffers, copy.to, "buffer")?;
                for range in copy.regions.iter().flat_map(|region| copy.ranges(region)) {
                    self.range(range)?;
                }
            }
            Command::Fill(fill) => {
                self.range(fill.range)?;
                words(fill.range.offset, fill.range.bytes)?;
            }
            Command::Update(update) => {
                let BufferRange { offset, bytes, .. } = update.range();
                self.range(update.range())?;
                words(offset, bytes)?;
                if bytes > MAX_UPDATE_BYTES {
                    let max = MAX_UPDATE_BYTES;
                    return Err(Fault::UpdateBytes { bytes, max });
                }
            }
            Command::Barrier(barrier) => {
                for (_, range) in &barrier.buffers {
                    self.range(*range)?;
                }
            }
            Command::Label(Label::Begin(name) | Label::Instant(name)) => text(name)?,
            Command::Label(Label::End) => {}
        }
        Ok(())
    }

    /// Checks that a dispatch has the push constants of its layout, and only descriptors that the layout has, in
    /// order.
    fn check_dispatch(&self, dispatch: &Dispatch) -> Result<(), Fault> {
        let pipeline = known(&self.pipelines, dispatch.pipeline, "pipeline")?;
        let layout = known(&self.pipeline_layouts, pipeline.layout, "pipeline layout")?;
        let expected = layout.push_constant_bytes();
        let found = dispatch.push_constants.len();
        if found != expected as usize {
            return Err(Fault::PushConstants { found, expected });
        }
        if let Groups::Indirect(range) = dispatch.groups {
            self.range(range)?;
            words(range.offset, range.bytes)?;
            if range.bytes != 12 {
                return Err(Fault::IndirectBytes(range.bytes));
            }
        }
        let mut last = None;
        for binding in &dispatch.bindings {
            let slot = Slot {
                set: binding.set,
                binding: binding.binding,
                element: binding.element,
            };
            let found = binding.descriptor_type;
            if last.replace(slot) >= Some(slot) {
                return Err(Fault::DescriptorOrder(slot));
            }
            match self.descriptors(layout, slot.set, slot.binding) {
                Some((expected, count)) if found == expected && slot.element < count => {}
                _ => return Err(Fault::NoDescriptor(slot)),
            }
            if !BUFFER_DESCRIPTORS.contains(&found) {
                return Err(Fault::DescriptorType { found, slot });
            }
            if let Some(range) = binding.range {
                self.range(range)?;
            }
        }
        Ok(())
    }

    fn range(&self, range: BufferRange) -> Result<(), Fault> {
        let buffer = known(&self.buffers, range.buffer, "buffer")?;
        inside(range.offset, range.bytes, buffer.bytes)
    }
}

/// Returns the object with an id, or a fault that names the kind.
pub(crate) fn known<'a, I: Ord + fmt::Display, T>(
    map: &'a BTreeMap<I, T>,
    id: I,
    kind: &'static str,
) -> Result<&'a T, Fault> {
    map.get(&id).ok_or_else(|| Fault::UnknownId {
        kind,
        id: id.to_string(),
    })
}

/// Adds an object, unless its id is taken: earlier records were checked against the object that has it.
pub(crate) fn new<I: Ord + fmt::Display, T>(
    map: &mut BTreeMap<I, T>,
    id: I,
    object: T,
) -> Result<(), Fault> {
    match map.entry(id) {
        Entry::Vacant(entry) => {
            entry.insert(object);
            Ok(())
        }
        Entry::Occupied(entry) => Err(Fault::TakenId(entry.key().to_string())),
    }
}

/// Checks that a range begins and ends at words of 4 bytes.
fn words(offset: u64, bytes: u64) -> Result<(), Fault> {
    if offset.is_multiple_of(4) && bytes.is_multiple_of(4) {
        Ok(())
    } else {
        Err(Fault::PartialWords { offset, bytes })
    }
}

/// Checks that a text holds no zero byte, at which Vulkan would end it.
pub(crate) fn text(text: &str) -> Result<(), Fault> {
    match text.contains('\0') {
        false => Ok(()),
        true => Err(Fault::ZeroByte),
    }
}

//! Takes records into a capture, if they are right.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use crate::Capture;
use crate::capture::Step;
use crate::content::{CHUNK_BYTES, CHUNK_BYTES_AT_MOST, Hash, ZSTD_RATIO, piece_count};
use crate::model::*;

/// No device has more push constants.
const PUSH_CONSTANT_BYTES: u64 = 64 << 10;
/// `vkCmdUpdateBuffer` takes no more.
const UPDATE_BYTES: u64 = 64 << 10;
/// The length of the header of SPIR-V.
const SPIRV_HEADER_BYTES: u32 = 4 * gapscope_spirv::HEADER_WORDS as u32;
/// No window runs more commands. A line of a few kilobytes could name a long command buffer a thousand times.
const EXECUTED_AT_MOST: u64 = 1 << 27;
/// `VkDescriptorType`: uniform and storage buffers, and the same with dynamic offsets.
const BUFFER_DESCRIPTORS: std::ops::RangeInclusive<u32> = 6..=9;

impl Capture {
    /// Takes a record in, if all that it names is here. One that is not right changes nothing.
    pub(crate) fn add(&mut self, record: Record) -> Result<(), String> {
        if self.end.is_some() {
            return Err("it follows the end".to_owned());
        }
        match record {
            Record::Capture(_) => return Err("the capture begins a second time".to_owned()),
            Record::Chunk(chunk) => self.add_chunk(chunk)?,
            Record::Memory(memory) => new(&mut self.memories, memory.id, memory)?,
            Record::Buffer(buffer) => {
                let memory = known(&self.memories, buffer.memory, "memory")?;
                inside(buffer.offset, buffer.bytes, memory.bytes)?;
                new(&mut self.buffers, buffer.id, buffer)?;
            }
            Record::Module(module) => {
                let bytes = self.has(module.code)?;
                if bytes < SPIRV_HEADER_BYTES || !bytes.is_multiple_of(4) {
                    return Err(format!("{bytes} bytes are no SPIR-V"));
                }
                new(&mut self.modules, module.id, module)?;
            }
            Record::SetLayout(layout) => self.add_set_layout(layout)?,
            Record::PipelineLayout(layout) => {
                for set in layout.sets.iter().flatten() {
                    known(&self.set_layouts, *set, "set layout")?;
                }
                for range in &layout.push_constants {
                    inside(range.offset.into(), range.bytes.into(), PUSH_CONSTANT_BYTES)?;
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
                self.check_content(&content)?;
                self.steps.push(Step::Content(content));
            }
            Record::Outcome(outcome) => {
                self.check_outcome(&outcome)?;
                self.steps.push(Step::Outcome(outcome));
            }
            Record::Commands(Commands { id, commands }) => {
                for (index, command) in commands.iter().enumerate() {
                    self.check(command)
                        .map_err(|reason| format!("command {index}: {reason}"))?;
                }
                new(&mut self.commands, id, commands)?;
            }
            Record::Submission(submission) => {
                self.executed = self.check_submission(&submission)?;
                self.steps.push(Step::Submission(submission));
            }
            Record::End(end) => self.end = Some(end),
            // Of the file, and not of what it says.
            Record::Check(_) => {}
        }
        Ok(())
    }

    fn add_chunk(&mut self, chunk: Chunk) -> Result<(), String> {
        let Chunk { hash, bytes, .. } = chunk;
        let most = u64::from(chunk.stored).saturating_mul(ZSTD_RATIO);
        if bytes > CHUNK_BYTES_AT_MOST || u64::from(bytes) > most {
            let stored = chunk.stored;
            return Err(format!(
                "content {hash} claims {bytes} bytes, of {stored} stored ones"
            ));
        }
        if self.chunks.contains_key(&hash) {
            return Err(format!("content {hash} is here twice"));
        }
        self.content.take(&chunk)?;
        self.chunks.insert(hash, chunk);
        Ok(())
    }

    fn add_set_layout(&mut self, layout: SetLayout) -> Result<(), String> {
        // Checked first: what is not right leaves nothing behind.
        let id = layout.id;
        if self.set_layouts.contains_key(&id) {
            return Err(format!("number {id} is taken"));
        }
        let mut slots = std::collections::HashMap::with_capacity(layout.bindings.len());
        for slot in &layout.bindings {
            let key = (id, slot.binding);
            if (slots.insert(key, (slot.descriptor_type, slot.count))).is_some() {
                return Err(format!("binding {} is here twice", slot.binding));
            }
        }
        self.slots.extend(slots);
        new(&mut self.set_layouts, id, layout)
    }

    fn check_pipeline(&self, pipeline: &Pipeline) -> Result<(), String> {
        known(&self.pipeline_layouts, pipeline.layout, "pipeline layout")?;
        known(&self.modules, pipeline.module, "module")?;
        text(&pipeline.entry)?;
        let mut ids = std::collections::HashSet::with_capacity(pipeline.constants.len());
        for Constant { id, value } in &pipeline.constants {
            if ![1, 2, 4, 8].contains(&value.len()) {
                return Err(format!("constant {id} has {} bytes", value.len()));
            }
            if !ids.insert(*id) {
                return Err(format!("constant {id} is here twice"));
            }
        }
        Ok(())
    }

    fn check_content(&self, content: &Content) -> Result<(), String> {
        let memory = known(&self.memories, content.memory, "memory")?;
        if content.chunks.is_empty() {
            return Err("there are no pieces".to_owned());
        }
        let mut at = content.offset;
        for (index, hash) in content.chunks.iter().enumerate() {
            let bytes = u64::from(self.has(*hash)?);
            inside(at, bytes, memory.bytes)?;
            let room = CHUNK_BYTES - at % CHUNK_BYTES;
            let is_last = index + 1 == content.chunks.len();
            if bytes == 0 || bytes > room || (bytes < room && !is_last) {
                return Err(format!(
                    "piece {index} has {bytes} bytes, and {room} are to the next"
                ));
            }
            at += bytes;
        }
        Ok(())
    }

    fn check_outcome(&self, outcome: &Outcome) -> Result<(), String> {
        let memory = known(&self.memories, outcome.memory, "memory")?;
        inside(outcome.offset, outcome.bytes, memory.bytes)?;
        let expected = piece_count(outcome.offset, outcome.bytes);
        let found = outcome.hashes.len();
        if expected != found as u64 {
            return Err(format!("there are {found} hashes for {expected} pieces"));
        }
        if found == 0 {
            return Err("there are no pieces".to_owned());
        }
        Ok(())
    }

    /// How many commands have run after it.
    fn check_submission(&self, submission: &Submission) -> Result<u64, String> {
        known(&self.queues, submission.queue, "queue")?;
        let mut executed = self.executed;
        for id in submission.batches.iter().flat_map(|batch| &batch.commands) {
            executed += known(&self.commands, *id, "commands")?.len() as u64;
        }
        if executed > EXECUTED_AT_MOST {
            return Err(format!(
                "{executed} commands have run, more than {EXECUTED_AT_MOST}"
            ));
        }
        Ok(executed)
    }

    fn check(&self, command: &Command) -> Result<(), String> {
        match command {
            Command::Dispatch(dispatch) => self.check_dispatch(dispatch)?,
            Command::Copy(copy) => {
                known(&self.buffers, copy.from, "buffer")?;
                known(&self.buffers, copy.to, "buffer")?;
                for CopyRegion { from, to, bytes } in copy.regions.iter().copied() {
                    let range = |buffer, offset| BufferRange {
                        buffer,
                        offset,
                        bytes,
                    };
                    self.range(range(copy.from, from))?;
                    self.range(range(copy.to, to))?;
                }
            }
            Command::Fill(fill) => {
                self.range(fill.range)?;
                words(fill.range.offset, fill.range.bytes)?;
            }
            Command::Update(update) => {
                let bytes = update.data.len() as u64;
                self.range(BufferRange {
                    buffer: update.buffer,
                    offset: update.offset,
                    bytes,
                })?;
                words(update.offset, bytes)?;
                if bytes > UPDATE_BYTES {
                    return Err(format!(
                        "an update has {bytes} bytes, more than {UPDATE_BYTES}"
                    ));
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

    fn check_dispatch(&self, dispatch: &Dispatch) -> Result<(), String> {
        let pipeline = known(&self.pipelines, dispatch.pipeline, "pipeline")?;
        let layout = known(&self.pipeline_layouts, pipeline.layout, "pipeline layout")?;
        let ends = (layout.push_constants.iter()).map(|range| range.offset + range.bytes);
        let bytes = ends.max().unwrap_or(0);
        if dispatch.push_constants.len() != bytes as usize {
            let found = dispatch.push_constants.len();
            return Err(format!(
                "{found} bytes of push constants, and the layout has {bytes}"
            ));
        }
        if let Groups::Indirect(range) = dispatch.groups {
            self.range(range)?;
            words(range.offset, range.bytes)?;
            if range.bytes != 12 {
                let bytes = range.bytes;
                return Err(format!(
                    "an indirect dispatch reads {bytes} bytes, and not 12"
                ));
            }
        }
        let mut last = None;
        for binding in &dispatch.bindings {
            let place = (binding.set, binding.binding, binding.element);
            let (set, number, element) = place;
            let at = || format!("set {set}, binding {number}, element {element}");
            if last.replace(place) >= Some(place) {
                return Err(format!("descriptors are not in order: {}", at()));
            }
            let set = layout.sets.get(set as usize).copied().flatten();
            let slot = set.and_then(|set| self.slots.get(&(set, number)));
            match slot {
                Some((of, count)) if binding.descriptor_type == *of && element < *count => {}
                _ => return Err(format!("the layout has no such descriptor: {}", at())),
            }
            if !BUFFER_DESCRIPTORS.contains(&binding.descriptor_type) {
                let found = binding.descriptor_type;
                return Err(format!("descriptor type {found} is no buffer: {}", at()));
            }
            if let Some(range) = binding.range {
                self.range(range)?;
            }
        }
        Ok(())
    }

    fn range(&self, range: BufferRange) -> Result<(), String> {
        let buffer = known(&self.buffers, range.buffer, "buffer")?;
        inside(range.offset, range.bytes, buffer.bytes)
    }

    /// The size of a piece that is here.
    fn has(&self, hash: Hash) -> Result<u32, String> {
        self.chunk_bytes(hash)
            .ok_or_else(|| format!("content {hash} is missing"))
    }
}

fn known<'a, I: Ord + fmt::Display, T>(
    map: &'a BTreeMap<I, T>,
    id: I,
    what: &str,
) -> Result<&'a T, String> {
    map.get(&id)
        .ok_or_else(|| format!("there is no {what} {id}"))
}

/// The first object of a number stays: what came before was checked against it.
fn new<I: Ord + fmt::Display, T>(map: &mut BTreeMap<I, T>, id: I, object: T) -> Result<(), String> {
    match map.entry(id) {
        Entry::Vacant(entry) => {
            entry.insert(object);
            Ok(())
        }
        Entry::Occupied(entry) => Err(format!("number {} is taken", entry.key())),
    }
}

fn inside(offset: u64, bytes: u64, of: u64) -> Result<(), String> {
    match offset.checked_add(bytes) {
        Some(end) if end <= of => Ok(()),
        _ => Err(format!(
            "{bytes} bytes from byte {offset} on are not inside of {of} bytes"
        )),
    }
}

fn words(offset: u64, bytes: u64) -> Result<(), String> {
    if offset.is_multiple_of(4) && bytes.is_multiple_of(4) {
        Ok(())
    } else {
        Err(format!(
            "{bytes} bytes from byte {offset} on are not whole words"
        ))
    }
}

/// Vulkan takes texts that end with a zero byte.
fn text(text: &str) -> Result<(), String> {
    match text.contains('\0') {
        false => Ok(()),
        true => Err("a text holds a zero byte".to_owned()),
    }
}

//! Writes a new capture with the objects of another one, and with changed commands or added kernels.
//!
//! Order of calls: `new`, then contents (bytes of memory), commands, submissions and outcomes (hashes of what a
//! submission leaves in memory) in the order of the window, and `end`. Old ids stay, and new ids are above them.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use gapscope_capture::model::*;
use gapscope_capture::{Capture, ReadError, Writer, pieces};

use crate::merge::ENTRY;

/// `VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT`
const DEVICE_LOCAL: u32 = 1;
/// `VK_BUFFER_USAGE_TRANSFER_SRC_BIT`
const TRANSFER_SOURCE: u64 = 1;
/// `VK_BUFFER_USAGE_TRANSFER_DST_BIT`
const TRANSFER_DESTINATION: u64 = 2;
/// `VK_BUFFER_USAGE_STORAGE_BUFFER_BIT`
const STORAGE_BUFFER: u64 = 0x20;

/// A capture that is being written, with the objects of another capture.
pub struct Draft<'a> {
    source: &'a Capture,
    writer: Writer,
    /// The number that was given last.
    next: u32,
    /// The commands of the other capture that have been written.
    written: BTreeSet<CommandsId>,
}

/// A kernel to add. Its descriptors are in set 0.
pub struct NewKernel<'a> {
    /// Name of the kernel.
    pub name: String,
    /// Words of SPIR-V with the entry point `main`.
    pub words: &'a [u32],
    /// `VkDescriptorType` of each binding.
    pub descriptors: &'a [u32],
    /// Bytes of push constants.
    pub push_constants: u32,
    /// A pipeline whose flags the new pipeline takes.
    pub like: Option<&'a Pipeline>,
}

/// Why a capture cannot be made from another capture.
#[derive(Debug, thiserror::Error)]
pub enum DraftError {
    /// Reading or writing failed.
    #[error("cannot write the changed capture: {0}")]
    Io(#[from] io::Error),
    /// The written capture cannot be read.
    #[error("cannot read the changed capture: {0}")]
    Read(#[from] ReadError),
    /// The written capture is invalid.
    #[error("the changed capture is not right: {0}")]
    Wrong(String),
}

impl<'a> Draft<'a> {
    /// Begins a capture with all objects of `source`, in a folder that must not exist.
    pub fn new(source: &'a Capture, folder: &Path) -> Result<Draft<'a>, DraftError> {
        let mut writer = Writer::create(folder, source.header.clone())?;
        for memory in source.memories.values() {
            writer.record(&Record::Memory(memory.clone()))?;
        }
        for buffer in source.buffers.values() {
            writer.record(&Record::Buffer(buffer.clone()))?;
        }
        for module in source.modules.values() {
            writer.chunk(&source.chunk(module.code)?)?;
            writer.record(&Record::Module(module.clone()))?;
        }
        for layout in source.set_layouts.values() {
            writer.record(&Record::SetLayout(layout.clone()))?;
        }
        for layout in source.pipeline_layouts.values() {
            writer.record(&Record::PipelineLayout(layout.clone()))?;
        }
        for pipeline in source.pipelines.values() {
            writer.record(&Record::Pipeline(pipeline.clone()))?;
        }
        for queue in source.queues.values() {
            writer.record(&Record::Queue(queue.clone()))?;
        }
        let last = [
            source.memories.keys().map(|id| id.0).max(),
            source.buffers.keys().map(|id| id.0).max(),
            source.modules.keys().map(|id| id.0).max(),
            source.set_layouts.keys().map(|id| id.0).max(),
            source.pipeline_layouts.keys().map(|id| id.0).max(),
            source.pipelines.keys().map(|id| id.0).max(),
            source.commands.keys().map(|id| id.0).max(),
        ];
        Ok(Draft {
            source,
            writer,
            next: last.into_iter().flatten().max().unwrap_or(0),
            written: BTreeSet::new(),
        })
    }

    fn number(&mut self) -> u32 {
        self.next = self.next.saturating_add(1);
        self.next
    }

    /// Adds a kernel with its layouts, and returns the id of its pipeline.
    pub fn kernel(&mut self, kernel: &NewKernel<'_>) -> Result<PipelineId, DraftError> {
        let number = self.number();
        let bytes: Vec<u8> = kernel
            .words
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect();
        let bindings = (0..).zip(kernel.descriptors);
        let pipeline = Pipeline {
            name: kernel.name.clone(),
            entry: ENTRY.to_owned(),
            constants: Vec::new(),
            ..kernel.like.cloned().unwrap_or_default()
        };
        Ok(self.writer.kernel(
            number,
            &bytes,
            bindings
                .map(|(binding, kind)| LayoutBinding::for_compute(binding, *kind))
                .collect(),
            kernel.push_constants,
            pipeline,
        )?)
    }

    /// Adds an allocation with one buffer in it, and returns the id of the buffer.
    pub fn buffer(&mut self, bytes: u64) -> Result<BufferId, DraftError> {
        let number = self.number();
        self.writer.record(&Record::Memory(Memory {
            id: MemoryId(number),
            bytes,
            properties: DEVICE_LOCAL,
        }))?;
        let id = BufferId(number);
        self.writer.record(&Record::Buffer(Buffer {
            id,
            bytes,
            usage: TRANSFER_SOURCE | TRANSFER_DESTINATION | STORAGE_BUFFER,
            memory: MemoryId(number),
            ..Buffer::default()
        }))?;
        Ok(id)
    }

    /// Adds a content of the other capture.
    pub fn content(&mut self, content: &Content) -> Result<(), DraftError> {
        for hash in &content.chunks {
            self.writer.chunk(&self.source.chunk(*hash)?)?;
        }
        self.writer.record(&Record::Content(content.clone()))?;
        Ok(())
    }

    /// Adds commands of the other capture, and returns their id in the new one.
    pub fn same_commands(&mut self, id: CommandsId) -> Result<CommandsId, DraftError> {
        if self.written.insert(id) {
            let commands = self.source.commands[&id].clone();
            self.writer
                .record(&Record::Commands(Commands { id, commands }))?;
        }
        Ok(id)
    }

    /// Adds new commands, and returns their id.
    pub fn commands(&mut self, commands: Vec<Command>) -> Result<CommandsId, DraftError> {
        let id = CommandsId(self.number());
        self.writer
            .record(&Record::Commands(Commands { id, commands }))?;
        Ok(id)
    }

    /// Adds a submission record as it is.
    pub fn submission(&mut self, submission: Submission) -> Result<(), DraftError> {
        self.writer.record(&Record::Submission(submission))?;
        Ok(())
    }

    /// Adds a submission of these commands alone, to a queue of the other capture.
    pub fn submit(&mut self, queue: QueueId, commands: Vec<Command>) -> Result<(), DraftError> {
        let id = self.commands(commands)?;
        self.submission(Submission::with_commands(queue, id))
    }

    /// Adds an outcome without the pieces for whose offset and size `keeps` returns false, and returns their number.
    pub fn outcome(
        &mut self,
        outcome: &Outcome,
        keeps: &dyn Fn(u64, u64) -> bool,
    ) -> Result<u64, DraftError> {
        let mut left_out = 0;
        let mut open: Option<Outcome> = None;
        for (hash, (at, bytes)) in outcome
            .hashes
            .iter()
            .zip(pieces(outcome.offset, outcome.bytes))
        {
            if keeps(at, bytes) {
                let open = open.get_or_insert_with(|| Outcome {
                    memory: outcome.memory,
                    offset: at,
                    bytes: 0,
                    hashes: Vec::new(),
                });
                open.bytes += bytes;
                open.hashes.push(*hash);
            } else {
                left_out += 1;
                self.write_outcome(open.take())?;
            }
        }
        self.write_outcome(open)?;
        Ok(left_out)
    }

    fn write_outcome(&mut self, outcome: Option<Outcome>) -> Result<(), DraftError> {
        if let Some(outcome) = outcome {
            self.writer.record(&Record::Outcome(outcome))?;
        }
        Ok(())
    }

    /// Finishes the capture and opens it. It is an error if the capture cannot be read whole.
    pub fn end(mut self, folder: &Path) -> Result<Capture, DraftError> {
        let end = self.source.end.clone().unwrap_or_default();
        self.writer.record(&Record::End(end))?;
        drop(self.writer);
        match Capture::open(folder)? {
            (capture, None) => Ok(capture),
            (_, Some(problem)) => Err(DraftError::Wrong(problem.to_string())),
        }
    }
}

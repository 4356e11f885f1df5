//! Defines [`Capture`], all records of a capture in memory. `files` fills it from the capture's folder; replay,
//! dependencies and fusion read it. A window is the stretch of a program's run that was recorded, as steps: the
//! content of memory, submissions of commands, and the outcome that a replay is checked against.

use std::collections::{BTreeMap, HashMap};
use std::io;

use crate::content::Hash;
use crate::contents::Contents;
use crate::model::*;

/// The records of a capture by their ids. Every object that a record names is in the capture, and every range is in
/// bounds.
#[derive(Debug)]
pub struct Capture {
    /// The program, the device and the window.
    pub header: Header,
    /// Allocations of device memory by id.
    pub memories: BTreeMap<MemoryId, Memory>,
    /// Buffers by id, each with its place in an allocation.
    pub buffers: BTreeMap<BufferId, Buffer>,
    /// Shader modules by id.
    pub modules: BTreeMap<ModuleId, Module>,
    /// Layouts of descriptor sets by id.
    pub set_layouts: BTreeMap<SetLayoutId, SetLayout>,
    /// Pipeline layouts by id.
    pub pipeline_layouts: BTreeMap<PipelineLayoutId, PipelineLayout>,
    /// Compute pipelines by id.
    pub pipelines: BTreeMap<PipelineId, Pipeline>,
    /// Queues that the window submitted to, by id.
    pub queues: BTreeMap<QueueId, Queue>,
    /// The commands of command buffers, by the id of their recording.
    pub commands: BTreeMap<CommandsId, Vec<Command>>,
    /// Content, submissions and outcomes in order.
    pub steps: Vec<Step>,
    /// The end of the window; `None` if the capture was cut off.
    pub end: Option<End>,
    /// The pieces of content.
    pub(crate) contents: Contents,
    /// Descriptor type and count, by layout and number of the binding.
    pub(crate) slots: HashMap<(SetLayoutId, u32), (u32, u32)>,
    /// Number of commands that [`Capture::executed`] returns.
    pub(crate) executed: u64,
}

/// A step of a window.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Bytes that memory holds before the next submission.
    Content(Content),
    /// Work is handed to a queue.
    Submission(Submission),
    /// Hashes of the bytes that memory must hold after the submissions before.
    Outcome(Outcome),
}

impl Capture {
    pub(crate) fn new(header: Header, contents: Contents) -> Capture {
        Capture {
            header,
            memories: BTreeMap::new(),
            buffers: BTreeMap::new(),
            modules: BTreeMap::new(),
            set_layouts: BTreeMap::new(),
            pipeline_layouts: BTreeMap::new(),
            pipelines: BTreeMap::new(),
            queues: BTreeMap::new(),
            commands: BTreeMap::new(),
            steps: Vec::new(),
            end: None,
            contents,
            slots: HashMap::new(),
            executed: 0,
        }
    }

    /// Reads the chunk (a piece of content) with this hash, which has [`Capture::chunk_bytes`] bytes.
    ///
    /// # Errors
    /// The chunk is not in the file, or its bytes have another hash.
    pub fn chunk(&self, hash: Hash) -> io::Result<Vec<u8>> {
        self.contents.read(hash)
    }

    /// Returns the size of the chunk with this hash; `None` if the capture does not have it.
    pub fn chunk_bytes(&self, hash: Hash) -> Option<u32> {
        self.contents.bytes(hash)
    }

    /// Returns the number of bytes of a content record.
    pub fn content_bytes(&self, content: &Content) -> u64 {
        self.contents.total(&content.chunks)
    }

    /// Returns the allocation and the offset in it at which a range of a buffer lies.
    ///
    /// # Panics
    /// The range is not from a record of this capture, and its buffer is not here.
    pub fn place(&self, range: BufferRange) -> (MemoryId, u64) {
        let buffer = &self.buffers[&range.buffer];
        (buffer.memory, buffer.offset + range.offset)
    }

    /// Returns the descriptor type and the count of a binding; `None` if the layout does not have it.
    pub fn descriptors(
        &self,
        layout: &PipelineLayout,
        set: u32,
        binding: u32,
    ) -> Option<(u32, u32)> {
        let set = (*layout.sets.get(set as usize)?)?;
        self.slots.get(&(set, binding)).copied()
    }

    /// Returns the calls that submit, in order.
    pub fn submissions(&self) -> impl Iterator<Item = &Submission> {
        self.steps.iter().filter_map(|step| match step {
            Step::Submission(submission) => Some(submission),
            _ => None,
        })
    }

    /// Returns the number of submissions (`VkSubmitInfo`) as recordings count them: one call may hand over several, or
    /// a fence alone.
    pub fn submission_count(&self) -> usize {
        self.submissions().map(|call| call.batches.len()).sum()
    }

    /// Returns all commands in the order of submission; those of a command buffer that was submitted twice come
    /// twice.
    pub fn executed(&self) -> impl Iterator<Item = &Command> {
        self.submissions()
            .flat_map(|submission| &submission.batches)
            .flat_map(|batch| &batch.commands)
            .flat_map(|id| &self.commands[id])
    }
}

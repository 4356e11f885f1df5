//! Converts stacks of host threads (a sample says where a thread was; its frames are the functions) to rows, with
//! each frame and each stack once.

use super::Assembler;
use gapscope_stacks as sampler;
use gapscope_trace::build::Interner;
use gapscope_trace::ids::{FrameId, ProcessId, StackId, ThreadId};
use gapscope_trace::manifest;
use gapscope_trace::tables::{
    Frame, FrameKind, Sample, SampleSource, Stack, Table, Tables, ThreadState,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The stacks of a trace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Stacks {
    frames: Interner<FrameFacts, FrameId>,
    stacks: Interner<(Option<StackId>, FrameId), StackId>,
}

/// The identity of a frame. The fields are those of the table `frames`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrameFacts {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// The function.
    pub function: Option<Arc<str>>,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line in the source file.
    pub line: Option<u32>,
    /// The library or program file.
    pub library: Option<Arc<str>>,
    /// The address in the library.
    pub address: Option<u64>,
}

impl From<&sampler::Frame> for FrameFacts {
    fn from(frame: &sampler::Frame) -> Self {
        FrameFacts {
            kind: frame.kind,
            function: frame.function.clone(),
            file: frame.file.clone(),
            line: frame.line,
            library: frame.library.clone(),
            address: frame.address,
        }
    }
}

impl Stacks {
    /// Returns the id of a stack, whose frames come outermost first, and adds rows for new frames and stacks.
    fn stack(
        &mut self,
        frames: impl Iterator<Item = FrameFacts>,
        tables: &mut Tables,
    ) -> Option<StackId> {
        frames.fold(None, |parent, facts| {
            let known = self.frames.len();
            let frame = self.frames.id(facts.clone());
            if self.frames.len() > known {
                tables.frames.push(Frame {
                    id: frame,
                    kind: facts.kind,
                    function: facts.function,
                    file: facts.file,
                    line: facts.line,
                    library: facts.library,
                    address: facts.address,
                });
            }
            let known = self.stacks.len();
            let id = self.stacks.id((parent, frame));
            if self.stacks.len() > known {
                tables.stacks.push(Stack { id, parent, frame });
            }
            Some(id)
        })
    }
}

/// The fields of the table `samples` apart from the process and the stack.
#[derive(Debug, Clone)]
pub struct SampleFacts {
    /// The time on the host's clock.
    pub time_ns: i64,
    /// The sampled thread.
    pub thread: ThreadId,
    /// The state of the thread.
    pub state: ThreadState,
    /// The sampler.
    pub source: SampleSource,
    /// The sampling period.
    pub period_ns: Option<i64>,
    /// The system call that the thread was in.
    pub system_call: Option<Arc<str>>,
    /// The thread that held Python's global interpreter lock.
    pub gil_holder: Option<ThreadId>,
}

impl Assembler {
    /// Adds a process that works for a recorded process and has only samples.
    pub fn add_worker(&mut self, facts: manifest::Process) -> ProcessId {
        let id = self.add_process(facts.pid, facts.start_ns);
        self.processes[id].facts = manifest::Process {
            id,
            hook: manifest::Process::SAMPLED.to_owned(),
            ..facts
        };
        id
    }

    /// Adds a sample of a thread. `frames` is its stack, outermost first; `None` if the stack could not be read.
    pub fn sample(
        &mut self,
        process: ProcessId,
        facts: SampleFacts,
        frames: Option<impl Iterator<Item = FrameFacts>>,
        tables: &mut Tables,
    ) {
        let stack = frames.and_then(|frames| self.stacks.stack(frames, tables));
        tables.samples.push(Sample {
            time_ns: facts.time_ns,
            process,
            thread: facts.thread,
            stack,
            state: facts.state,
            source: facts.source,
            period_ns: facts.period_ns,
            system_call: facts.system_call,
            gil_holder: facts.gil_holder,
        });
    }

    /// Returns true if a thread of a process has a name.
    pub fn knows_thread(&self, process: ProcessId, thread: ThreadId) -> bool {
        self.processes[process].threads.contains_key(&thread)
    }

    /// Names a thread that has written nothing.
    pub fn name_thread(&mut self, process: ProcessId, thread: ThreadId, name: String) {
        self.processes[process]
            .threads
            .entry(thread)
            .or_insert(name);
    }
}

//! Converts stacks of host threads (a sample says where a thread was; its frames are the functions) to rows, with
//! each frame and each stack once.

use super::Assembler;
use gapscope_stacks::Frame as StackFrame;
use gapscope_trace::build::Interner;
use gapscope_trace::ids::{FrameId, ProcessId, StackId, ThreadId};
use gapscope_trace::manifest;
use gapscope_trace::tables::{Frame, Sample, Stack, Table, Tables};
use serde::{Deserialize, Serialize};

/// The stacks of a trace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Stacks {
    frames: Interner<StackFrame, FrameId>,
    /// The stacks, each by the stack of its callers and its innermost frame.
    stacks: Interner<(Option<StackId>, FrameId), StackId>,
}

impl Stacks {
    /// Returns the id of a stack, whose frames come outermost first, and adds rows for new frames and stacks; `None`
    /// without frames.
    fn stack(
        &mut self,
        frames: impl Iterator<Item = StackFrame>,
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

impl Assembler {
    /// Adds a worker: a process that works for a recorded process, and of which the trace has only samples.
    pub fn add_worker(&mut self, facts: manifest::Process) -> ProcessId {
        let id = self.add_process(facts.pid, facts.start_ns);
        self.processes[id].facts = manifest::Process {
            id,
            hook: manifest::Process::SAMPLED.to_owned(),
            ..facts
        };
        id
    }

    /// Adds a sample of a thread, which gets the stack of `frames`, outermost first; `None` if the stack could not be
    /// read.
    pub fn sample(
        &mut self,
        mut sample: Sample,
        frames: Option<impl Iterator<Item = StackFrame>>,
        tables: &mut Tables,
    ) {
        sample.stack = frames.and_then(|frames| self.stacks.stack(frames, tables));
        tables.samples.push(sample);
    }

    /// Returns true if a thread of a process has a name.
    pub fn knows_thread(&self, process: ProcessId, thread: ThreadId) -> bool {
        self.processes[process].threads.contains_key(&thread)
    }

    /// Names a thread that has no name yet.
    pub fn name_thread(&mut self, process: ProcessId, thread: ThreadId, name: String) {
        let known = self.processes[process].threads.entry(thread).or_default();
        if known.is_empty() {
            *known = name;
        }
    }
}

//! What is found of the code behind idle time.

use super::stacks::{CodeFrame, own};
use crate::gaps::Cause;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::SampleSource;
use schemars::JsonSchema;
use serde::Serialize;

/// The code of idle time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Code {
    /// Samples of submitting threads in gaps.
    pub samples: u64,
    /// By cause, as [`crate::Findings::gaps`] has them; those in which no thread's code is asked for are missing.
    pub causes: Vec<CauseCode>,
    /// For each of the longest gaps, in their order: its code, the greatest first.
    pub longest: Vec<Vec<CodeTime>>,
    /// What worker processes did while a submitting thread waited for them.
    pub workers: Option<Workers>,
    /// Who had the interpreter's lock (GIL) while a submitting thread waited for it.
    pub gil: Vec<LockHolder>,
}

/// The code of a cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CauseCode {
    /// The cause.
    pub cause: Cause,
    /// Its idle time in which a submitting thread's code is asked for.
    pub total_ns: i64,
    /// The part of it for which no samples stand.
    pub without_samples_ns: i64,
    /// Samples in it.
    pub samples: u64,
    /// By stack, the greatest first; with `without_samples_ns` they sum to `total_ns`. In JSON they are `code`.
    #[serde(skip)]
    pub code: Vec<CodeTime>,
    /// Lines that hooks saw at the end of waits and at submissions, the most frequent first.
    pub exact: Vec<ExactLine>,
}

impl Code {
    /// The frames by which stacks are told, for their lines' texts.
    pub fn told_by(&mut self) -> impl Iterator<Item = &mut CodeFrame> {
        let times = self.causes.iter_mut().flat_map(|cause| &mut cause.code);
        times.filter_map(|time| {
            let own = own(&time.frames)?;
            time.frames.get_mut(own)
        })
    }
}

/// Time of stacks that are told by the same frame of the same callers, and call the same function from it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CodeTime {
    /// The cause.
    pub cause: Cause,
    /// Idle time: an estimate from the samples.
    pub total_ns: i64,
    /// Samples that it is from.
    pub samples: u64,
    /// How many of them found the thread blocked in a system call.
    pub blocked: u64,
    /// The stack that most of these samples have, the innermost frame first. Empty: the stack could not be read.
    pub frames: Vec<CodeFrame>,
    /// It is an event loop that waits for something to do.
    pub is_idle_event_loop: bool,
}

/// A line that a hook saw.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExactLine {
    /// `after-wait` or `at-submission`.
    #[schemars(with = "String")]
    pub source: SampleSource,
    /// How often.
    pub count: u64,
    /// A stack with it, the innermost frame first.
    pub frames: Vec<CodeFrame>,
}

/// What worker processes did meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Workers {
    /// How many processes.
    pub processes: u64,
    /// Samples of them.
    pub samples: u64,
    /// By stack, the most frequent first: samples, and a stack, the innermost frame first.
    pub code: Vec<WorkerCode>,
}

/// Code of workers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkerCode {
    /// Samples in it.
    pub samples: u64,
    /// A stack, the innermost frame first.
    pub frames: Vec<CodeFrame>,
}

/// A thread that had the lock of the interpreter.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LockHolder {
    /// Id of the process.
    pub process_id: ProcessId,
    /// The system's id of the thread.
    pub thread: ThreadId,
    /// Its name, where it is known.
    pub thread_name: Option<String>,
    /// Samples in which a submitting thread waited for it in a gap.
    pub samples: u64,
    /// What it mostly ran then, the innermost frame first; empty where that was not sampled.
    pub frames: Vec<CodeFrame>,
}

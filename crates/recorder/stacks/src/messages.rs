//! The messages of the sampling thread, and the queue in which its owner (the session that records the program) finds
//! them.

use gapscope_model::{FrameKind, LossKind, ThreadState};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Samples beyond this number are dropped while nobody takes them: some minutes of one thread, about 100 MiB.
const MAX_QUEUED: usize = 1 << 20;

/// A message of the sampling thread.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// A stack, sent before the first sample that has it.
    Stack {
        /// The number of the stack, counted from 0 over all processes.
        id: u32,
        /// The frames, callers before callees; at least one.
        frames: Vec<Frame>,
    },
    /// The state of a thread at one moment.
    Sample {
        /// The moment, on the monotonic clock.
        time_ns: i64,
        /// The number of the process in our PID namespace.
        pid: u32,
        /// The number of the thread in its own PID namespace.
        thread: u32,
        /// The stack; `None` for running native code whose stack cannot be read.
        stack: Option<u32>,
        /// Whether the thread was running.
        state: ThreadState,
        /// The mean time between two samples of this thread at that time.
        period_ns: i64,
        /// The name of the system call in which the thread is blocked, or its number where the name is not known.
        system_call: Option<Arc<str>>,
        /// The thread that holds the interpreter's lock (GIL), where this thread waits for it.
        gil_holder: Option<u32>,
    },
    /// A process that works for a followed one, sent before its first sample.
    Worker {
        /// Its number in our PID namespace.
        pid: u32,
        /// The followed process that it descends from.
        parent_pid: u32,
        /// The path of its program, as the process itself sees it.
        executable: String,
        /// The arguments after the program's name.
        arguments: Vec<String>,
        /// When it started, on the monotonic clock, to 10 ms.
        start_ns: i64,
    },
    /// Stacks or samples that are missing.
    Loss {
        /// [`LossKind::Stacks`] for a thread or process without stacks; [`LossKind::StackSamples`] for dropped samples.
        kind: LossKind,
        /// The process, where the loss concerns one.
        pid: Option<u32>,
        /// The number of things lost.
        count: u64,
        /// The reason, and what to do about it where that is known.
        reason: Cow<'static, str>,
    },
}

impl Update {
    /// Creates the message that a process, or every process (`None`), has no stacks.
    pub(crate) fn no_stacks(pid: Option<u32>, reason: impl Into<Cow<'static, str>>) -> Update {
        Update::Loss {
            kind: LossKind::Stacks,
            pid,
            count: 1,
            reason: reason.into(),
        }
    }
}

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Python or native code.
    pub kind: FrameKind,
    /// The function's name with the classes and functions around it; `None` where the library does not name it.
    pub function: Option<Arc<str>>,
    /// The source file, as the program names it. Python only.
    pub file: Option<Arc<str>>,
    /// The line that ran, counted from 1. Python only.
    pub line: Option<u32>,
    /// The path of the library or executable. Native only.
    pub library: Option<Arc<str>>,
    /// The link-time address in the library, where the function is not known.
    pub address: Option<u64>,
}

/// The state shared by the sampling thread and its owner.
#[derive(Debug, Default)]
pub struct Shared {
    /// Threads that the owner has asked to follow and the sampling thread has not taken yet, as (process, thread).
    orders: Mutex<Vec<(u32, u32)>>,
    /// The messages for the owner.
    updates: Mutex<Queue>,
    /// The owner's switches: no samples for now, and the end of the thread.
    pub paused: AtomicBool,
    pub ended: AtomicBool,
}

/// The messages that the owner has not taken, and the number of samples that found no room.
#[derive(Debug, Default)]
struct Queue {
    updates: Vec<Update>,
    dropped: u64,
}

impl Shared {
    pub fn orders(&self) -> MutexGuard<'_, Vec<(u32, u32)>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn send(&self, updates: Update) {
        self.send_all(&mut vec![updates]);
    }

    /// Moves all messages of the vector into the queue; samples that find it full are counted and dropped.
    pub fn send_all(&self, updates: &mut Vec<Update>) {
        let mut queue = self.queue();
        for updates in updates.drain(..) {
            let is_sample = matches!(updates, Update::Sample { .. });
            if is_sample && queue.updates.len() >= MAX_QUEUED {
                queue.dropped += 1;
            } else {
                queue.updates.push(updates);
            }
        }
    }

    /// Takes all messages, and a loss when samples were dropped.
    pub fn take(&self) -> Vec<Update> {
        let mut queue = self.queue();
        let mut updates = std::mem::take(&mut queue.updates);
        let dropped = std::mem::take(&mut queue.dropped);
        if dropped > 0 {
            updates.push(Update::Loss {
                kind: LossKind::StackSamples,
                pid: None,
                count: dropped,
                reason: "they were not taken over in time".into(),
            });
        }
        updates
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.updates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What the sampling thread says, and where it leaves that.

use gapscope_model::{FrameKind, LossKind, ThreadState};
use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// More is not kept for a reader that does not come: some minutes of one thread, some 100 MiB.
const MOST_KEPT: usize = 1 << 20;

/// What the thread says.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A stack, before the first sample that has it.
    Stack {
        /// Counted from 0, over all processes.
        id: u32,
        /// The outermost first: callers before callees. At least one.
        frames: Vec<Frame>,
    },
    /// What a thread did at a moment.
    Sample {
        /// The moment, on the monotonic clock.
        time_ns: i64,
        /// Of the process, as it was given or as the system calls it here.
        pid: u32,
        /// As the thread calls itself.
        thread: u32,
        /// `None` where the thread is of native code and runs: its stack cannot be read.
        stack: Option<u32>,
        /// Whether it ran.
        state: ThreadState,
        /// The mean time between two samples of this thread, as it is then sampled.
        period_ns: i64,
        /// The system call that it is in, where it is blocked; its number where it has no known name.
        system_call: Option<Arc<str>>,
        /// The thread that has the lock of the interpreter (GIL), where this one waits for it.
        gil_holder: Option<u32>,
    },
    /// A process that works for a followed one, before its first sample.
    Worker {
        /// Its number here.
        pid: u32,
        /// The followed process that it descends from.
        parent_pid: u32,
        /// The path of its program, as it names it itself.
        executable: String,
        /// The arguments after the program's name.
        arguments: Vec<String>,
        /// When it started, on the monotonic clock, to 10 ms.
        start_ns: i64,
    },
    /// What is not there, and why.
    Loss {
        /// [`LossKind::Stacks`]: a thread or process without; [`LossKind::StackSamples`]: samples that were dropped.
        kind: LossKind,
        /// The process.
        pid: Option<u32>,
        /// How many.
        count: u64,
        /// Why, and what to do where that is known.
        reason: Cow<'static, str>,
    },
}

impl Heard {
    pub(crate) fn no_stacks(pid: Option<u32>, reason: impl Into<Cow<'static, str>>) -> Heard {
        Heard::Loss {
            kind: LossKind::Stacks,
            pid,
            count: 1,
            reason: reason.into(),
        }
    }
}

/// A frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Python or native code.
    pub kind: FrameKind,
    /// With the classes and functions around it. `None` where the library does not say.
    pub function: Option<Arc<str>>,
    /// The file of the source, as the program names it. Python only.
    pub file: Option<Arc<str>>,
    /// The line that ran, from 1. Python only.
    pub line: Option<u32>,
    /// The path of the library or executable. Native only.
    pub library: Option<Arc<str>>,
    /// The address in it as it was linked, where the function is not known.
    pub address: Option<u64>,
}

/// What the sampling thread and its owner share.
#[derive(Debug, Default)]
pub struct Shared {
    /// Threads to follow: (process, thread).
    orders: Mutex<Vec<(u32, u32)>>,
    heard: Mutex<Queue>,
    pub paused: AtomicBool,
    pub ended: AtomicBool,
}

#[derive(Debug, Default)]
struct Queue {
    heard: Vec<Heard>,
    dropped: u64,
}

impl Shared {
    pub fn orders(&self) -> MutexGuard<'_, Vec<(u32, u32)>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn say(&self, heard: Heard) {
        self.say_all(&mut vec![heard]);
    }

    /// Empties the vector.
    pub fn say_all(&self, heard: &mut Vec<Heard>) {
        let mut queue = self.queue();
        for heard in heard.drain(..) {
            let is_sample = matches!(heard, Heard::Sample { .. });
            if is_sample && queue.heard.len() >= MOST_KEPT {
                queue.dropped += 1;
            } else {
                queue.heard.push(heard);
            }
        }
    }

    pub fn take(&self) -> Vec<Heard> {
        let mut queue = self.queue();
        let mut heard = std::mem::take(&mut queue.heard);
        let dropped = std::mem::take(&mut queue.dropped);
        if dropped > 0 {
            heard.push(Heard::Loss {
                kind: LossKind::StackSamples,
                pid: None,
                count: dropped,
                reason: "they were not taken over in time".into(),
            });
        }
        heard
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

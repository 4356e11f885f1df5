//! The state of one process whose threads are sampled: its Python interpreter, its libraries, and its sampled
//! threads. The sampling thread calls [`Process::follow`] for each thread and [`Process::sample`] in each round;
//! samples, stacks and losses are added to [`SamplerState::updates`].

mod sampling;
mod thread;

use crate::elf::Interpreters;
use crate::messages::{Frame, Update};
use crate::native::{Libraries, Native};
use crate::pace::Delay;
use crate::procfs::{ActivityFile, Proc, TurnsFile, now_ns};
use crate::python::{Attachment, Reader, attach};
use crate::stack_ids::StackIds;
use crate::system_calls;
use gapscope_model::{FrameKind, LossKind};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use thread::{Reason, Thread};

/// The first and the last pause between searches for an interpreter that has not started.
const FIRST_LOOK_NS: i64 = 5_000_000;
const LAST_LOOK_NS: i64 = 4_000_000_000;
/// After this many implausible samples in a row the process is taken to run another program.
const MAX_IMPLAUSIBLE_SAMPLES: u32 = 64;
/// All known stacks are forgotten beyond this number.
const MAX_KNOWN_STACKS: usize = 1 << 14;
/// A thread that held the interpreter's lock (GIL) is forgotten after this time.
const HOLDER_KEPT_NS: i64 = 1_000_000_000;

/// The state shared by all processes.
#[derive(Debug, Default)]
pub struct SamplerState {
    /// The messages for the owner that are not sent yet.
    pub updates: Vec<Update>,
    /// The numbers of stacks, over all processes.
    pub stack_ids: StackIds,
    pub libraries: Libraries,
    pub interpreters: Interpreters,
    /// Counts of dropped samples, by process and reason.
    pub dropped: BTreeMap<(u32, &'static str), u64>,
    /// The names of system calls, by their numbers.
    calls: FxHashMap<i64, Arc<str>>,
    /// The message that the kernel does not record threads was sent.
    reported_no_recording: bool,
    /// What delayed this round of samples.
    pub delay: Delay,
    /// The samples of each process since losses were last reported.
    counts: BTreeMap<u32, SampleCounts>,
}

/// Missing samples are a loss where they are this share of a process's samples of about a second. Fewer make no share of the time wrong by
/// more than its error, and the time that they would have stood for has no samples in any case.
const MISSING_SHARE: f64 = 0.1;

/// The samples of a process since its losses were last reported.
#[derive(Debug, Default)]
struct SampleCounts {
    taken: u64,
    /// Those that are missing, by their reasons.
    missing: BTreeMap<&'static str, u64>,
}

impl SamplerState {
    /// Counts a sample of a thread.
    fn count_taken(&mut self, pid: u32) {
        self.counts.entry(pid).or_default().taken += 1;
    }

    /// Counts samples that are missing.
    fn count_missing(&mut self, pid: u32, missing: u64, reason: &'static str) {
        let counts = self.counts.entry(pid).or_default();
        *counts.missing.entry(reason).or_default() += missing;
    }

    /// Counts a dropped sample.
    fn drop_sample(&mut self, pid: u32, reason: &'static str) {
        *self.dropped.entry((pid, reason)).or_default() += 1;
    }

    /// Sends the counts of samples that were dropped since the last time.
    pub fn report_dropped(&mut self) {
        for (pid, counts) in std::mem::take(&mut self.counts) {
            let missing: u64 = counts.missing.values().sum();
            if (missing as f64) < MISSING_SHARE * (missing + counts.taken) as f64 {
                continue;
            }
            for (reason, count) in counts.missing {
                *self.dropped.entry((pid, reason)).or_default() += count;
            }
        }
        for ((pid, reason), count) in std::mem::take(&mut self.dropped) {
            self.updates.push(Update::Loss {
                kind: LossKind::StackSamples,
                pid: Some(pid),
                count,
                reason: reason.into(),
            });
        }
    }

    /// Returns the name of a system call.
    fn call(&mut self, number: i64) -> Arc<str> {
        let name = || system_calls::name(number).into();
        self.calls.entry(number).or_insert_with(name).clone()
    }
}

/// The Python interpreter of a process, as far as it is known. A found one can be read; `file` is the path of the
/// file that holds it.
enum Interpreter {
    /// No interpreter was found, or it has not started yet.
    Searching {
        next_ns: i64,
        pause_ns: i64,
        /// Why the interpreter that was found last cannot be read. The reason counts once it is found again: while a library is being
        /// mapped, its data may still be other bytes of its file.
        refused: Option<String>,
    },
    Found {
        reader: Box<Reader>,
        file: String,
    },
    /// The interpreter cannot be read, which has been reported.
    Refused,
}

impl Interpreter {
    const NEW: Interpreter = Interpreter::Searching {
        next_ns: 0,
        pause_ns: FIRST_LOOK_NS,
        refused: None,
    };
}

/// The outcome of a sample.
#[derive(Debug, PartialEq, Eq)]
pub enum SampleOutcome {
    /// The sample was taken, or dropped. `is_blocked`: the thread waits for something.
    Taken { is_blocked: bool },
    /// The thread has ended.
    Ended,
    /// The system does not permit reading the process.
    Refused,
}

/// A process whose threads are sampled.
pub struct Process {
    pub pid: u32,
    proc: Proc,
    folder: PathBuf,
    /// The start, in ticks since the boot, which tells the process from a later one of the same number.
    start_ticks: u64,
    /// The path of the program; `None` when it cannot be read.
    executable: Option<String>,
    interpreter: Interpreter,
    native: Native,
    threads: Vec<Thread>,
    /// The numbers of stacks by Python locations and native addresses; `None` for stacks that got no number.
    known: FxHashMap<Box<[u64]>, Option<u32>>,
    /// The implausible samples in a row so far.
    failed: u32,
    /// Buffers for the Python stack and the native addresses of one sample.
    python: Vec<u64>,
    addresses: Vec<u64>,
    /// Whether the process is a worker (a descendant of a followed process), of which only Python frames are read.
    is_worker: bool,
}

impl Process {
    /// Finds a process by its number; `None` where there is none.
    pub fn find(proc: &Proc, pid: u32, is_worker: bool) -> Option<Process> {
        let folder = proc.process(pid);
        Some(Process {
            pid,
            proc: proc.clone(),
            start_ticks: proc.start_ticks(pid)?,
            executable: proc.executable(pid),
            interpreter: Interpreter::NEW,
            native: Native::new(&folder, pid),
            folder,
            threads: Vec::new(),
            known: FxHashMap::default(),
            failed: 0,
            python: Vec::new(),
            addresses: Vec::new(),
            is_worker,
        })
    }

    /// Returns when the process started, in ticks since the boot.
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Returns the path of the program.
    pub fn executable(&self) -> Option<&str> {
        self.executable.as_deref()
    }

    /// Samples a thread from now on, by its number in its own PID namespace.
    pub fn follow(&mut self, inner: u32) -> io::Result<()> {
        match self.threads.iter_mut().find(|thread| thread.inner == inner) {
            Some(thread) => thread.reason = Reason::Followed,
            None => self.add(inner, Reason::Followed)?,
        }
        Ok(())
    }

    /// Begins to sample a thread; fails when the thread is gone.
    fn add(&mut self, inner: u32, reason: Reason) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let task = self.proc.thread_here(self.pid, inner).ok_or_else(gone)?;
        let folder = self.folder.join(format!("task/{task}"));
        let activity = ActivityFile::open(&folder)?;
        let turns = TurnsFile::open(&folder);
        self.threads
            .push(Thread::new(inner, activity, turns, reason));
        Ok(())
    }

    /// Returns the number of sampled threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Returns whether the process still lives, and is not another one of the same number.
    pub fn is_alive(&mut self, state: &mut SamplerState) -> bool {
        let executable = self.proc.executable(self.pid);
        if executable != self.executable {
            self.executable = executable;
            self.start_over(state);
        }
        let is_alive = self.proc.start_ticks(self.pid) == Some(self.start_ticks);
        match is_alive {
            true => self.count_missing(state),
            false => self.flush(state),
        }
        is_alive
    }

    /// Forgets what belongs to the former program: the process runs another one.
    fn start_over(&mut self, state: &mut SamplerState) {
        self.flush(state);
        self.interpreter = Interpreter::NEW;
        self.native = Native::new(&self.folder, self.pid);
        self.known.clear();
        self.failed = 0;
        self.threads.iter_mut().for_each(Thread::forget);
    }

    /// Returns whether the process runs Python that can be read; searches for it when the time has come.
    pub fn has_python(&mut self, state: &mut SamplerState) -> bool {
        let now = now_ns();
        self.attach(now, state);
        matches!(self.interpreter, Interpreter::Found { .. })
    }

    /// Samples each thread once, and threads that hold the lock for which one of them waits. Threads that have ended
    /// are removed; without any left the outcome is [`SampleOutcome::Ended`].
    pub fn sample(&mut self, period_ns: i64, state: &mut SamplerState) -> SampleOutcome {
        let mut is_blocked = false;
        let mut index = 0;
        let mut holders: Vec<u32> = Vec::new();
        while index < self.threads.len() {
            let (outcome, holder) = self.sample_thread(index, period_ns, state);
            match outcome {
                SampleOutcome::Taken { is_blocked: waits } => {
                    is_blocked |= waits && self.threads[index].reason == Reason::Followed;
                    index += 1;
                }
                SampleOutcome::Ended => {
                    self.send_pending(index, None, state);
                    self.count_missing(state);
                    self.threads.remove(index);
                }
                SampleOutcome::Refused => {
                    self.flush(state);
                    return SampleOutcome::Refused;
                }
            }
            holders.extend(holder);
        }
        let now = now_ns();
        for holder in holders {
            let known = self
                .threads
                .iter()
                .position(|thread| thread.inner == holder);
            match known {
                Some(index) => {
                    if let Reason::HeldLock(at) = &mut self.threads[index].reason {
                        *at = now;
                    }
                }
                // The holder's first sample is taken now, beside that of the waiting thread.
                None => {
                    if self.add(holder, Reason::HeldLock(now)).is_ok() {
                        self.sample_thread(self.threads.len() - 1, period_ns, state);
                    }
                }
            }
        }
        self.threads.retain(|thread| match thread.reason {
            Reason::Followed => true,
            Reason::HeldLock(at) => now - at < HOLDER_KEPT_NS,
        });
        if self.threads.is_empty() {
            return SampleOutcome::Ended;
        }
        SampleOutcome::Taken { is_blocked }
    }

    /// Returns the number of a stack of Python locations, outermost first, and native addresses, innermost first; a
    /// new stack is reported. `None` for an empty stack, and after too many stacks, which counts the sample as
    /// dropped.
    fn number(&mut self, python: &[u64], native: &[u64], state: &mut SamplerState) -> Option<u32> {
        let mut key = Vec::with_capacity(python.len() + native.len() + 1);
        key.extend_from_slice(python);
        // A separator that is no location: no code object has so many instructions.
        key.push(u64::MAX);
        key.extend_from_slice(native);
        let number = match self.known.get(key.as_slice()) {
            Some(known) => *known,
            None => {
                let frames = self.frames(python, native);
                let number = state.stack_ids.number(frames, &mut state.updates);
                if self.known.len() >= MAX_KNOWN_STACKS {
                    self.known.clear();
                }
                self.known.insert(key.into(), number);
                number
            }
        };
        if number.is_none() && !(python.is_empty() && native.is_empty()) {
            state.drop_sample(self.pid, "their stacks come after 131,072 different ones");
        }
        number
    }

    /// Returns the frames of a stack as [`Self::number`] takes it, outermost first.
    fn frames(&mut self, python: &[u64], native: &[u64]) -> Vec<Frame> {
        let mut frames = Vec::with_capacity(python.len() + native.len());
        if let Interpreter::Found { reader, .. } = &self.interpreter {
            frames.extend(python.iter().filter_map(|number| {
                let location = reader.location(*number)?;
                Some(Frame {
                    kind: FrameKind::Python,
                    function: Some(location.function),
                    file: Some(location.file),
                    line: location.line,
                    library: None,
                    address: None,
                })
            }));
        }
        for address in native.iter().rev() {
            frames.push(self.native.frame(*address));
        }
        frames
    }

    /// Searches for the interpreter when the time has come.
    fn attach(&mut self, now_ns: i64, state: &mut SamplerState) {
        let Interpreter::Searching {
            next_ns,
            pause_ns,
            refused,
        } = &mut self.interpreter
        else {
            return;
        };
        if now_ns < *next_ns {
            return;
        }
        *next_ns = now_ns + *pause_ns;
        *pause_ns = (*pause_ns * 2).min(LAST_LOOK_NS);
        match attach(&self.folder, self.pid, &mut state.interpreters) {
            Ok(Attachment::Python { reader, file }) => {
                self.interpreter = Interpreter::Found { reader, file };
                self.known.clear();
            }
            // The interpreter has not started, or cannot be read for now.
            Ok(Attachment::NotYet) | Err(_) => {}
            Ok(Attachment::Refused(reason)) if refused.as_ref() != Some(&reason) => {
                *refused = Some(reason);
            }
            Ok(Attachment::Refused(reason)) => {
                self.interpreter = Interpreter::Refused;
                let reason = Cow::from(format!("stacks of its Python cannot be read: {reason}"));
                state
                    .updates
                    .push(Update::no_stacks(Some(self.pid), reason));
            }
        }
    }
}

/// Returns whether an error means that the system does not permit the access.
pub fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS)
    )
}

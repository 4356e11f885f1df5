//! One process: its interpreter, its libraries, and the threads of it that samples are taken of.

mod threads;

use crate::elf::Interpreters;
use crate::heard::{Frame, Heard};
use crate::native::{Libraries, Native};
use crate::procfs::{Doings, Proc, now_ns};
use crate::python::{Attached, Reader, attach};
use crate::stacks::Numbers;
use crate::system_calls;
use gapscope_model::{FrameKind, LossKind};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use threads::{Thread, Wanted};

/// An interpreter that has not begun is looked for again after these times.
const FIRST_LOOK_NS: i64 = 5_000_000;
const LAST_LOOK_NS: i64 = 4_000_000_000;
/// After so many samples in a row that made no sense the program is taken for another one.
const MOST_FAILED: u32 = 64;
const MOST_KNOWN: usize = 1 << 14;
/// A thread that had the lock is forgotten after so long.
const HOLDER_NS: i64 = 1_000_000_000;

/// What all processes share.
#[derive(Debug, Default)]
pub struct Common {
    pub heard: Vec<Heard>,
    pub numbers: Numbers,
    pub libraries: Libraries,
    pub interpreters: Interpreters,
    /// Samples that were dropped, by process and reason.
    pub dropped: BTreeMap<(u32, &'static str), u64>,
    calls: FxHashMap<i64, Arc<str>>,
    /// That the kernel does not record threads.
    said_no_recording: bool,
}

impl Common {
    fn drop_sample(&mut self, pid: u32, reason: &'static str) {
        *self.dropped.entry((pid, reason)).or_default() += 1;
    }

    /// Says what was dropped since the last time.
    pub fn say_dropped(&mut self) {
        for ((pid, reason), count) in std::mem::take(&mut self.dropped) {
            self.heard.push(Heard::Loss {
                kind: LossKind::StackSamples,
                pid: Some(pid),
                count,
                reason: reason.into(),
            });
        }
    }

    fn call(&mut self, number: i64) -> Arc<str> {
        let name = || system_calls::name(number).into();
        self.calls.entry(number).or_insert_with(name).clone()
    }
}

enum Interpreter {
    /// There is none, or not yet.
    Wanted {
        next_ns: i64,
        pause_ns: i64,
        /// What was found last cannot be read, for this reason. It counts once it is found again: while a library is being mapped, other
        /// bytes of its file are where its data will be.
        refused: Option<String>,
    },
    Found {
        reader: Box<Reader>,
        file: String,
    },
    Refused,
}

impl Interpreter {
    const NEW: Interpreter = Interpreter::Wanted {
        next_ns: 0,
        pause_ns: FIRST_LOOK_NS,
        refused: None,
    };
}

/// What came of a sample.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken, or dropped. `is_blocked`: the thread waits for something.
    Taken { is_blocked: bool },
    /// The thread has ended.
    Ended,
    /// The process may not be looked into.
    Refused,
}

/// A process.
pub struct Process {
    pub pid: u32,
    proc: Proc,
    folder: PathBuf,
    start_ticks: u64,
    executable: Option<String>,
    interpreter: Interpreter,
    native: Native,
    threads: Vec<Thread>,
    /// The numbers of stacks by places and addresses.
    known: FxHashMap<Box<[u64]>, Option<u32>>,
    failed: u32,
    python: Vec<u64>,
    addresses: Vec<u64>,
    /// A worker's stacks are of Python alone.
    is_worker: bool,
}

impl Process {
    /// `None`: there is none of this number.
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

    /// When it started, in ticks since the system did.
    pub fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// The path of its program.
    pub fn executable(&self) -> Option<&str> {
        self.executable.as_deref()
    }

    /// Takes samples of a thread from now on, by the name that it has for itself.
    pub fn follow(&mut self, name: u32) -> io::Result<()> {
        match self.threads.iter_mut().find(|thread| thread.name == name) {
            Some(thread) => thread.wanted = Wanted::Always,
            None => self.add(name, Wanted::Always)?,
        }
        Ok(())
    }

    fn add(&mut self, name: u32, wanted: Wanted) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let task = self.proc.thread_here(self.pid, name).ok_or_else(gone)?;
        let doings = Doings::open(&self.folder.join(format!("task/{task}")))?;
        self.threads.push(Thread::new(name, doings, wanted));
        Ok(())
    }

    /// How many threads are sampled.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// False: it has ended, or its number is another's now.
    pub fn is_alive(&mut self, common: &mut Common) -> bool {
        let executable = self.proc.executable(self.pid);
        if executable != self.executable {
            self.executable = executable;
            self.start_over(common);
        }
        let is_alive = self.proc.start_ticks(self.pid) == Some(self.start_ticks);
        if !is_alive {
            self.flush(common);
        }
        is_alive
    }

    /// It runs another program.
    fn start_over(&mut self, common: &mut Common) {
        self.flush(common);
        self.interpreter = Interpreter::NEW;
        self.native = Native::new(&self.folder, self.pid);
        self.known.clear();
        self.failed = 0;
        self.threads.iter_mut().for_each(Thread::forget);
    }

    /// Whether it runs Python that can be read. Looks for it where that is due.
    pub fn has_python(&mut self, common: &mut Common) -> bool {
        let now = now_ns();
        self.attach(now, common);
        matches!(self.interpreter, Interpreter::Found { .. })
    }

    /// A sample of each thread.
    pub fn sample(&mut self, period_ns: i64, common: &mut Common) -> Outcome {
        let mut is_blocked = false;
        let mut index = 0;
        let mut holders: Vec<u32> = Vec::new();
        while index < self.threads.len() {
            let (outcome, holder) = self.sample_thread(index, period_ns, common);
            match outcome {
                Outcome::Taken { is_blocked: waits } => {
                    is_blocked |= waits && self.threads[index].wanted == Wanted::Always;
                    index += 1;
                }
                Outcome::Ended => {
                    self.settle(index, None, common);
                    self.threads.remove(index);
                }
                Outcome::Refused => {
                    self.flush(common);
                    return Outcome::Refused;
                }
            }
            holders.extend(holder);
        }
        let now = now_ns();
        for holder in holders {
            let known = self.threads.iter().position(|thread| thread.name == holder);
            match known {
                Some(index) => {
                    if let Wanted::Held(at) = &mut self.threads[index].wanted {
                        *at = now;
                    }
                }
                // Its first sample is now, beside that of who waits for it.
                None => {
                    if self.add(holder, Wanted::Held(now)).is_ok() {
                        self.sample_thread(self.threads.len() - 1, period_ns, common);
                    }
                }
            }
        }
        self.threads.retain(|thread| match thread.wanted {
            Wanted::Always => true,
            Wanted::Held(at) => now - at < HOLDER_NS,
        });
        if self.threads.is_empty() {
            return Outcome::Ended;
        }
        Outcome::Taken { is_blocked }
    }

    /// The number of a stack: places of Python, outermost first, and addresses of native code, innermost first.
    fn number(&mut self, python: &[u64], native: &[u64], common: &mut Common) -> Option<u32> {
        let mut key = Vec::with_capacity(python.len() + native.len() + 1);
        key.extend_from_slice(python);
        // No place has this number: no code object has so many instructions.
        key.push(u64::MAX);
        key.extend_from_slice(native);
        let number = match self.known.get(key.as_slice()) {
            Some(known) => *known,
            None => {
                let frames = self.frames(python, native);
                let number = common.numbers.of(frames, &mut common.heard);
                if self.known.len() >= MOST_KNOWN {
                    self.known.clear();
                }
                self.known.insert(key.into(), number);
                number
            }
        };
        if number.is_none() && !(python.is_empty() && native.is_empty()) {
            common.drop_sample(self.pid, "their stacks come after 131,072 different ones");
        }
        number
    }

    fn frames(&mut self, python: &[u64], native: &[u64]) -> Vec<Frame> {
        let mut frames = Vec::with_capacity(python.len() + native.len());
        if let Interpreter::Found { reader, .. } = &self.interpreter {
            frames.extend(python.iter().filter_map(|place| {
                let place = reader.place(*place)?;
                Some(Frame {
                    kind: FrameKind::Python,
                    function: Some(place.function),
                    file: Some(place.file),
                    line: place.line,
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

    fn attach(&mut self, now_ns: i64, common: &mut Common) {
        let Interpreter::Wanted {
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
        match attach(&self.folder, self.pid, &mut common.interpreters) {
            Ok(Attached::Python { reader, file }) => {
                self.interpreter = Interpreter::Found { reader, file };
                self.known.clear();
            }
            // What is not there yet, and what cannot be read for now.
            Ok(Attached::NotYet) | Err(_) => {}
            Ok(Attached::Refused(reason)) if refused.as_ref() != Some(&reason) => {
                *refused = Some(reason);
            }
            Ok(Attached::Refused(reason)) => {
                self.interpreter = Interpreter::Refused;
                let reason = Cow::from(format!("stacks of its Python cannot be read: {reason}"));
                common.heard.push(Heard::no_stacks(Some(self.pid), reason));
            }
        }
    }
}

/// True where the system does not allow it.
pub fn is_refused(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS)
    )
}

//! One process: its interpreter, its libraries, and the threads of it that samples are taken of.

use crate::heard::{Frame, Heard};
use crate::native::{Libraries, Native};
use crate::procfs::{Call, Doing, Doings, Proc, now_ns};
use crate::python::{Attached, NoStack, Reader, attach};
use crate::stacks::Numbers;
use crate::system_calls;
use gapscope_model::{FrameKind, LossKind, ThreadState};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

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
    /// Samples that were dropped, by process and reason.
    pub dropped: BTreeMap<(u32, &'static str), u64>,
    calls: FxHashMap<i64, Arc<str>>,
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
    };
}

/// Whose samples are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Always,
    /// It had the lock of the interpreter at this time.
    Held(i64),
}

struct Thread {
    /// As it calls itself.
    name: u32,
    doings: Doings,
    wanted: Wanted,
    /// How it was blocked at the last sample, and with which stack.
    last: Option<Blocked>,
}

#[derive(Clone)]
struct Blocked {
    call: Call,
    python: Vec<u64>,
    stack: Option<u32>,
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
    pub fn follow(&mut self, proc: &Proc, name: u32) -> io::Result<()> {
        match self.threads.iter_mut().find(|thread| thread.name == name) {
            Some(thread) => thread.wanted = Wanted::Always,
            None => self.add(proc, name, Wanted::Always)?,
        }
        Ok(())
    }

    fn add(&mut self, proc: &Proc, name: u32, wanted: Wanted) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::NotFound);
        let task = proc.thread_here(self.pid, name).ok_or_else(gone)?;
        let doings = Doings::open(&self.folder.join(format!("task/{task}")))?;
        self.threads.push(Thread {
            name,
            doings,
            wanted,
            last: None,
        });
        Ok(())
    }

    /// How many threads are sampled.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// False: it has ended, or its number is another's now.
    pub fn is_alive(&mut self, proc: &Proc) -> bool {
        let executable = proc.executable(self.pid);
        if executable != self.executable {
            self.executable = executable;
            self.start_over();
        }
        proc.start_ticks(self.pid) == Some(self.start_ticks)
    }

    /// It runs another program.
    fn start_over(&mut self) {
        self.interpreter = Interpreter::NEW;
        self.native = Native::new(&self.folder, self.pid);
        self.known.clear();
        self.failed = 0;
        for thread in &mut self.threads {
            thread.last = None;
        }
    }

    /// Whether it runs Python that can be read. Looks for it where that is due.
    pub fn has_python(&mut self, common: &mut Common) -> bool {
        let now = now_ns();
        self.attach(now, common);
        matches!(self.interpreter, Interpreter::Found { .. })
    }

    /// A sample of each thread. Says false when the process may not be looked into.
    pub fn sample(&mut self, proc: &Proc, period_ns: i64, common: &mut Common) -> Outcome {
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
                    self.threads.remove(index);
                }
                Outcome::Refused => return Outcome::Refused,
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
                    if self.add(proc, holder, Wanted::Held(now)).is_ok() {
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

    fn sample_thread(
        &mut self,
        index: usize,
        period_ns: i64,
        common: &mut Common,
    ) -> (Outcome, Option<u32>) {
        let thread = &self.threads[index];
        let name = thread.name;
        let doing = match thread.doings.read() {
            Ok(doing) => doing,
            Err(error) if is_refused(&error) => return (Outcome::Refused, None),
            Err(_) => return (Outcome::Ended, None),
        };
        let time_ns = now_ns();
        self.attach(time_ns, common);
        let mut python = std::mem::take(&mut self.python);
        python.clear();
        let read = match &mut self.interpreter {
            Interpreter::Found { reader, .. } => reader.stack(name, time_ns, &mut python),
            _ => Err(NoStack::NotPython),
        };
        let outcome = self.say(index, (time_ns, period_ns), doing, read, &python, common);
        self.python = python;
        outcome
    }

    fn say(
        &mut self,
        index: usize,
        (time_ns, period_ns): (i64, i64),
        doing: Doing,
        read: Result<(), NoStack>,
        python: &[u64],
        common: &mut Common,
    ) -> (Outcome, Option<u32>) {
        let is_blocked = doing != Doing::Running;
        let taken = Outcome::Taken { is_blocked };
        match read {
            Ok(()) => self.failed = 0,
            Err(NoStack::NotPython) => {}
            Err(NoStack::Memory(error)) if error.raw_os_error() != Some(libc::EFAULT) => {
                // It ends, runs another program, or may not be looked into any more.
                let outcome = match is_refused(&error) {
                    true => Outcome::Refused,
                    false => Outcome::Ended,
                };
                return (outcome, None);
            }
            Err(reason) => {
                common.drop_sample(
                    self.pid,
                    match reason {
                        NoStack::Changing => "the Python stack changed each time that it was read",
                        _ => "the Python stack made no sense each time that it was read",
                    },
                );
                self.failed += 1;
                if self.failed >= MOST_FAILED {
                    self.start_over();
                }
                return (taken, None);
            }
        }
        let mut call = match doing {
            Doing::Blocked(call) => call,
            Doing::Running => None,
        };
        let mut state = match doing {
            Doing::Blocked(_) => ThreadState::Blocked,
            Doing::Running => ThreadState::Running,
        };
        let stack = match call.filter(|_| !self.is_worker) {
            Some(waits) => match self.blocked_stack(index, waits, python, time_ns, common) {
                Some(stack) => stack,
                // It ran when its stack was read.
                None => {
                    (call, state) = (None, ThreadState::Running);
                    self.number(python, &[], common)
                }
            },
            None => {
                self.threads[index].last = None;
                self.number(python, &[], common)
            }
        };
        let name = self.threads[index].name;
        let gil_holder = match (&self.interpreter, call) {
            (Interpreter::Found { reader, .. }, Some(call)) if call.number == libc::SYS_futex => {
                reader.lock_holder(name, call.argument)
            }
            _ => None,
        };
        let system_call = call.map(|call| common.call(call.number));
        common.heard.push(Heard::Sample {
            time_ns,
            pid: self.pid,
            thread: name,
            stack,
            state,
            period_ns,
            system_call,
            gil_holder,
        });
        (taken, gil_holder)
    }

    /// The stack of a thread in a system call: that of Python and what is below it. `None`: it was in it no more.
    fn blocked_stack(
        &mut self,
        index: usize,
        call: Call,
        python: &[u64],
        now_ns: i64,
        common: &mut Common,
    ) -> Option<Option<u32>> {
        let thread = &mut self.threads[index];
        // It has most likely not moved.
        if let Some(last) = &thread.last
            && last.call == call
            && last.python == python
        {
            return Some(last.stack);
        }
        thread.last = None;
        self.native.copy(call.stack_pointer);
        // What moved while it was read has no stack of one moment.
        if thread.doings.read().ok() != Some(Doing::Blocked(Some(call))) {
            return None;
        }
        let mut addresses = std::mem::take(&mut self.addresses);
        let place = (call.instruction, call.stack_pointer);
        let libraries = &mut common.libraries;
        self.native.unwind(place, libraries, now_ns, &mut addresses);
        if let (false, Interpreter::Found { file, .. }) = (python.is_empty(), &self.interpreter) {
            let below = self.native.below_python(&addresses, file);
            addresses.truncate(below);
        }
        let stack = self.number(python, &addresses, common);
        self.addresses = addresses;
        self.threads[index].last = Some(Blocked {
            call,
            python: python.to_vec(),
            stack,
        });
        Some(stack)
    }

    /// The number of a stack: places of Python, outermost first, and addresses of native code, innermost first.
    fn number(&mut self, python: &[u64], native: &[u64], common: &mut Common) -> Option<u32> {
        let mut key = Vec::with_capacity(python.len() + native.len() + 1);
        key.extend_from_slice(python);
        // No place has this number: no code object has so many instructions.
        key.push(u64::MAX);
        key.extend_from_slice(native);
        if let Some(known) = self.known.get(key.as_slice()) {
            return *known;
        }
        let frames = self.frames(python, native);
        let number = common.numbers.of(frames, &mut common.heard);
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(key.into(), number);
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
        let Interpreter::Wanted { next_ns, pause_ns } = &mut self.interpreter else {
            return;
        };
        if now_ns < *next_ns {
            return;
        }
        *next_ns = now_ns + *pause_ns;
        *pause_ns = (*pause_ns * 2).min(LAST_LOOK_NS);
        match attach(&self.folder, self.pid) {
            Ok(Attached::Python { reader, file }) => {
                self.interpreter = Interpreter::Found { reader, file };
                self.known.clear();
            }
            // What is not there yet, and what cannot be read for now.
            Ok(Attached::NotYet) | Err(_) => {}
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

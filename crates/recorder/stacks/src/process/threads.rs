//! The samples of one thread.

use super::{Common, Interpreter, MOST_FAILED, Outcome, Process, is_refused};
use crate::heard::Heard;
use crate::procfs::{Call, Doing, Doings, now_ns};
use crate::python::NoStack;
use crate::running::{Moment, Registers, Ring, why_refused};
use gapscope_model::ThreadState;

/// The kernel records no more threads of a process: each takes 0.5 MiB of memory that cannot be paged out.
const MOST_RECORDED: usize = 16;
/// A moment that the kernel recorded is of a sample that is not further away.
const NEAR_NS: i64 = 2_000_000;

/// Whose samples are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It is followed.
    Always,
    /// It had the lock of the interpreter at this time.
    Held(i64),
}

/// A thread that samples are taken of.
pub struct Thread {
    /// As it calls itself.
    pub name: u32,
    doings: Doings,
    pub wanted: Wanted,
    /// How it was blocked at the last sample, and with which stack.
    last: Option<Blocked>,
    recording: Recording,
    /// The last sample, where the thread ran: its native frames are known only at the next one.
    pending: Option<Running>,
}

struct Blocked {
    call: Call,
    python: Vec<u64>,
    stack: Option<u32>,
}

/// Whether the kernel records where the thread runs.
enum Recording {
    Untried,
    Open(Ring),
    Refused,
}

struct Running {
    time_ns: i64,
    period_ns: i64,
    python: Vec<u64>,
    nearest: Option<Near>,
}

/// A moment, and how far it is from a sample.
pub struct Near {
    distance_ns: i64,
    moment: Moment,
}

impl Thread {
    pub fn new(name: u32, doings: Doings, wanted: Wanted) -> Thread {
        Thread {
            name,
            doings,
            wanted,
            last: None,
            recording: Recording::Untried,
            pending: None,
        }
    }

    /// It runs another program.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// The kernel need not record it for now.
    pub fn rest(&mut self) {
        if matches!(self.recording, Recording::Open(_)) {
            self.recording = Recording::Untried;
        }
    }
}

impl Process {
    /// A sample of a thread, and who has the lock that it waits for.
    pub fn sample_thread(
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
        let times = (time_ns, period_ns);
        let outcome = match self.judge(read, doing, common) {
            Some(outcome) => (outcome, None),
            None => self.say(index, times, doing, &python, common),
        };
        self.python = python;
        outcome
    }

    /// What comes of a sample without a stack that could be believed.
    fn judge(
        &mut self,
        read: Result<(), NoStack>,
        doing: Doing,
        common: &mut Common,
    ) -> Option<Outcome> {
        let reason = match read {
            Ok(()) => {
                self.failed = 0;
                return None;
            }
            Err(NoStack::NotPython) => return None,
            Err(NoStack::Memory(error)) if error.raw_os_error() != Some(libc::EFAULT) => {
                // It ends, runs another program, or may not be looked into any more.
                return Some(match is_refused(&error) {
                    true => Outcome::Refused,
                    false => Outcome::Ended,
                });
            }
            Err(NoStack::Changing) => "the Python stack changed each time that it was read",
            Err(_) => "the Python stack made no sense each time that it was read",
        };
        common.drop_sample(self.pid, reason);
        self.failed += 1;
        if self.failed >= MOST_FAILED {
            self.start_over(common);
        }
        let is_blocked = doing != Doing::Running;
        Some(Outcome::Taken { is_blocked })
    }

    fn say(
        &mut self,
        index: usize,
        (time_ns, period_ns): (i64, i64),
        doing: Doing,
        python: &[u64],
        common: &mut Common,
    ) -> (Outcome, Option<u32>) {
        let is_blocked = doing != Doing::Running;
        let taken = Outcome::Taken { is_blocked };
        let nearest = self.settle(index, Some((time_ns, python)), common);
        let (call, stack) = match doing {
            Doing::Blocked(Some(call)) => {
                let stack = match self.is_worker {
                    true => Some(self.number(python, &[], common)),
                    false => self.blocked_stack(index, call, python, time_ns, common),
                };
                (Some(call), stack)
            }
            Doing::Blocked(None) => (None, Some(self.number(python, &[], common))),
            Doing::Running => (None, None),
        };
        // It runs, or did so when its stack was read.
        let Some(stack) = stack else {
            self.record(index, common);
            let thread = &mut self.threads[index];
            thread.last = None;
            thread.pending = Some(Running {
                time_ns,
                period_ns,
                python: python.to_vec(),
                nearest,
            });
            if !matches!(thread.recording, Recording::Open(_)) {
                // There is nothing to wait for.
                self.settle(index, None, common);
            }
            return (taken, None);
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
            state: ThreadState::Blocked,
            period_ns,
            system_call,
            gil_holder,
        });
        (taken, gil_holder)
    }

    /// Says the sample that waits for its native frames. `next`: the sample after it, whose own nearest moment this gives.
    ///
    /// A moment between two samples is of a stack of Python only where both have the same one.
    pub fn settle(
        &mut self,
        index: usize,
        next: Option<(i64, &[u64])>,
        common: &mut Common,
    ) -> Option<Near> {
        let thread = &mut self.threads[index];
        let mut pending = thread.pending.take();
        let mut nearest_to_next = None;
        let python = pending.as_ref().map(|pending| pending.python.as_slice());
        let next_ns = next
            .filter(|(_, after)| Some(*after) == python)
            .map(|(time, _)| time);
        if let Recording::Open(ring) = &mut thread.recording {
            ring.take(|moment| {
                let (Some(pending), Some(next_ns)) = (&mut pending, next_ns) else {
                    return;
                };
                let time_ns = moment.time_ns;
                if (pending.time_ns..next_ns).contains(&time_ns) {
                    keep_nearer(&mut pending.nearest, time_ns - pending.time_ns, || {
                        moment.clone()
                    });
                    keep_nearer(&mut nearest_to_next, next_ns - time_ns, || moment);
                }
            });
        }
        let name = thread.name;
        if let Some(pending) = pending {
            let near = pending.nearest.map(|near| near.moment);
            let stack = match near {
                Some(moment) => {
                    let mut addresses = std::mem::take(&mut self.addresses);
                    self.native.unwind(
                        moment.registers,
                        &moment.stack,
                        &mut common.libraries,
                        pending.time_ns,
                        &mut addresses,
                    );
                    let stack = self.joined(&pending.python, &mut addresses, common);
                    self.addresses = addresses;
                    stack
                }
                None => self.number(&pending.python, &[], common),
            };
            common.heard.push(Heard::Sample {
                time_ns: pending.time_ns,
                pid: self.pid,
                thread: name,
                stack,
                state: ThreadState::Running,
                period_ns: pending.period_ns,
                system_call: None,
                gil_holder: None,
            });
        }
        nearest_to_next
    }

    /// Says what still waits for a next sample.
    pub fn flush(&mut self, common: &mut Common) {
        for index in 0..self.threads.len() {
            self.settle(index, None, common);
        }
    }

    /// Says what still waits, and lets the kernel record nothing for now.
    pub fn rest(&mut self, common: &mut Common) {
        self.flush(common);
        self.threads.iter_mut().for_each(Thread::rest);
    }

    /// Has the kernel record a followed thread.
    fn record(&mut self, index: usize, common: &mut Common) {
        let is_open = |thread: &&Thread| matches!(thread.recording, Recording::Open(_));
        let recorded = self.threads.iter().filter(is_open).count();
        let thread = &mut self.threads[index];
        let is_followed = thread.wanted == Wanted::Always && !self.is_worker;
        let is_wanted = is_followed && recorded < MOST_RECORDED;
        if !is_wanted || !matches!(thread.recording, Recording::Untried) {
            return;
        }
        let Some(here) = self.proc.thread_here(self.pid, thread.name) else {
            return;
        };
        thread.recording = match Ring::open(here) {
            Ok(ring) => Recording::Open(ring),
            Err(error) => {
                if !common.said_no_recording && error.raw_os_error() != Some(libc::ESRCH) {
                    common.said_no_recording = true;
                    common.heard.push(Heard::no_stacks(
                        None,
                        format!(
                            "native frames of threads that run are not known: {}",
                            why_refused(&error)
                        ),
                    ));
                }
                Recording::Refused
            }
        };
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
        let registers = Registers {
            instruction: call.instruction,
            stack_pointer: call.stack_pointer,
            ..Registers::default()
        };
        let libraries = &mut common.libraries;
        self.native
            .unwind_copy(registers, libraries, now_ns, &mut addresses);
        let stack = self.joined(python, &mut addresses, common);
        self.addresses = addresses;
        self.threads[index].last = Some(Blocked {
            call,
            python: python.to_vec(),
            stack,
        });
        Some(stack)
    }

    /// The number of a stack of Python with what is below it of a native one.
    fn joined(
        &mut self,
        python: &[u64],
        native: &mut Vec<u64>,
        common: &mut Common,
    ) -> Option<u32> {
        if let (false, Interpreter::Found { file, .. }) = (python.is_empty(), &self.interpreter) {
            let below = self.native.below_python(native, file);
            native.truncate(below);
        }
        self.number(python, native, common)
    }
}

fn keep_nearer(kept: &mut Option<Near>, distance_ns: i64, moment: impl FnOnce() -> Moment) {
    let is_nearer = kept
        .as_ref()
        .is_none_or(|kept| distance_ns < kept.distance_ns);
    if distance_ns <= NEAR_NS && is_nearer {
        *kept = Some(Near {
            distance_ns,
            moment: moment(),
        });
    }
}

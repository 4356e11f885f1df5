//! Takes the samples of one thread of a process and joins Python and native frames. What a blocked thread does is
//! known at once. The native frames of a running one come from a record that the kernel makes meanwhile, so that its
//! sample is pending (kept) until the next one.

use super::thread::{BlockedCall, Hole, NearRecord, PendingSample, Reason, RingState, Thread};
use super::{
    Interpreter, MAX_IMPLAUSIBLE_SAMPLES, Process, SampleOutcome, SamplerState, is_refused,
};
use crate::messages::Update;
use crate::perf_ring::{PerfRecord, Registers, Ring, why_refused};
use crate::procfs::{Activity, SystemCall, Turns, now_ns};
use crate::python::NoStack;
use gapscope_model::ThreadState;

/// Why samples are missing where the kernel's records of a hole found no room.
const RING_FULL: &str = "the memory for the kernel's records of running threads was full before the thread that takes samples had a turn";
/// The most threads of a process that the kernel records: each takes up to 4 MiB of locked memory.
const MAX_RECORDED_THREADS: usize = 16;

impl Process {
    /// Takes a sample of the thread with this index. Returns also the thread that holds the GIL for which it waits.
    pub fn sample_thread(
        &mut self,
        index: usize,
        period_ns: i64,
        state: &mut SamplerState,
    ) -> (SampleOutcome, Option<u32>) {
        let thread = &self.threads[index];
        let inner = thread.inner;
        // The turns come first: a thread that has the same number at its next sample was not on a processor between the two.
        let turns = thread.turns.read();
        let doing = match thread.activity.read() {
            Ok(doing) => doing,
            Err(error) if is_refused(&error) => return (SampleOutcome::Refused, None),
            Err(_) => return (SampleOutcome::Ended, None),
        };
        let time_ns = now_ns();
        self.attach(time_ns, state);
        let mut python = std::mem::take(&mut self.python);
        python.clear();
        let read = match &mut self.interpreter {
            Interpreter::Found { reader, .. } => reader.stack(inner, time_ns, &mut python),
            _ => Err(NoStack::NotPython),
        };
        let call = match doing {
            Activity::Blocked(call) => call,
            Activity::Running => None,
        };
        let thread = &mut self.threads[index];
        let period_ns = thread.stands_for((time_ns, period_ns), call, turns);
        // Workers are sampled only while somebody waits for them, which leaves no holes.
        if self.is_worker {
            thread.hole = None;
        }
        let times = (time_ns, period_ns);
        let outcome = match self.outcome_without_stack(read, doing, state) {
            Some(outcome) => {
                self.send_pending(index, None, state);
                (outcome, None)
            }
            None => self.send(index, times, (doing, turns), &python, state),
        };
        self.python = python;
        outcome
    }

    /// Returns the outcome of a sample whose stack could not be believed; `None` where there is a stack, or no Python.
    fn outcome_without_stack(
        &mut self,
        read: Result<(), NoStack>,
        doing: Activity,
        state: &mut SamplerState,
    ) -> Option<SampleOutcome> {
        let reason = match read {
            Ok(()) => {
                self.failed = 0;
                return None;
            }
            Err(NoStack::NotPython) => return None,
            Err(NoStack::Memory(error)) if error.raw_os_error() != Some(libc::EFAULT) => {
                // The process ends, runs another program, or may no longer be read.
                return Some(match is_refused(&error) {
                    true => SampleOutcome::Refused,
                    false => SampleOutcome::Ended,
                });
            }
            Err(NoStack::Changing) => "the Python stack changed each time that it was read",
            Err(_) => "the Python stack made no sense each time that it was read",
        };
        state.drop_sample(self.pid, reason);
        self.failed += 1;
        if self.failed >= MAX_IMPLAUSIBLE_SAMPLES {
            self.start_over(state);
        }
        let is_blocked = doing != Activity::Running;
        Some(SampleOutcome::Taken { is_blocked })
    }

    /// Sends the sample of a blocked thread, or makes that of a running one pending. Returns also the thread that
    /// holds the interpreter's lock (GIL) for which it waits.
    fn send(
        &mut self,
        index: usize,
        (time_ns, period_ns): (i64, i64),
        (doing, turns): (Activity, Option<Turns>),
        python: &[u64],
        state: &mut SamplerState,
    ) -> (SampleOutcome, Option<u32>) {
        let is_blocked = doing != Activity::Running;
        let taken = SampleOutcome::Taken { is_blocked };
        let nearest = self.send_pending(index, Some((time_ns, python)), state);
        let (call, stack) = match doing {
            Activity::Blocked(Some(call)) => {
                let stack = match self.is_worker {
                    true => Some(self.number(python, &[], state)),
                    false => self.blocked_stack(index, call, python, time_ns, state),
                };
                (Some(call), stack)
            }
            Activity::Blocked(None) => (None, Some(self.number(python, &[], state))),
            Activity::Running => (None, None),
        };
        // The thread runs, or did so while its stack was read.
        if let Some(last) = &mut self.threads[index].last {
            last.turns = turns;
        }
        let Some(stack) = stack else {
            self.record(index, state);
            let thread = &mut self.threads[index];
            thread.last = None;
            thread.pending = Some(PendingSample {
                time_ns,
                period_ns,
                python: python.to_vec(),
                nearest,
            });
            if !matches!(thread.recording, RingState::Open(_)) {
                // No kernel record will come.
                self.send_pending(index, None, state);
            }
            return (taken, None);
        };
        let inner = self.threads[index].inner;
        let gil_holder = match (&self.interpreter, call) {
            (Interpreter::Found { reader, .. }, Some(call)) if call.number == libc::SYS_futex => {
                reader.lock_holder(inner, call.argument)
            }
            _ => None,
        };
        let system_call = call.map(|call| state.call(call.number));
        if !self.is_worker {
            state.count_taken(self.pid);
        }
        state.updates.push(Update::Sample {
            time_ns,
            pid: self.pid,
            thread: inner,
            stack,
            state: ThreadState::Blocked,
            period_ns,
            system_call,
            gil_holder,
        });
        (taken, gil_holder)
    }

    /// Sends the sample that waits for its native frames, and what the kernel recorded in the hole behind it. `next` is the time and Python
    /// stack of the following sample; the kernel record nearest to that one is returned.
    ///
    /// A record between two samples belongs to a Python stack only where both samples have the same one.
    pub fn send_pending(
        &mut self,
        index: usize,
        next: Option<(i64, &[u64])>,
        state: &mut SamplerState,
    ) -> Option<NearRecord> {
        let thread = &mut self.threads[index];
        let mut pending = thread.pending.take();
        let mut nearest_to_next = None;
        let python = pending.as_ref().map(|pending| pending.python.as_slice());
        let calls_python = [python, next.map(|(_, python)| python)];
        let calls_python = calls_python.iter().flatten().any(|stack| !stack.is_empty());
        let next_ns = next
            .filter(|(_, after)| Some(*after) == python)
            .map(|(time, _)| time);
        let hole = thread.hole.take();
        let mut in_hole = Vec::new();
        let mut was_full = false;
        if let RingState::Open(ring) = &mut thread.recording {
            was_full = ring.take(|moment| {
                if hole.is_some_and(|hole| (hole.from_ns..hole.until_ns).contains(&moment.time_ns))
                {
                    in_hole.push(moment.clone());
                }
                let (Some(pending), Some(next_ns)) = (&mut pending, next_ns) else {
                    return;
                };
                let time_ns = moment.time_ns;
                if (pending.time_ns..next_ns).contains(&time_ns) {
                    NearRecord::keep_nearer(
                        &mut pending.nearest,
                        time_ns - pending.time_ns,
                        || moment.clone(),
                    );
                    NearRecord::keep_nearer(&mut nearest_to_next, next_ns - time_ns, || moment);
                }
            });
        }
        if let Some(pending) = pending {
            let stack = match pending.nearest {
                Some(near) => {
                    let mut addresses = self.unwound(&near.moment, state);
                    let stack = self.joined(&pending.python, &mut addresses, state);
                    self.addresses = addresses;
                    stack
                }
                None => self.number(&pending.python, &[], state),
            };
            let times = (pending.time_ns, pending.period_ns);
            self.send_running(index, times, stack, state);
        }
        if let Some(hole) = hole {
            self.fill(index, (hole, was_full), &in_hole, calls_python, state);
        }
        nearest_to_next
    }

    /// Sends a sample of a thread that runs.
    fn send_running(
        &mut self,
        index: usize,
        (time_ns, period_ns): (i64, i64),
        stack: Option<u32>,
        state: &mut SamplerState,
    ) {
        if !self.is_worker {
            state.count_taken(self.pid);
        }
        state.updates.push(Update::Sample {
            time_ns,
            pid: self.pid,
            thread: self.threads[index].inner,
            stack,
            state: ThreadState::Running,
            period_ns,
            system_call: None,
            gil_holder: None,
        });
    }

    /// Sends the kernel's records in a hole as samples, and notes what they do not cover. `was_full`: the kernel had no room for more
    /// records. Which Python code ran in a hole is not known, so that in a thread that calls Python (`calls_python`) only the
    /// frames inside of what Python called are told.
    fn fill(
        &mut self,
        index: usize,
        (hole, was_full): (Hole, bool),
        records: &[PerfRecord],
        calls_python: bool,
        state: &mut SamplerState,
    ) {
        let reason = match was_full {
            true => RING_FULL,
            false => state.delay.reason(),
        };
        let uncovered = &mut self.threads[index].uncovered;
        let period_ns = uncovered.add(hole, reason, records.len());
        for record in records {
            let mut addresses = self.unwound(record, state);
            if let (true, Interpreter::Found { file, .. }) = (calls_python, &self.interpreter) {
                let below = self.native.below_python(&addresses, file);
                addresses.truncate(below);
            }
            let stack = self.number(&[], &addresses, state);
            self.addresses = addresses;
            self.send_running(index, (record.time_ns, period_ns), stack, state);
        }
    }

    /// Returns the addresses on the stack of a record, innermost first, in the buffer for them.
    fn unwound(&mut self, record: &PerfRecord, state: &mut SamplerState) -> Vec<u64> {
        let mut addresses = std::mem::take(&mut self.addresses);
        let (registers, stack) = (record.registers, &record.stack);
        let libraries = &mut state.libraries;
        self.native
            .unwind(registers, stack, libraries, record.time_ns, &mut addresses);
        addresses
    }

    /// Sends all samples that wait for a following one, and counts the missing ones.
    pub fn flush(&mut self, state: &mut SamplerState) {
        for index in 0..self.threads.len() {
            self.send_pending(index, None, state);
        }
        self.count_missing(state);
    }

    /// Counts the samples that are missing so far.
    pub fn count_missing(&mut self, state: &mut SamplerState) {
        for thread in &mut self.threads {
            if let Some((missing, reason)) = thread.uncovered.take_missing() {
                state.count_missing(self.pid, missing, reason);
            }
        }
    }

    /// Sends all samples that wait, and ends the kernel's recording for now.
    pub fn rest(&mut self, state: &mut SamplerState) {
        self.flush(state);
        self.threads.iter_mut().for_each(Thread::rest);
    }

    /// Has the kernel record a followed thread, unless its process is a worker (a descendant of a followed process),
    /// enough threads are recorded, or it was tried. The first refusal of all is reported.
    fn record(&mut self, index: usize, state: &mut SamplerState) {
        let is_open = |thread: &&Thread| matches!(thread.recording, RingState::Open(_));
        let recorded = self.threads.iter().filter(is_open).count();
        let thread = &mut self.threads[index];
        let is_followed = thread.reason == Reason::Followed && !self.is_worker;
        let is_wanted = is_followed && recorded < MAX_RECORDED_THREADS;
        if !is_wanted || !matches!(thread.recording, RingState::Untried) {
            return;
        }
        let Some(here) = self.proc.thread_here(self.pid, thread.inner) else {
            return;
        };
        thread.recording = match Ring::open(here) {
            Ok(ring) => RingState::Open(ring),
            Err(error) => {
                if !state.reported_no_recording && error.raw_os_error() != Some(libc::ESRCH) {
                    state.reported_no_recording = true;
                    state.updates.push(Update::no_stacks(
                        None,
                        format!(
                            "native frames of threads that run are not known: {}",
                            why_refused(&error)
                        ),
                    ));
                }
                RingState::Refused
            }
        };
    }

    /// Returns the number of the stack of a thread in a system call, Python and native (`Some(None)` where it has no
    /// number); `None` where the thread has left the call.
    fn blocked_stack(
        &mut self,
        index: usize,
        call: SystemCall,
        python: &[u64],
        now_ns: i64,
        state: &mut SamplerState,
    ) -> Option<Option<u32>> {
        let thread = &mut self.threads[index];
        // The thread has most likely not moved.
        if let Some(last) = &thread.last
            && last.call == call
            && last.python == python
        {
            return Some(last.stack);
        }
        thread.last = None;
        self.native.copy(call.stack_pointer);
        // A stack that moved while it was read is not the stack of one moment.
        if thread.activity.read().ok() != Some(Activity::Blocked(Some(call))) {
            return None;
        }
        let mut addresses = std::mem::take(&mut self.addresses);
        let registers = Registers {
            instruction: call.instruction,
            stack_pointer: call.stack_pointer,
            ..Registers::default()
        };
        let libraries = &mut state.libraries;
        self.native
            .unwind_copy(registers, libraries, now_ns, &mut addresses);
        let stack = self.joined(python, &mut addresses, state);
        self.addresses = addresses;
        self.threads[index].last = Some(BlockedCall {
            call,
            python: python.to_vec(),
            stack,
            turns: None,
        });
        Some(stack)
    }

    /// Returns the number of a Python stack joined with the native frames below it.
    fn joined(
        &mut self,
        python: &[u64],
        native: &mut Vec<u64>,
        state: &mut SamplerState,
    ) -> Option<u32> {
        if let (false, Interpreter::Found { file, .. }) = (python.is_empty(), &self.interpreter) {
            let below = self.native.below_python(native, file);
            native.truncate(below);
        }
        self.number(python, native, state)
    }
}

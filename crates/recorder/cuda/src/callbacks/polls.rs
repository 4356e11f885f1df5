//! Folds polls (calls that only ask whether work is done). A host that waits in this way makes a million of them a
//! second: calls that follow each other become one event, which the next flush (every 100 ms) writes, or the thread
//! when it does something else.

use crate::recorder::Recorder;
use gapscope_spool::event::{BETWEEN_POLLS_NS, CudaEvent, Span};
use gapscope_spool::ids;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// The number of threads whose polls are kept apart; beyond, threads write each other's polls early.
const SLOTS: usize = 256;

/// The attempts to take a thread's polls: a signal handler may have interrupted the thread there and not return.
const LOCK_ATTEMPTS: u32 = 1000;

/// Polls that are not written yet, by thread.
static PENDING: [Slot; SLOTS] = [const { Slot(Mutex::new(None)) }; SLOTS];

/// A slot has a cache line of its own, because its thread polls as fast as it can.
#[repr(align(64))]
struct Slot(Mutex<Option<Polls>>);

thread_local! {
    /// The system's id of the thread; 0 until it is first asked for.
    static THREAD: Cell<u32> = const { Cell::new(0) };
    /// Whether the thread may have polls that are not written.
    static HAS_POLLS: Cell<bool> = const { Cell::new(false) };
    /// Changes when something comes between two polls.
    static RUN: Cell<u32> = const { Cell::new(0) };
}

/// Polls of one function that follow each other on one thread and have the same answer.
#[derive(Debug, Clone, Copy)]
struct Polls {
    function: ids::Function,
    thread: u32,
    /// The thread's [`RUN`] at the first poll.
    run: u32,
    /// The start of the first poll.
    begin_ns: i64,
    /// The end of the last poll.
    end_ns: i64,
    count: u32,
    /// The time inside the calls, without that between them.
    busy_ns: i64,
    /// The answer, the same of each: the CUDA result code.
    result: u32,
}

impl Slot {
    fn for_thread(thread: u32) -> &'static Slot {
        &PENDING[thread as usize % SLOTS]
    }

    /// Tries to lock the slot without waiting: a thread of the program takes no lock that another holds.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Polls>>> {
        match self.0.try_lock() {
            Ok(open) => Some(open),
            Err(TryLockError::Poisoned(open)) => Some(open.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Takes the polls out of the slot, for a thread that may wait; `None` without polls or after [`LOCK_ATTEMPTS`].
    fn take(&self) -> Option<Polls> {
        let mut tries = (0..LOCK_ATTEMPTS).map(|_| {
            let open = self.try_lock();
            if open.is_none() {
                std::thread::yield_now();
            }
            open
        });
        tries.find_map(|open| open)?.take()
    }
}

/// Adds a poll of this thread to the former polls if it continues them. Otherwise the former polls of the slot,
/// perhaps another thread's, are written; where the slot is locked, the poll itself.
pub fn add(recorder: &Recorder, function: ids::Function, span: Span, result: u32) {
    let thread = thread_id();
    let new = Polls {
        function,
        thread,
        run: RUN.get(),
        begin_ns: span.start_ns,
        end_ns: span.end_ns(),
        count: 1,
        busy_ns: span.duration_ns,
        result,
    };
    let before = match Slot::for_thread(thread).try_lock() {
        None => {
            // The former polls may stay there.
            next_run();
            Some(new)
        }
        Some(mut open) => {
            HAS_POLLS.set(true);
            match &mut *open {
                Some(polls) if polls.continues(&new) => {
                    polls.end_ns = new.end_ns;
                    polls.count += 1;
                    polls.busy_ns = polls.busy_ns.saturating_add(new.busy_ns);
                    None
                }
                open => open.replace(new),
            }
        }
    };
    if let Some(polls) = before {
        polls.write(recorder);
    }
}

/// Writes the polls of this thread, which does something else.
#[inline]
pub fn end(recorder: &Recorder) {
    if HAS_POLLS.replace(false) {
        next_run();
        write_polls_of(recorder, thread_id());
    }
}

/// Separates the polls to come from the former ones.
fn next_run() {
    RUN.set(RUN.get().wrapping_add(1));
}

#[cold]
fn write_polls_of(recorder: &Recorder, thread: u32) {
    let open = Slot::for_thread(thread).try_lock();
    let polls = open.and_then(|mut open| open.take_if(|polls| polls.thread == thread));
    if let Some(polls) = polls {
        polls.write(recorder);
    }
}

/// Writes the polls of all threads so far. Callbacks must not call it.
pub fn write_all(recorder: &Recorder) {
    for polls in PENDING.iter().filter_map(Slot::take) {
        polls.write(recorder);
    }
}

fn thread_id() -> u32 {
    if THREAD.get() == 0 {
        // SAFETY: gettid has no preconditions.
        THREAD.set(unsafe { libc::gettid() } as u32);
    }
    THREAD.get()
}

impl Polls {
    /// Returns whether a poll belongs to these: the same thread, run, function and answer, soon after.
    fn continues(&self, next: &Polls) -> bool {
        // All polls have one answer: a poll that finds its work done is no part of the wait before it.
        let asker = |polls: &Polls| (polls.thread, polls.run, polls.function, polls.result);
        asker(self) == asker(next)
            && next.begin_ns >= self.begin_ns
            && next.begin_ns.saturating_sub(self.end_ns) <= BETWEEN_POLLS_NS
            && self.count < u32::MAX
    }

    fn write(&self, recorder: &Recorder) {
        recorder.write(&CudaEvent::Polled {
            function: self.function,
            thread: ids::Thread(self.thread),
            span: Span {
                start_ns: self.begin_ns,
                duration_ns: self.end_ns.saturating_sub(self.begin_ns).max(0),
            },
            count: self.count,
            busy_ns: self.busy_ns,
            result: self.result,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn poll(begin_ns: i64) -> Polls {
        Polls {
            function: ids::Function(1),
            thread: 7,
            run: 0,
            begin_ns,
            end_ns: begin_ns + 10,
            count: 1,
            busy_ns: 10,
            result: 600,
        }
    }

    #[test]
    fn polls_go_on_until_something_else_happens() {
        let first = poll(1000);
        assert!(first.continues(&poll(1010)) && first.continues(&poll(1010 + BETWEEN_POLLS_NS)));
        for other in [
            poll(1011 + BETWEEN_POLLS_NS),
            poll(999),
            Polls {
                function: ids::Function(2),
                ..poll(1020)
            },
            Polls {
                thread: 8,
                ..poll(1020)
            },
            Polls {
                run: 1,
                ..poll(1020)
            },
            Polls {
                result: 0,
                ..poll(1020)
            },
        ] {
            assert!(!first.continues(&other), "{other:?}");
        }
    }

    #[test]
    fn a_thread_that_was_interrupted_for_good_holds_nobody_up() {
        // A signal handler that calls exit interrupts a thread for good.
        let slot = Slot(Mutex::new(Some(poll(1000))));
        let held = slot.try_lock();
        assert!(held.is_some() && slot.take().is_none());
        drop(held);
        assert!(slot.take().is_some() && slot.take().is_none());
    }
}

//! Calls that ask whether work is done. A host that waits so makes a million of them in a second: those that follow each
//! other are one event, which the next flush writes, or the thread when it does something else.

use crate::recorder::Recorder;
use gapscope_spool::event::{BETWEEN_POLLS_NS, CudaEvent, Span};
use gapscope_spool::ids;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, TryLockError};

/// Threads that are told apart without writing each other's polls too early.
const SLOTS: usize = 256;

/// Attempts to take a thread's polls: a signal handler may have interrupted the thread there and not return.
const TRIES: u32 = 1000;

/// Polls that are not written yet, by thread.
static OPEN: [Slot; SLOTS] = [const { Slot(Mutex::new(None)) }; SLOTS];

/// A cache line of its own: its thread polls as fast as it can.
#[repr(align(64))]
struct Slot(Mutex<Option<Polls>>);

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
    /// The thread may have polls that are not written.
    static ASKED: Cell<bool> = const { Cell::new(false) };
    /// Changes when something comes between two polls.
    static RUN: Cell<u32> = const { Cell::new(0) };
}

/// Polls of one function that follow each other on one thread and have the same answer.
#[derive(Debug, Clone, Copy)]
struct Polls {
    function: ids::Function,
    thread: u32,
    run: u32,
    begin_ns: i64,
    end_ns: i64,
    count: u32,
    busy_ns: i64,
    result: u32,
}

impl Slot {
    fn of(thread: u32) -> &'static Slot {
        &OPEN[thread as usize % SLOTS]
    }

    /// Not waiting: a thread of the program takes no lock that another holds.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Polls>>> {
        match self.0.try_lock() {
            Ok(open) => Some(open),
            Err(TryLockError::Poisoned(open)) => Some(open.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// What is there, for a thread that has the time.
    fn take(&self) -> Option<Polls> {
        let mut tries = (0..TRIES).map(|_| {
            let open = self.try_lock();
            if open.is_none() {
                std::thread::yield_now();
            }
            open
        });
        tries.find_map(|open| open)?.take()
    }
}

/// This thread asked.
pub fn asked(recorder: &Recorder, function: ids::Function, span: Span, result: u32) {
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
    let before = match Slot::of(thread).try_lock() {
        None => {
            // Those before it may stay there.
            next_run();
            Some(new)
        }
        Some(mut open) => {
            ASKED.set(true);
            match &mut *open {
                Some(polls) if polls.goes_on(&new) => {
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

/// This thread does something else.
#[inline]
pub fn end(recorder: &Recorder) {
    if ASKED.replace(false) {
        next_run();
        end_of(recorder, thread_id());
    }
}

fn next_run() {
    RUN.set(RUN.get().wrapping_add(1));
}

#[cold]
fn end_of(recorder: &Recorder, thread: u32) {
    let open = Slot::of(thread).try_lock();
    let polls = open.and_then(|mut open| open.take_if(|polls| polls.thread == thread));
    if let Some(polls) = polls {
        polls.write(recorder);
    }
}

/// Writes what all threads asked so far. Not for callbacks.
pub fn write_all(recorder: &Recorder) {
    for polls in OPEN.iter().filter_map(Slot::take) {
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
    fn goes_on(&self, next: &Polls) -> bool {
        // Of one outcome only: a poll that finds its work done is no part of the wait before it.
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
        assert!(first.goes_on(&poll(1010)) && first.goes_on(&poll(1010 + BETWEEN_POLLS_NS)));
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
            assert!(!first.goes_on(&other), "{other:?}");
        }
    }

    #[test]
    fn a_thread_that_was_interrupted_for_good_holds_nobody_up() {
        // As by a signal handler that calls exit.
        let slot = Slot(Mutex::new(Some(poll(1000))));
        let held = slot.try_lock();
        assert!(held.is_some() && slot.take().is_none());
        drop(held);
        assert!(slot.take().is_some() && slot.take().is_none());
    }
}

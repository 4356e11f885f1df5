//! Calls that ask whether work is done. A host that waits so makes a million of them in a second: those that follow each
//! other are one entry, which the next tick writes, or the thread when it does something else.

use crate::recorder::Recorder;
use gapscope_spool::Event;
use gapscope_spool::event::Span;
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Polls that follow each other so closely are one wait: so the session sees them too.
const BETWEEN_NS: i64 = 100_000;

/// Threads that are told apart without writing each other's polls too early.
const PLACES: usize = 256;

/// Polls that are not written yet, by thread.
static OPEN: [Place; PLACES] = [const { Place(Mutex::new(None)) }; PLACES];

/// A cache line of its own: its thread polls as fast as it can.
#[repr(align(64))]
struct Place(Mutex<Option<Polls>>);

thread_local! {
    static THREAD: Cell<u32> = const { Cell::new(0) };
    /// The thread may have polls that are not written.
    static ASKED: Cell<bool> = const { Cell::new(false) };
    /// Changes when something comes between two polls.
    static RUN: Cell<u32> = const { Cell::new(0) };
}

/// Polls of one function that follow each other on one thread.
#[derive(Debug, Clone, Copy)]
struct Polls {
    function: u32,
    thread: u32,
    run: u32,
    begin_ns: i64,
    end_ns: i64,
    count: u32,
    busy_ns: i64,
    result: u32,
}

impl Place {
    fn of(thread: u32) -> &'static Place {
        &OPEN[thread as usize % PLACES]
    }

    /// Not waiting: a thread of the program takes no lock that another holds.
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Polls>>> {
        match self.0.try_lock() {
            Ok(open) => Some(open),
            Err(TryLockError::Poisoned(open)) => Some(open.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// This thread asked.
pub fn asked(recorder: &Recorder, function: u32, span: Span, result: u32) {
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
    let before = match Place::of(thread).try_lock() {
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
                    polls.result = result;
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
    let open = Place::of(thread).try_lock();
    let polls = open.and_then(|mut open| open.take_if(|polls| polls.thread == thread));
    if let Some(polls) = polls {
        polls.write(recorder);
    }
}

/// Writes what all threads asked so far. For a thread of ours.
pub fn write_all(recorder: &Recorder) {
    for Place(place) in &OPEN {
        let polls = place.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(polls) = polls {
            polls.write(recorder);
        }
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
        let asker = |polls: &Polls| (polls.thread, polls.run, polls.function);
        asker(self) == asker(next)
            && next.begin_ns >= self.begin_ns
            && next.begin_ns.saturating_sub(self.end_ns) <= BETWEEN_NS
            && self.count < u32::MAX
    }

    fn write(&self, recorder: &Recorder) {
        recorder.write(&Event::Polled {
            function: self.function,
            thread: self.thread,
            start_ns: self.begin_ns,
            duration_ns: self.end_ns.saturating_sub(self.begin_ns).max(0),
            count: self.count,
            busy_ns: self.busy_ns,
            result: self.result,
        });
    }
}

//! Records the Python stack of a thread (the functions that it is in) at the calls that explain gaps: at the end of a
//! long wait, and at a submission after a long time without calls. A hook calls [`waited`] and [`submitted`] after
//! such calls of the program; the stack is written to the spool.
//!
//! The thread reads its own frames, which do not change while it is in the hook, with or without the interpreter's
//! lock. The only Python function that is called is the one that returns the thread's state.

mod cache;
mod python;

use crate::event::{CommonEvent, SampleSource, Span};
use crate::{Spool, ids};
use cache::LineCache;
use gapscope_model::LossKind;
use python::{CodePosition, MAX_FRAMES, Python};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

/// The shortest wait that is worth a stack.
const MIN_WAIT_NS: i64 = 100_000;
/// A thread without calls for this long may be the reason why the device is idle.
const MIN_ABSENCE_NS: i64 = 200_000;
/// The least time between two stacks of a thread. With cold caches a stack takes 8 µs, so the cost is 1.6 % at most.
const MIN_STACK_DISTANCE_NS: i64 = 500_000;

/// The times of a thread's last call (`i64::MAX` before the first, so that it counts as no absence) and last stack
/// (`i64::MIN` before the first).
#[derive(Debug, Clone, Copy)]
struct LastTimes {
    call_end_ns: i64,
    stack_ns: i64,
}

thread_local! {
    // The cell needs no destructor, so it lives as long as the thread.
    static LAST: Cell<LastTimes> = const { Cell::new(LastTimes { call_end_ns: i64::MAX, stack_ns: i64::MIN }) };
    // The lines that this thread has written; absent before its first stack.
    static CACHE: RefCell<Option<LineCache>> = const { RefCell::new(None) };
}

/// The reason why a stack is not recorded.
const FILTERED: &str = "the program filters its system calls, so that its own thread does not read Python's frames at calls; samples from outside go on";

/// Whether the session wants stacks ([`crate::env::STACKS`]), read once.
static IS_ON: OnceLock<bool> = OnceLock::new();
/// Whether the process has an interpreter, as found when it was first asked: a program that filters its calls hardly loads one.
static HAS_PYTHON: OnceLock<bool> = OnceLock::new();
/// The interpreter of this process; `None` inside when there is none that can be read. Empty until that is known.
static PYTHON: OnceLock<Option<Python>> = OnceLock::new();

/// Records the stack after a long wait for the device, which has just ended on this thread.
#[inline]
pub fn waited(spool: &Spool, span: Span) {
    let end_ns = span.end_ns();
    let last = LAST.get();
    LAST.set(LastTimes {
        call_end_ns: end_ns,
        ..last
    });
    if span.duration_ns >= MIN_WAIT_NS && is_due(last, end_ns) {
        record_stack(spool, end_ns, SampleSource::AfterWait);
    }
}

/// Records the stack at a submission, which has just ended on this thread, after a long time without calls.
#[inline]
pub fn submitted(spool: &Spool, span: Span) {
    let last = LAST.get();
    LAST.set(LastTimes {
        call_end_ns: span.end_ns(),
        ..last
    });
    let away_ns = span.start_ns.saturating_sub(last.call_end_ns);
    if away_ns >= MIN_ABSENCE_NS && is_due(last, span.start_ns) {
        record_stack(spool, span.start_ns, SampleSource::AtSubmission);
    }
}

/// Returns true when the last stack is long enough ago.
fn is_due(last: LastTimes, now_ns: i64) -> bool {
    now_ns.saturating_sub(last.stack_ns) >= MIN_STACK_DISTANCE_NS
}

/// Returns the interpreter, which is searched until it is known whether there is one.
fn python() -> Option<&'static Python> {
    if PYTHON.get().is_none() {
        // Only a thread that runs Python can find the interpreter.
        let found = Python::find()?;
        let _ = PYTHON.set(found);
    }
    PYTHON.get()?.as_ref()
}

/// Writes the calling thread's stack to the spool, with the lines that its log does not have yet.
#[cold]
fn record_stack(spool: &Spool, at_ns: i64, source: SampleSource) {
    let is_on = || std::env::var_os(crate::env::STACKS).is_none_or(|value| value != "0");
    if !spool.recording() || !*IS_ON.get_or_init(is_on) {
        return;
    }
    LAST.set(LastTimes {
        stack_ns: at_ns,
        ..LAST.get()
    });
    // Reading the interpreter's memory opens a file. The session samples the stacks of such a process too.
    if spool.filters_calls() {
        if *HAS_PYTHON.get_or_init(python::is_loaded) {
            spool.write(&CommonEvent::Loss {
                kind: LossKind::PythonStacks,
                count: 1,
                reason: FILTERED.into(),
            });
        }
        return;
    }
    let Some(python) = python() else {
        return;
    };
    let mut frames = [CodePosition::default(); MAX_FRAMES];
    let Some(frames) = python.stack(&mut frames) else {
        return;
    };
    let mut ids = [ids::Frame::NONE; MAX_FRAMES];
    // At the end of a thread the cache is gone, and no stack is recorded.
    let _ = CACHE.try_with(|cache| {
        let mut cache = cache.try_borrow_mut().ok()?;
        let cache = cache.get_or_insert_with(LineCache::new);
        for (frame, id) in frames.iter().zip(&mut ids) {
            *id = cache.id(frame, || {
                let line = python.line(frame)?;
                Some(move |frame| {
                    spool.write(&CommonEvent::Frame {
                        frame,
                        function: Cow::Owned(line.function),
                        file: Cow::Owned(line.file),
                        line: line.line,
                    });
                })
            })?;
        }
        spool.write(&CommonEvent::Stack {
            at_ns,
            source,
            frames: Cow::Borrowed(&ids[..frames.len()]),
        });
        Some(())
    });
}

//! Profiles launches of the kernels that the user has chosen, one by one: measures metrics (such as bytes or the
//! use of units) of the kernel and writes them as an event.
//!
//! CUPTI's range profiler is on from the start of such a launch to its end, and nowhere else. Inside the call, CUPTI
//! runs the kernel again and again with the memory that it had, until all metrics are counted. The call then takes a
//! good part of a second; the time is written, so that it is not taken for the program's. Without a choice none of
//! this code runs.

mod choice;
mod launch;
mod profiler;
mod refusal;

use super::data::CallbackData;
use crate::recorder::{Recorder, recorder};
use crate::subscription::Subscription;
use choice::{Choice, ChosenLaunch};
use gapscope_spool::event::{CudaEvent, Span};
use gapscope_spool::model::kernel_profile::Wanted;
use gapscope_spool::{env, ids, monotonic_ns};
use launch::LaunchKind;
use profiler::Profiler;
use refusal::ProfileError;
use std::borrow::Cow;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Whether a launch is being profiled, or launches are still to be profiled.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// The user's choice of kernels; `None` without one, and after profiling was given up.
static CHOICE: Mutex<Option<Choice>> = Mutex::new(None);
/// The launch that is being profiled: one at a time.
static ACTIVE: Mutex<Option<ActiveProfile>> = Mutex::new(None);

thread_local! {
    /// The correlation (CUPTI's number of the call) of this thread's launch that is being profiled; none otherwise.
    /// The cell needs no destructor.
    static PROFILED: Cell<ids::Correlation> = const { Cell::new(ids::Correlation::NONE) };
}

/// A launch that is being profiled.
struct ActiveProfile {
    profiler: Profiler,
    kernel: String,
    start_ns: i64,
}

/// Reads the user's choice.
pub fn prepare() {
    let wanted = std::env::var(env::PROFILE_KERNELS).unwrap_or_default();
    let wanted = Wanted::from_lines(&wanted);
    if !wanted.is_empty() {
        *lock(&CHOICE) = Some(Choice::new(wanted));
        IS_ON.store(true, Relaxed);
    }
}

/// Returns whether the functions below may have something to do.
#[inline]
pub fn is_on() -> bool {
    IS_ON.load(Relaxed)
}

/// Returns whether a call is made by CUPTI inside a launch that is being profiled.
pub fn is_made_by_profiler(correlation: ids::Correlation) -> bool {
    let profiled = PROFILED.get();
    profiled != ids::Correlation::NONE && profiled != correlation
}

/// Begins profiling at the start of a launch, if its kernel was chosen.
///
/// # Safety
/// The data is CUPTI's, of a call of the driver of this name.
pub unsafe fn begin(
    subscription: &Subscription,
    data: &CallbackData,
    function: &str,
    per_thread: bool,
) {
    let Some(recorder) = recorder() else { return };
    // SAFETY: as the caller promises.
    let Some(kernel) = (unsafe { data.symbol() }) else {
        return;
    };
    let kernel = kernel.to_string_lossy();
    let chosen = {
        let mut choice = lock(&CHOICE);
        let Some(choice) = choice.as_mut() else {
            return;
        };
        let Some(chosen) = choice.chosen(&kernel) else {
            return;
        };
        // SAFETY: as the caller promises.
        let launch = unsafe { LaunchKind::classify(data, function, per_thread) };
        match choice.refuse(&chosen, launch) {
            Some(sentence) => return note_once(recorder, sentence),
            None => choice.take(&chosen),
        }
        chosen
    };
    let Some(mut active) = free() else {
        // Another thread's launch is being profiled. There will be more launches.
        return give_back(&chosen);
    };
    PROFILED.set(data.correlation);
    let start_ns = monotonic_ns();
    // SAFETY: as the caller promises: the context is the thread's current one.
    match unsafe { Profiler::start(subscription.cupti.file(), data.current_context().handle) } {
        Ok(profiler) => {
            *active = Some(ActiveProfile {
                profiler,
                kernel: kernel.into_owned(),
                start_ns,
            });
        }
        Err(why) => {
            PROFILED.set(ids::Correlation::NONE);
            let span = Span::between(start_ns, monotonic_ns());
            write_delay(recorder, data.correlation, span, &kernel);
            give_up(recorder, &why);
        }
    }
}

/// Returns the place of the profiled launch if it is free: no launch begins before the previous one is complete.
fn free() -> Option<MutexGuard<'static, Option<ActiveProfile>>> {
    let active = match ACTIVE.try_lock() {
        Ok(active) => active,
        Err(TryLockError::Poisoned(error)) => error.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    active.is_none().then_some(active)
}

/// Ends profiling when the call has returned. Returns true if the call was profiled, so that its duration means
/// nothing.
pub fn end(correlation: ids::Correlation) -> bool {
    if PROFILED.get() != correlation || correlation == ids::Correlation::NONE {
        return false;
    }
    let mut profiled = lock(&ACTIVE);
    let (Some(active), Some(recorder)) = (profiled.take(), recorder()) else {
        PROFILED.set(ids::Correlation::NONE);
        return false;
    };
    let ActiveProfile {
        profiler,
        kernel,
        start_ns,
    } = active;
    let measured = profiler.finish();
    PROFILED.set(ids::Correlation::NONE);
    let span = Span::between(start_ns, monotonic_ns());
    drop(profiled);
    match measured {
        Ok(measured) => recorder.write(&CudaEvent::KernelProfiled {
            correlation,
            kernel: Cow::Owned(kernel),
            span,
            passes: measured.passes,
            values: Cow::Owned(measured.values),
        }),
        Err(why) => {
            write_delay(recorder, correlation, span, &kernel);
            give_up(recorder, &why);
        }
    }
    if lock(&CHOICE).as_ref().is_none_or(Choice::is_done) {
        IS_ON.store(false, Relaxed);
    }
    true
}

/// Notes which of the user's choices were not met, at the end of the process.
pub fn finish(recorder: &Recorder) {
    if let Some(choice) = lock(&CHOICE).take() {
        choice.unmet(|sentence| recorder.note(&sentence));
    }
}

/// Writes the time that a profile without values took.
fn write_delay(recorder: &Recorder, correlation: ids::Correlation, span: Span, kernel: &str) {
    recorder.write(&CudaEvent::KernelProfiled {
        correlation,
        kernel: Cow::Borrowed(kernel),
        span,
        passes: 0,
        values: Cow::Borrowed(&[]),
    });
}

/// Ends profiling in this process.
fn give_up(recorder: &Recorder, why: &ProfileError) {
    IS_ON.store(false, Relaxed);
    *lock(&CHOICE) = None;
    recorder.note(&format!("Kernels were not profiled, or no more: {why}."));
}

/// Counts a chosen launch as not profiled, so that a later one takes its place.
fn give_back(chosen: &ChosenLaunch) {
    if let Some(choice) = lock(&CHOICE).as_mut() {
        choice.give_back(chosen);
    }
}

/// Notes a sentence; `None` stands for one that was said before.
fn note_once(recorder: &Recorder, sentence: Option<String>) {
    if let Some(sentence) = sentence {
        recorder.note(&sentence);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

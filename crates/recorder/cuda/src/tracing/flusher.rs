//! The flusher, the thread that writes what was recorded (flushes) every 100 ms, and at the end of the process.
//!
//! CUPTI's own flush period hands back full buffers only; an explicit flush hands back partly filled ones, too.

use super::flush::{flush, flush_for_good};
use super::switch::follow_session;
use crate::instructions::{self, WrittenCubins};
use crate::loaded_modules::WrittenModules;
use crate::recorder::{Recorder, recorder};
use crate::subscription;
use gapscope_spool::event::LossKind;
use gapscope_spool::hook::{self, guard};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// At a sudden end of the process the records of at most this time are lost.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// The longest time that the end of the program waits for the last flush, in case the driver hangs.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The thread, so that the end of the process can wake it.
static FLUSHER: OnceLock<Thread> = OnceLock::new();
/// Whether the thread runs: it is false again after the last flush.
static RUNS: AtomicBool = AtomicBool::new(false);
/// Asks the thread to flush for the last time and end.
static STOP: AtomicBool = AtomicBool::new(false);

/// Starts the thread.
pub fn start(recorder: &'static Recorder) {
    // SAFETY: the handler is a plain function of this library, which is pinned. It is registered after the driver's
    // own handlers and so runs before them, while CUPTI still works.
    unsafe { libc::atexit(at_exit) };
    RUNS.store(true, Release);
    let thread = hook::spawn(move || {
        guard(|| {
            let mut modules = WrittenModules::default();
            let mut cubins = WrittenCubins::default();
            while !STOP.load(Acquire) {
                std::thread::park_timeout(FLUSH_EVERY);
                follow_session(recorder);
                flush(recorder);
                instructions::take(recorder);
                modules.write(recorder);
                cubins.write(recorder);
            }
            instructions::finish(recorder);
            modules.write(recorder);
            cubins.write(recorder);
            flush_for_good(recorder);
        });
        RUNS.store(false, Release);
    });
    match thread {
        Ok(thread) => {
            let _ = FLUSHER.set(thread.thread().clone());
        }
        Err(_) => {
            RUNS.store(false, Release);
            recorder.loss(
                LossKind::CudaActivitiesAtSuddenEnd,
                1,
                "the thread that flushes could not be started",
            );
        }
    }
}

/// Waits for the last flush. The flusher's thread does it, because the log of an exiting thread is gone already.
extern "C" fn at_exit() {
    guard(|| {
        let Some(recorder) = recorder().filter(|_| subscription::live().is_some()) else {
            return;
        };
        let runs = RUNS.load(Acquire);
        STOP.store(true, Release);
        if let Some(flusher) = FLUSHER.get().filter(|_| runs) {
            flusher.unpark();
            let start = Instant::now();
            while RUNS.load(Acquire) && start.elapsed() < MAX_WAIT {
                std::thread::sleep(Duration::from_micros(200));
            }
        } else {
            instructions::finish(recorder);
            flush_for_good(recorder);
        }
    });
}

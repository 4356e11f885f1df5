//! Runs CUPTI (NVIDIA's library for tracing) in this process: subscribes, switches its records and callbacks on and
//! off, and flushes (has written) what it recorded.

mod flush;
mod flusher;
mod kinds;
mod switch;

use crate::callbacks::profile;
use crate::cupti::{Cupti, numbers};
use crate::recorder::Recorder;
use crate::{buffers, callbacks, instructions, loaded_modules, subscription, window};
pub use flush::flush;
use gapscope_spool::event::LossKind;
use gapscope_spool::monotonic_ns;
use std::sync::Once;
pub use switch::record;

/// Starts tracing, once. Called inside cuInit, before the program has made a context.
pub fn start(recorder: &'static Recorder) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| match subscription::subscribe(callbacks::callback) {
        Ok(subscription) => prepare(recorder, &subscription.cupti),
        Err(unusable) => {
            let sentence = format!("No GPU work of CUDA was recorded: {}", unusable.sentence);
            recorder.lose_all_work(unusable.reason, &sentence);
        }
    });
}

/// The clock for all of CUPTI's times: the host's, in nanoseconds.
extern "C" fn now() -> u64 {
    monotonic_ns() as u64
}

/// Sets CUPTI up, switches on what is always on, reads the user's requests, and starts the flusher, the thread that
/// flushes now and then. Recording starts when the session (gapscope's process that writes the trace) says so.
fn prepare(recorder: &'static Recorder, cupti: &Cupti) {
    crate::records::read_module_version();
    if let Err((reason, code)) = set_up(recorder, cupti) {
        let answer = cupti.describe(code);
        let sentence = format!("No GPU work of CUDA was recorded: {reason} ({answer}).");
        recorder.lose_all_work(reason, &sentence);
        return;
    }
    kinds::enable(recorder, cupti, &kinds::DEFINITIONS);
    kinds::enable_host_functions(recorder, cupti);
    // Switched on later, when a graph exists already, this kind crashes the program inside the driver.
    if kinds::whole_graphs() {
        kinds::enable(recorder, cupti, &kinds::GRAPHS);
    }
    if cupti.was_loaded {
        recorder.note(
            "The program has loaded CUPTI itself. While gapscope records, a profiler inside the program (torch.profiler, \
             jax.profiler) gets no GPU times: CUPTI serves one client at a time.",
        );
    }
    if let Some(subscription) = subscription::live() {
        loaded_modules::follow(subscription);
        instructions::prepare(recorder, subscription);
    }
    profile::prepare();
    window::wait_for_start();
    switch::follow_session(recorder);
    flusher::start(recorder);
}

/// Sets threads, clock and buffers before anything is switched on. An error is the reason for the user, and CUPTI's
/// code.
fn set_up(recorder: &Recorder, cupti: &Cupti) -> Result<(), (&'static str, i32)> {
    const THREADS: LossKind = LossKind::OverheadThreads;
    let functions = &cupti.functions;
    // SAFETY: CUPTI's functions with the parameters that they ask for; the callbacks are of this library, which is
    // pinned.
    unsafe {
        match functions.thread_ids {
            Some(thread_ids) => {
                let code = thread_ids(numbers::THREAD_IDS_OF_SYSTEM);
                kinds::check(recorder, cupti, &THREADS, code);
            }
            None => recorder.loss(THREADS, 1, "this CUPTI gives shortened ones"),
        }
        // The clock comes first, so that all times of a record are of one clock.
        let code = (functions.timestamp_callback)(now);
        if code != 0 {
            return Err(("CUPTI does not give times in the host's clock", code));
        }
        let set = |attribute| {
            let (mut one, mut bytes) = (1u8, 1usize);
            (functions.set_attribute)(attribute, &mut bytes, (&raw mut one).cast());
        };
        // Where the attribute is not known, CUPTI zeroes buffers that are zero: slower, but not wrong.
        set(numbers::ATTRIBUTE_ZEROED_BUFFERS);
        // Threads then do not wait for each other. Without the attribute tracing is slower, but not wrong.
        if numbers::BUFFERS_OF_ALL.contains(&cupti.version) {
            set(numbers::ATTRIBUTE_BUFFERS_OF_THREADS);
        }
        let code = (functions.register_callbacks)(buffers::requested, buffers::completed);
        match code {
            0 => Ok(()),
            _ => Err(("CUPTI takes no buffers", code)),
        }
    }
}

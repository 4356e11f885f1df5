//! Samples the instructions of the program's kernels when the user asks for them (CUPTI's PC sampling): at a fixed
//! rate the GPU notes at which instruction its threads are and why they wait. The samples are written as events.
//!
//! A context (a program's state on one GPU) is sampled from its creation to its end. The flusher's thread, which
//! writes what was recorded every 100 ms, takes the samples that CUPTI has and writes them; so does a thread that
//! loads or unloads code, because addresses of code may be used again. Launches never come here. A failure becomes a
//! sentence in the trace, and the program goes on without samples.

mod contexts;
mod cubins;
mod samples;
mod sentences;

pub use cubins::loaded_cubin;

use crate::cupti::numbers::{domain, resource};
use crate::recorder::{Recorder, recorder};
use crate::subscription::Subscription;
use contexts::SampledContexts;
pub use cubins::WrittenCubins;
use gapscope_cupti::PcLibrary;
use gapscope_spool::env;
use samples::FunctionFilter;
use sentences::{not_sampled, note_end};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// The longest that the program's threads wait for the flusher's: CUPTI may itself wait for a lock that they hold.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// Whether contexts are sampled.
static IS_ON: AtomicBool = AtomicBool::new(false);
/// CUPTI's functions for sampling, once [`prepare`] has found them.
static LIBRARY: OnceLock<PcLibrary> = OnceLock::new();
/// The sampled contexts; `None` before [`prepare`] and after [`finish`].
static CONTEXTS: Mutex<Option<SampledContexts>> = Mutex::new(None);

/// CUpti_ResourceData: the data of a callback at the start or end of a context or code.
#[repr(C)]
pub struct ResourceData {
    context: *mut c_void,
    handle: *mut c_void,
    pub descriptor: *const c_void,
}

/// Reads the user's request, and asks for callbacks at the start and end of contexts and code.
pub fn prepare(recorder: &Recorder, subscription: &Subscription) {
    let Ok(wanted) = std::env::var(env::INSTRUCTIONS) else {
        return;
    };
    let library = match PcLibrary::open(subscription.cupti.file()) {
        Ok(library) => library,
        Err(error) => return not_sampled(recorder, sentences::unusable(&error)),
    };
    let refused = [resource::CONTEXT_CREATED, resource::CONTEXT_ENDS]
        .into_iter()
        .any(|number| subscription.switch_callback(domain::RESOURCE, number, true) != 0);
    if refused {
        return not_sampled(recorder, "CUPTI does not say when contexts are made");
    }
    let no_code = [resource::MODULE_LOADED, resource::MODULE_ENDS]
        .into_iter()
        .any(|number| subscription.switch_callback(domain::RESOURCE, number, true) != 0);
    if no_code || !cubins::prepare(subscription.cupti.file()) {
        recorder.note(
            "Lines of sampled instructions are not known: CUPTI does not say what code is loaded.",
        );
    }
    if LIBRARY.set(library).is_ok() {
        *lock() = Some(SampledContexts::new(FunctionFilter::new(wanted)));
        IS_ON.store(true, Relaxed);
    }
}

/// Handles the start or end of a context or code.
///
/// # Safety
/// The data is CUPTI's, of a callback of its resources.
pub unsafe fn resource(number: u32, data: *const c_void) -> Option<()> {
    if !IS_ON.load(Relaxed) {
        return None;
    }
    // SAFETY: as the caller promises.
    let data = unsafe { data.cast::<ResourceData>().as_ref() }?;
    let recorder = recorder()?;
    match number {
        resource::CONTEXT_CREATED => begin(recorder, data.context),
        resource::CONTEXT_ENDS => {
            if let Some(contexts) = lock_soon(MAX_WAIT) {
                contexts::end(recorder, contexts, data.context);
            } else {
                // CUPTI has not returned from a call: nothing more is asked of it.
                IS_ON.store(false, Relaxed);
                note_end(recorder, "CUPTI took too long to answer");
            }
        }
        resource::MODULE_LOADED => {
            // SAFETY: as the caller promises: it describes a module, whose code exists meanwhile.
            unsafe { cubins::loaded(data.descriptor) };
            take_if_free(recorder);
        }
        resource::MODULE_ENDS => take_if_free(recorder),
        _ => {}
    }
    Some(())
}

/// Starts to sample a new context, and writes how it is sampled.
fn begin(recorder: &Recorder, context: *mut c_void) {
    let Some(library) = LIBRARY.get() else { return };
    // SAFETY: the context has just been made.
    let sampled = match unsafe { contexts::SampledContext::start(library, context) } {
        Ok(sampled) => sampled,
        Err(why) => return not_sampled(recorder, &why),
    };
    let mut contexts = lock_soon(MAX_WAIT);
    match contexts.as_mut().and_then(|contexts| contexts.as_mut()) {
        Some(contexts) => {
            recorder.write(&sampled.definition());
            contexts.add(sampled);
        }
        None => sampled.give_up(),
    }
}

/// Writes the samples that CUPTI has.
pub fn take(recorder: &Recorder) {
    if IS_ON.load(Relaxed)
        && let Some(mut contexts) = lock_soon(MAX_WAIT)
        && let Some(contexts) = contexts.as_mut()
    {
        contexts.take(recorder);
    }
}

/// Writes the samples as [`take`] does, unless another thread is doing so.
fn take_if_free(recorder: &Recorder) {
    if let Some(mut contexts) = lock_soon(Duration::ZERO)
        && let Some(contexts) = contexts.as_mut()
    {
        contexts.take(recorder);
    }
}

/// Ends all sampling at the end of the process.
pub fn finish(recorder: &Recorder) {
    if !IS_ON.swap(false, Relaxed) {
        return;
    }
    let contexts = lock_soon(MAX_WAIT).and_then(|mut contexts| contexts.take());
    if let Some(contexts) = contexts {
        contexts.finish(recorder);
    }
}

fn lock() -> MutexGuard<'static, Option<SampledContexts>> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the contexts; `None` where another thread holds them for longer than `within`.
fn lock_soon(within: Duration) -> Option<MutexGuard<'static, Option<SampledContexts>>> {
    let start = Instant::now();
    loop {
        match CONTEXTS.try_lock() {
            Ok(contexts) => return Some(contexts),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) if start.elapsed() >= within => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

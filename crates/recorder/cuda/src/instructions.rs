//! Samples of the instructions that the program's kernels run, because the user asks for them (CUPTI's PC sampling).
//!
//! A context is sampled from its creation to its end. The thread that flushes takes what CUPTI has and writes it; so does a thread that
//! loads or unloads code, because addresses of code may be used again. No launch comes here. What goes wrong is a sentence
//! in the trace: the program goes on without samples.

mod contexts;
mod cubins;
mod samples;
mod sentences;

use crate::cupti::numbers::{domain, resource};
use crate::recorder::{Recorder, recorder};
use crate::subscription::Subscription;
use contexts::Contexts;
pub use cubins::Cubins;
use gapscope_cupti::PcLibrary;
use gapscope_spool::env;
use samples::Filter;
use sentences::{not_sampled, note_end};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// How long the program's threads wait at most for the thread that flushes: CUPTI may itself wait for a lock that they hold.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

static IS_ON: AtomicBool = AtomicBool::new(false);
static LIBRARY: OnceLock<PcLibrary> = OnceLock::new();
static CONTEXTS: Mutex<Option<Contexts>> = Mutex::new(None);

/// CUpti_ResourceData
#[repr(C)]
pub struct ResourceData {
    context: *mut c_void,
    handle: *mut c_void,
    descriptor: *const c_void,
}

/// Reads what the user wants, and asks for callbacks where contexts and code come and go.
pub fn prepare(recorder: &Recorder, subscription: &Subscription) {
    let Ok(wanted) = std::env::var(env::INSTRUCTIONS) else {
        return;
    };
    let library = match PcLibrary::open(subscription.cupti.file()) {
        Ok(library) => library,
        Err(missing) => return not_sampled(recorder, &sentences::missing(&missing)),
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
        *lock() = Some(Contexts::new(Filter::new(wanted)));
        IS_ON.store(true, Relaxed);
    }
}

/// A context or code comes or goes.
///
/// # Safety
/// The data is CUPTI's, of a callback of its resources.
pub unsafe fn resource(number: u32, data: *const c_void) {
    if !IS_ON.load(Relaxed) {
        return;
    }
    // SAFETY: as the caller promises.
    let data = unsafe { data.cast::<ResourceData>().as_ref() };
    let (Some(data), Some(recorder)) = (data, recorder()) else {
        return;
    };
    match number {
        resource::CONTEXT_CREATED => begin(recorder, data.context),
        resource::CONTEXT_ENDS => {
            if let Some(contexts) = lock_soon(LONGEST_WAIT) {
                contexts::end(recorder, contexts, data.context);
            } else {
                // CUPTI has not come back from what it was asked: nothing more is asked of it.
                IS_ON.store(false, Relaxed);
                note_end(recorder, "CUPTI took too long to answer");
            }
        }
        resource::MODULE_LOADED => {
            // SAFETY: as the caller promises: it describes a module, whose code is there meanwhile.
            unsafe { cubins::loaded(data.descriptor) };
            take_if_free(recorder);
        }
        resource::MODULE_ENDS => take_if_free(recorder),
        _ => {}
    }
}

fn begin(recorder: &Recorder, context: *mut c_void) {
    let Some(library) = LIBRARY.get() else { return };
    // SAFETY: the context has just been made.
    let sampled = match unsafe { contexts::Sampled::start(library, context) } {
        Ok(sampled) => sampled,
        Err(why) => return not_sampled(recorder, &why),
    };
    let mut contexts = lock_soon(LONGEST_WAIT);
    match contexts.as_mut().and_then(|contexts| contexts.as_mut()) {
        Some(contexts) => {
            recorder.write(&sampled.definition());
            contexts.add(sampled);
        }
        None => sampled.give_up(),
    }
}

/// Writes what CUPTI has sampled.
pub fn take(recorder: &Recorder) {
    if IS_ON.load(Relaxed)
        && let Some(mut contexts) = lock_soon(LONGEST_WAIT)
        && let Some(contexts) = contexts.as_mut()
    {
        contexts.take(recorder);
    }
}

/// The same, unless another thread does it.
fn take_if_free(recorder: &Recorder) {
    if let Some(mut contexts) = lock_soon(Duration::ZERO)
        && let Some(contexts) = contexts.as_mut()
    {
        contexts.take(recorder);
    }
}

/// Ends all sampling: the process ends.
pub fn finish(recorder: &Recorder) {
    if !IS_ON.swap(false, Relaxed) {
        return;
    }
    let contexts = lock_soon(LONGEST_WAIT).and_then(|mut contexts| contexts.take());
    if let Some(contexts) = contexts {
        contexts.finish(recorder);
    }
}

fn lock() -> MutexGuard<'static, Option<Contexts>> {
    CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lock_soon(within: Duration) -> Option<MutexGuard<'static, Option<Contexts>>> {
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

//! CUPTI in this process: from the subscription to the last flush.

use crate::cupti::{self, Cupti, numbers};
use crate::recorder::{Recorder, recorder};
use crate::{buffers, callbacks, notes, records};
use gapscope_spool::event::LossKind;
use gapscope_spool::hook::{self, guard};
use gapscope_spool::monotonic_ns;
use numbers::kind;
use std::ffi::c_void;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32};
use std::sync::{Mutex, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// At a sudden end of the process so much time of records is lost at most.
const FLUSH_EVERY: Duration = Duration::from_millis(100);
/// The end of the program waits so long for the last flush, in case the driver hangs.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// CUPTI's number, the name in [`gapscope_spool::env::CUDA_WITHOUT`], and what the ledger calls it.
type Kind = (u32, &'static str, LossKind);

/// Always on: objects, and memory, so that its timeline is whole.
const DEFINITIONS: [Kind; 5] = [
    (kind::DEVICE, "", LossKind::CudaDevices),
    (kind::CONTEXT, "", LossKind::CudaContexts),
    (kind::STREAM, "", LossKind::CudaStreams),
    (kind::MEMORY2, "memory", LossKind::MemoryAllocations),
    (kind::MEMORY_POOL, "pools", LossKind::MemoryPools),
];

/// On while recording is, as are the callbacks of [`CALLS`].
const WORK: [Kind; 5] = [
    (kind::CONCURRENT_KERNEL, "kernels", LossKind::Dispatches),
    (kind::MEMCPY, "copies", LossKind::Copies),
    (
        kind::MEMCPY_PEER,
        "peer-copies",
        LossKind::CopiesBetweenDevices,
    ),
    (kind::MEMSET, "fills", LossKind::Fills),
    (kind::OVERHEAD, "overheads", LossKind::Overheads),
];

/// What callbacks tell: the name, and what the ledger calls it.
const CALLS: [(&str, LossKind); 3] = [
    ("calls", LossKind::HostCalls),
    ("waits", LossKind::Waits),
    ("events", LossKind::EventsOnQueues),
];

static CUPTI: OnceLock<Option<Cupti>> = OnceLock::new();
/// The process whose CUPTI runs: a forked child must not call it.
static GENERATION: AtomicU32 = AtomicU32::new(0);
/// CUPTI's handle of the subscription.
static SUBSCRIBER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static STOP: AtomicBool = AtomicBool::new(false);
static FLUSHER_RUNS: AtomicBool = AtomicBool::new(false);
/// Whether the kinds of [`WORK`] are on. Held while they are switched.
static WINDOW: Mutex<bool> = Mutex::new(false);
/// The begin of the window, and its end while recording is off.
static WINDOW_BEGIN_NS: AtomicI64 = AtomicI64::new(i64::MIN);
static WINDOW_END_NS: AtomicI64 = AtomicI64::new(i64::MAX);

/// The CUPTI of this process, when it is subscribed to.
pub fn cupti() -> Option<&'static Cupti> {
    CUPTI.get().and_then(Option::as_ref)
}

/// As [`cupti`], where it may be called: not in a forked child, whose CUPTI has lost its threads.
pub fn live() -> Option<&'static Cupti> {
    cupti().filter(|_| GENERATION.load(Acquire) == gapscope_spool::writer::generation())
}

/// Whether something that began then belongs to what is recorded. For kinds that cannot be switched.
pub fn in_window(start_ns: i64) -> bool {
    (WINDOW_BEGIN_NS.load(Relaxed)..=WINDOW_END_NS.load(Relaxed)).contains(&start_ns)
}

/// Begins to trace. Called inside cuInit, before the program has made a context.
pub fn start(recorder: &'static Recorder) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        CUPTI.get_or_init(|| subscribe(recorder));
        if let Some(cupti) = cupti() {
            GENERATION.store(gapscope_spool::writer::generation(), Release);
            begin(recorder, cupti);
        }
    });
}

extern "C" fn now() -> u64 {
    monotonic_ns() as u64
}

/// Finds CUPTI and takes its one place. Nothing else is called before.
fn subscribe(recorder: &Recorder) -> Option<Cupti> {
    let cupti = match Cupti::find() {
        Ok(cupti) => cupti,
        Err(missing) => {
            notes::unrecorded(recorder, missing.reason, &missing.sentence);
            return None;
        }
    };
    let mut subscriber = std::ptr::null_mut();
    // SAFETY: the callback is a function of this library, which is pinned; CUPTI stores the handle.
    let code = unsafe {
        (cupti.functions.subscribe)(&mut subscriber, callbacks::called, std::ptr::null_mut())
    };
    SUBSCRIBER.store(subscriber, Release);
    if code != 0 {
        let why = if code == numbers::code::MULTIPLE_SUBSCRIBERS {
            "another profiler serves this process; record it without that one"
        } else {
            "its version may not fit the driver's, or the driver sees no GPU; nvidia-smi shows both"
        };
        let said = cupti.text(code);
        let sentence = format!(
            "No GPU work of CUDA was recorded: CUPTI refused the subscription ({said}): {why}."
        );
        notes::unrecorded(recorder, "CUPTI refused the subscription", &sentence);
        return None;
    }
    Some(cupti)
}

fn begin(recorder: &'static Recorder, cupti: &'static Cupti) {
    let functions = &cupti.functions;
    let refused = |reason: &'static str, code| {
        let said = cupti.text(code);
        let sentence = format!("No GPU work of CUDA was recorded: {reason} ({said}).");
        notes::unrecorded(recorder, reason, &sentence);
    };
    // SAFETY: CUPTI's functions with what they ask for; the callbacks are of this library, which is pinned.
    unsafe {
        if let Some(thread_ids) = functions.thread_ids {
            check(
                recorder,
                cupti,
                LossKind::OverheadThreads,
                thread_ids(numbers::THREAD_IDS_OF_SYSTEM),
            );
        } else {
            recorder.loss(
                LossKind::OverheadThreads,
                1,
                "this CUPTI gives shortened ones",
            );
        }
        // Before anything is switched on: a record's times are all in one clock.
        let code = (functions.timestamp_callback)(now);
        if code != 0 {
            return refused("CUPTI does not give times in the host's clock", code);
        }
        let set = |attribute| {
            let (mut one, mut bytes) = (1u8, 1usize);
            (functions.set_attribute)(attribute, &mut bytes, (&raw mut one).cast());
        };
        // Where it is not known, CUPTI zeroes buffers that are zero: nothing is wrong, only slower.
        set(numbers::ATTRIBUTE_ZEROED_BUFFERS);
        // So that threads do not wait for each other; with the same consequence.
        if numbers::BUFFERS_OF_ALL.contains(&cupti.version) {
            set(numbers::ATTRIBUTE_BUFFERS_OF_THREADS);
        }
        let code = (functions.register_callbacks)(buffers::requested, buffers::completed);
        if code != 0 {
            return refused("CUPTI takes no buffers", code);
        }
    }
    enable(recorder, cupti, &DEFINITIONS);
    // Switched on later, with a graph that exists already, it crashes the program inside the driver.
    if whole_graphs() {
        enable(
            recorder,
            cupti,
            &[(kind::GRAPH_TRACE, "", LossKind::GraphLaunches)],
        );
    }
    if cupti.was_loaded {
        notes::note(
            recorder,
            "The program has loaded CUPTI itself. While gapscope records, a profiler inside the program (torch.profiler, \
             jax.profiler) gets no GPU times: CUPTI serves one client at a time.",
        );
    }
    if recorder.recording() {
        start_window(recorder);
    } else {
        WINDOW_END_NS.store(i64::MIN, Relaxed);
    }
    // SAFETY: the handler is a plain function of this library, which is pinned. It is registered after the driver's own
    // and so runs before them, while CUPTI still works.
    unsafe { libc::atexit(at_exit) };
    flush_from_a_thread(recorder);
}

/// Whether graphs are timed as wholes: when the user says so, and by default when only command buffers are timed.
fn whole_graphs() -> bool {
    match std::env::var(gapscope_spool::env::CUDA_GRAPHS).as_deref() {
        Ok("graph") => true,
        Ok("node") => false,
        _ => std::env::var(gapscope_spool::env::MODE).as_deref() == Ok("command-buffer"),
    }
}

fn check(recorder: &Recorder, cupti: &Cupti, what: LossKind, code: cupti::Code) -> bool {
    if code != 0 {
        recorder.loss(
            what,
            1,
            &format!("CUPTI refused to record them: {}", cupti.text(code)),
        );
    }
    code == 0
}

fn enable(recorder: &Recorder, cupti: &Cupti, kinds: &[Kind]) {
    for (kind, name, what) in kinds {
        if is_wanted(recorder, name, what.clone()) {
            check(recorder, cupti, what.clone(), cupti.enable(*kind));
        }
    }
}

/// Whether the environment does not leave it out, which is a loss.
fn is_wanted(recorder: &Recorder, name: &str, what: LossKind) -> bool {
    let without = std::env::var(gapscope_spool::env::CUDA_WITHOUT).unwrap_or_default();
    let left_out = without.split(',').any(|w| !w.is_empty() && w == name);
    if left_out {
        recorder.loss(what, 1, "left out because the environment says so");
    }
    !left_out
}

/// Asks for callbacks at a call, or for no more of them.
pub fn switch_callback(cupti: &Cupti, domain: u32, call: u32, on: bool) -> cupti::Code {
    let subscriber = SUBSCRIBER.load(Acquire);
    // SAFETY: CUPTI's function with its handle and one of its calls.
    unsafe { (cupti.functions.enable_callback)(on.into(), subscriber, domain, call) }
}

/// Recording begins: kernels, transfers and calls are recorded from here on.
pub fn start_window(recorder: &Recorder) {
    let Some(cupti) = live() else { return };
    let mut on = WINDOW.lock().unwrap_or_else(PoisonError::into_inner);
    if *on {
        return;
    }
    *on = true;
    WINDOW_BEGIN_NS.store(monotonic_ns(), Relaxed);
    WINDOW_END_NS.store(i64::MAX, Relaxed);
    let [calls, waits, events] = CALLS.map(|(name, what)| is_wanted(recorder, name, what));
    let wanted = callbacks::Wanted {
        calls,
        waits,
        events,
    };
    // The work before the calls, and off after them, so that no launch lacks its work.
    enable(recorder, cupti, &WORK);
    callbacks::begin_window(recorder, cupti, wanted);
}

/// Recording ends: from here on a launch costs next to nothing.
pub fn end_window() {
    let Some(cupti) = live() else { return };
    let mut on = WINDOW.lock().unwrap_or_else(PoisonError::into_inner);
    if !*on {
        return;
    }
    *on = false;
    WINDOW_END_NS.store(monotonic_ns(), Relaxed);
    callbacks::end_window(cupti);
    for (kind, ..) in WORK {
        cupti.disable(kind);
    }
    flush_with(cupti, 0);
}

/// Writes what CUPTI has of finished work.
pub fn flush() {
    if let Some(cupti) = live() {
        flush_with(cupti, 0);
    }
}

fn flush_with(cupti: &Cupti, flags: u32) {
    // SAFETY: CUPTI's function; it calls `buffers::completed`, on this thread or another.
    unsafe { (cupti.functions.flush_all)(flags) };
    records::write_out();
    if let Some(recorder) = recorder() {
        callbacks::polls::write_all(recorder);
    }
}

/// CUPTI's own flush period hands back full buffers only; asking for all of them hands back partly filled ones too.
fn flush_from_a_thread(recorder: &'static Recorder) {
    FLUSHER_RUNS.store(true, Release);
    let begun = hook::spawn(move || {
        guard(|| {
            while !STOP.load(Acquire) {
                std::thread::park_timeout(FLUSH_EVERY);
                follow_switch(recorder);
                flush();
            }
            flush_for_good(recorder);
        });
        FLUSHER_RUNS.store(false, Release);
    });
    match begun {
        Ok(thread) => {
            let _ = FLUSHER.set(thread.thread().clone());
        }
        Err(_) => {
            FLUSHER_RUNS.store(false, Release);
            recorder.loss(
                LossKind::CudaActivitiesAtSuddenEnd,
                1,
                "the thread that flushes could not be started",
            );
        }
    }
}

/// The last flush: also of work that is not done.
fn flush_for_good(recorder: &'static Recorder) {
    if let Some(cupti) = live() {
        flush_with(cupti, numbers::FLUSH_FORCED);
        records::close(recorder);
    }
}

static FLUSHER: OnceLock<std::thread::Thread> = OnceLock::new();

/// The session may have switched recording in the control page.
fn follow_switch(recorder: &Recorder) {
    let on = *WINDOW.lock().unwrap_or_else(PoisonError::into_inner);
    match (on, recorder.recording()) {
        (false, true) => start_window(recorder),
        (true, false) => end_window(),
        _ => {}
    }
}

/// Waits for the last flush. The thread that flushes does it: the log of a thread that exits is gone already.
extern "C" fn at_exit() {
    guard(|| {
        let Some(recorder) = recorder().filter(|_| live().is_some()) else {
            return;
        };
        let flusher_runs = FLUSHER_RUNS.load(Acquire);
        STOP.store(true, Release);
        if let Some(flusher) = FLUSHER.get().filter(|_| flusher_runs) {
            flusher.unpark();
            let begun = Instant::now();
            while FLUSHER_RUNS.load(Acquire) && begun.elapsed() < LONGEST_WAIT {
                std::thread::sleep(Duration::from_micros(200));
            }
        } else {
            flush_for_good(recorder);
        }
    });
}

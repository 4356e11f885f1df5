//! Records the program's calls of CUDA by callbacks: CUPTI, the tracing library of the CUDA driver, calls a
//! function of ours at the start and the end of each selected call, which becomes an event in the log of the
//! calling thread.
//!
//! CUPTI also has records of calls, and of waits and events. They make every call of the program slower, even calls
//! that are left out: on an H200 a launch took about 0.7 µs longer with records of calls, and another 0.6 µs with
//! records of waits and events. A callback is paid for only by its own call: 0.1 to 0.3 µs.
//!
//! CUPTI calls [`callback`] on the program's thread at the start and at the end of such a call. The thread writes the
//! call to its own log. Waits, records of events on streams, and submissions without a device record (of which CUPTI
//! reports no work) go to the reader of records ([`wait_ring`](crate::wait_ring)), which knows the ids of queues. The
//! thread takes no lock that another one holds, and allocates nothing.
//!
//! Most calls of the runtime make one of the driver, which is the same call: it has the same correlation (CUPTI's
//! number of a call), and the outer call is recorded. Launches are recorded by the driver's call alone, which saves
//! them a second pair of callbacks.

mod calls;
mod data;
mod effect;
mod events;
mod graph_changes;
mod graphs;
mod handle_table;
pub mod polls;
pub mod profile;
mod target;

use crate::cupti::Cupti;
use crate::cupti::numbers::domain;
use crate::instructions;
use crate::loaded_modules;
use crate::recorder::{Recorder, recorder};
use crate::subscription::{self, Subscription};
use crate::wait_ring::{OPERATIONS, Operation, OperationKind};
pub use calls::CallSelection;
use calls::{Call, Calls};
pub use data::CallbackData;
use effect::Effect;
use events::{EVENTS, Snapshot};
use gapscope_spool::event::{CudaEvent, LossKind, Span, WaitKind};
use gapscope_spool::hook::guard;
use gapscope_spool::model::cuda::FunctionClass;
use gapscope_spool::{ids, monotonic_ns, stacks};
use graphs::GRAPHS;
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use target::Target;
pub use target::{is_capturing, prepare as prepare_targets};

/// The size in bytes of a CUstreamBatchMemOpParams, which begins with the number of its operation.
const OPERATION_BYTES: usize = 48;
/// The operations that wait: CU_STREAM_MEM_OP_WAIT_VALUE_32 and _64.
const WAITS_FOR_VALUES: [u32; 2] = [1, 4];
/// CU_EVENT_RECORD_EXTERNAL: in a capture, the graph records the event at each launch.
const EXTERNAL: u32 = 1;

/// The number of the window, the time from a start of recording to its end: calls that began in another do not count.
static WINDOW: AtomicU32 = AtomicU32::new(0);
/// The recorded calls, found at the first start of recording.
static CALLS: OnceLock<Calls> = OnceLock::new();
/// Whether calls are recorded. Callbacks of calls that load code come at any time.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// The call that a thread is in.
#[derive(Debug, Clone, Copy)]
struct OpenCall {
    /// The number of the window in which the call began.
    window: u32,
    domain: u32,
    /// CUPTI's number of the function in its domain (driver or runtime).
    number: u32,
    /// CUPTI's number of this call, which its records of work have, too.
    correlation: ids::Correlation,
    /// The state at the start of the event that the call records or waits for, if it has one.
    event: Option<Snapshot>,
    start_ns: i64,
}

thread_local! {
    // A cell without a destructor exists as long as the thread.
    static OPEN: Cell<Option<OpenCall>> = const { Cell::new(None) };
}

/// Starts recording calls: asks for callbacks of the selected calls. The selection of the first time stays.
pub fn start_window(recorder: &Recorder, subscription: &Subscription, selection: CallSelection) {
    WINDOW.fetch_add(1, Relaxed);
    EVENTS.forget_all();
    GRAPHS.forget_all();
    target::prepare();
    graphs::prepare();
    let calls = CALLS.get_or_init(|| {
        let calls = Calls::find(&subscription.cupti, selection);
        for (.., call) in calls.all().filter(|(.., call)| call.is_recorded) {
            recorder.write(&call.definition());
        }
        calls
    });
    IS_ON.store(true, Relaxed);
    graph_changes::switch_on(recorder, subscription);
    let refused = switch(calls, subscription, true);
    if refused > 0 {
        recorder.loss(
            LossKind::RecordedFunctions,
            refused,
            "CUPTI refused their callbacks",
        );
    }
}

/// Ends what [`start_window`] started.
pub fn end_window(subscription: &Subscription) {
    IS_ON.store(false, Relaxed);
    graph_changes::switch_off(subscription);
    if let Some(calls) = CALLS.get() {
        switch(calls, subscription, false);
    }
}

/// Switches all callbacks, but leaves those of calls that load code on, and returns how often CUPTI refused one of an
/// existing call.
fn switch(calls: &Calls, subscription: &Subscription, on: bool) -> u64 {
    let refused = calls.all().filter(|(domain, number, call)| {
        let stays = !on && loaded_modules::loads_code(*domain, *number);
        !stays && subscription.switch_callback(*domain, *number, on) != 0 && call.exists()
    });
    refused.count() as u64
}

/// CUPTI's callback at the start and at the end of a call.
pub extern "C" fn callback(_user: *mut c_void, domain: u32, number: u32, data: *const c_void) {
    guard(|| {
        // In a forked child CUDA does not work.
        let subscription = subscription::live()?;
        if domain == domain::RESOURCE {
            // SAFETY: CUPTI's data of this callback.
            unsafe {
                match graph_changes::is_about_graphs(number) {
                    true => graph_changes::changed(number, data, &subscription.cupti),
                    false => instructions::resource(number, data),
                }
            };
            return None;
        }
        // SAFETY: for calls of the runtime and the driver, CUPTI passes this structure.
        let data = unsafe { data.cast::<CallbackData>().as_ref() }?;
        if profile::is_on() && profile::is_made_by_profiler(data.correlation) {
            return None;
        }
        let calls = CALLS.get().filter(|_| IS_ON.load(Relaxed));
        let call = calls.and_then(|calls| calls.get(domain, number));
        if call.is_none_or(|call| call.class == FunctionClass::LoadModule) && !data.is_enter() {
            // SAFETY: the parameters are those of this call, which has returned.
            unsafe {
                if data.result() == 0 {
                    loaded_modules::keep_loaded(domain, number, |at| data.parameter(at));
                }
            }
        }
        let call = call?;
        let window = WINDOW.load(Relaxed);
        let open = OPEN.get().filter(|open| open.window == window);
        // SAFETY: the parameters are those of this call.
        unsafe {
            if data.is_enter() {
                // The driver's call inside the runtime's is the same call.
                let nested =
                    |open: OpenCall| (open.domain, domain) == (domain::RUNTIME, domain::DRIVER);
                if !open.is_some_and(nested) {
                    if profile::is_on() && call.class == FunctionClass::LaunchKernel {
                        profile::begin(subscription, data, call.name(), call.per_thread);
                    }
                    OPEN.set(Some(start(call, data, [window, domain, number])));
                }
                return Some(());
            }
            let this = (domain, number, data.correlation);
            let open = open.filter(|open| (open.domain, open.number, open.correlation) == this)?;
            OPEN.set(None);
            let is_profiled = profile::is_on() && profile::end(data.correlation);
            end(call, data, &open, is_profiled, &subscription.cupti);
        }
        Some(())
    });
}

/// Handles the start of a call: returns what its end needs to know.
///
/// # Safety
/// The parameters are those of this call.
unsafe fn start(call: &Call, data: &CallbackData, [window, domain, number]: [u32; 3]) -> OpenCall {
    if call.effect == Some(Effect::DestroyGraphExec) {
        // SAFETY: as the caller promises: a handle. It is forgotten before another graph can get it.
        GRAPHS.forget(unsafe { data.parameter(0) });
    }
    let event = call.effect.and_then(|effect| {
        // SAFETY: as the caller promises.
        let event = effect
            .event_parameter()
            .map(|at| unsafe { data.parameter(at) })?;
        event_at_start(effect, event)
    });
    OpenCall {
        window,
        domain,
        number,
        correlation: data.correlation,
        event,
        // The time comes last: everything launched before it was launched before the wait.
        start_ns: monotonic_ns(),
    }
}

/// Notes what a call with this effect starts to do to the event, and returns the event's last record (its own, where
/// the call is one); `None` where it is unknown or of no use.
fn event_at_start(effect: Effect, event: usize) -> Option<Snapshot> {
    match effect {
        Effect::Record { .. } | Effect::RecordInContext => EVENTS.record_begins(event),
        Effect::Destroy => {
            EVENTS.forget(event);
            None
        }
        Effect::RecordInGraph { .. } => {
            EVENTS.graph_records(event);
            None
        }
        Effect::Wait(_) | Effect::WaitForNamedContext | Effect::ContextWait => {
            EVENTS.last_record(event)
        }
        Effect::Submit { .. }
        | Effect::SubmitOperations
        | Effect::Instantiate
        | Effect::LaunchGraph
        | Effect::DestroyGraphExec => None,
    }
}

/// Handles the end of a call: writes the call, and passes on what it put on a stream or waited for.
///
/// # Safety
/// As for [`start`]; the call has returned.
unsafe fn end(call: &Call, data: &CallbackData, open: &OpenCall, is_profiled: bool, cupti: &Cupti) {
    let duration_ns = match is_profiled {
        // The call was long only because of the profiler, so that only its start is known.
        true => 0,
        false => monotonic_ns().saturating_sub(open.start_ns).max(0),
    };
    let span = Span {
        start_ns: open.start_ns,
        duration_ns,
    };
    // SAFETY: as the caller promises.
    let result = unsafe { data.result() };
    let mut correlation = data.correlation;
    let mut launched = None;
    if let Some(effect) = call.effect {
        // SAFETY: as the caller promises.
        unsafe {
            let target = match result {
                0 => Target::find(call, effect, data, cupti),
                _ => Target::Nothing,
            };
            if effect.is_submission() {
                if !submit(effect, data, target) {
                    correlation = ids::Correlation::NONE;
                }
            } else if result == 0 && effect == Effect::LaunchGraph {
                launched = launched_graph(call, data, cupti);
            } else if result == 0 && effect == Effect::Instantiate {
                let executable = data.parameter(0) as *const usize;
                if let Some(executable) = executable.as_ref() {
                    let host_nodes = graphs::count_host_nodes(data.parameter(1));
                    GRAPHS.instantiated(*executable, host_nodes);
                    if graphs::is_for_device(*executable)
                        && let Some(recorder) = recorder()
                    {
                        let reason = "only their launches by the host are recorded";
                        recorder.loss(LossKind::GraphsForDevice, 1, reason);
                    }
                }
            } else {
                apply(effect, data, open, span, target);
            }
        }
    }
    let Some(recorder) = recorder().filter(|_| call.is_recorded) else {
        return;
    };
    if call.class.is_poll() {
        polls::add(recorder, call.function, span, result as u32);
        return;
    }
    polls::end(recorder);
    match launched {
        Some((host_functions, graph)) => recorder.write(&CudaEvent::GraphLaunched {
            function: call.function,
            span,
            correlation,
            host_functions,
            graph,
        }),
        None => recorder.write(&CudaEvent::Called {
            function: call.function,
            span,
            correlation,
            result: result as u32,
        }),
    }
    match call.class {
        class if class.host_call_kind().is_wait() => stacks::waited(recorder.spool(), span),
        class if class.submission_kind().is_some() => stacks::submitted(recorder.spool(), span),
        _ => {}
    }
}

/// Passes on what a call put on a stream. Returns false where it put nothing there: it went into a graph, or the
/// stream is not known.
///
/// # Safety
/// As for [`end`].
unsafe fn submit(effect: Effect, data: &CallbackData, target: Target) -> bool {
    match target {
        // This comes first: what a failed call points to may be no operations at all.
        Target::Nothing => false,
        // SAFETY: as the caller promises; the call has succeeded.
        _ if effect == Effect::SubmitOperations && !unsafe { waits_for_a_value(data) } => false,
        Target::Stream(stream) => OPERATIONS.put(&Operation {
            kind: OperationKind::Submission,
            correlation: data.correlation,
            stream,
            event: Default::default(),
        }),
        Target::Context(_) => {
            if let Some(recorder) = recorder() {
                recorder.loss(LossKind::Submissions, 1, "their stream is not known");
            }
            false
        }
    }
}

/// Returns the number of host nodes of a graph that was launched. Where the number is unknown, the graph may have bodies that the device runs
/// as often as it decides, whose records name only the graph: then returns the graph's number, and passes on its stream. `None` where neither is
/// known.
///
/// # Safety
/// As for [`end`], for a call that has launched a graph.
unsafe fn launched_graph(
    call: &Call,
    data: &CallbackData,
    cupti: &Cupti,
) -> Option<(Option<u32>, ids::Graph)> {
    /// The index of the parameter that is the stream.
    const STREAM: usize = 1;
    // SAFETY: as the caller promises.
    unsafe {
        let executable = data.parameter(0);
        if let Some(host_nodes) = GRAPHS.host_nodes(executable) {
            return Some((Some(host_nodes), ids::Graph::NONE));
        }
        let graph = graphs::number(executable, cupti)?;
        if let Target::Stream(stream) = Target::on_stream(call, STREAM, true, data, cupti) {
            OPERATIONS.put(&Operation {
                kind: OperationKind::GraphLaunch,
                correlation: data.correlation,
                stream,
                event: Default::default(),
            });
        }
        Some((None, graph))
    }
}

/// Returns whether one of a call's memory operations is a wait.
///
/// # Safety
/// As for [`end`], for a call with such operations.
unsafe fn waits_for_a_value(data: &CallbackData) -> bool {
    // SAFETY: as the caller promises: a number of 32 bits, and so many operations, which the driver has read.
    unsafe {
        let (count, operations) = (data.parameter(1) as u32, data.parameter(2) as *const u8);
        !operations.is_null()
            && (0..count as usize).any(|at| {
                let operation = operations.add(at * OPERATION_BYTES).cast::<u32>();
                WAITS_FOR_VALUES.contains(&operation.read_unaligned())
            })
    }
}

/// Passes on what a call waited for, or which event it recorded on which stream.
///
/// # Safety
/// As for [`end`].
unsafe fn apply(effect: Effect, data: &CallbackData, open: &OpenCall, span: Span, target: Target) {
    let put = |kind, event: Option<Snapshot>| {
        let Some(stream) = target.stream() else {
            return false;
        };
        OPERATIONS.put(&Operation {
            kind,
            correlation: data.correlation,
            stream,
            event: event.map(Snapshot::occurrence).unwrap_or_default(),
        })
    };
    match effect {
        Effect::Record { .. } | Effect::RecordInContext => {
            // The operation is put before another thread can wait for the event.
            let is_known = put(OperationKind::Record, open.event);
            if let Some(event) = open.event {
                EVENTS.record_ends(event, is_known && matches!(target, Target::Stream(..)));
            }
            if effect == (Effect::Record { has_flags: true }) {
                // SAFETY: as the caller promises: an event, and as third parameter a number of 32 bits.
                let (event, flags) = unsafe { (data.parameter(0), data.parameter(2) as u32) };
                if flags & EXTERNAL != 0 {
                    EVENTS.graph_records(event);
                }
            }
        }
        Effect::RecordInGraph { .. }
        | Effect::Destroy
        | Effect::Submit { .. }
        | Effect::SubmitOperations
        | Effect::Instantiate
        | Effect::LaunchGraph
        | Effect::DestroyGraphExec => {}
        // The context's streams are not known here.
        Effect::ContextWait => {
            put(OperationKind::Wait(WaitKind::QueueForEvent, None), None);
        }
        Effect::Wait(_) | Effect::WaitForNamedContext => {
            let Some(kind) = effect.wait() else { return };
            let span = (kind != WaitKind::QueueForEvent).then_some(span);
            // An event that was recorded again in the meantime may have been either record.
            let event = open.event.filter(|event| EVENTS.is_still(*event));
            put(OperationKind::Wait(kind, span), event);
        }
    }
}

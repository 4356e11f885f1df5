//! The program's calls, by CUPTI's callbacks.
//!
//! CUPTI has records of calls too, and of waits and events. With them switched on, every call of the program becomes
//! dearer, also one that is left out: on an H200 a launch took about 0.7 µs longer for records of calls, and 0.6 µs more
//! for those of waits and events. A callback is paid for by the call that it is for: 0.1 to 0.3 µs.
//!
//! CUPTI calls [`called`] on the program's thread, at the begin and at the end of such a call. The thread writes the call
//! to its own log. What it waited for, or which event it put on which queue, goes to the reader of records ([`told`]),
//! which knows the ids of queues. The thread takes no lock that another one holds, and allocates nothing.
//!
//! Most calls of the runtime make one of the driver, which is the same call: it has the same correlation, and the outer
//! one is recorded. Launches are told by the driver's call alone, which saves them a second pair of callbacks.

mod calls;
mod events;
mod names;
pub mod polls;
pub mod told;

use crate::cupti::Cupti;
use crate::cupti::numbers::{self, domain};
use crate::recorder::{Recorder, recorder};
use crate::{streams, tracing};
pub use calls::Wanted;
use calls::{Call, Calls, Does};
use events::{EVENTS, Seen};
use gapscope_spool::event::{CudaEvent, LossKind, Span, WaitKind};
use gapscope_spool::hook::guard;
use gapscope_spool::{ids, monotonic_ns};
use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use told::{Fact, TOLD, Told};

/// CUpti_CallbackData: the same in CUDA 12.0 and 13.5.
#[repr(C)]
pub struct Data {
    /// 0 at the begin of the call, 1 at its end.
    site: c_int,
    name: *const c_char,
    /// The call's own parameters, as a structure.
    parameters: *const c_void,
    /// At the end: what the call returned.
    result: *const c_int,
    symbol: *const c_char,
    /// The thread's current context, and CUPTI's number for it.
    context: *mut c_void,
    context_id: u32,
    shared: *mut u64,
    /// That of the call's record.
    correlation: u32,
}

// As `offsetof` says of cupti_callbacks.h.
const _: () = assert!(std::mem::offset_of!(Data, parameters) == 16);
const _: () = assert!(std::mem::offset_of!(Data, context) == 40);
const _: () = assert!(std::mem::offset_of!(Data, correlation) == 64);
const _: () = assert!(size_of::<Data>() == 72);

/// CU_EVENT_RECORD_EXTERNAL: in a capture, the graph puts the event whenever it is launched.
const EXTERNAL: u32 = 1;

/// CUPTI_API_ENTER
const BEGIN: c_int = 0;

/// CUDA_ERROR_UNKNOWN, cudaErrorUnknown
const UNKNOWN: c_int = 999;

/// Changes when recording begins: what began before does not count.
static WINDOW: AtomicU32 = AtomicU32::new(0);
static CALLS: OnceLock<Calls> = OnceLock::new();

/// The call that a thread is in.
#[derive(Debug, Clone, Copy)]
struct Open {
    window: u32,
    domain: u32,
    number: u32,
    correlation: u32,
    event: Option<Seen>,
    begin_ns: i64,
}

thread_local! {
    // It needs no destructor, so it is there as long as the thread is.
    static OPEN: Cell<Option<Open>> = const { Cell::new(None) };
}

/// Recording begins: asks for callbacks at the calls that are wanted, which are those of the first time.
pub fn begin_window(recorder: &Recorder, cupti: &Cupti, wanted: Wanted) {
    WINDOW.fetch_add(1, Relaxed);
    EVENTS.forget_all();
    let calls = CALLS.get_or_init(|| {
        let calls = Calls::find(cupti, wanted);
        for (.., call) in calls.all().filter(|(.., call)| call.is_recorded) {
            recorder.write(&call.definition());
        }
        calls
    });
    let refused = switch(calls, cupti, true);
    if refused > 0 {
        recorder.loss(
            LossKind::RecordedFunctions,
            refused,
            "CUPTI refused their callbacks",
        );
    }
}

/// Ends what [`begin_window`] began.
pub fn end_window(cupti: &Cupti) {
    if let Some(calls) = CALLS.get() {
        switch(calls, cupti, false);
    }
}

/// Gives how often CUPTI refused.
fn switch(calls: &Calls, cupti: &Cupti, on: bool) -> u64 {
    let refused = calls.all().filter(|(domain, number, call)| {
        let code = tracing::switch_callback(cupti, *domain, *number, on);
        // A CUPTI that is newer than the driver has functions that nobody can call.
        code != 0 && (*domain != domain::DRIVER || call.is_in_driver())
    });
    refused.count() as u64
}

/// A call of the program begins or ends.
pub extern "C" fn called(_user: *mut c_void, domain: u32, number: u32, data: *const c_void) {
    guard(|| {
        let calls = CALLS.get()?;
        let call = calls.get(domain, number)?;
        // Not in a forked child, whose CUDA does not work.
        let cupti = tracing::live()?;
        // SAFETY: for calls of the runtime and of the driver, CUPTI gives this structure.
        let data = unsafe { data.cast::<Data>().as_ref() }?;
        let window = WINDOW.load(Relaxed);
        let open = OPEN.get().filter(|open| open.window == window);
        // SAFETY: the parameters are those of this call.
        unsafe {
            if data.site == BEGIN {
                // The driver's call inside the runtime's is the same one.
                let nested =
                    |open: Open| (open.domain, domain) == (domain::RUNTIME, domain::DRIVER);
                if !open.is_some_and(nested) {
                    OPEN.set(Some(begin(call, data, [window, domain, number])));
                }
                return Some(());
            }
            let this = (domain, number, data.correlation);
            let open = open.filter(|open| (open.domain, open.number, open.correlation) == this)?;
            OPEN.set(None);
            end(call, data, &open, cupti, calls);
        }
        Some(())
    });
}

/// # Safety
/// The parameters are those of this call.
unsafe fn begin(call: &Call, data: &Data, [window, domain, number]: [u32; 3]) -> Open {
    let event = call.does.and_then(|does| {
        // SAFETY: as the caller promises.
        let event = does.event().map(|at| unsafe { parameter(data, at) })?;
        event_at_begin(does, event)
    });
    Open {
        window,
        domain,
        number,
        correlation: data.correlation,
        event,
        // The last: whatever was launched before this time was launched before the wait.
        begin_ns: monotonic_ns(),
    }
}

/// The event's last record when a call begins that does this with it.
fn event_at_begin(does: Does, event: usize) -> Option<Seen> {
    match does {
        Does::Record | Does::RecordOfContext => EVENTS.record_begins(event),
        Does::Destroy => {
            EVENTS.forget(event);
            None
        }
        Does::GraphRecords(_) => {
            EVENTS.graph_records(event);
            None
        }
        _ => EVENTS.last_record(event),
    }
}

/// # Safety
/// As for [`begin`]; the call has returned.
unsafe fn end(call: &Call, data: &Data, open: &Open, cupti: &Cupti, calls: &Calls) {
    let duration_ns = monotonic_ns().saturating_sub(open.begin_ns).max(0);
    let span = Span {
        start_ns: open.begin_ns,
        duration_ns,
    };
    // SAFETY: CUPTI's pointer to what the call returned, or null.
    let result = unsafe { data.result.as_ref() }.copied();
    if let (true, Some(recorder)) = (call.is_recorded, recorder()) {
        let result = result.unwrap_or(UNKNOWN) as u32;
        record(recorder, call, span, data.correlation, result);
    }
    if let Some(does) = call.does {
        // SAFETY: as the caller promises.
        unsafe {
            let place = match result {
                Some(0) => place(call, does, data, cupti, calls),
                _ => Place::Nowhere,
            };
            tell(call, does, data, open, span, place);
        }
    }
}

#[inline]
fn record(recorder: &Recorder, call: &Call, span: Span, correlation: u32, result: u32) {
    if call.asks {
        polls::asked(recorder, call.function, span, result);
        return;
    }
    polls::end(recorder);
    recorder.write(&CudaEvent::Called {
        function: call.function,
        span,
        correlation: ids::Correlation(correlation),
        result,
    });
}

/// Tells what a call waited for, or which event it put on which queue.
///
/// # Safety
/// As for [`end`].
unsafe fn tell(call: &Call, does: Does, data: &Data, open: &Open, span: Span, place: Place) {
    let tell = |fact, event: Option<Seen>| {
        let (context, stream) = match place {
            Place::Nowhere => return false,
            Place::Context(context) => (context, numbers::NO_ID),
            Place::Stream(context, stream) => (context, stream),
        };
        let told = Told {
            fact,
            correlation: data.correlation,
            context,
            stream,
            event: event.map_or((0, 0), Seen::occurrence),
        };
        TOLD.put(&told)
    };
    match does {
        Does::Record | Does::RecordOfContext => {
            // Told before another thread can wait for it.
            let told = tell(Fact::Record, open.event);
            if let Some(event) = open.event {
                EVENTS.record_ends(event, told && matches!(place, Place::Stream(..)));
            }
            // SAFETY: as the caller promises: the third parameter is a number of 32 bits.
            if call.has_flags && unsafe { parameter(data, 2) } as u32 & EXTERNAL != 0 {
                // SAFETY: as the caller promises.
                EVENTS.graph_records(unsafe { parameter(data, 0) });
            }
        }
        Does::GraphRecords(_) | Does::Destroy => {}
        // Of which streams, is not known.
        Does::ContextWaits => {
            tell(Fact::Wait(WaitKind::QueueForEvent, None), None);
        }
        Does::Wait(kind) => {
            let span = (kind != WaitKind::QueueForEvent).then_some(span);
            // An event that was recorded again meanwhile may have been either.
            let event = open.event.filter(|event| EVENTS.is_still(*event));
            tell(Fact::Wait(kind, span), event);
        }
    }
}

/// Where a call put something, or what it waited for, by CUPTI's numbers.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// The call failed, or it went into a graph.
    Nowhere,
    /// A context, with a stream that is not known or none.
    Context(u32),
    /// A stream of a context.
    Stream(u32, u32),
}

/// # Safety
/// As for [`end`].
unsafe fn place(call: &Call, does: Does, data: &Data, cupti: &Cupti, calls: &Calls) -> Place {
    // SAFETY: as the caller promises: CUPTI's context, and the program's own handles.
    unsafe {
        if call.names_context {
            let context = streams::context_id(cupti, parameter(data, 0));
            return Place::Context(context.unwrap_or(numbers::NO_ID));
        }
        let unknown = Place::Context(data.context_id);
        let Some(at) = does.stream() else {
            return unknown;
        };
        let stream = streams::Handle::new(parameter(data, at), call.per_thread);
        if does.puts() {
            match calls.is_capturing(stream) {
                Some(true) => return Place::Nowhere,
                Some(false) => {}
                None => return unknown,
            }
        }
        match streams::ids_in(cupti, (data.context, data.context_id), stream) {
            Some((context, stream)) => Place::Stream(context, stream),
            None => unknown,
        }
    }
}

/// A parameter of a call: all that are asked for are handles, and stand before what is shorter.
///
/// # Safety
/// The call has so many parameters, and they are pointers.
unsafe fn parameter(data: &Data, at: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { data.parameters.cast::<usize>().add(at).read_unaligned() }
}

//! Waits and events by CUPTI's callbacks at the few calls that make them, instead of its records of them.
//!
//! With its records of synchronisation and of events switched on, CUPTI makes every launch dearer, although a launch is
//! neither. A callback is paid for by the call that it is for. The facts are the same: which queue or event the host
//! waited for, which event was put on which queue, and which queue waits for it.
//!
//! CUPTI calls [`called`] on the program's thread, at the begin and at the end of such a call. What it tells goes to the
//! reader of records ([`told`]), which knows the ids of queues; this thread takes no lock of ours and allocates nothing.

mod calls;
mod events;
pub mod told;

use crate::cupti::Cupti;
use crate::cupti::numbers::{self, domain};
use crate::recorder::Recorder;
use crate::{streams, tracing};
use calls::{Call, Calls, Does};
use events::{EVENTS, Seen};
use gapscope_spool::event::{Span, WaitKind};
use gapscope_spool::hook::guard;
use gapscope_spool::monotonic_ns;
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

/// Whether waits and events come by callbacks instead of by records.
pub fn are_wanted() -> bool {
    std::env::var(gapscope_spool::env::CUDA_WAITS).is_ok_and(|v| v == "callbacks")
}

/// Recording begins; the calls that stand for single kinds of records follow by [`enable`].
pub fn begin_window() {
    WINDOW.fetch_add(1, Relaxed);
    EVENTS.forget_all();
}

/// Whether calls stand for this kind of record.
pub fn stand_for(kind: u32) -> bool {
    [numbers::kind::SYNCHRONIZATION, numbers::kind::CUDA_EVENT].contains(&kind)
}

/// Asks for callbacks at the calls that stand for a kind of record. CUPTI wants no two of these at once.
pub fn enable(recorder: &Recorder, cupti: &Cupti, kind: u32, what: &str) {
    let calls = CALLS.get_or_init(|| Calls::find(cupti));
    let codes = calls
        .of_kind(kind)
        .map(|(domain, call)| tracing::switch_callback(cupti, domain, call, true));
    let refused = codes.filter(|code| *code != 0).count() as u64;
    if refused > 0 {
        recorder.loss(what, refused, "CUPTI refused callbacks of their calls");
    }
}

/// Ends what [`enable`] began.
pub fn disable(cupti: &Cupti, kind: u32) {
    for (domain, call) in CALLS.get().into_iter().flat_map(|c| c.of_kind(kind)) {
        tracing::switch_callback(cupti, domain, call, false);
    }
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
unsafe fn begin(call: Call, data: &Data, [window, domain, number]: [u32; 3]) -> Open {
    // SAFETY: as the caller promises.
    let event = call.does.event().map(|at| unsafe { parameter(data, at) });
    let event = event.and_then(|event| match call.does {
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

/// # Safety
/// As for [`begin`]; the call has returned.
unsafe fn end(call: Call, data: &Data, open: &Open, cupti: &Cupti, calls: &Calls) {
    let end_ns = monotonic_ns();
    // SAFETY: CUPTI's pointer to what the call returned, or null.
    let succeeded = unsafe { data.result.as_ref() } == Some(&0);
    let place = match succeeded {
        // SAFETY: as the caller promises.
        true => unsafe { place(call, data, cupti, calls) },
        false => Place::Nowhere,
    };
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
    match call.does {
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
            let span = (kind != WaitKind::QueueForEvent).then(|| Span {
                start_ns: open.begin_ns,
                duration_ns: end_ns.saturating_sub(open.begin_ns).max(0),
            });
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
unsafe fn place(call: Call, data: &Data, cupti: &Cupti, calls: &Calls) -> Place {
    // SAFETY: as the caller promises: CUPTI's context, and the program's own handles.
    unsafe {
        if call.names_context {
            let context = streams::context_id(cupti, parameter(data, 0));
            return Place::Context(context.unwrap_or(numbers::NO_ID));
        }
        let unknown = Place::Context(data.context_id);
        let Some(at) = call.does.stream() else {
            return unknown;
        };
        let stream = streams::Handle::new(parameter(data, at), call.per_thread);
        if call.does.puts() {
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

//! Events, waits for events, streams and contexts, and captures of streams into graphs.

use super::{
    Api, CONTEXT, Driver, INVALID_HANDLE, INVALID_VALUE, OWN, SUCCESS, asking_call, call, driver,
    graphs, of_driver, waiting_call,
};
use crate::{cupti, names, truth};
use std::collections::{HashMap, HashSet};
use std::ffi::{c_int, c_uint};

/// CUPTI's number for "none".
const NONE: u32 = u32::MAX;

/// The kinds of waits in the truth log.
const HOST_FOR_EVENT: &str = "host-for-event";
const HOST_FOR_STREAM: &str = "host-for-stream";
const HOST_FOR_CONTEXT: &str = "host-for-context";
const STREAM_FOR_EVENT: &str = "stream-for-event";

/// The events by handle. The handle of a destroyed one is given to the next.
#[derive(Default)]
pub struct Events {
    known: HashMap<usize, Event>,
    free: Vec<usize>,
    made: u32,
    occurrences: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Event {
    /// CUPTI's number, which no other event has.
    id: u32,
    /// The time at which it occurs; 0 where it was never recorded.
    at_ns: u64,
    context: u32,
    occurrence: u64,
    /// The address of the word that its stream waited for, or 0.
    flag: u64,
}

/// The work for which a call waits.
#[derive(Debug, Clone, Copy)]
pub enum Scope {
    Stream(usize),
    Event(usize),
    /// All streams of the thread's context.
    Context,
}

/// Captured streams by their key, and events that were recorded on them.
#[derive(Default)]
pub struct Captures {
    streams: HashSet<usize>,
    events: HashSet<usize>,
    /// The graph that is being made.
    pub graph: Option<usize>,
}

impl Events {
    /// Returns when an event occurs.
    pub fn at_ns(&self, event: usize) -> Option<u64> {
        self.known.get(&event).map(|event| event.at_ns)
    }
}

impl Driver {
    pub fn is_capturing(&self, stream: usize) -> bool {
        self.captures.streams.contains(&Driver::key(stream))
    }

    /// Returns whether a kernel waits for a word that is still 0.
    pub fn is_spinning(&mut self, scope: Scope) -> bool {
        let flags: Vec<u64> = match scope {
            Scope::Stream(handle) => self
                .stream(handle)
                .map(|stream| stream.flag)
                .into_iter()
                .collect(),
            Scope::Event(event) => {
                let known = self.events.known.get(&event);
                known.map(|event| event.flag).into_iter().collect()
            }
            Scope::Context => {
                let context = CONTEXT.get();
                let streams = self.streams.values().filter(|s| s.context == context);
                streams.map(|stream| stream.flag).collect()
            }
        };
        let is_zero = |flag: u64| self.memory.space.read(flag) == Some([0; 4]);
        flags.into_iter().any(is_zero)
    }
}

/// Logs that the host waits until `until`, or that a stream waits, for this record of an event if there is one.
fn tell_wait(
    what: &str,
    correlation: u32,
    until: u64,
    (context, stream): (u32, u32),
    (event, occurrence): (u32, u64),
) {
    let start = cupti::now();
    truth::write(
        "wait",
        correlation,
        (start, until.max(start)),
        format_args!(
            ",\"what\":\"{what}\",\"context\":{context},\"stream\":{stream},\"event\":{event},\"occurrence\":{occurrence}"
        ),
    );
}

/// The number that stands for no event and no record.
const NO_EVENT: (u32, u64) = (0, 0);

/// Returns the handle for a call whose null means the thread's own stream.
pub fn own(stream: usize) -> usize {
    if stream == 0 { OWN } else { stream }
}

fn wait_for_stream(api: Api<'_>, stream: usize) -> c_int {
    waiting_call(api, Scope::Stream(stream), |driver, correlation| {
        let stream = *driver.stream(stream).ok_or(INVALID_HANDLE)?;
        tell_wait(
            HOST_FOR_STREAM,
            correlation,
            stream.free_ns,
            (stream.context, stream.id),
            NO_EVENT,
        );
        Ok(stream.free_ns)
    })
}

fn wait_for_context(api: Api<'_>) -> c_int {
    waiting_call(api, Scope::Context, |driver, correlation| {
        let context = CONTEXT.get();
        let streams = driver.streams.values().filter(|s| s.context == context);
        let until = streams.map(|s| s.free_ns).max().unwrap_or(0);
        let place = (context, NONE);
        tell_wait(HOST_FOR_CONTEXT, correlation, until, place, NO_EVENT);
        Ok(until)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut usize, _flags: c_uint) -> c_int {
    let mut driver = driver();
    let handle = match driver.events.free.pop() {
        Some(handle) => handle,
        None => driver.handle(),
    };
    driver.events.made += 1;
    let id = driver.events.made;
    let made = Event {
        id,
        ..Event::default()
    };
    driver.events.known.insert(handle, made);
    // SAFETY: the caller's variable.
    unsafe { *event = handle };
    SUCCESS
}

fn destroy(api: Api<'_>, event: usize) -> c_int {
    call(api, |driver, _, _| {
        match driver.events.known.remove(&event) {
            Some(_) => {
                driver.events.free.push(event);
                SUCCESS
            }
            None => INVALID_HANDLE,
        }
    })
}

fn record(api: Api<'_>, event: usize, on: usize) -> c_int {
    call(api, |driver, correlation, at| {
        let Some(stream) = driver.stream(on).copied() else {
            return INVALID_HANDLE;
        };
        let Some(known) = driver.events.known.get(&event).copied() else {
            return INVALID_HANDLE;
        };
        if driver.is_capturing(on) {
            // An event in a capture is recorded on no stream.
            driver.captures.events.insert(event);
            return SUCCESS;
        }
        driver.captures.events.remove(&event);
        driver.events.occurrences += 1;
        let recorded = Event {
            at_ns: stream.free_ns,
            context: stream.context,
            occurrence: driver.events.occurrences,
            flag: stream.flag,
            ..known
        };
        driver.events.known.insert(event, recorded);
        truth::write(
            "event",
            correlation,
            (at, at),
            format_args!(
                ",\"context\":{},\"stream\":{},\"event\":{},\"occurrence\":{}",
                stream.context, stream.id, recorded.id, recorded.occurrence
            ),
        );
        SUCCESS
    })
}

fn stream_waits(api: Api<'_>, stream: usize, event: usize) -> c_int {
    call(api, |driver, correlation, at| {
        let Some(known) = driver.events.known.get(&event).copied() else {
            return INVALID_HANDLE;
        };
        if driver.captures.events.contains(&event) {
            // The stream is captured from here on.
            driver.captures.streams.insert(Driver::key(stream));
            return SUCCESS;
        }
        if driver.is_capturing(stream) {
            return INVALID_VALUE;
        }
        let Some(stream) = driver.stream(stream) else {
            return INVALID_HANDLE;
        };
        stream.free_ns = stream.free_ns.max(known.at_ns);
        let place = (stream.context, stream.id);
        tell_wait(
            STREAM_FOR_EVENT,
            correlation,
            at,
            place,
            (known.id, known.occurrence),
        );
        SUCCESS
    })
}

/// Returns an event that can be waited for.
fn awaited(driver: &Driver, event: usize) -> Result<Event, c_int> {
    let known = driver.events.known.get(&event).copied();
    known
        .filter(|_| !driver.captures.events.contains(&event))
        .ok_or(INVALID_HANDLE)
}

fn ask_event(api: Api<'_>, event: usize) -> c_int {
    asking_call(api, Scope::Event(event), |driver, correlation, at| {
        let known = awaited(driver, event)?;
        if known.at_ns <= at {
            let event = (known.id, known.occurrence);
            tell_wait(HOST_FOR_EVENT, correlation, 0, (known.context, NONE), event);
        }
        Ok(known.at_ns)
    })
}

fn ask_stream(api: Api<'_>, stream: usize) -> c_int {
    asking_call(api, Scope::Stream(stream), |driver, correlation, at| {
        let stream = *driver.stream(stream).ok_or(INVALID_HANDLE)?;
        if stream.free_ns <= at {
            let place = (stream.context, stream.id);
            tell_wait(HOST_FOR_STREAM, correlation, 0, place, NO_EVENT);
        }
        Ok(stream.free_ns)
    })
}

fn wait_for_event(api: Api<'_>, event: usize) -> c_int {
    waiting_call(api, Scope::Event(event), |driver, correlation| {
        let known = awaited(driver, event)?;
        tell_wait(
            HOST_FOR_EVENT,
            correlation,
            known.at_ns,
            (known.context, NONE),
            (known.id, known.occurrence),
        );
        Ok(known.at_ns)
    })
}

exported! {
    cuStreamSynchronize(stream: usize) is CU_STREAM_SYNCHRONIZE => wait_for_stream(stream);
    cuStreamSynchronize_ptsz(stream: usize) is CU_STREAM_SYNCHRONIZE_OWN => wait_for_stream(own(stream));
    cudaStreamSynchronize(stream: usize) is CUDA_STREAM_SYNCHRONIZE around CU_STREAM_SYNCHRONIZE => wait_for_stream(stream);
    cuCtxSynchronize() is CU_CTX_SYNCHRONIZE => wait_for_context();
    cudaDeviceSynchronize() is CUDA_DEVICE_SYNCHRONIZE around CU_CTX_SYNCHRONIZE => wait_for_context();
    cuEventDestroy_v2(event: usize) is CU_EVENT_DESTROY => destroy(event);
    cudaEventDestroy(event: usize) is CUDA_EVENT_DESTROY around CU_EVENT_DESTROY => destroy(event);
    cuEventRecord(event: usize, stream: usize) is CU_EVENT_RECORD => record(event, stream);
    cuEventRecord_ptsz(event: usize, stream: usize) is CU_EVENT_RECORD_OWN => record(event, own(stream));
    cudaEventRecord(event: usize, stream: usize) is CUDA_EVENT_RECORD around CU_EVENT_RECORD => record(event, stream);
    cudaEventRecordWithFlags(event: usize, stream: usize, flags: c_uint)
        is CUDA_EVENT_RECORD_WITH_FLAGS around CU_EVENT_RECORD_WITH_FLAGS => record(event, stream);
    cuStreamWaitEvent(stream: usize, event: usize, flags: c_uint) is CU_STREAM_WAIT_EVENT => stream_waits(stream, event);
    cudaStreamWaitEvent(stream: usize, event: usize, flags: c_uint)
        is CUDA_STREAM_WAIT_EVENT around CU_STREAM_WAIT_EVENT => stream_waits(stream, event);
    cuEventQuery(event: usize) is CU_EVENT_QUERY => ask_event(event);
    cudaEventQuery(event: usize) is CUDA_EVENT_QUERY around CU_EVENT_QUERY => ask_event(event);
    cuStreamQuery(stream: usize) is CU_STREAM_QUERY => ask_stream(stream);
    cuEventSynchronize(event: usize) is CU_EVENT_SYNCHRONIZE => wait_for_event(event);
    cudaEventSynchronize(event: usize) is CUDA_EVENT_SYNCHRONIZE around CU_EVENT_SYNCHRONIZE => wait_for_event(event);
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamBeginCapture_v2(stream: usize, mode: c_uint) -> c_int {
    let parameters = [stream, mode as usize];
    let api = of_driver(names::CU_STREAM_BEGIN_CAPTURE, &parameters);
    call(api, |driver, _, _| {
        driver.captures.streams.insert(Driver::key(stream));
        if driver.captures.graph.is_none() {
            driver.captures.graph = Some(graphs::empty(driver));
        }
        SUCCESS
    })
}

/// Ends all captures; the graph has the kernels that were launched meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamEndCapture(stream: usize, graph: *mut usize) -> c_int {
    let parameters = [stream, graph as usize];
    let api = of_driver(names::CU_STREAM_END_CAPTURE, &parameters);
    call(api, |driver, _, _| {
        if !driver.is_capturing(stream) {
            return INVALID_VALUE;
        }
        // Captured events stay captured until they are recorded again.
        driver.captures.streams.clear();
        let made = driver.captures.graph.take();
        // SAFETY: the caller's variable.
        unsafe { *graph = made.unwrap_or_default() };
        SUCCESS
    })
}

thread_local! {
    static CAPTURE_MODE: std::cell::Cell<c_uint> = const { std::cell::Cell::new(0) };
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuThreadExchangeStreamCaptureMode(mode: *mut c_uint) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *mode = CAPTURE_MODE.replace(*mode) };
    SUCCESS
}

/// Gives a graph a node that records an event; the stub's graphs do not run such nodes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphAddEventRecordNode(
    node: *mut usize,
    graph: usize,
    dependencies: usize,
    count: usize,
    event: usize,
) -> c_int {
    let parameters = [node as usize, graph, dependencies, count, event];
    let api = of_driver(names::CU_GRAPH_ADD_EVENT_RECORD_NODE, &parameters);
    let code = call(api, |driver, _, _| match driver.events.known.get(&event) {
        Some(_) => SUCCESS,
        None => INVALID_HANDLE,
    });
    // SAFETY: the caller's variable.
    unsafe { *node = 1 };
    code
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamIsCapturing(stream: usize, status: *mut c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *status = driver().is_capturing(stream).into() };
    SUCCESS
}

//! Events, and waits for them, for streams and for contexts.

use super::{CONTEXT, Driver, INVALID_HANDLE, SUCCESS, asking_call, call, driver, waiting_call};
use crate::{cupti, names, records};
use std::ffi::{c_int, c_uint};

/// CUpti_ActivitySynchronizationType
const EVENT: u32 = 1;
const STREAM_WAITS: u32 = 2;
const STREAM: u32 = 3;
const CONTEXT_WIDE: u32 = 4;

/// CUPTI's number for none.
const NONE: u32 = u32::MAX;

/// Records that the host waited until `until`, or that a stream waits.
fn tell_wait(
    what: u32,
    correlation: u32,
    until: u64,
    (context, stream): (u32, u32),
    (event, occurrence): (u32, u64),
) {
    let mut cupti = cupti::state();
    let start = cupti::now();
    let record = records::Synchronization {
        kind: records::SYNCHRONIZATION,
        what,
        start: cupti.stamp(start),
        end: cupti.stamp(until.max(start)),
        correlation_id: correlation,
        context_id: context,
        stream_id: stream,
        cuda_event_id: event,
        cuda_event_sync_id: occurrence,
        ..records::Synchronization::default()
    };
    cupti.record(records::SYNCHRONIZATION, &record);
}

const NO_EVENT: (u32, u64) = (NONE, NONE as u64);

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: usize) -> c_int {
    waiting_call(names::CU_STREAM_SYNCHRONIZE, |driver, correlation| {
        let stream = *driver.stream(stream).ok_or(INVALID_HANDLE)?;
        tell_wait(
            STREAM,
            correlation,
            stream.free_ns,
            (stream.context, stream.id),
            NO_EVENT,
        );
        Ok(stream.free_ns)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSynchronize() -> c_int {
    waiting_call(names::CU_CTX_SYNCHRONIZE, |driver, correlation| {
        let context = CONTEXT.get();
        let streams = driver.streams.values().filter(|s| s.context == context);
        let until = streams.map(|s| s.free_ns).max().unwrap_or(0);
        tell_wait(CONTEXT_WIDE, correlation, until, (context, NONE), NO_EVENT);
        Ok(until)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut usize, _flags: c_uint) -> c_int {
    let handle = driver().handle();
    // SAFETY: the caller's variable.
    unsafe { *event = handle };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: usize, stream: usize) -> c_int {
    call(names::CU_EVENT_RECORD, |driver, correlation, _| {
        let Some(stream) = driver.stream(stream).copied() else {
            return INVALID_HANDLE;
        };
        driver.occurrences += 1;
        let occurrence = driver.occurrences;
        driver.events.insert(
            event,
            (stream.free_ns, stream.context, stream.id, occurrence),
        );
        let record = records::CudaEvent {
            kind: records::CUDA_EVENT,
            correlation_id: correlation,
            context_id: stream.context,
            stream_id: stream.id,
            event_id: event as u32,
            cuda_event_sync_id: occurrence,
            ..records::CudaEvent::default()
        };
        cupti::state().record(records::CUDA_EVENT, &record);
        SUCCESS
    })
}

fn occurred(driver: &Driver, event: usize) -> Option<(u64, u32, u32, u64)> {
    driver.events.get(&event).copied()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamWaitEvent(stream: usize, event: usize, _flags: c_uint) -> c_int {
    call(names::CU_STREAM_WAIT_EVENT, |driver, correlation, at| {
        let Some((until, _, _, occurrence)) = occurred(driver, event) else {
            return INVALID_HANDLE;
        };
        let Some(stream) = driver.stream(stream) else {
            return INVALID_HANDLE;
        };
        stream.free_ns = stream.free_ns.max(until);
        let place = (stream.context, stream.id);
        tell_wait(
            STREAM_WAITS,
            correlation,
            at,
            place,
            (event as u32, occurrence),
        );
        SUCCESS
    })
}

/// Whether CUPTI records a query at this time as a wait.
fn tells_query(until: u64, at: u64) -> bool {
    until <= at || cupti::state().all_waits
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(event: usize) -> c_int {
    asking_call(names::CU_EVENT_QUERY, |driver, correlation, at| {
        let (until, context, _, occurrence) = occurred(driver, event).ok_or(INVALID_HANDLE)?;
        if tells_query(until, at) {
            let event = (event as u32, occurrence);
            tell_wait(EVENT, correlation, 0, (context, NONE), event);
        }
        Ok(until)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: usize) -> c_int {
    asking_call(names::CU_STREAM_QUERY, |driver, correlation, at| {
        let stream = *driver.stream(stream).ok_or(INVALID_HANDLE)?;
        if tells_query(stream.free_ns, at) {
            let place = (stream.context, stream.id);
            tell_wait(STREAM, correlation, 0, place, NO_EVENT);
        }
        Ok(stream.free_ns)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: usize) -> c_int {
    waiting_call(names::CU_EVENT_SYNCHRONIZE, |driver, correlation| {
        let (until, context, _, occurrence) = occurred(driver, event).ok_or(INVALID_HANDLE)?;
        tell_wait(
            EVENT,
            correlation,
            until,
            (context, NONE),
            (event as u32, occurrence),
        );
        Ok(until)
    })
}

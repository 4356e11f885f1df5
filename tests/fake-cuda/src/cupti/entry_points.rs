//! The functions of libcupti that the hook uses.

use super::buffer::{Callbacks, size_of_record, take_dropped};
use super::callbacks::{self, Callback};
use super::results::*;
use super::{Completed, Requested, now, state};
use crate::config::config;
use crate::{names, records, truth};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Returns the client's callbacks to a program that measures them: those for buffers, and the one at calls.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fake_callbacks(
    requested: *mut Option<Requested>,
    completed: *mut Option<Completed>,
    called: *mut Option<Callback>,
) {
    let state = state();
    // SAFETY: the caller's variables.
    unsafe {
        if let Some(Callbacks {
            requested: ask,
            completed: done,
        }) = state.buffers.callbacks
        {
            (*requested, *completed) = (Some(ask), Some(done));
        }
        *called = state.callback;
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetVersion(version: *mut u32) -> c_int {
    if config().api_version == 0 {
        return UNKNOWN;
    }
    // SAFETY: the caller's variable.
    unsafe { *version = config().api_version };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiSubscribe(
    subscriber: *mut *mut c_void,
    callback: Option<Callback>,
    _user: *mut c_void,
) -> c_int {
    let mut state = state();
    if config().refuses || std::mem::replace(&mut state.subscribed, true) {
        return MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    }
    state.callback = callback;
    // SAFETY: the caller's variable.
    unsafe { *subscriber = std::ptr::dangling_mut() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiEnableCallback(
    enable: u32,
    subscriber: *mut c_void,
    domain: u32,
    call: u32,
) -> c_int {
    if config().refuses_callbacks {
        return NOT_SUPPORTED;
    }
    let is_known =
        names::name_of(domain, call).is_some() || callbacks::is_of_resource(domain, call);
    if subscriber != std::ptr::dangling_mut() || !is_known {
        return INVALID_PARAMETER;
    }
    let mut state = state();
    if enable == 0 {
        state.callbacks.remove(&(domain, call));
    } else {
        state.callbacks.insert((domain, call));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityEnable(kind: u32) -> c_int {
    enable(kind)
}

fn enable(kind: u32) -> c_int {
    let is_new = [records::HOST_LAUNCH, records::GRAPH_HOST_NODE].contains(&kind);
    if is_new && config().api_version < 130_101 {
        return INVALID_KIND;
    }
    std::thread::sleep(Duration::from_millis(config().switch_ms));
    let mut state = state();
    state.kinds.insert(kind);
    if kind == records::GRAPH_TRACE && state.graphs > 0 {
        state.graphs_traced_late = true;
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityDisable(kind: u32) -> c_int {
    std::thread::sleep(Duration::from_millis(config().switch_ms));
    state().kinds.remove(&kind);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterCallbacks(
    requested: Requested,
    completed: Completed,
) -> c_int {
    // Without a subscriber the last client gets everything.
    state().buffers.callbacks = Some(Callbacks {
        requested,
        completed,
    });
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNextRecord(
    buffer: *mut u8,
    bytes: usize,
    record: *mut *mut u8,
) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { next_record(buffer, bytes, record) }
}

/// # Safety
/// `record` is the caller's variable, which holds null or a record of this buffer, and the buffer is its own.
unsafe fn next_record(buffer: *mut u8, bytes: usize, record: *mut *mut u8) -> c_int {
    // SAFETY: as the caller promises.
    unsafe {
        let all = std::slice::from_raw_parts(buffer, bytes);
        let at = if (*record).is_null() {
            0
        } else {
            let before = (*record).offset_from(buffer) as usize;
            let Some(length) = size_of_record(&all[before..]) else {
                return INVALID_KIND;
            };
            before + length
        };
        if at >= bytes {
            return MAX_LIMIT_REACHED;
        }
        if size_of_record(&all[at..]).is_none() {
            return INVALID_KIND;
        }
        *record = buffer.add(at);
        SUCCESS
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiActivityGetNumDroppedRecords(
    _context: *mut c_void,
    _stream: u32,
    dropped: *mut usize,
) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *dropped = take_dropped() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityFlushAll(flags: u32) -> c_int {
    FLUSHES.fetch_add(1, Relaxed);
    let start = now();
    let rest = {
        let mut state = state();
        state.collect(flags & 1 == 1);
        state.buffers.flush()
    };
    rest();
    truth::write("flush", 0, (start, now()), format_args!(""));
    SUCCESS
}

/// The calls of `cuptiActivityFlushAll` that have begun.
static FLUSHES: AtomicU64 = AtomicU64::new(0);

/// Tells a program how often the client has asked for its records.
#[unsafe(no_mangle)]
pub extern "C" fn fake_flushes() -> u64 {
    FLUSHES.load(Relaxed)
}

/// CUpti_ActivityAttribute: buffers of threads, which CUPTI knows since CUDA 12.3.
const BUFFERS_OF_THREADS: u32 = 9;

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivitySetAttribute(
    attribute: u32,
    _bytes: *mut usize,
    _value: *mut c_void,
) -> c_int {
    if attribute == BUFFERS_OF_THREADS && config().api_version < 21 {
        return INVALID_PARAMETER;
    }
    let mut state = state();
    if attribute == BUFFERS_OF_THREADS && state.buffers.callbacks.is_some() {
        // CUPTI's behaviour is not defined then.
        std::process::abort();
    }
    state.attributes.insert(attribute);
    SUCCESS
}

/// Tells a program whether the client has set an attribute.
#[unsafe(no_mangle)]
pub extern "C" fn fake_attribute(attribute: u32) -> c_int {
    state().attributes.contains(&attribute).into()
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiActivityRegisterTimestampCallback(
    timestamp: extern "C" fn() -> u64,
) -> c_int {
    let mut state = state();
    // Once something is switched on, records have the old clock.
    if state.kinds.is_empty() {
        let (before, said, after) = (now(), timestamp(), now());
        let same = (before..=after).contains(&said);
        state.clock_offset = Some(if same { 0 } else { said as i64 - before as i64 });
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuptiSetThreadIdType(kind: u32) -> c_int {
    state().system_threads = kind == 1;
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(code: c_int, text: *mut *const c_char) -> c_int {
    let name = match code {
        SUCCESS => c"CUPTI_SUCCESS",
        MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED",
        _ => c"CUPTI_ERROR_UNKNOWN",
    };
    // SAFETY: the caller's variable.
    unsafe { *text = name.as_ptr() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetCallbackName(
    domain: u32,
    call: u32,
    name: *mut *const c_char,
) -> c_int {
    match names::name_of(domain, call) {
        Some(found) => {
            // SAFETY: the caller's variable.
            unsafe { *name = found.as_ptr() };
            SUCCESS
        }
        None => INVALID_PARAMETER,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetContextId(context: *mut c_void, id: *mut u32) -> c_int {
    // SAFETY: the caller's variable; a context is its number.
    unsafe { *id = context as u32 };
    SUCCESS
}

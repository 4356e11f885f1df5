//! The functions of libcupti that translate the driver's handles.

use super::{DEFAULT_STREAM, OWN, SUCCESS, driver};
use crate::config::config;
use std::ffi::{c_int, c_void};

/// CUPTI_ERROR_INVALID_STREAM
const INVALID_STREAM: c_int = 20;

/// Stores the device of a context, which is a number; 0 where it is not known.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetDeviceId(context: *mut c_void, device: *mut u32) -> c_int {
    let known = match context as usize as u32 {
        0 => 0,
        context => driver().device_of(context),
    };
    // SAFETY: the caller's variable.
    unsafe { *device = known };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetStreamIdEx(
    context: *mut c_void,
    stream: *mut c_void,
    own: u8,
    id: *mut u32,
) -> c_int {
    if config().refuses_stream_ids {
        return INVALID_STREAM;
    }
    match stream_id(context as u32, stream as usize, own != 0) {
        Some(known) => {
            // SAFETY: the caller's variable.
            unsafe { *id = known };
            SUCCESS
        }
        None => INVALID_STREAM,
    }
}

/// Returns CUPTI's id of a stream, which has to be of this context where one is named. Of the handles of default streams CUPTI knows
/// only null, which with `own` means the thread's own.
fn stream_id(context: u32, handle: usize, own: bool) -> Option<u32> {
    let mut driver = driver();
    let stream = match handle {
        0 if own => *driver.stream(OWN)?,
        0 => return Some(DEFAULT_STREAM),
        _ => *driver.streams.get(&handle)?,
    };
    [0, stream.context].contains(&context).then_some(stream.id)
}

//! Callbacks at calls of the runtime and of the driver.

use super::state;
use crate::names::Call;
use std::ffi::{c_char, c_int, c_void};

/// CUpti_CallbackFunc
pub type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// CUpti_CallbackData
#[repr(C)]
struct Data {
    callback_site: c_int,
    function_name: *const c_char,
    function_parameters: *const c_void,
    function_return_value: *mut c_void,
    symbol_name: *const c_char,
    context: *mut c_void,
    context_uid: u32,
    correlation_data: *mut u64,
    correlation_id: u32,
}

const ENTER: c_int = 0;
const EXIT: c_int = 1;

/// Whether the subscriber wants a callback at this call.
pub fn are_wanted((domain, number, _): Call) -> bool {
    let state = state();
    state.callback.is_some() && state.callbacks.contains(&(domain, number))
}

/// Calls the subscriber, if he wants that, at the begin of a call; at its end where there is a result.
pub fn deliver(
    call: Call,
    parameters: &[usize],
    correlation: u32,
    context: u32,
    result: Option<c_int>,
) {
    let callback = match are_wanted(call) {
        true => state().callback,
        false => None,
    };
    let Some(callback) = callback else { return };
    let (domain, number, name) = call;
    let mut result_there = result.unwrap_or(-1);
    let mut shared = 0;
    let data = Data {
        callback_site: if result.is_some() { EXIT } else { ENTER },
        function_name: name.as_ptr(),
        function_parameters: parameters.as_ptr().cast(),
        function_return_value: match result {
            Some(_) => (&raw mut result_there).cast(),
            None => std::ptr::null_mut(),
        },
        symbol_name: std::ptr::null(),
        context: context as usize as *mut c_void,
        context_uid: context,
        correlation_data: &mut shared,
        correlation_id: correlation,
    };
    callback(
        std::ptr::null_mut(),
        domain,
        number,
        (&raw const data).cast(),
    );
}

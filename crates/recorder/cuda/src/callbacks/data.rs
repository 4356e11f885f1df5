//! Reads the data that CUPTI passes to a callback: the call's parameters and result, the context, the kernel's name
//! and the correlation (CUPTI's number of the call, which the records of its work have, too).

use crate::streams::CurrentContext;
use gapscope_spool::ids;
use std::ffi::{CStr, c_char, c_int, c_void};

/// CUPTI_API_ENTER: the callback comes at the start of the call.
const ENTER: c_int = 0;
/// CUDA_ERROR_UNKNOWN and cudaErrorUnknown, for a call whose result CUPTI does not pass.
const UNKNOWN: c_int = 999;

/// CUpti_CallbackData, the data of a callback. Its layout is equal in CUDA 12.0 and 13.5.
#[repr(C)]
pub struct CallbackData {
    /// Start or end of the call.
    site: c_int,
    name: *const c_char,
    /// The call's own parameters, as a structure.
    parameters: *const c_void,
    /// The call's result, at its end.
    result: *const c_int,
    /// The kernel's name, in launches.
    symbol: *const c_char,
    /// The thread's current context.
    context: *mut c_void,
    /// CUPTI's number for the context.
    pub context_id: u32,
    shared: *mut u64,
    /// The correlation of the call's record.
    pub correlation: ids::Correlation,
}

// `offsetof` gives these numbers for cupti_callbacks.h.
const _: () = assert!(std::mem::offset_of!(CallbackData, parameters) == 16);
const _: () = assert!(std::mem::offset_of!(CallbackData, symbol) == 32);
const _: () = assert!(std::mem::offset_of!(CallbackData, context) == 40);
const _: () = assert!(std::mem::offset_of!(CallbackData, correlation) == 64);
const _: () = assert!(size_of::<CallbackData>() == 72);

impl CallbackData {
    /// Returns the thread's current context.
    pub fn current_context(&self) -> CurrentContext {
        CurrentContext {
            handle: self.context,
            id: self.context_id,
        }
    }

    /// Returns the kernel of a call that launches one, by its name in the code.
    ///
    /// # Safety
    /// The data is CUPTI's, of a call that launches a kernel.
    pub unsafe fn symbol(&self) -> Option<&CStr> {
        // SAFETY: as the caller promises: null, or CUPTI's text.
        (!self.symbol.is_null()).then(|| unsafe { CStr::from_ptr(self.symbol) })
    }

    /// Returns whether the call starts.
    pub fn is_enter(&self) -> bool {
        self.site == ENTER
    }

    /// Returns the call's result.
    ///
    /// # Safety
    /// The data is CUPTI's, at the end of the call.
    pub unsafe fn result(&self) -> c_int {
        // SAFETY: null, or CUPTI's pointer to the result.
        unsafe { self.result.as_ref() }.copied().unwrap_or(UNKNOWN)
    }

    /// Returns the structure of the call's parameters; `None` where CUPTI passes none.
    ///
    /// # Safety
    /// `T` is the structure of this call.
    pub unsafe fn parameters<T>(&self) -> Option<&T> {
        // SAFETY: as the caller promises.
        unsafe { self.parameters.cast::<T>().as_ref() }
    }

    /// Returns a parameter of the call. All that are asked for are handles, and come before shorter ones.
    ///
    /// # Safety
    /// The call has that many parameters, and they are pointers.
    pub unsafe fn parameter(&self, at: usize) -> usize {
        // SAFETY: as the caller promises.
        unsafe { self.parameters.cast::<usize>().add(at).read_unaligned() }
    }
}

//! Links PTX and cubins into one cubin, and names results.

use super::code;
use super::kernels::Program;
use super::{INVALID_HANDLE, INVALID_VALUE, SUCCESS, driver};
use crate::cubin::Cubin;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_PTX
const CUBIN: c_uint = 0;
const PTX: c_uint = 1;

// Every pointer is the caller's variable, text or bytes, as in CUDA.

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkCreate_v2(
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void,
    state: *mut usize,
) -> c_int {
    let mut driver = driver();
    let handle = driver.handle();
    driver.links.insert(handle, Vec::new());
    // SAFETY: the caller's variable.
    unsafe { *state = handle };
    SUCCESS
}

#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn cuLinkAddData_v2(
    state: usize,
    kind: c_uint,
    data: *const u8,
    bytes: usize,
    _name: *const c_char,
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's bytes.
    let data = unsafe { std::slice::from_raw_parts(data, bytes) };
    let made = match kind {
        CUBIN => code::read(data).map(|_| data.to_vec()),
        PTX => {
            let text = String::from_utf8_lossy(data);
            let names = text.split(".entry ").skip(1);
            let names = names.filter_map(|rest| rest.split(['(', ' ', '\n']).next());
            let cubin = names.fold(Cubin::new(), |cubin, name| {
                let program = Program::name_of(name).unwrap_or("nothing");
                cubin.kernel(name, program)
            });
            text.contains(".entry ").then(|| cubin.build())
        }
        _ => None,
    };
    match (made, driver().links.get_mut(&state)) {
        (_, None) => INVALID_HANDLE,
        (None, _) => INVALID_VALUE,
        (Some(made), Some(link)) => {
            *link = made;
            SUCCESS
        }
    }
}

/// Stores the cubin of what was added last, which lives until the link is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLinkComplete(
    state: usize,
    cubin: *mut *const u8,
    bytes: *mut usize,
) -> c_int {
    let driver = driver();
    let Some(link) = driver.links.get(&state) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variables.
    unsafe { (*cubin, *bytes) = (link.as_ptr(), link.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLinkDestroy(state: usize) -> c_int {
    match driver().links.remove(&state) {
        Some(_) => SUCCESS,
        None => INVALID_HANDLE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(code: c_int, name: *mut *const c_char) -> c_int {
    let text = match code {
        0 => c"CUDA_SUCCESS",
        1 => c"CUDA_ERROR_INVALID_VALUE",
        2 => c"CUDA_ERROR_OUT_OF_MEMORY",
        3 => c"CUDA_ERROR_NOT_INITIALIZED",
        100 => c"CUDA_ERROR_NO_DEVICE",
        201 => c"CUDA_ERROR_INVALID_CONTEXT",
        301 => c"CUDA_ERROR_FILE_NOT_FOUND",
        400 => c"CUDA_ERROR_INVALID_HANDLE",
        500 => c"CUDA_ERROR_NOT_FOUND",
        600 => c"CUDA_ERROR_NOT_READY",
        700 => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        712 => c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
        713 => c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
        900 => c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        910 => c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
        912 => c"CUDA_ERROR_INVALID_CLUSTER_SIZE",
        _ => return INVALID_VALUE,
    };
    // SAFETY: the caller's variable.
    unsafe { *name = text.as_ptr() };
    SUCCESS
}

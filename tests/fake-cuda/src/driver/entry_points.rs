//! The functions of libcuda, and the few of the runtime, that the test program calls.

use super::{
    BLOCKING, CONTEXT, DEFAULT_HANDLE, DEFAULT_STREAM, INVALID_CONTEXT, INVALID_HANDLE,
    INVALID_VALUE, NON_BLOCKING, SUCCESS, Stream, call, driver, graphs, injection, memory,
    tell_stream,
};
use crate::config::config;
use crate::cupti::callbacks;
use crate::{cupti, names, records};
use std::ffi::{c_char, c_int, c_uint};

/// The flag that makes a context a green one; CUDA has functions of its own for that.
const GREEN: c_uint = 0x8000;

// Every pointer is the caller's variable or text, as in CUDA.

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_flags: c_uint) -> c_int {
    injection::initialise()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *version = injection::version() };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *count = injection::devices() as c_int };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, number: c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *device = number };
    SUCCESS
}

/// Stores the UUID of the device's record, which NVML has, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> c_int {
    // SAFETY: the caller's 16 bytes.
    unsafe { *uuid = super::injection::uuid(device as u32) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, bytes: c_int, _: c_int) -> c_int {
    let text = injection::name().to_bytes_with_nul();
    if text.len() > bytes as usize {
        return INVALID_VALUE;
    }
    // SAFETY: the caller's text, with room for so many bytes.
    unsafe { name.copy_from_nonoverlapping(text.as_ptr().cast(), text.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxCreate_v2(
    context: *mut usize,
    flags: c_uint,
    device: c_int,
) -> c_int {
    let mut number = 0;
    let code = call(names::CU_CTX_CREATE, |driver, _, _| {
        driver.contexts.push(device as u32);
        number = driver.contexts.len() as u32;
        if flags == GREEN {
            driver.green.insert(number);
        }
        let mut cupti = cupti::state();
        let record = records::Context {
            kind: records::CONTEXT,
            context_id: number,
            device_id: device as u32,
            null_stream_id: DEFAULT_STREAM as u16,
            is_green_context: (flags == GREEN).into(),
            ..records::Context::default()
        };
        cupti.record_when(config().late_contexts, records::CONTEXT, &record);
        SUCCESS
    });
    CONTEXT.set(number);
    callbacks::deliver_resource(callbacks::CONTEXT_CREATED, number, None);
    // SAFETY: the caller's variable.
    unsafe { *context = number as usize };
    code
}

/// Retains the primary context of a device, which is made at the first time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> c_int {
    let known = driver().primary.get(&device).copied();
    let (number, code) = match known {
        Some(number) => (number, SUCCESS),
        None => {
            let (mut made, current) = (0, CONTEXT.get());
            // SAFETY: the variable is ours.
            let code = unsafe { cuCtxCreate_v2(&mut made, 0, device) };
            CONTEXT.set(current);
            driver().primary.insert(device, made);
            (made, code)
        }
    };
    // SAFETY: the caller's variable.
    unsafe { *context = number };
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_device: c_int) -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetCurrent(context: *mut usize) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *context = CONTEXT.get() as usize };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxDestroy_v2(context: usize) -> c_int {
    callbacks::deliver_resource(callbacks::CONTEXT_ENDS, context as u32, None);
    CONTEXT.set(0);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuCtxGetDevice(device: *mut c_int) -> c_int {
    let context = CONTEXT.get();
    if context == 0 {
        return INVALID_CONTEXT;
    }
    // SAFETY: the caller's variable.
    unsafe { *device = driver().device_of(context) as c_int };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    CONTEXT.set(context as u32);
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamGetCtx(stream: usize, context: *mut usize) -> c_int {
    let found = driver().stream(stream).map(|s| s.context);
    // SAFETY: the caller's variable.
    unsafe { *context = found.unwrap_or(0) as usize };
    if found.is_some() {
        SUCCESS
    } else {
        INVALID_HANDLE
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreate(stream: *mut usize, flags: c_uint) -> c_int {
    let mut handle = 0;
    let code = call(names::CU_STREAM_CREATE, |driver, correlation, _| {
        let context = CONTEXT.get();
        if context == 0 {
            return INVALID_CONTEXT;
        }
        let in_context = driver
            .streams
            .iter()
            .filter(|(h, s)| **h < DEFAULT_HANDLE && s.context == context)
            .count();
        let id = 13 + in_context as u32;
        handle = driver.handle();
        let made = Stream {
            context,
            id,
            free_ns: 0,
            flag: 0,
        };
        driver.streams.insert(handle, made);
        // CUPTI has no records of streams of green contexts.
        if !driver.green.contains(&context) {
            let flag = if flags == 1 { NON_BLOCKING } else { BLOCKING };
            tell_stream(context, id, flag, -1, correlation);
        }
        SUCCESS
    });
    // SAFETY: the caller's variable.
    unsafe { *stream = handle };
    code
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: usize) -> c_int {
    match driver().streams.remove(&stream) {
        Some(_) => SUCCESS,
        None => INVALID_HANDLE,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cudaGetDevice(device: *mut c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *device = 0 };
    call(names::CUDA_GET_DEVICE, |_, _, _| SUCCESS)
}

#[unsafe(no_mangle)]
pub extern "C" fn cudaGetLastError() -> c_int {
    call(names::CUDA_GET_LAST_ERROR, |_, _, _| SUCCESS)
}

/// Allocates memory and stores its address.
///
/// # Safety
/// `address` is the caller's variable.
unsafe fn allocate(
    address: *mut u64,
    call: names::Call,
    bytes: usize,
    kind: u32,
    pooled: bool,
) -> c_int {
    match memory::allocate(call, bytes as u64, kind, pooled) {
        Ok(made) => {
            // SAFETY: as the caller promises.
            unsafe { *address = made };
            SUCCESS
        }
        Err(code) => code,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { allocate(address, names::CU_MEM_ALLOC, bytes, memory::DEVICE, false) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocManaged(address: *mut u64, bytes: usize, _: c_uint) -> c_int {
    // SAFETY: the caller's variable.
    unsafe {
        allocate(
            address,
            names::CU_MEM_ALLOC_MANAGED,
            bytes,
            memory::MANAGED,
            false,
        )
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocAsync(address: *mut u64, bytes: usize, _stream: usize) -> c_int {
    // SAFETY: the caller's variable.
    unsafe {
        allocate(
            address,
            names::CU_MEM_ALLOC_ASYNC,
            bytes,
            memory::DEVICE,
            true,
        )
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    memory::free(names::CU_MEM_FREE, address)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeAsync(address: u64, _stream: usize) -> c_int {
    memory::free(names::CU_MEM_FREE_ASYNC, address)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphNodeGetType(node: usize, kind: *mut c_int) -> c_int {
    let Some((found, _)) = graphs::node(node) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *kind = found };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphChildGraphNodeGetGraph(node: usize, graph: *mut usize) -> c_int {
    let Some((_, child)) = graphs::node(node) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *graph = child };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGraphExecGetFlags(executable: usize, flags: *mut u64) -> c_int {
    let Some(known) = graphs::flags(executable) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *flags = known };
    SUCCESS
}

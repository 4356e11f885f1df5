//! The functions of the driver that a program needs for measuring a device. CUPTI is not told of these calls.

use super::{INVALID_CONTEXT, INVALID_HANDLE, SUCCESS, driver};
use crate::config::config;
use crate::cupti::now;
use std::ffi::{c_char, c_int, c_uint, c_void};

const FREE_BYTES: usize = 16 << 30;
const TOTAL_BYTES: usize = 24 << 30;
/// CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
const MULTIPROCESSORS: c_int = 16;
/// CU_DEVICE_ATTRIBUTE_CLOCK_RATE
const CLOCK_KHZ: c_int = 13;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, what: c_int, _: c_int) -> c_int {
    if config().refuses_attributes {
        return INVALID_HANDLE;
    }
    let said = match what {
        MULTIPROCESSORS => 132,
        CLOCK_KHZ => 1_980_000,
        _ => 0,
    };
    // SAFETY: the caller's variable.
    unsafe { *value = said };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    // SAFETY: the caller's variables.
    unsafe { (*free, *total) = (FREE_BYTES, TOTAL_BYTES) };
    SUCCESS
}

/// Takes twice as long as a kernel.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoDAsync_v2(_to: u64, _from: u64, _: usize, stream: usize) -> c_int {
    match driver().submit(stream, 0, now(), 2 * config().kernel_ns) {
        Some(_) => SUCCESS,
        None => INVALID_CONTEXT,
    }
}

/// Takes twice as long as a kernel.
#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD32Async(_to: u64, _: c_uint, _: usize, stream: usize) -> c_int {
    cuMemcpyDtoDAsync_v2(0, 0, 0, stream)
}

/// All devices are joined by NVLink.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetP2PAttribute(
    value: *mut c_int,
    _what: c_int,
    _one: c_int,
    _other: c_int,
) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *value = 1 };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxEnablePeerAccess(_context: usize, _flags: c_uint) -> c_int {
    SUCCESS
}

/// Takes the memory from the C library, which does not pin it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAllocHost_v2(address: *mut *mut c_void, bytes: usize) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *address = libc::malloc(bytes) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFreeHost(address: *mut c_void) -> c_int {
    // SAFETY: the address is one of `cuMemAllocHost_v2`.
    unsafe { libc::free(address) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, start: usize, end: usize) -> c_int {
    let driver = driver();
    let [Some(start), Some(end)] = [start, end].map(|event| driver.events.at_ns(event)) else {
        return INVALID_HANDLE;
    };
    // SAFETY: the caller's variable.
    unsafe { *ms = (end as f64 - start as f64) as f32 / 1e6 };
    SUCCESS
}

/// Loads a module without regard to the options.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut usize,
    image: *const c_char,
    _: c_uint,
    _: *mut c_int,
    _: *mut *mut c_void,
) -> c_int {
    // SAFETY: as the caller of this one promises.
    unsafe { super::entry_points::cuModuleLoadData(module, image) }
}

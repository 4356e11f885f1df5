//! The functions of the driver that a program needs for measuring a device. CUPTI is not told of these calls.

use super::{INVALID_HANDLE, SUCCESS, driver};
use crate::config::config;
use std::ffi::{c_int, c_uint};

const FREE_BYTES: usize = 16 << 30;
const TOTAL_BYTES: usize = 24 << 30;
/// The attributes of devices that are not 0, by their number in `cuda.h`.
const ATTRIBUTES: [(c_int, c_int); 14] = [
    // MAX_THREADS_PER_BLOCK, MAX_SHARED_MEMORY_PER_BLOCK, WARP_SIZE
    (1, 1024),
    (8, 49_152),
    (10, 32),
    // CLOCK_RATE, MULTIPROCESSOR_COUNT
    (13, 1_980_000),
    (16, 132),
    // MEMORY_CLOCK_RATE, GLOBAL_MEMORY_BUS_WIDTH, L2_CACHE_SIZE
    (36, 2_619_000),
    (37, 5120),
    (38, 62_914_560),
    // UNIFIED_ADDRESSING
    (41, 1),
    // COMPUTE_CAPABILITY_MAJOR
    (75, 9),
    // MANAGED_MEMORY, COOPERATIVE_LAUNCH, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    (83, 1),
    (95, 1),
    (97, 232_448),
    (102, 1),
];

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, what: c_int, _: c_int) -> c_int {
    if config().refuses_attributes {
        return INVALID_HANDLE;
    }
    let said = ATTRIBUTES.iter().find(|(known, _)| *known == what);
    let said = said.map_or(0, |(_, said)| *said);
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

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _device: c_int) -> c_int {
    // SAFETY: the caller's variable.
    unsafe { *bytes = TOTAL_BYTES };
    SUCCESS
}

//! The CUDA driver that the program uses.

use crate::library::Library;
use gapscope_spool::ids;
use std::ffi::{c_int, c_void};
use std::path::Path;

/// CU_DEVICE_ATTRIBUTE_CLOCK_RATE
pub const CLOCK_KHZ: c_int = 13;
/// CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
pub const MULTIPROCESSORS: c_int = 16;

/// A function of the driver.
pub fn function(name: &str) -> Option<*mut c_void> {
    Library::loaded(Path::new("libcuda.so.1"))?.symbol(name)
}

/// The newest CUDA version that the driver supports, as 1000 × major + 10 × minor.
pub fn version() -> Option<u32> {
    let function = function("cuDriverGetVersion")?;
    let mut version: c_int = 0;
    // SAFETY: it is this function of the driver; it may be called before cuInit and stores a number.
    let code = unsafe {
        let function: unsafe extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(function);
        function(&mut version)
    };
    u32::try_from(version)
        .ok()
        .filter(|version| code == 0 && *version > 0)
}

/// What the driver says of a device by CUDA's number; `None` where it says nothing, or 0.
pub fn attribute(device: u32, attribute: c_int) -> Option<u64> {
    let function = function("cuDeviceGetAttribute")?;
    let mut value: c_int = 0;
    // SAFETY: it is this function of the driver, which stores a number.
    let code = unsafe {
        let function: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int =
            std::mem::transmute(function);
        function(&mut value, attribute, c_int::try_from(device).ok()?)
    };
    let value = u64::try_from(value).ok()?;
    (code == 0 && value > 0).then_some(value)
}

/// The id of a device in events; CUPTI's numbers begin at 0, which means "none" in events.
pub fn device_id(number: u32) -> ids::Device {
    ids::Device(number.wrapping_add(1))
}

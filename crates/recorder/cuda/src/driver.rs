//! The CUDA driver that the program uses.

use crate::library::Library;
use gapscope_spool::ids;
use std::ffi::{c_int, c_void};
use std::path::Path;

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

/// The id of a device in events; CUPTI's numbers begin at 0, which means "none" in events.
pub fn device_id(number: u32) -> ids::Device {
    ids::Device(number.wrapping_add(1))
}

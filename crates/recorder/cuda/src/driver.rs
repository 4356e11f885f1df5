//! Looks up functions of the CUDA driver that the program uses, and asks it for its version and for attributes of
//! devices.

use gapscope_cupti::SharedLibrary;
use gapscope_spool::ids;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::ptr::NonNull;

/// CU_DEVICE_ATTRIBUTE_CLOCK_RATE: the attribute with the clock of the cores.
pub const CLOCK_KHZ: c_int = 13;
/// CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: the attribute with the number of multiprocessors.
pub const MULTIPROCESSORS: c_int = 16;

/// Looks up a function of the driver.
///
/// # Safety
/// `F` is the type of the driver's function of this name.
pub unsafe fn function<F: Copy>(name: &str) -> Option<F> {
    // SAFETY: as the caller promises.
    unsafe { SharedLibrary::loaded(Path::new("libcuda.so.1"))?.function(name) }
}

/// Returns whether the driver has a function.
pub fn has(name: &str) -> bool {
    // SAFETY: the address is not called.
    unsafe { function::<NonNull<c_void>>(name) }.is_some()
}

/// Returns the newest CUDA version that the driver supports, as 1000 × major + 10 × minor.
pub fn version() -> Option<u32> {
    type GetVersion = unsafe extern "C" fn(*mut c_int) -> c_int;
    let mut version: c_int = 0;
    // SAFETY: the driver's function of this name; it may be called before cuInit and stores a number.
    let code = unsafe { function::<GetVersion>("cuDriverGetVersion")?(&mut version) };
    u32::try_from(version)
        .ok()
        .filter(|version| code == 0 && *version > 0)
}

/// Returns an attribute of a device by CUDA's ordinal; `None` where the driver refuses it or says 0.
pub fn attribute(device: u32, attribute: c_int) -> Option<u64> {
    type GetAttribute = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
    let (mut value, device): (c_int, _) = (0, c_int::try_from(device).ok()?);
    // SAFETY: the driver's function of this name, which stores a number.
    let code =
        unsafe { function::<GetAttribute>("cuDeviceGetAttribute")?(&mut value, attribute, device) };
    let value = u64::try_from(value).ok()?;
    (code == 0 && value > 0).then_some(value)
}

/// Returns the id of a device in events. CUPTI counts from 0, which means "none" in events.
pub fn device_id(number: u32) -> ids::Device {
    ids::Device(number.wrapping_add(1))
}

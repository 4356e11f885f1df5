//! Describes the GPU of a capture, so that a replay can compare it with its own.

use super::driver_functions::DriverFunctions;
use gapscope_capture::cuda::CudaDevice;

/// CUdevice_attribute: …_MULTIPROCESSOR_COUNT, …_COMPUTE_CAPABILITY_MAJOR and _MINOR
const MULTIPROCESSORS: i32 = 16;
const CAPABILITY: [i32; 2] = [75, 76];

/// Describes a device of the driver.
///
/// # Errors
/// The driver does not say its compute capability, without which no replay knows whether the code fits.
pub fn describe(driver: &DriverFunctions, device: i32) -> Result<CudaDevice, String> {
    let mut name = [0_u8; 256];
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: the driver's function, which stores a number.
        let code = unsafe { (driver.device_attribute)(&mut value, attribute, device) };
        u32::try_from(value).ok().filter(|_| code == 0)
    };
    let mut memory_bytes = 0;
    // SAFETY: the driver's functions, which store a text that ends with a zero byte in the room, and a number.
    let memory_code = unsafe {
        (driver.device_name)(name.as_mut_ptr().cast(), name.len() as i32 - 1, device);
        (driver.device_memory)(&mut memory_bytes, device)
    };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(0);
    let [Some(major), Some(minor)] = CAPABILITY.map(attribute) else {
        return Err("the driver does not say the compute capability of the GPU".to_owned());
    };
    Ok(CudaDevice {
        name: String::from_utf8_lossy(&name[..end]).into_owned(),
        compute_capability: [major, minor],
        driver_version: crate::driver::version(),
        multiprocessors: attribute(MULTIPROCESSORS),
        memory_bytes: (memory_code == 0).then_some(memory_bytes as u64),
    })
}

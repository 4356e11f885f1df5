//! The CUDA driver, as far as sampling needs it: CUPTI names devices by their numbers in the process.

use crate::library::{open, symbol};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;

/// A device's UUID.
pub type Uuid = [u8; 16];

/// The driver, initialised in this process without a context.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    library: *mut c_void,
    version: u32,
}

// SAFETY: the handle is of a library that stays loaded, and its functions may be called on any thread.
unsafe impl Send for Driver {}
// SAFETY: as above.
unsafe impl Sync for Driver {}

impl Driver {
    /// Loads `libcuda.so.1` and initialises it.
    ///
    /// # Errors
    /// It is not there, or does not work: a sentence without its full stop.
    pub fn load() -> Result<Driver, String> {
        let library = open(Path::new("libcuda.so.1"))
            .map_err(|said| format!("NVIDIA's driver libcuda.so.1 could not be loaded: {said}"))?;
        let mut driver = Driver {
            library,
            version: 0,
        };
        let init = driver.function("cuInit")?;
        // SAFETY: the driver's function of that name, here and below.
        let code = unsafe {
            let init: unsafe extern "C" fn(c_uint) -> c_int = std::mem::transmute(init);
            init(0)
        };
        if code != 0 {
            return Err(format!("CUDA could not be initialised: cuInit says {code}"));
        }
        if let Ok(get) = driver.function("cuDriverGetVersion") {
            let mut version = 0;
            // SAFETY: it stores a number.
            let code = unsafe {
                let get: unsafe extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(get);
                get(&mut version)
            };
            if code == 0 {
                driver.version = u32::try_from(version).unwrap_or(0);
            }
        }
        Ok(driver)
    }

    /// The newest CUDA that it supports, as 1000 × major + 10 × minor.
    pub fn version(&self) -> Option<u32> {
        (self.version > 0).then_some(self.version)
    }

    /// The UUIDs of the devices of this process, by their numbers.
    ///
    /// # Errors
    /// The driver refuses it.
    pub fn devices(&self) -> Result<Vec<Uuid>, String> {
        let mut count = 0;
        let get = self.function("cuDeviceGetCount")?;
        // SAFETY: it stores a number.
        let code = unsafe {
            let get: unsafe extern "C" fn(*mut c_int) -> c_int = std::mem::transmute(get);
            get(&mut count)
        };
        if code != 0 {
            return Err(format!("cuDeviceGetCount says {code}"));
        }
        // The second one tells parts of GPUs (MIG) apart.
        let uuid = (self.function("cuDeviceGetUuid_v2")).or(self.function("cuDeviceGetUuid"))?;
        let device = self.function("cuDeviceGet")?;
        (0..count)
            .map(|number| {
                let (mut handle, mut bytes): (c_int, Uuid) = (0, [0; 16]);
                // SAFETY: they store a number, and 16 bytes.
                let code = unsafe {
                    let device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int =
                        std::mem::transmute(device);
                    let uuid: unsafe extern "C" fn(*mut c_char, c_int) -> c_int =
                        std::mem::transmute(uuid);
                    match device(&mut handle, number) {
                        0 => uuid(bytes.as_mut_ptr().cast(), handle),
                        code => code,
                    }
                };
                match code {
                    0 => Ok(bytes),
                    _ => Err(format!("cuDeviceGetUuid says {code} of device {number}")),
                }
            })
            .collect()
    }

    fn function(&self, name: &str) -> Result<*mut c_void, String> {
        symbol(self.library, name).ok_or_else(|| format!("libcuda.so.1 has no function {name}"))
    }
}

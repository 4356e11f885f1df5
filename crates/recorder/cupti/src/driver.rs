//! Asks the CUDA driver for what sampling needs: CUPTI names devices by their ordinals in the process.

use crate::shared_library::SharedLibrary;
use std::ffi::{c_int, c_uint};
use std::path::Path;

/// The UUID of a device.
pub type Uuid = [u8; 16];

type GetNumber = unsafe extern "C" fn(*mut c_int) -> c_int;

/// The driver, initialised in this process without a context.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    library: SharedLibrary,
    /// 0 where the driver does not tell it.
    version: u32,
}

/// Why the driver cannot be used: a sentence without its full stop.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// It does not exist, or the linker refuses it.
    #[error("NVIDIA's driver libcuda.so.1 could not be loaded: {0}")]
    NotLoaded(libloading::Error),
    /// It lacks a function.
    #[error("libcuda.so.1 has no function {0}")]
    NoFunction(&'static str),
    /// It refuses to start, with this CUresult.
    #[error("CUDA could not be initialised: cuInit says {0}")]
    NotInitialised(c_int),
    /// It does not tell the number of devices, with this CUresult.
    #[error("cuDeviceGetCount says {0}")]
    NoCount(c_int),
    /// It does not tell the UUID of a device.
    #[error("cuDeviceGetUuid says {code} of device {ordinal}")]
    NoUuid {
        /// The CUresult.
        code: c_int,
        /// The device.
        ordinal: c_int,
    },
}

impl Driver {
    /// Loads `libcuda.so.1` and initialises it.
    ///
    /// # Errors
    /// The driver does not exist, or does not work.
    pub fn load() -> Result<Driver, DriverError> {
        let library = SharedLibrary::open(Path::new("libcuda.so.1"));
        let library = library.map_err(DriverError::NotLoaded)?;
        let mut driver = Driver {
            library,
            version: 0,
        };
        let mut version = 0;
        // SAFETY: the driver's functions, of which the second one stores a number.
        unsafe {
            match driver.function::<unsafe extern "C" fn(c_uint) -> c_int>("cuInit")?(0) {
                0 => {}
                code => return Err(DriverError::NotInitialised(code)),
            }
            if let Ok(get) = driver.function::<GetNumber>("cuDriverGetVersion")
                && get(&mut version) == 0
            {
                driver.version = u32::try_from(version).unwrap_or(0);
            }
        }
        Ok(driver)
    }

    /// Returns the newest CUDA version that the driver supports, as 1000 × major + 10 × minor.
    pub fn version(&self) -> Option<u32> {
        (self.version > 0).then_some(self.version)
    }

    /// Returns the UUIDs of the devices of this process, by ordinal.
    ///
    /// # Errors
    /// The driver refuses it.
    pub fn devices(&self) -> Result<Vec<Uuid>, DriverError> {
        let mut count = 0;
        // SAFETY: the driver's functions, which store a number, and 16 bytes. Only the second version of the last one
        // tells parts of GPUs (MIG) apart.
        unsafe {
            match self.function::<GetNumber>("cuDeviceGetCount")?(&mut count) {
                0 => {}
                code => return Err(DriverError::NoCount(code)),
            }
            let device: unsafe extern "C" fn(*mut c_int, c_int) -> c_int =
                self.function("cuDeviceGet")?;
            let uuid: unsafe extern "C" fn(*mut Uuid, c_int) -> c_int =
                (self.function("cuDeviceGetUuid_v2")).or(self.function("cuDeviceGetUuid"))?;
            (0..count)
                .map(|ordinal| {
                    let (mut handle, mut bytes): (c_int, Uuid) = (0, [0; 16]);
                    let code = match device(&mut handle, ordinal) {
                        0 => uuid(&mut bytes, handle),
                        code => code,
                    };
                    match code {
                        0 => Ok(bytes),
                        _ => Err(DriverError::NoUuid { code, ordinal }),
                    }
                })
                .collect()
        }
    }

    /// Looks up a function.
    ///
    /// # Safety
    /// `F` is the type of the driver's function of this name.
    unsafe fn function<F: Copy>(&self, name: &'static str) -> Result<F, DriverError> {
        // SAFETY: as the caller promises.
        let function = unsafe { self.library.function(name) };
        function.ok_or(DriverError::NoFunction(name))
    }
}

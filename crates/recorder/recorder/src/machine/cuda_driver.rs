//! Asks the CUDA driver for its version and devices, in a process of gapscope's own that may crash with the driver.
#![allow(unsafe_code)]

use crate::procfs;
use gapscope_cupti::SharedLibrary;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};

const LIBRARY: &str = "libcuda.so.1";
const SUCCESS: c_int = 0;
/// The size of the buffer for a device's name. The driver cuts longer names.
const NAME_BYTES: usize = 256;

/// The answers of the CUDA driver: its version, and the devices that it finds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cuda {
    /// The newest CUDA version that the driver supports, as 1000 × major + 10 × minor.
    pub version: Option<u32>,
    /// The result of `cuInit`, which is 0 when there is a GPU that can be used.
    pub init: i32,
    /// The names of the devices.
    pub devices: Vec<String>,
    /// The libcupti that this process has loaded after `cuInit`. In a recording, that is the one which the hook took.
    pub cupti: Option<Cupti>,
}

/// A libcupti.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cupti {
    /// The library's file.
    pub file: PathBuf,
    /// The version of its API, such as 130001.
    pub version: Option<u32>,
}

/// The reason why the CUDA driver gives no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaDriverError {
    /// The driver cannot be loaded, in the words of the system's loader.
    #[error("{0}")]
    NotLoaded(String),
    /// The library has no `cuInit`.
    #[error("{} has no cuInit", LIBRARY)]
    NoInit,
}

/// Loads the driver into this process and initialises it, as any CUDA program does. No context is made.
///
/// # Errors
/// The driver cannot be loaded.
pub fn cuda() -> Result<Cuda, CudaDriverError> {
    let driver = SharedLibrary::open(Path::new(LIBRARY))
        .map_err(|error| CudaDriverError::NotLoaded(error.to_string()))?;
    let version = number(driver, "cuDriverGetVersion");
    // SAFETY: CUDA's driver has a function of this name and type, which may be called at any time.
    let init = unsafe {
        let init = driver.function::<unsafe extern "C" fn(u32) -> c_int>("cuInit");
        init.ok_or(CudaDriverError::NoInit)?(0)
    };
    let devices = match init {
        SUCCESS => devices(driver).unwrap_or_default(),
        _ => Vec::new(),
    };
    Ok(Cuda {
        version,
        init,
        devices,
        cupti: loaded_cupti(),
    })
}

/// Returns the names of the devices of the initialised driver; `None` when it lacks a function.
fn devices(driver: SharedLibrary) -> Option<Vec<String>> {
    type Get = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
    type GetName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
    // SAFETY: CUDA's driver, which is initialised, has functions of these names and types.
    let (get, get_name) = unsafe {
        (
            driver.function::<Get>("cuDeviceGet")?,
            driver.function::<GetName>("cuDeviceGetName")?,
        )
    };
    let count = number(driver, "cuDeviceGetCount").unwrap_or(0);
    let names = (0..count).filter_map(|number| {
        let mut device = 0;
        let mut name = [0 as c_char; NAME_BYTES];
        // SAFETY: the functions store a number, and a text that ends in a zero byte, in our variables.
        let code = unsafe {
            match get(&mut device, c_int::try_from(number).ok()?) {
                SUCCESS => get_name(name.as_mut_ptr(), NAME_BYTES as c_int, device),
                code => code,
            }
        };
        let bytes = name.map(|character| character as u8);
        let name = CStr::from_bytes_until_nul(&bytes).ok()?;
        (code == SUCCESS).then(|| name.to_string_lossy().into_owned())
    });
    Some(names.collect())
}

/// Returns the first libcupti (NVIDIA's profiling library) that this process has mapped.
fn loaded_cupti() -> Option<Cupti> {
    let files = procfs::mapped_files(std::process::id());
    let file = files.into_iter().find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libcupti.so")
    })?;
    Some(Cupti {
        version: SharedLibrary::loaded(&file)
            .and_then(|library| number(library, "cuptiGetVersion")),
        file,
    })
}

/// Calls a function that stores one number and returns that number.
fn number(library: SharedLibrary, function: &str) -> Option<u32> {
    type Store = unsafe extern "C" fn(*mut c_int) -> c_int;
    let mut number = 0;
    // SAFETY: every function that is called this way stores a number of 32 bits and returns a status.
    let code = unsafe { library.function::<Store>(function)?(&mut number) };
    u32::try_from(number).ok().filter(|_| code == SUCCESS)
}

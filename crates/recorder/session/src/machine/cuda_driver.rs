//! The CUDA driver, in a process of our own that may be lost with it.
#![allow(unsafe_code)]

use crate::procfs;
use serde::{Deserialize, Serialize};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const LIBRARY: &str = "libcuda.so.1";
const SUCCESS: c_int = 0;
/// Room for a device's name; the driver cuts longer ones.
const NAME_BYTES: usize = 256;

/// What the CUDA driver says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cuda {
    /// The newest CUDA that it supports, as 1000 × major + 10 × minor.
    pub version: Option<u32>,
    /// What `cuInit` answered: 0 when there is a GPU that can be used.
    pub init: i32,
    /// The names of the devices.
    pub devices: Vec<String>,
    /// The libcupti that this process has loaded after `cuInit`: in a recording, the one that our library took.
    pub cupti: Option<Cupti>,
}

/// A libcupti.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cupti {
    /// Its file.
    pub file: PathBuf,
    /// The version of its API, such as 130001.
    pub version: Option<u32>,
}

/// Loads the driver into this process and initialises it, as any CUDA program does. No context is made.
///
/// # Errors
/// There is no driver, in the words of the system's loader.
pub fn cuda() -> Result<Cuda, String> {
    let driver = Library::open(Path::new(LIBRARY), 0)?;
    let version = driver.number("cuDriverGetVersion");
    // SAFETY: the function of this name in CUDA's driver; it may be called at any time.
    let init = unsafe {
        match driver.function::<unsafe extern "C" fn(u32) -> c_int>("cuInit") {
            Some(init) => init(0),
            None => return Err(format!("{LIBRARY} has no cuInit")),
        }
    };
    let devices = match init {
        SUCCESS => devices(&driver),
        _ => Vec::new(),
    };
    Ok(Cuda {
        version,
        init,
        devices,
        cupti: loaded_cupti(),
    })
}

fn devices(driver: &Library) -> Vec<String> {
    type Get = unsafe extern "C" fn(*mut c_int, c_int) -> c_int;
    type GetName = unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int;
    // SAFETY: the functions of these names in CUDA's driver, which is initialised.
    let functions = unsafe {
        (
            driver.function::<Get>("cuDeviceGet"),
            driver.function::<GetName>("cuDeviceGetName"),
        )
    };
    let (Some(get), Some(get_name)) = functions else {
        return Vec::new();
    };
    let count = driver.number("cuDeviceGetCount").unwrap_or(0);
    let names = (0..count).filter_map(|number| {
        let mut device = 0;
        let mut name = [0 as c_char; NAME_BYTES];
        // SAFETY: they store a number, and a text that ends in a zero byte, in our variables.
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
    names.collect()
}

fn loaded_cupti() -> Option<Cupti> {
    let files = procfs::mapped_files(std::process::id());
    let file = files.into_iter().find(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libcupti.so")
    })?;
    let library = Library::open(&file, libc::RTLD_NOLOAD).ok();
    Some(Cupti {
        version: library.and_then(|library| library.number("cuptiGetVersion")),
        file,
    })
}

/// A library that stays loaded.
struct Library(*mut c_void);

impl Library {
    fn open(path: &Path, flags: c_int) -> Result<Library, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name ends in a zero byte; what the library's initialisers do is not ours to know.
        let handle =
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | flags) };
        if handle.is_null() {
            // SAFETY: the text of this thread's last failure, or null.
            let said = unsafe { libc::dlerror() };
            return Err(match said.is_null() {
                true => format!("{} cannot be loaded", path.display()),
                // SAFETY: it ends in a zero byte.
                false => unsafe { CStr::from_ptr(said) }
                    .to_string_lossy()
                    .into_owned(),
            });
        }
        Ok(Library(handle))
    }

    /// A function of the library.
    ///
    /// # Safety
    /// `F` is a pointer to a function of the type that has this name.
    unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open and the name ends in a zero byte.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        // SAFETY: it is of this type, as the caller promises, and of this size.
        (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
    }

    /// What a function stores that takes nothing but a place for one number.
    fn number(&self, function: &str) -> Option<u32> {
        type Store = unsafe extern "C" fn(*mut c_int) -> c_int;
        let mut number = 0;
        // SAFETY: all functions that are asked so store a number of 32 bits and answer with a status.
        let code = unsafe { self.function::<Store>(function)?(&mut number) };
        u32::try_from(number).ok().filter(|_| code == SUCCESS)
    }
}

//! A libcupti in the process.

use crate::failure::Failure;
use crate::functions::{HostFunctions, PmFunctions, Profiler, RangeFunctions};
use crate::layouts;
use std::ffi::{CStr, CString, OsStr, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A loaded libcupti: its functions, which stay where they are.
#[derive(Debug, Clone, Copy)]
pub struct Cupti {
    pub(crate) profiler: Profiler,
    pub(crate) host: HostFunctions,
    pub(crate) pm: Result<PmFunctions, &'static str>,
    pub(crate) range: Result<RangeFunctions, &'static str>,
    timestamp_callback: Option<unsafe extern "C" fn(extern "C" fn() -> u64) -> c_int>,
    version: u32,
}

/// Why a libcupti cannot be used: a sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// It is not there, or the linker refuses it.
    Library { path: PathBuf, said: String },
    /// It is older than the function.
    Function {
        path: PathBuf,
        function: &'static str,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Library { path, said } => {
                write!(f, "{} could not be loaded: {said}", path.display())
            }
            Missing::Function { path, function } => write!(
                f,
                "{} has no function {function}: it is older than CUDA 12.6, or no libcupti",
                path.display()
            ),
        }
    }
}

impl std::error::Error for Missing {}

impl Cupti {
    /// Loads a libcupti, or finds it where it is loaded already. Before it the libnvperf_host.so of its folder is loaded: CUPTI
    /// asks for that by its bare name, and finds it only where the linker's search does.
    ///
    /// # Errors
    /// It is not there, or too old to have the host's part.
    pub fn open(path: &Path) -> Result<Cupti, Missing> {
        preload_host_library(path);
        let library = open(path).map_err(|said| Missing::Library {
            path: path.to_owned(),
            said,
        })?;
        let find = |name: &str| symbol(library, name);
        // A library that was found by its name has a folder only now.
        if let Some(file) = find("cuptiGetVersion").and_then(file_of) {
            preload_host_library(&file);
        }
        // SAFETY: it is a libcupti, or lacks these names.
        unsafe { Cupti::of(&find) }.map_err(|function| Missing::Function {
            path: path.to_owned(),
            function,
        })
    }

    /// Of a library that the caller has loaded, by its function to look names up. The caller has loaded libnvperf_host.so too
    /// ([`preload_host_library`]).
    ///
    /// # Errors
    /// The name of a function that is not there.
    ///
    /// # Safety
    /// What is found by a name is libcupti's function of that name, and stays loaded.
    pub unsafe fn of(find: &dyn Fn(&str) -> Option<*mut c_void>) -> Result<Cupti, &'static str> {
        let mut version = 0;
        if let Some(at) = find("cuptiGetVersion") {
            // SAFETY: as the caller promises; the function stores a number.
            unsafe {
                let get: unsafe extern "C" fn(*mut u32) -> c_int = std::mem::transmute(at);
                get(&mut version);
            }
        }
        // SAFETY: as the caller promises.
        unsafe {
            Ok(Cupti {
                profiler: Profiler::of(find)?,
                host: HostFunctions::of(find)?,
                pm: PmFunctions::of(find),
                range: RangeFunctions::of(find),
                timestamp_callback: find("cuptiActivityRegisterTimestampCallback").map(|at| {
                    std::mem::transmute::<
                        *mut c_void,
                        unsafe extern "C" fn(extern "C" fn() -> u64) -> c_int,
                    >(at)
                }),
                version,
            })
        }
    }

    /// Its API version, such as 130001; 0 where it does not say.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Has all times of CUPTI be those of a clock, in nanoseconds. It is asked on threads of CUPTI too. Without one times are those
    /// of the wall clock.
    ///
    /// # Errors
    /// CUPTI refuses it, or is too old for it.
    pub fn set_clock(&self, clock: extern "C" fn() -> u64) -> Result<(), Failure> {
        let function = "cuptiActivityRegisterTimestampCallback";
        // SAFETY: CUPTI's function with a function of the form that it asks for.
        let said = self.timestamp_callback.map(|set| unsafe { set(clock) });
        match said.unwrap_or(crate::code::NOT_SUPPORTED) {
            0 => Ok(()),
            code => Err(Failure { function, code }),
        }
    }

    /// Begins profiling in this process. CUDA has been initialised.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn initialize(&self) -> Result<(), Failure> {
        // SAFETY: it takes nothing but its size.
        unsafe {
            self.profiler
                .initialize
                .call(&mut layouts::Initialize::new())
        }
    }

    /// Ends it, once in a process, after all that was made from it is gone: a second time crashes.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn deinitialize(&self) -> Result<(), Failure> {
        // SAFETY: it takes nothing but its size.
        unsafe {
            self.profiler
                .deinitialize
                .call(&mut layouts::DeInitialize::new())
        }
    }

    /// The name of a device's chip, such as `GH100`.
    ///
    /// # Errors
    /// CUPTI does not know it.
    pub fn chip_name(&self, device_index: usize) -> Result<CString, Failure> {
        let mut parameters = layouts::DeviceGetChipName::new();
        parameters.device_index = device_index;
        // SAFETY: it stores a text of its own.
        unsafe {
            self.profiler.chip_name.call(&mut parameters)?;
            if parameters.chip_name.is_null() {
                return Err(Failure {
                    function: "cuptiDeviceGetChipName",
                    code: crate::code::INVALID_CHIP_NAME,
                });
            }
            Ok(CStr::from_ptr(parameters.chip_name).to_owned())
        }
    }
}

/// Loads the libnvperf_host.so beside a libcupti, so that CUPTI finds it. True where it is loaded now.
pub fn preload_host_library(libcupti: &Path) -> bool {
    let Some(folder) = libcupti.parent().filter(|f| !f.as_os_str().is_empty()) else {
        return false;
    };
    open(&folder.join("libnvperf_host.so")).is_ok()
}

/// Loads a library for good; else the linker's words.
pub(crate) fn open(path: &Path) -> Result<*mut c_void, String> {
    let name = CString::new(path.as_os_str().as_bytes());
    let name = name.map_err(|_| "its path has a zero byte".to_owned())?;
    // SAFETY: the name ends in a zero byte. What the library's initialisers do is its business, as in any program. The linker's
    // words stay until this thread's next call of it.
    unsafe {
        let handle = libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if !handle.is_null() {
            return Ok(handle);
        }
        let said = libc::dlerror();
        if said.is_null() {
            return Err("the linker does not say why".to_owned());
        }
        Err(CStr::from_ptr(said).to_string_lossy().into_owned())
    }
}

/// The address of a function.
pub(crate) fn symbol(library: *mut c_void, name: &str) -> Option<*mut c_void> {
    let name = CString::new(name).ok()?;
    // SAFETY: the library is open, and the name ends in a zero byte.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The file that a function comes from.
fn file_of(function: *mut c_void) -> Option<PathBuf> {
    // SAFETY: dladdr fills `info`; its file name lives as long as the library, which is never closed.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(function, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = CStr::from_ptr(info.dli_fname);
        Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
    }
}

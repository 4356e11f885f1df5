//! Finds the functions of a libcupti and calls those that belong to no other module.

use crate::failure::Failure;
use crate::functions::{HostFunctions, PmFunctions, Profiler, RangeFunctions};
use crate::layouts;
use crate::shared_library::SharedLibrary;
use std::ffi::{CStr, CString, c_int};
use std::path::{Path, PathBuf};

/// The functions of a loaded libcupti, which is never unloaded.
#[derive(Debug, Clone, Copy)]
pub struct Cupti {
    pub(crate) profiler: Profiler,
    /// The planning and computing of metrics.
    pub(crate) host: HostFunctions,
    /// The sampling of counters; a failure where the library lacks it.
    pub(crate) pm: Result<PmFunctions, Failure>,
    /// The profiling of kernels; a failure where the library lacks it.
    pub(crate) range: Result<RangeFunctions, Failure>,
    timestamp_callback: Option<unsafe extern "C" fn(extern "C" fn() -> u64) -> c_int>,
}

/// Why a libcupti cannot be used: a sentence without its full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// It does not exist, or the linker refuses it.
    #[error("{} could not be loaded: {reason}", path.display())]
    NotLoaded {
        /// The library.
        path: PathBuf,
        /// The linker's words.
        reason: String,
    },
    /// It is older than the function.
    #[error("{} has no function {function}: it is older than CUDA 12.6, or no libcupti", path.display())]
    NoFunction {
        /// The library.
        path: PathBuf,
        /// The function.
        function: &'static str,
    },
}

impl LibraryError {
    pub(crate) fn no_function(path: &Path, function: &'static str) -> LibraryError {
        LibraryError::NoFunction {
            path: path.to_owned(),
            function,
        }
    }
}

impl Cupti {
    /// Loads a libcupti, or finds it where it is loaded already. The libnvperf_host.so of its folder is loaded first,
    /// because CUPTI asks for it by its bare name, which the linker may not find.
    ///
    /// # Errors
    /// The library does not exist, or is too old to have the profiler host API.
    pub fn open(path: &Path) -> Result<Cupti, LibraryError> {
        preload_host_library(path);
        let library = open(path)?;
        // A library that was found by its name has a folder only now.
        if let Some(file) = library.file_of("cuptiGetVersion") {
            preload_host_library(&file);
        }
        // SAFETY: the library is a libcupti, or lacks these names.
        unsafe { Cupti::load(library) }
            .map_err(|function| LibraryError::no_function(path, function))
    }

    /// Looks up the functions; an error is the name of a missing one that is needed.
    ///
    /// # Safety
    /// The library is a libcupti, or lacks the names of its functions.
    unsafe fn load(library: SharedLibrary) -> Result<Cupti, &'static str> {
        let code = crate::code::NOT_SUPPORTED;
        let not_supported = |function| Failure { function, code };
        // SAFETY: as the caller promises.
        unsafe {
            Ok(Cupti {
                profiler: Profiler::load(library)?,
                host: HostFunctions::load(library)?,
                pm: PmFunctions::load(library).map_err(not_supported),
                range: RangeFunctions::load(library).map_err(not_supported),
                timestamp_callback: library.function("cuptiActivityRegisterTimestampCallback"),
            })
        }
    }

    /// Has CUPTI use a clock, in nanoseconds, for all its times. CUPTI calls it on threads of its own, too. By
    /// default times are those of the wall clock.
    ///
    /// # Errors
    /// CUPTI refuses the clock, or is too old for one.
    pub fn set_clock(&self, clock: extern "C" fn() -> u64) -> Result<(), Failure> {
        let function = "cuptiActivityRegisterTimestampCallback";
        // SAFETY: CUPTI's function with a function of the type that it asks for.
        let result = self.timestamp_callback.map(|set| unsafe { set(clock) });
        match result.unwrap_or(crate::code::NOT_SUPPORTED) {
            0 => Ok(()),
            code => Err(Failure { function, code }),
        }
    }

    /// Begins profiling in this process, after CUDA was initialised.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn initialize(&self) -> Result<(), Failure> {
        // SAFETY: the function takes nothing but the size.
        unsafe { (self.profiler.initialize).call(&mut layouts::Nothing::new()) }
    }

    /// Ends profiling after everything made from this value is gone. A second call in a process crashes.
    ///
    /// # Errors
    /// CUPTI refuses it.
    pub fn deinitialize(&self) -> Result<(), Failure> {
        // SAFETY: the function takes nothing but the size.
        unsafe { (self.profiler.deinitialize).call(&mut layouts::Nothing::new()) }
    }

    /// Returns the name of a device's chip, such as `GH100`.
    ///
    /// # Errors
    /// CUPTI does not know it.
    pub fn chip_name(&self, device_index: usize) -> Result<CString, Failure> {
        let mut parameters = layouts::DeviceGetChipName::new();
        parameters.device_index = device_index;
        // SAFETY: CUPTI stores a pointer to a text of its own.
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

/// Loads the libnvperf_host.so beside a libcupti, so that CUPTI finds it. Returns whether it is loaded now.
pub(crate) fn preload_host_library(libcupti: &Path) -> bool {
    let Some(folder) = libcupti.parent().filter(|f| !f.as_os_str().is_empty()) else {
        return false;
    };
    SharedLibrary::open(&folder.join("libnvperf_host.so")).is_ok()
}

/// Opens a library for good.
pub(crate) fn open(path: &Path) -> Result<SharedLibrary, LibraryError> {
    SharedLibrary::open(path).map_err(|error| LibraryError::NotLoaded {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

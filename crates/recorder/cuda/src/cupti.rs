//! CUPTI, found at run time: the tracing library of the CUDA driver.

pub mod fields;
pub mod numbers;
mod search;

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The API version of CUDA 12.0, the oldest whose records are known.
pub const OLDEST: u32 = 18;
/// The first API version whose records are not known: that of CUDA 14.
pub const TOO_NEW: u32 = 140_000;

/// CUptiResult; 0 is success.
pub type Code = c_int;
pub type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);

/// Declares the functions that are looked up, and the one way in which all are. Every libcupti since CUDA 12.0 has the
/// required ones; the optional ones came later, up to 13.3.
macro_rules! functions {
    ($(required $name:ident $symbol:literal ($($argument:ty),*),)+ $(optional $other:ident $other_symbol:literal ($($other_argument:ty),*),)+) => {
        /// The functions of one libcupti.
        #[derive(Debug, Clone, Copy)]
        pub struct Functions {
            $(pub $name: unsafe extern "C" fn($($argument),*) -> Code,)+
            $(pub $other: Option<unsafe extern "C" fn($($other_argument),*) -> Code>,)+
        }

        impl Functions {
            /// # Errors
            /// The name of a function that the library lacks.
            fn of(library: &Library) -> Result<Functions, &'static str> {
                // SAFETY: the symbols are CUPTI's functions, whose types have been the same since CUDA 12.0.
                unsafe {
                    Ok(Functions {
                        $($name: std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> Code>(
                            library.symbol($symbol).ok_or($symbol)?),)+
                        $($other: library.symbol($other_symbol).map(|at| {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($other_argument),*) -> Code>(at)
                        }),)+
                    })
                }
            }
        }
    };
}

functions! {
    required subscribe "cuptiSubscribe" (*mut *mut c_void, Callback, *mut c_void),
    required enable_callback "cuptiEnableCallback" (u32, *mut c_void, u32, u32),
    required enable "cuptiActivityEnable" (u32),
    required disable "cuptiActivityDisable" (u32),
    required register_callbacks "cuptiActivityRegisterCallbacks" (Requested, Completed),
    required next_record "cuptiActivityGetNextRecord" (*mut u8, usize, *mut *mut u8),
    required flush_all "cuptiActivityFlushAll" (u32),
    required dropped "cuptiActivityGetNumDroppedRecords" (*mut c_void, u32, *mut usize),
    required set_attribute "cuptiActivitySetAttribute" (u32, *mut usize, *mut c_void),
    required result_text "cuptiGetResultString" (Code, *mut *const c_char),
    required callback_name "cuptiGetCallbackName" (u32, u32, *mut *const c_char),
    required timestamp_callback "cuptiActivityRegisterTimestampCallback" (extern "C" fn() -> u64),
    optional thread_ids "cuptiSetThreadIdType" (u32),
    optional stream_id "cuptiGetStreamIdEx" (*mut c_void, *mut c_void, u8, *mut u32),
    optional context_id "cuptiGetContextId" (*mut c_void, *mut u32),
}

/// A libcupti that may be used.
#[derive(Debug)]
pub struct Cupti {
    pub functions: Functions,
    /// Its API version.
    pub version: u32,
    /// The program had loaded it before.
    pub was_loaded: bool,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// A stable phrase for the ledger.
    pub reason: &'static str,
    /// A sentence for the user.
    pub sentence: String,
}

impl Cupti {
    /// Finds the program's libcupti, or the best other one.
    ///
    /// # Errors
    /// There is none, or it is too old or too new.
    pub fn find() -> Result<Cupti, Missing> {
        let surroundings = search::Surroundings::of_this_process(driver_version());
        let forced = std::env::var_os(gapscope_spool::env::CUPTI).filter(|v| !v.is_empty());
        let candidates = match &forced {
            Some(path) => vec![search::Candidate::File(PathBuf::from(path))],
            None => search::candidates(&surroundings),
        };
        let mut refused = None;
        for candidate in &candidates {
            match open(candidate) {
                Ok(found) => return Ok(found),
                Err(Some(missing)) => refused = refused.or(Some(missing)),
                Err(None) => {}
            }
        }
        Err(refused.unwrap_or_else(|| Missing {
            reason: "libcupti was not found",
            sentence: match forced {
                Some(path) => format!(
                    "No GPU work of CUDA was recorded: {} ({}) cannot be loaded; unset it, or name a libcupti.so.",
                    gapscope_spool::env::CUPTI,
                    Path::new(&path).display()
                ),
                None => format!(
                    "No GPU work of CUDA was recorded: libcupti was found neither in the Python packages of the program nor \
                     in a CUDA toolkit; install it (`pip install nvidia-cuda-cupti` for CUDA 13, `nvidia-cuda-cupti-cu12` \
                     for CUDA 12), or name its file in {}.",
                    gapscope_spool::env::CUPTI
                ),
            },
        }))
    }

    /// Begins to record a kind.
    pub fn enable(&self, kind: u32) -> Code {
        // SAFETY: CUPTI's function with one of its kinds.
        unsafe { (self.functions.enable)(kind) }
    }

    /// Ends what [`Self::enable`] began.
    pub fn disable(&self, kind: u32) {
        // SAFETY: CUPTI's function with one of its kinds.
        unsafe { (self.functions.disable)(kind) };
    }

    /// The record after `at` in a buffer.
    ///
    /// # Safety
    /// CUPTI has filled so many bytes; `at` is null or a record in them.
    #[inline]
    pub unsafe fn next_record(&self, buffer: *mut u8, bytes: usize, at: &mut *mut u8) -> Code {
        // SAFETY: as the caller promises.
        unsafe { (self.functions.next_record)(buffer, bytes, at) }
    }

    /// Records that CUPTI dropped since it was asked last.
    ///
    /// # Safety
    /// The context is null, or what CUPTI gave with a buffer.
    pub unsafe fn dropped(&self, context: *mut c_void, stream: u32) -> usize {
        let mut dropped = 0;
        // SAFETY: as the caller promises; it stores a number.
        let code = unsafe { (self.functions.dropped)(context, stream, &mut dropped) };
        if code == 0 { dropped } else { 0 }
    }

    /// What CUPTI says of a result.
    pub fn text(&self, code: Code) -> String {
        let mut text = std::ptr::null();
        // SAFETY: CUPTI stores a static text, or nothing for a number that it does not know.
        unsafe {
            (self.functions.result_text)(code, &mut text);
            if text.is_null() {
                format!("error {code}")
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        }
    }

    /// The name of a function of the runtime or of the driver, as CUPTI numbers them.
    pub fn call_name(&self, domain: u32, call: u32) -> Option<&'static str> {
        let mut name = std::ptr::null();
        // SAFETY: CUPTI stores a static text, or answers with an error.
        unsafe {
            if (self.functions.callback_name)(domain, call, &mut name) != 0 || name.is_null() {
                return None;
            }
            CStr::from_ptr(name).to_str().ok().filter(|n| !n.is_empty())
        }
    }
}

/// Opens a candidate. `Err(None)`: it is not there.
fn open(candidate: &search::Candidate) -> Result<Cupti, Option<Missing>> {
    let (name, only_loaded) = match candidate {
        search::Candidate::Loaded(path) => (path.clone(), true),
        search::Candidate::File(path) => (path.clone(), false),
        search::Candidate::Name(name) => (PathBuf::from(name), false),
    };
    let library = Library::open(&name, only_loaded).ok_or(None)?;
    let file = library
        .symbol("cuptiGetVersion")
        .and_then(file_of)
        .unwrap_or(name);
    let unusable = |reason: &'static str, why: String| {
        Some(Missing {
            reason,
            sentence: format!(
                "No GPU work of CUDA was recorded: {} {why}.",
                file.display()
            ),
        })
    };
    // The version first: an old library lacks functions because it is old.
    let mut version = 0;
    let Some(get_version) = library.symbol("cuptiGetVersion") else {
        return Err(unusable(
            "libcupti is not usable",
            "has no function cuptiGetVersion".to_owned(),
        ));
    };
    // SAFETY: as in `Functions::of`; it stores a number.
    let code = unsafe {
        let get_version: unsafe extern "C" fn(*mut u32) -> Code = std::mem::transmute(get_version);
        get_version(&mut version)
    };
    if code != 0 {
        let why = format!(
            "does not work with this driver: asked for its version it says error {code}; name another one in {}",
            gapscope_spool::env::CUPTI
        );
        return Err(unusable("libcupti does not work", why));
    }
    if version < OLDEST {
        let why = format!(
            "is too old (CUPTI API {version}); CUDA 12.0 (API {OLDEST}) or newer is needed"
        );
        return Err(unusable("libcupti is too old", why));
    }
    if version >= TOO_NEW {
        let why = format!(
            "is newer (CUPTI API {version}) than this gapscope knows; install a newer gapscope"
        );
        return Err(unusable("libcupti is too new", why));
    }
    match Functions::of(&library) {
        Ok(functions) => Ok(Cupti {
            functions,
            version,
            was_loaded: only_loaded,
        }),
        Err(symbol) => Err(unusable(
            "libcupti is not usable",
            format!("has no function {symbol}"),
        )),
    }
}

/// A library that stays loaded.
struct Library(*mut c_void);

impl Library {
    fn open(path: &Path, only_loaded: bool) -> Option<Library> {
        let name = CString::new(path.as_os_str().as_bytes()).ok()?;
        let loaded = if only_loaded { libc::RTLD_NOLOAD } else { 0 };
        // SAFETY: the name is NUL-terminated. What the library's initialisers do is CUPTI's business, as in any tool.
        let handle =
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL | loaded) };
        (!handle.is_null()).then_some(Library(handle))
    }

    fn symbol(&self, name: &str) -> Option<*mut c_void> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is open and the name NUL-terminated.
        let found = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }
}

/// The file that a symbol comes from.
fn file_of(symbol: *mut c_void) -> Option<PathBuf> {
    // SAFETY: dladdr fills `info`; its file name lives as long as the library, which is never closed.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(symbol, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = CStr::from_ptr(info.dli_fname);
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes())))
    }
}

/// A function of the driver that the program uses.
pub fn driver_function(name: &str) -> Option<*mut c_void> {
    Library::open(Path::new("libcuda.so.1"), true)?.symbol(name)
}

/// The newest CUDA version that the driver supports, as 1000 × major + 10 × minor.
pub fn driver_version() -> Option<u32> {
    let function = driver_function("cuDriverGetVersion")?;
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

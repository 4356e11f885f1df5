//! Finds CUPTI, the tracing library of the CUDA driver: the program's own copy or else another one. Loads it,
//! checks that its version is known, and offers its functions.

pub mod fields;
mod functions;
pub mod numbers;
pub mod refusal;

use crate::driver;
pub use functions::{Callback, Code, Functions};
use gapscope_cupti::{SharedLibrary, search};
use numbers::{OLDEST, TOO_NEW};
use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};

/// A libcupti that can be used.
#[derive(Debug)]
pub struct Cupti {
    pub functions: Functions,
    /// The API version.
    pub version: u32,
    /// Whether the program had loaded the library before.
    pub was_loaded: bool,
    /// The file of the library.
    file: PathBuf,
}

/// The reason why there is no usable libcupti.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// A stable phrase for the ledger, which counts losses by kind and reason.
    pub reason: &'static str,
    /// The rest of a sentence for the user, behind a colon.
    pub sentence: String,
}

impl Cupti {
    /// Finds the program's libcupti, or the best other one.
    ///
    /// # Errors
    /// There is none, or it is too old or too new.
    pub fn find() -> Result<Cupti, Unusable> {
        let context = search::SearchContext::for_this_process(driver::version());
        let forced = std::env::var_os(gapscope_spool::env::CUPTI).filter(|v| !v.is_empty());
        let candidates = match &forced {
            Some(path) => vec![search::Candidate::File(PathBuf::from(path))],
            None => search::candidates(&context),
        };
        let mut refused = None;
        for candidate in &candidates {
            match open(candidate) {
                Ok(found) => return Ok(found),
                Err(Some(unusable)) => refused = refused.or(Some(unusable)),
                Err(None) => {}
            }
        }
        Err(refused.unwrap_or_else(|| Unusable {
            reason: "libcupti was not found",
            sentence: match forced {
                Some(path) => format!(
                    "{} ({}) cannot be loaded; unset it, or name a libcupti.so.",
                    gapscope_spool::env::CUPTI,
                    Path::new(&path).display()
                ),
                None => format!(
                    "libcupti was found neither in the Python packages of the program nor \
                     in a CUDA toolkit; install it (`pip install nvidia-cuda-cupti` for CUDA 13, `nvidia-cuda-cupti-cu12` \
                     for CUDA 12), or name its file in {}.",
                    gapscope_spool::env::CUPTI
                ),
            },
        }))
    }

    /// Returns the file from which the library was loaded.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Starts to record a kind of records ([`numbers::kind`]); returns CUPTI's result.
    pub fn enable(&self, kind: u32) -> Code {
        // SAFETY: CUPTI's function with one of its kinds.
        unsafe { (self.functions.enable)(kind) }
    }

    /// Ends what [`Self::enable`] started.
    pub fn disable(&self, kind: u32) {
        // SAFETY: CUPTI's function with one of its kinds.
        unsafe { (self.functions.disable)(kind) };
    }

    /// Moves `at` to the next record in a buffer.
    ///
    /// # Safety
    /// CUPTI has filled this many bytes; `at` is null or a record in them.
    #[inline]
    pub unsafe fn next_record(&self, buffer: *mut u8, bytes: usize, at: &mut *mut u8) -> Code {
        // SAFETY: as the caller promises.
        unsafe { (self.functions.next_record)(buffer, bytes, at) }
    }

    /// Returns the number of records that CUPTI has dropped since the last call.
    ///
    /// # Safety
    /// The context is null, or the one that CUPTI gave with a buffer.
    pub unsafe fn dropped(&self, context: *mut c_void, stream: u32) -> usize {
        let mut dropped = 0;
        // SAFETY: as the caller promises; the function stores a number.
        let code = unsafe { (self.functions.dropped)(context, stream, &mut dropped) };
        if code == 0 { dropped } else { 0 }
    }

    /// Returns CUPTI's text for a result.
    pub fn describe(&self, code: Code) -> String {
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

    /// Returns the name of a function of the runtime or the driver, by CUPTI's number.
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

/// Opens a candidate and checks its version and functions. `Err(None)` means that it cannot be loaded.
fn open(candidate: &search::Candidate) -> Result<Cupti, Option<Unusable>> {
    let (name, was_loaded) = match candidate {
        search::Candidate::Loaded(path) => (path.clone(), true),
        search::Candidate::File(path) => (path.clone(), false),
        search::Candidate::Name(name) => (PathBuf::from(name), false),
    };
    let library = match was_loaded {
        true => SharedLibrary::loaded(&name),
        false => SharedLibrary::open(&name).ok(),
    };
    let library = library.ok_or(None)?;
    let file = library.file_of("cuptiGetVersion").unwrap_or(name);
    let refuse = |reason: &'static str, why: String| {
        Some(Unusable {
            reason,
            sentence: format!("{} {why}.", file.display()),
        })
    };
    // The version comes first: an old library lacks functions because it is old.
    let mut version = 0;
    // SAFETY: CUPTI's function of this name, which stores a number.
    let code = unsafe {
        type GetVersion = unsafe extern "C" fn(*mut u32) -> Code;
        let Some(get_version) = library.function::<GetVersion>("cuptiGetVersion") else {
            return Err(refuse(
                "libcupti is not usable",
                "has no function cuptiGetVersion".to_owned(),
            ));
        };
        get_version(&mut version)
    };
    if code != 0 {
        let why = format!(
            "does not work with this driver: asked for its version it says error {code}; name another one in {}",
            gapscope_spool::env::CUPTI
        );
        return Err(refuse("libcupti does not work", why));
    }
    if version < OLDEST {
        let why = format!(
            "is too old (CUPTI API {version}); CUDA 12.0 (API {OLDEST}) or newer is needed"
        );
        return Err(refuse("libcupti is too old", why));
    }
    if version >= TOO_NEW {
        let why = format!(
            "is newer (CUPTI API {version}) than this gapscope knows; install a newer gapscope"
        );
        return Err(refuse("libcupti is too new", why));
    }
    match Functions::load(library) {
        Ok(functions) => Ok(Cupti {
            functions,
            version,
            was_loaded,
            file,
        }),
        Err(symbol) => Err(refuse(
            "libcupti is not usable",
            format!("has no function {symbol}"),
        )),
    }
}

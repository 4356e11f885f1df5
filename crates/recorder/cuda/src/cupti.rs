//! CUPTI, found at run time: the tracing library of the CUDA driver.

pub mod fields;
mod functions;
pub mod numbers;
pub mod refusal;

use crate::{
    driver,
    library::{self, Library},
};
pub use functions::{Callback, Code, Functions};
use gapscope_cupti::search;
use numbers::{OLDEST, TOO_NEW};
use std::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};

/// A libcupti that may be used.
#[derive(Debug)]
pub struct Cupti {
    pub functions: Functions,
    /// Its API version.
    pub version: u32,
    /// The program had loaded it before.
    pub was_loaded: bool,
    /// Its file.
    file: PathBuf,
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
        let surroundings = search::Surroundings::of_this_process(driver::version());
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

    /// The file that it was loaded from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Starts to record a kind.
    pub fn enable(&self, kind: u32) -> Code {
        // SAFETY: CUPTI's function with one of its kinds.
        unsafe { (self.functions.enable)(kind) }
    }

    /// Ends what [`Self::enable`] started.
    pub fn disable(&self, kind: u32) {
        // SAFETY: CUPTI's function with one of its kinds.
        unsafe { (self.functions.disable)(kind) };
    }

    /// The record after `at` in a buffer.
    ///
    /// # Safety
    /// CUPTI has filled this many bytes; `at` is null or a record in them.
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
    let (name, was_loaded) = match candidate {
        search::Candidate::Loaded(path) => (path.clone(), true),
        search::Candidate::File(path) => (path.clone(), false),
        search::Candidate::Name(name) => (PathBuf::from(name), false),
    };
    let library = match was_loaded {
        true => Library::loaded(&name),
        false => Library::open(&name),
    };
    let library = library.ok_or(None)?;
    let file = library
        .symbol("cuptiGetVersion")
        .and_then(library::file_of)
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
            was_loaded,
            file,
        }),
        Err(symbol) => Err(unusable(
            "libcupti is not usable",
            format!("has no function {symbol}"),
        )),
    }
}

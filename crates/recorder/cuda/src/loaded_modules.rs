//! Keeps the code that the program gives to the CUDA driver, and writes it as events: PTX (text), cubins (machine
//! code) and fat binaries (several of them in one file).
//!
//! The thread that loads a module copies it, if it is not too large, once the driver has taken it; the flusher's
//! thread, which writes every 100 ms, hashes the copies and writes each once. The session (gapscope's process that
//! writes the trace) reads the code. Modules are loaded seldom, and code that is loaded while recording is off may
//! run later, so these callbacks stay on.

mod extent;

use crate::cupti::Cupti;
use crate::cupti::numbers::{CALL_NUMBERS, domain};
use crate::recorder::Recorder;
use crate::subscription::Subscription;
use extent::Extent;
use gapscope_spool::event::{CommonEvent, LossKind};
use gapscope_spool::model::cuda::base_name;
use rustc_hash::FxHashSet;
use std::ffi::{CStr, OsStr, c_char};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The most bytes of code that is kept. Larger code belongs to a library of whose kernels a program uses few, and
/// is left out on purpose, which is no loss.
const MAX_MODULE_BYTES: usize = 4 << 20;
/// The most bytes of copies that wait to be written; further code is counted as lost.
const MAX_PENDING_BYTES: usize = 32 << 20;
/// The most bytes that are written of a process.
const MAX_WRITTEN_BYTES: usize = 256 << 20;

const TOO_MANY: &str = "the process loaded more than is kept";
const UNREADABLE: &str = "its file could not be read";
const FILTERED: &str = "its file was not read, because the program filters its system calls";
const UNKNOWN_FORMAT: &str = "it is neither PTX nor a cubin nor a fat binary";

/// The parameter by which a call names the code that it loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeParameter {
    /// A pointer to the code.
    Code(usize),
    /// The name of the code's file.
    File(usize),
}

impl CodeParameter {
    /// Returns the parameter of a function; see cuda.h.
    fn for_function(name: &str) -> Option<CodeParameter> {
        match base_name(name) {
            "cuModuleLoadData"
            | "cuModuleLoadDataEx"
            | "cuModuleLoadFatBinary"
            | "cuLibraryLoadData" => Some(CodeParameter::Code(1)),
            "cuModuleLoad" | "cuLibraryLoadFromFile" => Some(CodeParameter::File(1)),
            _ => None,
        }
    }
}

/// The calls of the driver that load code, by CUPTI's numbers.
static CODE_PARAMETERS: OnceLock<Vec<Option<CodeParameter>>> = OnceLock::new();

/// The code that has not been written yet; `bytes` is the size of the copies.
#[derive(Debug, Default)]
struct PendingCode {
    copies: Vec<Vec<u8>>,
    /// Files that were loaded by name, which are read later.
    files: Vec<PathBuf>,
    bytes: usize,
    /// The reason of each loss.
    losses: Vec<&'static str>,
}

/// What the loading threads pass on to the flusher's.
static PENDING: Mutex<PendingCode> = Mutex::new(PendingCode {
    copies: Vec::new(),
    files: Vec::new(),
    bytes: 0,
    losses: Vec::new(),
});

/// The code that has been written of this process.
#[derive(Debug, Default)]
pub struct WrittenModules {
    /// The first 16 bytes of the BLAKE3 hash of each.
    hashes: FxHashSet<[u8; 16]>,
    /// The bytes that were written together.
    bytes: usize,
}

/// Asks for callbacks at the calls that load code, for good.
pub fn follow(subscription: &Subscription) {
    let images = CODE_PARAMETERS.get_or_init(|| code_parameters(&subscription.cupti));
    for (number, image) in (0..).zip(images) {
        if image.is_some() {
            subscription.switch_callback(domain::DRIVER, number, true);
        }
    }
}

/// Returns the list of [`CODE_PARAMETERS`].
fn code_parameters(cupti: &Cupti) -> Vec<Option<CodeParameter>> {
    let image = |number| CodeParameter::for_function(cupti.call_name(domain::DRIVER, number)?);
    (0..CALL_NUMBERS).map(image).collect()
}

/// Returns the parameter by which a call names code; `None` for a call that loads none.
fn code_parameter(domain: u32, number: u32) -> Option<CodeParameter> {
    let images = CODE_PARAMETERS.get().filter(|_| domain == domain::DRIVER)?;
    *images.get(number as usize)?
}

/// Returns whether a call loads code, so that its callbacks stay on.
pub fn loads_code(domain: u32, number: u32) -> bool {
    code_parameter(domain, number).is_some()
}

/// Keeps the code that a call has loaded.
///
/// # Safety
/// `parameter` returns the parameters of the call, which has succeeded.
#[inline]
pub unsafe fn keep_loaded(domain: u32, number: u32, parameter: impl Fn(usize) -> usize) {
    let Some(image) = code_parameter(domain, number) else {
        return;
    };
    // SAFETY: as the caller promises; the driver has read what they point to.
    unsafe {
        match image {
            CodeParameter::Code(at) => keep(
                parameter(at),
                extent::measure(parameter(at), MAX_MODULE_BYTES),
            ),
            CodeParameter::File(at) => {
                let name = parameter(at) as *const c_char;
                if !name.is_null() {
                    let name = OsStr::from_bytes(CStr::from_ptr(name).to_bytes());
                    // The path is relative to the program's current folder.
                    let path = std::path::absolute(name).unwrap_or_else(|_| name.into());
                    with_pending(|pending| pending.files.push(path));
                }
            }
        }
    }
}

fn with_pending<T>(change: impl FnOnce(&mut PendingCode) -> T) -> T {
    change(&mut PENDING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Keeps a copy of code of this extent, if it is not too large.
///
/// # Safety
/// The code of this extent is at this address.
unsafe fn keep(at: usize, extent: Extent) {
    let (at, bytes) = match extent {
        Extent::Bytes(bytes) => (at, bytes),
        Extent::Elsewhere(there, bytes) => (there, bytes),
        Extent::Nothing | Extent::TooLarge => return,
        Extent::Unknown => return with_pending(|pending| pending.losses.push(UNKNOWN_FORMAT)),
    };
    if bytes > MAX_MODULE_BYTES {
        return;
    }
    if at == 0 || with_pending(|pending| pending.bytes) + bytes > MAX_PENDING_BYTES {
        return with_pending(|pending| pending.losses.push(TOO_MANY));
    }
    // SAFETY: as the caller promises.
    let copy = unsafe { std::slice::from_raw_parts(at as *const u8, bytes) }.to_vec();
    with_pending(|pending| {
        pending.bytes += copy.len();
        pending.copies.push(copy);
    });
}

impl WrittenModules {
    /// Writes the code that has been loaded.
    pub fn write(&mut self, recorder: &Recorder) {
        let PendingCode {
            copies,
            files,
            losses,
            ..
        } = with_pending(std::mem::take);
        for reason in losses {
            lose(recorder, reason);
        }
        for copy in copies {
            self.write_one(recorder, &copy);
        }
        for path in files {
            // Opening a file could end a program that filters its system calls.
            if recorder.spool().filters_calls() {
                lose(recorder, FILTERED);
                continue;
            }
            match read(path) {
                Some(bytes) if bytes.len() <= MAX_MODULE_BYTES => self.write_one(recorder, &bytes),
                Some(_) => {}
                None => lose(recorder, UNREADABLE),
            }
        }
    }

    /// Writes code, unless it was written before or too much was written.
    fn write_one(&mut self, recorder: &Recorder, bytes: &[u8]) {
        let Some(format) = extent::format(bytes) else {
            return lose(recorder, UNKNOWN_FORMAT);
        };
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(bytes).as_bytes()[..16]);
        if !self.hashes.insert(hash) {
            return;
        }
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_WRITTEN_BYTES {
            return lose(recorder, TOO_MANY);
        }
        recorder.write(&CommonEvent::Source {
            hash,
            format,
            bytes,
        });
    }
}

fn lose(recorder: &Recorder, reason: &'static str) {
    recorder.loss(LossKind::LoadedCode, 1, reason);
}

/// Reads a file, up to one byte more than is kept.
fn read(path: PathBuf) -> Option<Vec<u8>> {
    // Opening a pipe must not wait.
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let file = opened.ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let read = file
        .take(MAX_MODULE_BYTES as u64 + 1)
        .read_to_end(&mut bytes);
    read.ok().map(|_| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_is_given_code_says_where_it_is() {
        for (name, image) in [
            ("cuModuleLoadData", Some(CodeParameter::Code(1))),
            ("cuLibraryLoadData", Some(CodeParameter::Code(1))),
            ("cuModuleLoad", Some(CodeParameter::File(1))),
            // Only the result of linking is loaded.
            ("cuLinkAddData_v2", None),
            ("cuModuleUnload", None),
            ("cuLaunchKernel", None),
        ] {
            assert_eq!(CodeParameter::for_function(name), image, "{name}");
        }
    }
}

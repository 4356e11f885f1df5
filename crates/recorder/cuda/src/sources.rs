//! The code that the program gives to the driver: PTX, cubins and fat binaries.
//!
//! The thread that loads a module copies it, if it is not too large, once the driver has taken it; the thread that flushes
//! hashes the copies and writes each once. What the code says is the session's to read. Modules are loaded seldom, and code
//! that is loaded while recording is off may run later: these callbacks stay on.

mod extent;

use crate::cupti::Cupti;
use crate::cupti::numbers::domain;
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

/// Larger code is that of a library, of whose kernels a program uses few: it is not meant to be kept, and no loss.
const LARGEST: usize = 4 << 20;
/// Copies that wait to be written.
const MOST_WAITING: usize = 32 << 20;
/// What is written of a process.
const MOST: usize = 256 << 20;
/// Numbers of calls are below this in every CUPTI so far.
const MOST_CALLS: u32 = 2000;

const TOO_MANY: &str = "the process loaded more than is kept";
const UNREADABLE: &str = "its file could not be read";
const UNKNOWN_FORMAT: &str = "it is neither PTX nor a cubin nor a fat binary";

/// Where a call's parameters say what code it loads: which parameter it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Image {
    /// A pointer to it.
    Code(usize),
    /// The name of its file.
    File(usize),
}

impl Image {
    /// See cuda.h.
    fn of(name: &str) -> Option<Image> {
        match base_name(name) {
            "cuModuleLoadData"
            | "cuModuleLoadDataEx"
            | "cuModuleLoadFatBinary"
            | "cuLibraryLoadData" => Some(Image::Code(1)),
            "cuModuleLoad" | "cuLibraryLoadFromFile" => Some(Image::File(1)),
            _ => None,
        }
    }
}

/// Calls of the driver that load code, by CUPTI's numbers.
static IMAGES: OnceLock<Vec<Option<Image>>> = OnceLock::new();

#[derive(Debug, Default)]
struct Waiting {
    copies: Vec<Vec<u8>>,
    files: Vec<PathBuf>,
    bytes: usize,
    losses: Vec<&'static str>,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting {
    copies: Vec::new(),
    files: Vec::new(),
    bytes: 0,
    losses: Vec::new(),
});

/// What has been written of this process.
#[derive(Debug, Default)]
pub struct Sources {
    hashes: FxHashSet<[u8; 16]>,
    bytes: usize,
}

/// Asks for callbacks at the calls that load code, for good.
pub fn follow(subscription: &Subscription) {
    let images = IMAGES.get_or_init(|| find(&subscription.cupti));
    for (number, image) in (0..).zip(images) {
        if image.is_some() {
            subscription.switch_callback(domain::DRIVER, number, true);
        }
    }
}

fn find(cupti: &Cupti) -> Vec<Option<Image>> {
    let image = |number| Image::of(cupti.call_name(domain::DRIVER, number)?);
    (0..MOST_CALLS).map(image).collect()
}

fn image(domain: u32, number: u32) -> Option<Image> {
    let images = IMAGES.get().filter(|_| domain == domain::DRIVER)?;
    *images.get(number as usize)?
}

/// Whether a call loads code, so that its callbacks stay on.
pub fn are_loaded_by(domain: u32, number: u32) -> bool {
    image(domain, number).is_some()
}

/// A call has succeeded: keeps the code that it loaded.
///
/// # Safety
/// `parameters` are those of the call, each in eight bytes.
#[inline]
pub unsafe fn loaded(domain: u32, number: u32, parameter: impl Fn(usize) -> usize) {
    let Some(image) = image(domain, number) else {
        return;
    };
    // SAFETY: as the caller promises; the driver has read what they point to.
    unsafe {
        match image {
            Image::Code(at) => keep(parameter(at), extent::of(parameter(at), LARGEST)),
            Image::File(at) => {
                let name = parameter(at) as *const c_char;
                if !name.is_null() {
                    let name = OsStr::from_bytes(CStr::from_ptr(name).to_bytes());
                    // Relative to where the program is now.
                    let path = std::path::absolute(name).unwrap_or_else(|_| name.into());
                    waiting(|waiting| waiting.files.push(path));
                }
            }
        }
    }
}

fn waiting<T>(change: impl FnOnce(&mut Waiting) -> T) -> T {
    change(&mut WAITING.lock().unwrap_or_else(PoisonError::into_inner))
}

/// # Safety
/// So many bytes are at this address.
unsafe fn keep(at: usize, extent: Extent) {
    let (at, bytes) = match extent {
        Extent::Bytes(bytes) => (at, bytes),
        Extent::Elsewhere(there, bytes) => (there, bytes),
        Extent::Nothing | Extent::TooLarge => return,
        Extent::Unknown => return waiting(|waiting| waiting.losses.push(UNKNOWN_FORMAT)),
    };
    if bytes > LARGEST {
        return;
    }
    if at == 0 || waiting(|waiting| waiting.bytes) + bytes > MOST_WAITING {
        return waiting(|waiting| waiting.losses.push(TOO_MANY));
    }
    // SAFETY: as the caller promises.
    let copy = unsafe { std::slice::from_raw_parts(at as *const u8, bytes) }.to_vec();
    waiting(|waiting| {
        waiting.bytes += copy.len();
        waiting.copies.push(copy);
    });
}

impl Sources {
    /// Writes what has been loaded.
    pub fn write(&mut self, recorder: &Recorder) {
        let Waiting {
            copies,
            files,
            losses,
            ..
        } = waiting(std::mem::take);
        for reason in losses {
            lose(recorder, reason);
        }
        for copy in copies {
            self.write_one(recorder, &copy);
        }
        for path in files {
            match read(path) {
                Some(bytes) if bytes.len() <= LARGEST => self.write_one(recorder, &bytes),
                Some(_) => {}
                None => lose(recorder, UNREADABLE),
            }
        }
    }

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
        if self.bytes > MOST {
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

/// The file's bytes, of a larger one than is kept not all.
fn read(path: PathBuf) -> Option<Vec<u8>> {
    // A pipe must not be waited for.
    let opened = File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let file = opened.ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    let read = file.take(LARGEST as u64 + 1).read_to_end(&mut bytes);
    read.ok().map(|_| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_is_given_code_says_where_it_is() {
        for (name, image) in [
            ("cuModuleLoadData", Some(Image::Code(1))),
            ("cuLibraryLoadData", Some(Image::Code(1))),
            ("cuModuleLoad", Some(Image::File(1))),
            // It is what is made of it that is loaded.
            ("cuLinkAddData_v2", None),
            ("cuModuleUnload", None),
            ("cuLaunchKernel", None),
        ] {
            assert_eq!(Image::of(name), image, "{name}");
        }
    }
}

//! The interface of a hook that captures: windows that the program begins become captures, labels of its threads may
//! choose the window, and nothing is recorded. A hook implements [`CaptureProvider`]; [`Table::for_captures`] makes its
//! table of C functions from that.

use super::provider::bytes_at;
use super::{Status, Table, VERSION};
use crate::hook::guard;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The hook behind a table that [`Table::for_captures`] makes.
pub trait CaptureProvider: 'static {
    /// The hook's name.
    const NAME: &'static CStr;

    /// Returns the control of the hook's windows, when this process was asked for one.
    fn get() -> Option<&'static Self>;

    /// Returns whether the program may begin windows.
    fn program_may_start(&self) -> Status;

    /// Adds a window that the program asks for, and returns its number. The capture is written to `path` if the program
    /// gave one.
    ///
    /// # Errors
    /// Returns the status for the program if there can be no window now.
    fn start_by_program(&self, path: Option<PathBuf>) -> Result<u32, Status>;

    /// Ends a window that the program has begun.
    fn stop_by_program(&self, number: u32) -> Status;

    /// Returns the state of a window that the program has begun.
    fn state_of_window(&self, number: u32) -> Status;

    /// Begins a label of the calling thread.
    fn push_label(&self, text: &str);

    /// Ends the innermost label of the calling thread; returns false if there is none.
    fn pop_label(&self) -> bool;
}

impl Table {
    /// Creates the table of a hook that captures.
    pub const fn for_captures<H: CaptureProvider>() -> Table {
        Table {
            version: VERSION,
            bytes: size_of::<Table>() as u32,
            hook: H::NAME.as_ptr(),
            state: state::<H>,
            start_capture: start_capture::<H>,
            stop_capture: stop_capture::<H>,
            capture_state: capture_state::<H>,
            push_label: push_label::<H>,
            pop_label: pop_label::<H>,
            instant_label: instant_label::<H>,
            flush: flush::<H>,
            push_layer,
            pop_layer,
            own_time,
            pop_label_at: pop_label_at::<H>,
        }
    }
}

/// Runs a function of the interface with the control of windows, and returns its [`Status`] as a number: that the
/// process is not recorded when it was asked for no window. No panic leaves it.
fn guarded<H: CaptureProvider>(work: impl FnOnce(&'static H) -> Status) -> i32 {
    let status = guard(|| match H::get() {
        Some(control) => work(control),
        None => Status::NotRecorded,
    });
    status.unwrap_or(Status::Internal) as i32
}

/// Labels that gapscope sets itself belong to recordings, and choose no window.
unsafe extern "C" fn push_layer(_layer: u32, _text: *const c_char, _text_bytes: usize) -> i32 {
    Status::NotRecorded as i32
}

extern "C" fn pop_layer(_layer: u32) -> i32 {
    Status::NotRecorded as i32
}

/// Captures have no times of the host.
extern "C" fn own_time(_: i64) -> i32 {
    Status::Off as i32
}

extern "C" fn state<H: CaptureProvider>() -> i32 {
    guarded::<H>(H::program_may_start)
}

unsafe extern "C" fn start_capture<H: CaptureProvider>(
    path: *const c_char,
    path_bytes: usize,
    number: *mut u32,
) -> i32 {
    guarded::<H>(|control| {
        let path = if path.is_null() {
            &[][..]
        } else {
            // SAFETY: the caller's own text.
            match unsafe { bytes_at(path, path_bytes) } {
                Some(path) => path,
                None => return Status::BadText,
            }
        };
        if number.is_null() || path.contains(&0) {
            return Status::BadText;
        }
        match control.start_by_program(absolute(path)) {
            Ok(started) => {
                // SAFETY: checked for null above; the caller's own variable.
                unsafe { number.write(started) };
                Status::Done
            }
            Err(status) => status,
        }
    })
}

/// Returns the path as the command can use it, which may have another working directory.
fn absolute(path: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(path));
    match path.as_os_str().is_empty() {
        true => None,
        false => Some(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
    }
}

extern "C" fn stop_capture<H: CaptureProvider>(number: u32) -> i32 {
    guarded::<H>(|control| control.stop_by_program(number))
}

extern "C" fn capture_state<H: CaptureProvider>(number: u32) -> i32 {
    guarded::<H>(|control| control.state_of_window(number))
}

unsafe extern "C" fn push_label<H: CaptureProvider>(text: *const c_char, bytes: usize) -> i32 {
    guarded::<H>(|control| {
        // SAFETY: the caller's own text.
        let Some(text) = (unsafe { bytes_at(text, bytes) }) else {
            return Status::BadText;
        };
        control.push_label(&String::from_utf8_lossy(text));
        Status::Done
    })
}

unsafe extern "C" fn instant_label<H: CaptureProvider>(_: *const c_char, _: usize) -> i32 {
    guarded::<H>(|_| Status::Done)
}

extern "C" fn pop_label<H: CaptureProvider>() -> i32 {
    guarded::<H>(|control| match control.pop_label() {
        true => Status::Done,
        false => Status::NoLabel,
    })
}

/// Captures have no times of the host.
extern "C" fn pop_label_at<H: CaptureProvider>(_: i64) -> i32 {
    pop_label::<H>()
}

extern "C" fn flush<H: CaptureProvider>(_: u64) -> i32 {
    guarded::<H>(|_| Status::Done)
}

//! The functions that the program itself may call while it is captured: see [`gapscope_spool::interface`]. A window that
//! the program begins becomes a capture, and labels of its threads may choose the window.

use super::control::{CaptureControl, control};
use gapscope_spool::event::LabelEdge;
use gapscope_spool::hook::guard;
use gapscope_spool::interface::{Status, Table, VERSION, bytes_at};
use std::cell::RefCell;
use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The functions, each as [`Table`] describes it.
pub static TABLE: Table = Table {
    version: VERSION,
    bytes: size_of::<Table>() as u32,
    hook: c"cuda".as_ptr(),
    state,
    start_capture,
    stop_capture,
    capture_state,
    push_label,
    pop_label,
    instant_label,
    flush,
    push_layer,
    pop_layer,
    own_time,
    pop_label_at,
};

thread_local! {
    /// The open labels of the thread, the innermost last: whether each chooses the window.
    static LABELS: RefCell<Vec<bool>> = const { RefCell::new(Vec::new()) };
}

/// Begins a label of the calling thread.
fn begin_label(control: &CaptureControl, text: &str) {
    let chooses = control.label_begins(text);
    LABELS.with_borrow_mut(|open| open.push(chooses));
}

/// Ends the innermost label of the calling thread; returns false if there is none.
fn end_label(control: &CaptureControl) -> bool {
    let ended = LABELS.with_borrow_mut(Vec::pop);
    if ended == Some(true) {
        control.label_ends();
    }
    ended.is_some()
}

/// Handles one end of a label that the program has set by NVTX: of a range, which may end on another thread, or of the
/// calling thread.
pub fn label(control: &CaptureControl, range: Option<u64>, edge: LabelEdge, text: &str) {
    match (range, edge) {
        (None, LabelEdge::Begin) => begin_label(control, text),
        (None, LabelEdge::End) => {
            end_label(control);
        }
        (Some(range), LabelEdge::Begin) => {
            if control.label_begins(text) {
                ranges().push(range);
            }
        }
        (Some(range), LabelEdge::End) => {
            let mut open = ranges();
            let at = open.iter().position(|other| *other == range);
            if let Some(at) = at {
                open.swap_remove(at);
                drop(open);
                control.label_ends();
            }
        }
        (_, LabelEdge::Instant) => {}
    }
}

/// Returns the open ranges of NVTX that choose the window.
fn ranges() -> MutexGuard<'static, Vec<u64>> {
    static RANGES: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a function of the interface with the control of windows, and returns its [`Status`] as a number. No panic
/// leaves it.
fn guarded(work: impl FnOnce(&'static CaptureControl) -> Status) -> i32 {
    let status = guard(|| match control() {
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

extern "C" fn state() -> i32 {
    guarded(CaptureControl::program_may_start)
}

unsafe extern "C" fn start_capture(
    path: *const c_char,
    path_bytes: usize,
    number: *mut u32,
) -> i32 {
    guarded(|control| {
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

extern "C" fn stop_capture(number: u32) -> i32 {
    guarded(|control| control.stop_by_program(number))
}

extern "C" fn capture_state(number: u32) -> i32 {
    guarded(|control| control.program_windows.state(number))
}

unsafe extern "C" fn push_label(text: *const c_char, bytes: usize) -> i32 {
    guarded(|control| {
        // SAFETY: the caller's own text.
        let Some(text) = (unsafe { bytes_at(text, bytes) }) else {
            return Status::BadText;
        };
        begin_label(control, &String::from_utf8_lossy(text));
        Status::Done
    })
}

unsafe extern "C" fn instant_label(_: *const c_char, _: usize) -> i32 {
    guarded(|_| Status::Done)
}

extern "C" fn pop_label() -> i32 {
    guarded(|control| match end_label(control) {
        true => Status::Done,
        false => Status::NoLabel,
    })
}

/// Captures have no times of the host.
extern "C" fn pop_label_at(_: i64) -> i32 {
    pop_label()
}

extern "C" fn flush(_: u64) -> i32 {
    guarded(|_| Status::Done)
}

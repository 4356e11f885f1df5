//! Exports the functions that the program itself may call: see [`gapscope_spool::interface`]. Under this layer, a
//! window (a part of the run) that the program begins becomes a capture, and labels of its threads may choose the
//! window.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use gapscope_spool::hook::guard;
use gapscope_spool::interface::{Status, Table, VERSION, bytes_at};

use crate::window::{Labels, WindowControl, control};

/// The functions, each as [`Table`] describes it.
static TABLE: Table = Table {
    version: VERSION,
    bytes: size_of::<Table>() as u32,
    hook: c"vulkan".as_ptr(),
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

/// Exports [`gapscope_spool::interface::SYMBOL`].
#[unsafe(no_mangle)]
pub extern "C" fn gapscope_interface(version: u32) -> *const Table {
    TABLE.answer(version)
}

/// Runs a function of the interface with the control of windows, and returns its [`Status`] as a number: that the
/// process is not recorded when it was asked for no window. No panic leaves it.
fn guarded(work: impl FnOnce(&'static WindowControl) -> Status) -> i32 {
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
    guarded(WindowControl::program_may_start)
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
    guarded(|_| {
        // SAFETY: the caller's own text.
        let Some(text) = (unsafe { bytes_at(text, bytes) }) else {
            return Status::BadText;
        };
        Labels::push(String::from_utf8_lossy(text).into_owned());
        Status::Done
    })
}

unsafe extern "C" fn instant_label(_: *const c_char, _: usize) -> i32 {
    guarded(|_| Status::Done)
}

extern "C" fn pop_label() -> i32 {
    guarded(|_| match Labels::pop() {
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

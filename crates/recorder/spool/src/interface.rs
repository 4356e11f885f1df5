//! The C interface through which a recorded program talks to the hooks inside it.
//!
//! A hook (the Vulkan layer, the CUDA library) exports one function, [`SYMBOL`], which returns a [`Table`] of
//! functions. A program finds it at run time ([`Hooks::loaded`]), as programs find RenderDoc's: without a hook
//! nothing is linked, loaded or changed. The loader loads Vulkan layers with `RTLD_LOCAL`, so the function is looked
//! up in the library itself and not in the global scope.
//!
//! For callers in other languages, in C:
//!
//! ```c
//! struct gapscope_table {
//!     uint32_t version;       // of this table: at least the one asked for
//!     uint32_t bytes;         // sizeof the table that the hook has; members are only ever added at its end
//!     const char *hook;       // "vulkan", "cuda": NUL-terminated
//!     int32_t (*state)(void);
//!     int32_t (*start_capture)(const char *path, size_t path_bytes, uint32_t *capture);
//!     int32_t (*stop_capture)(uint32_t capture);
//!     int32_t (*capture_state)(uint32_t capture);
//!     int32_t (*push_label)(const char *text, size_t text_bytes);
//!     int32_t (*pop_label)(void);
//!     int32_t (*instant_label)(const char *text, size_t text_bytes);
//!     int32_t (*flush)(uint64_t timeout_ns);
//!     int32_t (*push_layer)(uint32_t layer, const char *text, size_t text_bytes);   // if `bytes` says that it is there
//!     int32_t (*pop_layer)(uint32_t layer);
//!     int32_t (*own_time)(int64_t start_ns);      // if `bytes` says that it is there
//!     int32_t (*pop_label_at)(int64_t end_ns);    // if `bytes` says that it is there
//! };
//! const struct gapscope_table *gapscope_interface(uint32_t version);   // NULL: the hook is older than `version`
//! ```
//!
//! Texts are UTF-8 without a NUL; bytes that are not UTF-8 are replaced. Every function returns a [`Status`], may be
//! called from any thread at any time, never blocks (except for `flush`, up to its timeout), and never unwinds.
//!
//! **Captures.** `start_capture` begins a window in which the process is recorded, whether or not it was recorded
//! before; `stop_capture` ends the window and restores the earlier state. One window is open at a time. With a path
//! (of a folder that does not exist; relative paths are those of the program) the session writes the window as a
//! separate trace, and `capture_state` reports when that is done. Device work belongs to the window only if it is
//! submitted after the start and finished before the stop, so the caller should wait for the device before both.
//!
//! A caller who waits for the device or the session because of a capture says so by `own_time`, so that the recording
//! does not take this time for the program's.
//!
//! **Labels** are markers on the calling thread, and apply to everything that this thread submits (Vulkan) or
//! launches (CUDA) while they are open. `push_layer` is for labels that gapscope injects into a program without
//! labels: 0 are the modules of a model, 1 the operators of its framework ([`Layer`](crate::event::Layer)).

mod capture_provider;
mod client;
mod program_windows;
mod provider;
mod signals;

pub use capture_provider::CaptureProvider;
pub use client::{Hook, Hooks};
pub use program_windows::{ProgramWindows, StopOutcome};
pub use provider::{Provider, bytes_at, write_layer};
pub use signals::Signals;

use bytemuck::CheckedBitPattern;
use std::ffi::{CStr, c_char};

/// The version of [`Table`] in this code.
pub const VERSION: u32 = 1;

/// The exported function, of type [`Entry`].
pub const SYMBOL: &CStr = c"gapscope_interface";

/// The type of the exported function.
pub type Entry = extern "C" fn(version: u32) -> *const Table;

/// The answer of an interface function. Every value but [`Status::Done`] tells why it did nothing, or not everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, CheckedBitPattern)]
#[repr(i32)]
#[non_exhaustive]
pub enum Status {
    /// The function succeeded. From `state`: the process is being recorded.
    Done = 0,
    /// The hook is loaded, but this process is not recorded.
    NotRecorded = 1,
    /// Recording is off until a capture (or a label, or the session) starts it.
    Off = 2,
    /// A capture is open already; it continues.
    AlreadyCapturing = 3,
    /// No capture with this number is open.
    NotCapturing = 4,
    /// A text is missing, or too long.
    BadText = 5,
    /// `pop_label` without a matching `push_label` on this thread.
    NoLabel = 6,
    /// The capture is open, or the session is still writing it.
    Pending = 7,
    /// The session could not write the capture; its standard error and its trace give the reason.
    NotWritten = 8,
    /// The session that recorded this process is gone.
    NoSession = 9,
    /// The timeout passed before everything was flushed.
    TimedOut = 10,
    /// An internal error of the hook; nothing changed.
    Internal = 11,
    /// An answer that this version does not know.
    Unknown = -1,
}

impl Status {
    /// Converts a returned number.
    pub fn from_code(code: i32) -> Status {
        bytemuck::checked::try_cast(code).unwrap_or(Status::Unknown)
    }
}

/// The functions of a hook. The layout is `repr(C)`, and members are only ever added at the end.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    /// The hook's [`VERSION`].
    pub version: u32,
    /// The size of the hook's table.
    pub bytes: u32,
    /// `vulkan` or `cuda`, NUL-terminated.
    pub hook: *const c_char,
    /// Returns whether this process is recorded: [`Status::Done`], [`Status::Off`] or [`Status::NotRecorded`].
    pub state: extern "C" fn() -> i32,
    /// Begins a capture and stores its number, which is not 0. Without a path (null or empty) the window is only
    /// marked.
    pub start_capture: unsafe extern "C" fn(*const c_char, usize, *mut u32) -> i32,
    /// Ends the capture with this number.
    pub stop_capture: extern "C" fn(u32) -> i32,
    /// Returns [`Status::Done`] when the session has written the capture's trace, or its window when it has no path.
    pub capture_state: extern "C" fn(u32) -> i32,
    /// Begins a label on the calling thread.
    pub push_label: unsafe extern "C" fn(*const c_char, usize) -> i32,
    /// Ends the innermost label of the calling thread.
    pub pop_label: extern "C" fn() -> i32,
    /// Sets a label at this moment on the calling thread.
    pub instant_label: unsafe extern "C" fn(*const c_char, usize) -> i32,
    /// Waits at most this many nanoseconds until the times of all finished work are in the spool.
    pub flush: extern "C" fn(u64) -> i32,
    /// Begins an injected label on the calling thread.
    pub push_layer: unsafe extern "C" fn(u32, *const c_char, usize) -> i32,
    /// Ends the innermost injected label of a kind on the calling thread.
    pub pop_layer: extern "C" fn(u32) -> i32,
    /// Notes that the calling thread has spent the time from this moment of the monotonic clock until now on gapscope's
    /// behalf, such as waiting until a capture is written.
    pub own_time: extern "C" fn(i64) -> i32,
    /// Ends the innermost label of the calling thread as of this moment of the monotonic clock, which is over: another
    /// thread has left the label then.
    pub pop_label_at: extern "C" fn(i64) -> i32,
}

/// The size of the first tables of [`VERSION`], which every table has at least.
const MIN_TABLE_BYTES: usize = std::mem::offset_of!(Table, push_layer);

// SAFETY: a table is immutable; its pointers are to functions that any thread may call and to a static text.
unsafe impl Sync for Table {}

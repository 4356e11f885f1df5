//! The C interface by which a recorded program speaks to the hooks inside it.
//!
//! A hook (the Vulkan layer, the CUDA library) exports one function, [`SYMBOL`]; it returns a [`Table`] of functions.
//! A program finds it at run time ([`Hooks::loaded`]), as programs find RenderDoc's: without a hook nothing is linked,
//! loaded or changed. The loader loads Vulkan layers with `RTLD_LOCAL`, so the function is looked up in the library
//! itself and not in the global scope.
//!
//! As C, for callers in other languages:
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
//! };
//! const struct gapscope_table *gapscope_interface(uint32_t version);   // NULL: the hook is older than `version`
//! ```
//!
//! Texts are UTF-8 without a NUL; bytes that are not UTF-8 are replaced. Every function returns a [`Status`], may be
//! called from any thread at any time, never blocks but for `flush` up to its timeout, and never unwinds.
//!
//! **Captures.** `start_capture` begins a window in which the process is recorded, whether or not recording was on;
//! `stop_capture` ends it and leaves recording as it was. One window is open at a time. With a path (of a folder that
//! does not exist; relative paths are those of the program) the session writes the window as a trace of its own to it,
//! and `capture_state` says when that is done. What the device does in the window belongs to it only if it is
//! submitted after the start and finished before the stop: the caller waits for the device before both.
//!
//! **Labels** are markers on the calling thread, and apply to what this thread submits (Vulkan) or launches (CUDA)
//! while they are open. `push_layer` is for those that gapscope itself sets in a program that sets none: layer 0 are the
//! modules of a model, layer 1 the operators of its framework ([`Layer`](crate::event::Layer)).

mod client;
mod host;

pub use client::{Hook, Hooks};
pub use host::{Host, write_layer};

use std::ffi::{CStr, c_char};

/// The version of [`Table`] that this code has.
pub const VERSION: u32 = 1;

/// The exported function, of type [`Entry`].
pub const SYMBOL: &CStr = c"gapscope_interface";

/// The type of the exported function.
pub type Entry = extern "C" fn(version: u32) -> *const Table;

/// What a function of the interface answers. Every value but [`Status::Done`] says why it did nothing, or not all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(i32)]
#[non_exhaustive]
pub enum Status {
    /// It is done. From `state`: the process is recorded and recording is on.
    Done = 0,
    /// The hook is loaded, but nothing records this process.
    NotRecorded = 1,
    /// The process is recorded and recording is off until a capture (or a label, or the session) starts it.
    Off = 2,
    /// A capture is open already; it goes on.
    AlreadyCapturing = 3,
    /// No capture with this number is open.
    NotCapturing = 4,
    /// A text is missing, or too long.
    BadText = 5,
    /// `pop_label` without a label that this thread has pushed.
    NoLabel = 6,
    /// The capture is open, or the session is still writing it.
    Pending = 7,
    /// The session could not write the capture; it says why on its standard error and in its trace.
    NotWritten = 8,
    /// The session that recorded this process is gone.
    NoSession = 9,
    /// The time was over before everything was flushed.
    TimedOut = 10,
    /// An internal error of the hook; nothing was changed.
    Internal = 11,
    /// An answer that this version does not know.
    Unknown = -1,
}

impl Status {
    const ALL: [Status; 12] = [
        Status::Done,
        Status::NotRecorded,
        Status::Off,
        Status::AlreadyCapturing,
        Status::NotCapturing,
        Status::BadText,
        Status::NoLabel,
        Status::Pending,
        Status::NotWritten,
        Status::NoSession,
        Status::TimedOut,
        Status::Internal,
    ];

    /// The status behind a returned number.
    pub fn of(code: i32) -> Status {
        usize::try_from(code)
            .ok()
            .and_then(|code| Status::ALL.get(code).copied())
            .unwrap_or(Status::Unknown)
    }
}

/// The functions of a hook. Its layout is `repr(C)`, and members are only ever added at its end.
#[derive(Debug)]
#[repr(C)]
pub struct Table {
    /// [`VERSION`] of the hook.
    pub version: u32,
    /// Size of the hook's table.
    pub bytes: u32,
    /// `vulkan` or `cuda`, NUL-terminated.
    pub hook: *const c_char,
    /// Whether this process is recorded: [`Status::Done`], [`Status::Off`] or [`Status::NotRecorded`].
    pub state: extern "C" fn() -> i32,
    /// Begins a capture and stores its number, which is not 0. `path` null or empty: the window is only marked.
    pub start_capture: unsafe extern "C" fn(*const c_char, usize, *mut u32) -> i32,
    /// Ends the capture with this number.
    pub stop_capture: extern "C" fn(u32) -> i32,
    /// [`Status::Done`] when the session has written the capture's trace, or its window when it has no path.
    pub capture_state: extern "C" fn(u32) -> i32,
    /// Begins a label on the calling thread.
    pub push_label: unsafe extern "C" fn(*const c_char, usize) -> i32,
    /// Ends the innermost label of the calling thread.
    pub pop_label: extern "C" fn() -> i32,
    /// Sets a label at this moment on the calling thread.
    pub instant_label: unsafe extern "C" fn(*const c_char, usize) -> i32,
    /// Waits at most this many nanoseconds until the times of all work that has finished are in the spool.
    pub flush: extern "C" fn(u64) -> i32,
    /// Begins a label of a layer on the calling thread.
    pub push_layer: unsafe extern "C" fn(u32, *const c_char, usize) -> i32,
    /// Ends the innermost label of a layer on the calling thread.
    pub pop_layer: extern "C" fn(u32) -> i32,
}

/// What every table has: that of the first hooks of [`VERSION`] ended here.
const LEAST_BYTES: usize = std::mem::offset_of!(Table, push_layer);

// SAFETY: a table is immutable; its pointers are to functions that any thread may call and to a static text.
unsafe impl Sync for Table {}

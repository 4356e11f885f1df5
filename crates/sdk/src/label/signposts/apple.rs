//! Calls `os_signpost`, by which Apple's tools record marks, through the functions behind the macros of Apple's
//! `os/signpost.h`, which only C can use.

use super::{Id, Log, Mark};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

/// The subsystem by which Instruments groups the labels, and by which `gapscope import` recognises them in exports of
/// Instruments.
const SUBSYSTEM: &CStr = c"gapscope";
/// The category that Instruments records in every template (`OS_LOG_CATEGORY_POINTS_OF_INTEREST`).
const CATEGORY: &CStr = c"PointsOfInterest";

// The system's log keeps not the texts of name and format but their places in the image (the loaded binary), and tools look
// them up there, in this section. Texts on the heap would be read as empty.
/// The name of all signposts. A name must be in the image, so that the label's text is the argument of the format.
#[used]
#[unsafe(link_section = "__TEXT,__oslogstring,cstring_literals")]
static NAME: [u8; 6] = *b"label\0";
#[used]
#[unsafe(link_section = "__TEXT,__oslogstring,cstring_literals")]
static FORMAT: [u8; 11] = *b"%{public}s\0";

unsafe extern "C" {
    /// The linker defines this symbol for the image that contains it.
    static __dso_handle: u8;

    fn os_log_create(subsystem: *const c_char, category: *const c_char) -> *mut c_void;
    fn os_signpost_enabled(log: *mut c_void) -> bool;
    fn _os_signpost_emit_with_name_impl(
        image: *const c_void,
        log: *mut c_void,
        mark: u8,
        id: u64,
        name: *const c_char,
        format: *const c_char,
        arguments: *mut u8,
        size: u32,
    );
}

/// The flag of [`Arguments`] that not all arguments are numbers.
const HAS_NON_SCALAR: u8 = 2;
/// The kind of a public string: 2 (a string) in the high half of the byte, and 2 (public) in the low half.
const PUBLIC_STRING: u8 = 0x22;

/// The arguments of one `%{public}s` in the layout of clang's `__builtin_os_log_format`: flags for all of them, their
/// count, and for each its kind, its size and its value.
#[repr(C, packed)]
struct Arguments {
    flags: u8,
    count: u8,
    kind: u8,
    /// The number of bytes of `text`.
    size: u8,
    text: *const c_char,
}

/// The system's log of gapscope's labels, which lives as long as the process.
#[derive(Debug)]
pub struct OsLog(Option<NonNull<c_void>>);

// SAFETY: logs may be used from any thread.
unsafe impl Send for OsLog {}
// SAFETY: as above.
unsafe impl Sync for OsLog {}

impl OsLog {
    /// Opens the system's log; while the system gives none, nothing is posted.
    pub fn open() -> OsLog {
        // SAFETY: both are texts that end in NUL and live for ever.
        OsLog(NonNull::new(unsafe {
            os_log_create(SUBSYSTEM.as_ptr(), CATEGORY.as_ptr())
        }))
    }
}

impl Log for OsLog {
    fn is_enabled(&self) -> bool {
        // SAFETY: the log is never released.
        (self.0).is_some_and(|log| unsafe { os_signpost_enabled(log.as_ptr()) })
    }

    fn emit(&self, mark: Mark, id: Id, text: &CStr) {
        let Some(log) = self.0 else { return };
        let mut arguments = Arguments {
            flags: HAS_NON_SCALAR,
            count: 1,
            kind: PUBLIC_STRING,
            size: size_of::<*const c_char>() as u8,
            text: text.as_ptr(),
        };
        // SAFETY: log, name and format live for ever, and text and arguments live until the call has copied them; the
        // arguments are those of the format.
        unsafe {
            _os_signpost_emit_with_name_impl(
                (&raw const __dso_handle).cast(),
                log.as_ptr(),
                mark as u8,
                id.get(),
                NAME.as_ptr().cast(),
                FORMAT.as_ptr().cast(),
                (&raw mut arguments).cast(),
                size_of::<Arguments>() as u32,
            );
        }
    }
}

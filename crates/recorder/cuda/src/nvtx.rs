//! NVTX: labels that the program, or a library in it, gives its work.
//!
//! NVTX is a header: each module that includes it asks for its own table of functions, fills it with ours, and calls
//! them on the thread that sets the label. They write to that thread's log at once; no lock is taken but at the first
//! use of a text. (Offsets and numbers: nvtxTypes.h and nvToolsExt.h of NVTX 3.)

mod attributes;
mod domains;
mod names;
mod table;

pub use table::{GetExportTable, attach};

use crate::recorder::{Recorder, recorder};
use attributes::{Attributes, Text};
use domains::Domain;
use gapscope_spool::event::{LabelEdge, LabelScope};
use gapscope_spool::hook::guard;
use gapscope_spool::{Event, monotonic_ns};
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// NVTX_NO_PUSH_POP_TRACKING, which an unrecorded program gets too.
const NOT_TRACKED: c_int = -2;

/// Ids of ranges; 0 is none.
static RANGES: AtomicU64 = AtomicU64::new(1);

/// Writes one end of a label.
///
/// # Safety
/// The domain is null or one of ours.
unsafe fn label(
    domain: *const Domain,
    range: Option<u64>,
    edge: LabelEdge,
    text: Text<'_>,
    details: Option<&Attributes>,
) {
    guard(|| {
        let Some(recorder) = recorder() else { return };
        // First, so that the time is the program's and not that of our bookkeeping.
        let at_ns = monotonic_ns();
        // SAFETY: as the caller promises.
        let domain = unsafe { domains::id(domain, recorder) };
        let text = match (&text, edge) {
            (Text::None, LabelEdge::Begin | LabelEdge::Instant) => recorder.text(b""),
            _ => text.id(recorder),
        };
        recorder.write(&Event::Label {
            scope: match (range, domain) {
                (Some(range), domain) => LabelScope::Range { domain, range },
                (None, 0) => LabelScope::Thread,
                (None, domain) => LabelScope::Domain(domain),
            },
            edge,
            text,
            at_ns,
        });
        if let Some(details) = details {
            write_details(details, domain, recorder);
        }
    });
}

fn write_details(attributes: &Attributes, domain: u32, recorder: &Recorder) {
    let category = domains::category(domain, attributes.category);
    let payload = attributes.payload();
    if category != 0 || payload.is_some() {
        recorder.write(&Event::LabelDetail {
            category,
            color: attributes.color(),
            payload,
        });
    }
}

/// # Safety
/// `attributes` is null or valid; the domain null or one of ours.
unsafe fn label_ex(
    domain: *const Domain,
    range: Option<u64>,
    edge: LabelEdge,
    attributes: *const c_void,
) {
    // SAFETY: as the caller promises.
    unsafe {
        let attributes = Attributes::at(attributes);
        let text = attributes.as_ref().map_or(Text::None, |a| a.text());
        label(domain, range, edge, text, attributes.as_ref());
    }
}

fn next_range() -> u64 {
    RANGES.fetch_add(1, Relaxed)
}

// What follows is called by the program with its own texts, attributes and handles.

unsafe extern "C" fn mark_ex(attributes: *const c_void) {
    // SAFETY: the program's own call.
    unsafe { label_ex(std::ptr::null(), None, LabelEdge::Instant, attributes) }
}

unsafe extern "C" fn mark_a(text: *const c_char) {
    // SAFETY: the program's own call.
    unsafe {
        label(
            std::ptr::null(),
            None,
            LabelEdge::Instant,
            Text::narrow(text),
            None,
        )
    }
}

unsafe extern "C" fn mark_w(text: *const u32) {
    // SAFETY: the program's own call.
    unsafe {
        label(
            std::ptr::null(),
            None,
            LabelEdge::Instant,
            Text::wide(text),
            None,
        )
    }
}

unsafe extern "C" fn push_ex(attributes: *const c_void) -> c_int {
    // SAFETY: the program's own call.
    unsafe { label_ex(std::ptr::null(), None, LabelEdge::Begin, attributes) };
    NOT_TRACKED
}

unsafe extern "C" fn push_a(text: *const c_char) -> c_int {
    // SAFETY: the program's own call.
    unsafe {
        label(
            std::ptr::null(),
            None,
            LabelEdge::Begin,
            Text::narrow(text),
            None,
        )
    };
    NOT_TRACKED
}

unsafe extern "C" fn push_w(text: *const u32) -> c_int {
    // SAFETY: the program's own call.
    unsafe {
        label(
            std::ptr::null(),
            None,
            LabelEdge::Begin,
            Text::wide(text),
            None,
        )
    };
    NOT_TRACKED
}

unsafe extern "C" fn pop() -> c_int {
    // SAFETY: no domain.
    unsafe { label(std::ptr::null(), None, LabelEdge::End, Text::None, None) };
    NOT_TRACKED
}

unsafe extern "C" fn start_ex(attributes: *const c_void) -> u64 {
    let range = next_range();
    // SAFETY: the program's own call.
    unsafe { label_ex(std::ptr::null(), Some(range), LabelEdge::Begin, attributes) };
    range
}

unsafe extern "C" fn start_a(text: *const c_char) -> u64 {
    let range = next_range();
    // SAFETY: the program's own call.
    unsafe {
        label(
            std::ptr::null(),
            Some(range),
            LabelEdge::Begin,
            Text::narrow(text),
            None,
        )
    };
    range
}

unsafe extern "C" fn start_w(text: *const u32) -> u64 {
    let range = next_range();
    // SAFETY: the program's own call.
    unsafe {
        label(
            std::ptr::null(),
            Some(range),
            LabelEdge::Begin,
            Text::wide(text),
            None,
        )
    };
    range
}

unsafe extern "C" fn range_end(range: u64) {
    // SAFETY: no domain.
    unsafe {
        label(
            std::ptr::null(),
            Some(range),
            LabelEdge::End,
            Text::None,
            None,
        )
    }
}

unsafe extern "C" fn domain_mark_ex(domain: *const Domain, attributes: *const c_void) {
    // SAFETY: the program's own call.
    unsafe { label_ex(domain, None, LabelEdge::Instant, attributes) }
}

unsafe extern "C" fn domain_push_ex(domain: *const Domain, attributes: *const c_void) -> c_int {
    // SAFETY: the program's own call.
    unsafe { label_ex(domain, None, LabelEdge::Begin, attributes) };
    NOT_TRACKED
}

unsafe extern "C" fn domain_pop(domain: *const Domain) -> c_int {
    // SAFETY: the program's own call.
    unsafe { label(domain, None, LabelEdge::End, Text::None, None) };
    NOT_TRACKED
}

unsafe extern "C" fn domain_start_ex(domain: *const Domain, attributes: *const c_void) -> u64 {
    let range = next_range();
    // SAFETY: the program's own call.
    unsafe { label_ex(domain, Some(range), LabelEdge::Begin, attributes) };
    range
}

unsafe extern "C" fn domain_range_end(domain: *const Domain, range: u64) {
    // SAFETY: the program's own call.
    unsafe { label(domain, Some(range), LabelEdge::End, Text::None, None) }
}

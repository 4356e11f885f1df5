//! Fills the table of functions of NVTX's payload extension (labels with structured values), for each module that
//! uses it.
//!
//! Offsets and numbers: nvToolsExtPayload.h and nvtxExtTypes.h of NVTX 3.1 to 3.5; the extension's version 1.3 is the
//! first with these structures.

use super::domains::Domain;
use super::label;
use super::payload::{PayloadData, register, schemas};
use crate::recorder::recorder;
use gapscope_spool::event::LossKind;
use gapscope_spool::hook::guard;
use gapscope_spool::monotonic_ns;
use std::ffi::c_void;

/// NVTX_EXT_PAYLOAD_MODULEID: the number of the payload extension.
const PAYLOAD: u16 = 2;
/// NVTX_EXT_PAYLOAD_COMPATID: major and minor version.
const VERSIONS: std::ops::RangeInclusive<u16> = 0x0103..=0x01ff;

/// nvtxExtModuleInfo_t
#[repr(C)]
pub struct ExtensionModule {
    nvtx: u16,
    bytes: u16,
    /// The number of the extension.
    module: u16,
    version: u16,
    segment_count: usize,
    segments: *const Segment,
}

/// nvtxExtModuleSegment_t
#[repr(C)]
struct Segment {
    id: usize,
    slot_count: usize,
    /// The table's places for functions.
    slots: *mut *const c_void,
}

/// Puts our functions into an extension's table. Returns false for an extension that is not recorded; its functions
/// do nothing.
///
/// # Safety
/// `module` is null or what NVTX passed.
pub unsafe fn attach_extension(module: *const ExtensionModule) -> bool {
    // SAFETY: as the caller promises.
    let Some(module) = (unsafe { module.as_ref() }) else {
        return false;
    };
    if module.module != PAYLOAD || !VERSIONS.contains(&module.version) {
        if let Some(recorder) = recorder() {
            let loss = match module.module {
                PAYLOAD => LossKind::NvtxPayloadsOfLibrary,
                _ => LossKind::NvtxExtensionsOfLibrary,
            };
            recorder.loss(loss, 1, "this version or extension is not known");
        }
        return false;
    }
    if module.segment_count == 0 || module.segments.is_null() {
        return false;
    }
    // NVTX3EXT_CBID_…; functions that are not listed do nothing.
    let functions: [(usize, *const c_void); 13] = [
        (0, register::register as *const c_void),
        (1, register::register_enum as *const c_void),
        (2, label::payload_mark as *const c_void),
        (3, label::payload_push as *const c_void),
        (4, label::payload_pop as *const c_void),
        (5, label::payload_start as *const c_void),
        (6, label::payload_end as *const c_void),
        (7, is_enabled as *const c_void),
        (8, timestamp as *const c_void),
        (9, time_domain as *const c_void),
        (12, scope as *const c_void),
        (16, deferred as *const c_void),
        (17, deferred_batch as *const c_void),
    ];
    // SAFETY: NVTX passes one segment of this extension, with that many slots.
    unsafe {
        let segment = &*module.segments;
        if segment.slots.is_null() {
            return false;
        }
        for (number, function) in functions {
            if number < segment.slot_count {
                *segment.slots.add(number) = function;
            }
        }
    }
    true
}

/// Says that labels of every domain are wanted.
unsafe extern "C" fn is_enabled(_domain: *const Domain) -> u8 {
    1
}

/// Returns the time on the host's clock, in nanoseconds.
unsafe extern "C" fn timestamp() -> i64 {
    monotonic_ns()
}

/// Returns the id at a word (8 bytes) of attributes, or a new one where the program chose none; 0 without attributes.
///
/// # Safety
/// `attributes` is null or has a number at this word.
unsafe fn chosen_id(attributes: *const u64, word: usize) -> u64 {
    if attributes.is_null() {
        return 0;
    }
    // SAFETY: as the caller promises.
    schemas::id_or_new(unsafe { attributes.add(word).read_unaligned() })
}

/// Takes an nvtxScopeAttr_t: scopes are not recorded, but the program gets an id.
unsafe extern "C" fn scope(_domain: *const Domain, attributes: *const u64) -> u64 {
    // SAFETY: the program's own attributes; the id is their fourth word.
    unsafe { chosen_id(attributes, 3) }
}

/// Takes an nvtxTimeDomainAttr_t: time domains are not recorded, but the program gets an id.
unsafe extern "C" fn time_domain(_domain: *const Domain, attributes: *const u64) -> u64 {
    // SAFETY: the program's own attributes; the id is their third word.
    unsafe { chosen_id(attributes, 2) }
}

/// Takes deferred events, which the program reports after they happened: they are counted as lost.
unsafe extern "C" fn deferred(_domain: *const Domain, _data: *const PayloadData, count: usize) {
    lose_deferred(u64::from(count > 0));
}

unsafe extern "C" fn deferred_batch(_domain: *const Domain, _batch: *const c_void) {
    lose_deferred(1);
}

/// Counts deferred events as lost.
fn lose_deferred(count: u64) {
    guard(|| {
        if let Some(recorder) = recorder() {
            let reason = "their times may be of any clock";
            recorder.loss(LossKind::DeferredNvtxEvents, count, reason);
        }
    });
}

//! NVTX's payload extension: labels with values in C structures, whose layouts the program has registered. NCCL
//! describes its collectives so.
//!
//! A module that uses it asks for functions of its own ([`attach_extension`]). Offsets and numbers: nvToolsExtPayload.h
//! and nvtxExtTypes.h of NVTX 3.1 to 3.5; the extension's version 1.3 is the first with these structures.

mod read;
mod schemas;

pub use read::read;

use super::domains::Domain;
use crate::recorder::recorder;
use gapscope_spool::event::LossKind;
use gapscope_spool::hook::guard;
use gapscope_spool::monotonic_ns;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// nvtxPayloadData_t
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Data {
    schema: u64,
    /// `usize::MAX`: as many as the schema says.
    bytes: usize,
    at: *const u8,
}

impl Data {
    /// An array of the program's.
    ///
    /// # Safety
    /// `first` is null or has `count` elements that live for `'a`.
    pub unsafe fn all<'a>(first: *const Data, count: usize) -> &'a [Data] {
        if first.is_null() || count > MOST_PAYLOADS {
            return &[];
        }
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(first, count) }
    }
}

/// More payloads than this an event has by mistake only.
const MOST_PAYLOADS: usize = 1 << 10;
/// NVTX_EXT_PAYLOAD_MODULEID
const PAYLOAD: u16 = 2;
/// NVTX_EXT_PAYLOAD_COMPATID: major and minor version.
const VERSIONS: std::ops::RangeInclusive<u16> = 0x0103..=0x01ff;

/// nvtxExtModuleInfo_t
#[repr(C)]
pub struct Module {
    nvtx: u16,
    bytes: u16,
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
    slots: *mut *const c_void,
}

/// Puts our functions into an extension's table. False when it is one that is not recorded; its functions do nothing.
///
/// # Safety
/// `module` is null or what NVTX passed.
pub unsafe fn attach_extension(module: *const Module) -> bool {
    // SAFETY: as the caller promises.
    let Some(module) = (unsafe { module.as_ref() }) else {
        return false;
    };
    if module.module != PAYLOAD || !VERSIONS.contains(&module.version) {
        if let Some(recorder) = recorder() {
            let what = match module.module {
                PAYLOAD => LossKind::NvtxPayloadsOfLibrary,
                _ => LossKind::NvtxExtensionsOfLibrary,
            };
            recorder.loss(what, 1, "this version or extension is not known");
        }
        return false;
    }
    if module.segment_count == 0 || module.segments.is_null() {
        return false;
    }
    // NVTX3EXT_CBID_…; functions that are not here do nothing.
    let functions: [(usize, *const c_void); 13] = [
        (0, schemas::register as *const c_void),
        (1, schemas::register_enum as *const c_void),
        (2, super::payload_mark as *const c_void),
        (3, super::payload_push as *const c_void),
        (4, super::payload_pop as *const c_void),
        (5, super::payload_start as *const c_void),
        (6, super::payload_end as *const c_void),
        (7, is_enabled as *const c_void),
        (8, timestamp as *const c_void),
        (9, time_domain as *const c_void),
        (12, scope as *const c_void),
        (16, deferred as *const c_void),
        (17, deferred_batch as *const c_void),
    ];
    // SAFETY: NVTX passes one segment of this extension, with so many slots.
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

unsafe extern "C" fn is_enabled(_domain: *const Domain) -> u8 {
    1
}

unsafe extern "C" fn timestamp() -> i64 {
    monotonic_ns()
}

/// Ids of what the program registers without an id of its own: NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START and its like.
static NEXT_ID: AtomicU64 = AtomicU64::new(1 << 32);

/// The id that the program chose, or a new one.
fn id_or_new(chosen: u64) -> u64 {
    if chosen == 0 {
        NEXT_ID.fetch_add(1, Relaxed)
    } else {
        chosen
    }
}

/// # Safety
/// `attributes` is null or has a number at this word.
unsafe fn chosen_id(attributes: *const u64, word: usize) -> u64 {
    if attributes.is_null() {
        return 0;
    }
    // SAFETY: as the caller promises.
    id_or_new(unsafe { attributes.add(word).read_unaligned() })
}

/// nvtxScopeAttr_t: scopes are not recorded, but the program gets an id.
unsafe extern "C" fn scope(_domain: *const Domain, attributes: *const u64) -> u64 {
    // SAFETY: the program's own attributes; the id is their fourth word.
    unsafe { chosen_id(attributes, 3) }
}

/// nvtxTimeDomainAttr_t: likewise.
unsafe extern "C" fn time_domain(_domain: *const Domain, attributes: *const u64) -> u64 {
    // SAFETY: the program's own attributes; the id is their third word.
    unsafe { chosen_id(attributes, 2) }
}

unsafe extern "C" fn deferred(_domain: *const Domain, _data: *const Data, count: usize) {
    lose_deferred(u64::from(count > 0));
}

unsafe extern "C" fn deferred_batch(_domain: *const Domain, _batch: *const c_void) {
    lose_deferred(1);
}

fn lose_deferred(count: u64) {
    guard(|| {
        if let Some(recorder) = recorder() {
            let reason = "their times may be of any clock";
            recorder.loss(LossKind::DeferredNvtxEvents, count, reason);
        }
    });
}

/// What the extension's functions return that register something: 0 is a failure.
type Registered = u64;

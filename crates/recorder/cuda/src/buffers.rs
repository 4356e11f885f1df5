//! The buffers that CUPTI fills.
//!
//! CUPTI asks for one on the program's thread and gives it back on a thread of its own, or on the one that flushes. It
//! would fill each with zeros on the program's thread; instead they are zeroed here when they come back.

use crate::recorder::recorder;
use crate::{records, subscription};
use gapscope_spool::event::LossKind;
use gapscope_spool::hook::guard;
use gapscope_spool::monotonic_ns;
use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// About 4500 kernels or 26,000 calls.
const BYTES: usize = 1 << 20;
/// The most buffers that wait for use; more are given back to the system.
const WAITING: usize = 32;

/// Buffers full of zeros.
static POOL: [AtomicPtr<u8>; WAITING] = [const { AtomicPtr::new(std::ptr::null_mut()) }; WAITING];

fn take() -> *mut u8 {
    for slot in &POOL {
        if !slot.load(Relaxed).is_null() {
            let buffer = slot.swap(std::ptr::null_mut(), AcqRel);
            if !buffer.is_null() {
                return buffer;
            }
        }
    }
    // SAFETY: an anonymous private mapping, which is zero and aligned to pages (CUPTI wants 8 bytes); the address is new.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return std::ptr::null_mut();
    }
    mapped.cast()
}

/// # Safety
/// The buffer comes from [`take`] and nobody uses it anymore.
unsafe fn put_back(buffer: *mut u8) {
    // All of it: whether CUPTI wrote past the records that it counts is not known.
    // SAFETY: the buffer has `BYTES` bytes.
    unsafe { std::ptr::write_bytes(buffer, 0, BYTES) };
    for slot in &POOL {
        if slot.load(Relaxed).is_null()
            && slot
                .compare_exchange(std::ptr::null_mut(), buffer, Release, Acquire)
                .is_ok()
        {
            return;
        }
    }
    // SAFETY: it was mapped with this size.
    unsafe { libc::munmap(buffer.cast(), BYTES) };
}

/// CUPTI wants a buffer. Without memory it gets none, drops records and counts them.
///
/// # Safety
/// CUPTI's own call: the pointers are to its variables.
pub unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    bytes: *mut usize,
    most_records: *mut usize,
) {
    let given = guard(take).unwrap_or(std::ptr::null_mut());
    // SAFETY: as the caller promises.
    unsafe {
        *buffer = given;
        *bytes = if given.is_null() { 0 } else { BYTES };
        // As many as fit.
        *most_records = 0;
    }
}

/// CUPTI gives a buffer back, with `valid` bytes of records.
///
/// # Safety
/// CUPTI's own call: the buffer is one that [`requested`] gave.
pub unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    bytes: usize,
    valid: usize,
) {
    // First: whatever its records are of has ended.
    let at_ns = monotonic_ns();
    let bytes = valid.min(bytes);
    guard(|| {
        let (Some(recorder), Some(cupti)) = (recorder(), subscription::cupti()) else {
            return;
        };
        if !buffer.is_null() && bytes > 0 {
            // SAFETY: CUPTI says that this much of the buffer holds records.
            unsafe { records::read(recorder, cupti, buffer, bytes, at_ns) };
        }
        // SAFETY: as the caller promises.
        let dropped = unsafe { cupti.dropped(context, stream) };
        if dropped > 0 {
            recorder.loss(
                LossKind::CudaActivities,
                dropped as u64,
                "CUPTI had no buffer for them",
            );
        }
    });
    if !buffer.is_null() {
        // SAFETY: CUPTI is done with the buffer.
        unsafe { put_back(buffer) };
    }
}

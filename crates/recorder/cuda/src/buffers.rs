//! Lends CUPTI (the tracing library of the CUDA driver) the buffers that it fills with records of work, and hands
//! the filled ones to the reader of records.
//!
//! CUPTI asks for a buffer ([`requested`]) on the program's thread and gives it back ([`completed`]) on a thread of
//! its own, or on that of the flusher, our thread that asks for filled buffers. It would fill each
//! buffer with zeros on the program's thread; instead, buffers are zeroed here when they come back.

use crate::recorder::recorder;
use crate::{records, subscription};
use gapscope_spool::event::LossKind;
use gapscope_spool::hook::guard;
use gapscope_spool::monotonic_ns;
use std::ffi::c_void;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// The size of a buffer, in bytes: it holds the records of about 4,500 kernels or 26,000 calls.
const BUFFER_BYTES: usize = 1 << 20;
/// The most buffers that wait for use; more are given back to the system.
const MAX_POOLED: usize = 32;

/// Buffers full of zeros.
static POOL: [AtomicPtr<u8>; MAX_POOLED] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MAX_POOLED];

/// Takes a buffer of zeros from the pool, or else from the system; null without memory.
fn take() -> *mut u8 {
    for slot in &POOL {
        if !slot.load(Relaxed).is_null() {
            let buffer = slot.swap(std::ptr::null_mut(), AcqRel);
            if !buffer.is_null() {
                return buffer;
            }
        }
    }
    // SAFETY: an anonymous private mapping at a new address, which is zero and aligned to pages (CUPTI needs 8
    // bytes).
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            BUFFER_BYTES,
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

/// Zeroes a buffer, and keeps it for later use or frees it.
///
/// # Safety
/// The buffer comes from [`take`] and is no longer used.
unsafe fn put_back(buffer: *mut u8) {
    // All of it is zeroed: CUPTI may have written past the records that it counts.
    // SAFETY: the buffer has `BUFFER_BYTES` bytes.
    unsafe { std::ptr::write_bytes(buffer, 0, BUFFER_BYTES) };
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
    unsafe { libc::munmap(buffer.cast(), BUFFER_BYTES) };
}

/// Gives CUPTI a buffer. Without memory CUPTI gets none, drops records and counts them.
///
/// # Safety
/// The call is CUPTI's own: the pointers are to its variables.
pub unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    bytes: *mut usize,
    most_records: *mut usize,
) {
    let given = guard(take).unwrap_or(std::ptr::null_mut());
    // SAFETY: as the caller promises.
    unsafe {
        *buffer = given;
        *bytes = if given.is_null() { 0 } else { BUFFER_BYTES };
        // 0 means as many as fit.
        *most_records = 0;
    }
}

/// Takes a buffer of `bytes` bytes back from CUPTI, with `valid` bytes of records: reads them, counts the records
/// that CUPTI dropped as lost, and zeroes the buffer.
///
/// # Safety
/// The call is CUPTI's own: the buffer is one that [`requested`] gave.
pub unsafe extern "C" fn completed(
    context: *mut c_void,
    stream: u32,
    buffer: *mut u8,
    bytes: usize,
    valid: usize,
) {
    // The time is taken first: all work in the buffer's records has ended by then.
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

//! An allocator with a limit. A hostile input that makes a program ask for too much memory fails here as on a small
//! machine, and in the same way each time.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// The maximum number of bytes that a target may have allocated at once. Code that asks first (`try_reserve`) gets an
/// error; other code ends the program, which is a fault.
pub const LIMIT_BYTES: usize = 512 << 20;

/// The number of bytes that are allocated now, by all threads.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The allocator with a limit.
#[derive(Debug)]
pub struct Limited;

thread_local! {
    /// The number of bytes that this thread has allocated and not freed since the measurement began. It is negative
    /// if the thread frees earlier memory.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The greatest value of [`HELD`] since the measurement began.
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Returns the result of a function and the maximum number of bytes that it had allocated at once in this thread.
pub fn with_peak<R>(of: impl FnOnce() -> R) -> (R, usize) {
    HELD.set(0);
    PEAK.set(0);
    let returned = of();
    (returned, PEAK.get().unsigned_abs())
}

/// Adds bytes, which may be negative, to what this thread holds.
fn hold(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

/// Counts an allocation. Returns false, and counts nothing, where it would pass the limit.
fn reserve(bytes: usize) -> bool {
    let used = USED.fetch_add(bytes, Relaxed).saturating_add(bytes);
    if used > LIMIT_BYTES {
        USED.fetch_sub(bytes, Relaxed);
        return false;
    }
    hold(bytes.cast_signed());
    true
}

/// Counts memory that was freed.
fn release(bytes: usize) {
    USED.fetch_sub(bytes, Relaxed);
    hold(-bytes.cast_signed());
}

// SAFETY: every call is passed on to the system's allocator with the same arguments, or answered with null, which stands for
// failure.
unsafe impl GlobalAlloc for Limited {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !reserve(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !reserve(layout.size()) {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let more = size.saturating_sub(layout.size());
        if !reserve(more) {
            return std::ptr::null_mut();
        }
        release(layout.size().saturating_sub(size));
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        release(layout.size());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

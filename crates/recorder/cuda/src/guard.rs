//! Keeps panics inside the library.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Runs work of ours. A panic in it is counted and does not reach the program.
#[inline]
pub fn guard<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => Some(value),
        Err(_) => {
            CAUGHT.fetch_add(1, Relaxed);
            None
        }
    }
}

/// How many panics have been caught since the last call.
pub fn take_caught() -> u64 {
    CAUGHT.swap(0, Relaxed)
}

/// Panics of this library print nothing: standard error belongs to the program.
pub fn silence() {
    std::panic::set_hook(Box::new(|_| {}));
}

//! Keeps the window of time that is recorded. Some of CUPTI's records cannot be switched off outside of the window;
//! they are compared with it and left out.

use gapscope_spool::monotonic_ns;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The start of the last window; the least number before the first.
static START_NS: AtomicI64 = AtomicI64::new(i64::MIN);
/// The end of the last window; the greatest number while recording is on.
static END_NS: AtomicI64 = AtomicI64::new(i64::MAX);

/// Starts a window now.
pub fn start() {
    START_NS.store(monotonic_ns(), Relaxed);
    END_NS.store(i64::MAX, Relaxed);
}

/// Ends the window now.
pub fn end() {
    END_NS.store(monotonic_ns(), Relaxed);
}

/// Notes that no window has started yet: until [`start`], nothing belongs to one.
pub fn wait_for_start() {
    END_NS.store(i64::MIN, Relaxed);
}

/// Returns whether something that started at this time belongs to the recorded window.
pub fn contains(start_ns: i64) -> bool {
    (START_NS.load(Relaxed)..=END_NS.load(Relaxed)).contains(&start_ns)
}

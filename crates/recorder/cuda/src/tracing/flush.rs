//! Writes everything that has been recorded so far.

use crate::callbacks::polls;
use crate::cupti::{Cupti, numbers};
use crate::recorder::Recorder;
use crate::{records, subscription};

/// Writes CUPTI's records of finished work, and the polls of all threads.
pub fn flush(recorder: &Recorder) {
    if let Some(subscription) = subscription::live() {
        flush_with(recorder, &subscription.cupti, 0);
    }
}

/// Flushes for the last time, also records of unfinished work.
pub fn flush_for_good(recorder: &'static Recorder) {
    if let Some(subscription) = subscription::live() {
        flush_with(recorder, &subscription.cupti, numbers::FLUSH_FORCED);
        records::close(recorder);
    }
}

/// Has CUPTI hand over its buffers, and writes what was read of them and the polls.
fn flush_with(recorder: &Recorder, cupti: &Cupti, flags: u32) {
    // SAFETY: CUPTI's function; it calls `buffers::completed` on this thread or another.
    unsafe { (cupti.functions.flush_all)(flags) };
    records::write_out();
    polls::write_all(recorder);
}

//! Calls that only ask for a state. Programs make thousands of them, so that several are written as one.

use gapscope_spool::Spool;
use gapscope_spool::event::{HostCallKind, Span, VulkanEvent};
use gapscope_spool::hook::guard;
use std::cell::RefCell;

/// Polls further apart than this are separate rows.
const FOLD_GAP_NS: i64 = 1_000_000;
/// A row of folded polls covers at most this time, so that little is lost at a sudden end.
const FOLD_SPAN_NS: i64 = 10_000_000;

/// Several polls of one kind with one outcome: one that finds its work done is no part of the wait before it.
struct Fold {
    spool: &'static Spool,
    call: HostCallKind,
    start_ns: i64,
    end_ns: i64,
    count: u32,
    busy_ns: i64,
    result: i32,
}

thread_local! {
    static FOLD: RefCell<Option<Fold>> = const { RefCell::new(None) };
}

impl Drop for Fold {
    fn drop(&mut self) {
        guard(|| {
            self.spool.write(&VulkanEvent::HostCall {
                call: self.call,
                span: Span::between(self.start_ns, self.end_ns),
                count: self.count,
                busy_ns: self.busy_ns,
                queue: None,
                bytes: None,
                result: self.result,
            });
        });
    }
}

/// Writes the polls that this thread has folded so far.
pub fn flush() {
    let _ = FOLD.try_with(|fold| fold.try_borrow_mut().map(|mut fold| fold.take()));
}

/// Folds a call with those of its kind before it.
pub fn add(spool: &'static Spool, call: HostCallKind, start_ns: i64, end_ns: i64, result: i32) {
    let _ = FOLD.try_with(|slot| {
        let Ok(mut slot) = slot.try_borrow_mut() else {
            return;
        };
        if let Some(fold) = slot.as_mut()
            && fold.call == call
            && fold.result == result
            && start_ns - fold.end_ns < FOLD_GAP_NS
            && end_ns - fold.start_ns < FOLD_SPAN_NS
        {
            fold.end_ns = end_ns;
            fold.count += 1;
            fold.busy_ns += end_ns - start_ns;
            return;
        }
        // Assigning drops, and so writes, the fold before.
        *slot = Some(Fold {
            spool,
            call,
            start_ns,
            end_ns,
            count: 1,
            busy_ns: end_ns - start_ns,
            result,
        });
    });
}

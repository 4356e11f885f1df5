//! Folds polls (calls that only ask for a state, such as vkGetFenceStatus): programs make thousands of them, so
//! several in a row are written as one host call. [`add`] takes each poll of a thread; a poll that does not fit, the
//! thread's end or [`flush`] writes what was folded.

use crate::submitted::Submitted;
use gapscope_spool::Spool;
use gapscope_spool::event::{HostCallKind, Span, VulkanEvent};
use gapscope_spool::hook::guard;
use std::cell::RefCell;

/// Polls that are this far apart are written apart.
const FOLD_GAP_NS: i64 = 1_000_000;
/// Folded polls cover less than this time together; it is short, so that little is lost at a sudden end.
const FOLD_SPAN_NS: i64 = 10_000_000;

/// One poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Poll {
    pub call: HostCallKind,
    pub span: Span,
    /// The call's `VkResult`.
    pub result: i32,
    /// The submission that the call found done.
    pub awaited: Option<Submitted>,
}

/// Several polls of one kind with one outcome: a poll that finds its work done is no part of the wait before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Polls {
    call: HostCallKind,
    span: Span,
    count: u32,
    /// The sum of the times inside the calls.
    busy_ns: i64,
    /// The calls' `VkResult`.
    result: i32,
    /// The last of the submissions that the calls found done, if all are known and on one queue.
    awaited: Option<Submitted>,
}

/// Folded polls that are written when this is dropped.
struct Fold {
    spool: &'static Spool,
    polls: Polls,
}

thread_local! {
    /// The polls of this thread that are not written yet.
    static FOLD: RefCell<Option<Fold>> = const { RefCell::new(None) };
}

impl Polls {
    /// Returns these polls with the next one added; `None` if it does not belong to them.
    fn with(self, next: Polls) -> Option<Polls> {
        let kind = |polls: &Polls| (polls.call, polls.result);
        let (start_ns, end_ns) = (self.span.start_ns, next.span.end_ns());
        let goes_on = kind(&self) == kind(&next)
            && next.span.start_ns - self.span.end_ns() < FOLD_GAP_NS
            && end_ns - start_ns < FOLD_SPAN_NS;
        goes_on.then(|| Polls {
            span: Span::between(start_ns, end_ns),
            count: self.count + next.count,
            busy_ns: self.busy_ns + next.busy_ns,
            awaited: (self.awaited.zip(next.awaited)).and_then(|(a, b)| a.later(b)),
            ..self
        })
    }
}

impl Drop for Fold {
    fn drop(&mut self) {
        guard(|| {
            self.spool.write(&VulkanEvent::HostCall {
                call: self.polls.call,
                function: None,
                span: self.polls.span,
                count: self.polls.count,
                busy_ns: self.polls.busy_ns,
                queue: self.polls.awaited.map(|awaited| awaited.queue),
                bytes: None,
                result: self.polls.result,
                waits_for: self.polls.awaited.map(|awaited| awaited.submission),
            });
        });
    }
}

/// Writes the polls that this thread has folded so far.
pub fn flush() {
    let _ = FOLD.try_with(|fold| fold.try_borrow_mut().map(|mut fold| fold.take()));
}

/// Folds a call with those of its kind before it.
pub fn add(spool: &'static Spool, poll: Poll) {
    let polls = Polls {
        call: poll.call,
        span: poll.span,
        count: 1,
        busy_ns: poll.span.duration_ns,
        result: poll.result,
        awaited: poll.awaited,
    };
    let _ = FOLD.try_with(|slot| {
        let Ok(mut slot) = slot.try_borrow_mut() else {
            return;
        };
        match slot.as_mut().map(|fold| (fold.polls.with(polls), fold)) {
            Some((Some(together), fold)) => fold.polls = together,
            // The assignment drops, and so writes, the polls before.
            _ => *slot = Some(Fold { spool, polls }),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_spool::ids;

    fn poll(start_ns: i64, result: i32) -> Polls {
        Polls {
            call: HostCallKind::PollFence,
            span: Span::between(start_ns, start_ns + 10),
            count: 1,
            busy_ns: 10,
            result,
            awaited: None,
        }
    }

    #[test]
    fn polls_of_one_outcome_are_one() {
        let (not_ready, done) = (1, 0);
        let first = poll(1000, not_ready);
        let two = first.with(poll(2000, not_ready)).expect("together");
        assert_eq!((two.count, two.busy_ns, two.result), (2, 20, not_ready));
        assert_eq!(two.span, Span::between(1000, 2010));
        assert_eq!(two.with(poll(3000, done)), None, "it found its work done");
        assert!(poll(3000, done).with(poll(4000, done)).is_some());
        assert_eq!(first.with(poll(1010 + FOLD_GAP_NS, not_ready)), None);
        assert!(first.with(poll(1009 + FOLD_GAP_NS, not_ready)).is_some());
        let other = Polls {
            call: HostCallKind::PollSemaphore,
            ..poll(2000, not_ready)
        };
        assert_eq!(first.with(other), None);
    }

    #[test]
    fn polls_that_find_several_submissions_done_are_for_the_last_of_one_queue() {
        let found = |start_ns, submission, queue| Polls {
            awaited: Some(Submitted {
                submission: ids::Submission(submission),
                queue: ids::Queue(queue),
            }),
            ..poll(start_ns, 0)
        };
        let together = |a: Polls, b: Polls| a.with(b).expect("together").awaited;
        let later = found(2000, 7, 1);
        assert_eq!(together(found(1000, 5, 1), later), later.awaited);
        assert_eq!(together(found(1000, 5, 2), later), None);
        assert_eq!(together(poll(1000, 0), later), None);
    }
}

//! Marks the polls of a thread that form a wait, and joins waits that ran into their time limit with those that follow.
//!
//! A poll asks whether work is done. A poll that finds its work done explains nothing: the program looked and went on. Polls
//! that find it not done, followed by one that finds it done or by a call that waits, are one wait from the first to the last,
//! including the time between them (up to [`POLLS_APART_NS`]). A folded row of polls that found nothing done is a wait of its
//! own, since those polls followed each other closely. Version 1 of the format also folded the poll that found the work done.
//!
//! The trace does not say whether a poll of a semaphore found what it looked for. A program that polls again had not.
//! A poll whose outcome is unknown ends the wait before it and may begin the next. A program that waits with a time limit, and again where
//! the limit came first, makes one wait: each call that ran into its limit is as a poll that found its work not done.

use super::segment::{CallClass, Segment, WaitOutcome};
use crate::thresholds::POLLS_APART_NS;

/// Joins the polls of one thread into waits, by setting the fields `waits`, `continues_wait`, `since_ns` and
/// `outcome` of `calls`, which are in order of time.
pub(super) fn join(calls: &mut [Segment]) {
    // The first of the polls so far that did not find their work done, or of the waits that ran into their time limit.
    let mut open: Option<usize> = None;
    for at in 0..calls.len() {
        let call = calls[at];
        let apart_ns = |before: &Segment| call.interval.start_ns - before.interval.end_ns;
        let first = open.filter(|_| apart_ns(&calls[at - 1]) <= POLLS_APART_NS);
        let joins = match call.call.is_poll() {
            true => call.outcome != WaitOutcome::NotDone,
            false => call.waits,
        };
        if joins && let Some(first) = first {
            calls[first].waits = true;
            let since_ns = calls[first].since_ns;
            for poll in &mut calls[first + 1..=at] {
                poll.waits = true;
                poll.continues_wait = true;
                poll.since_ns = since_ns;
            }
            // The first of several polls that found the work done ended the wait.
            if call.count > 1 && call.outcome == WaitOutcome::Done && !call.waits {
                calls[at].waits = false;
                calls[at - 1].outcome = WaitOutcome::Done;
            }
        }
        open = match (may_be_made_again(&call), call.outcome) {
            (false, _) | (true, WaitOutcome::Done) => None,
            (true, WaitOutcome::NotDone) => first.or(Some(at)),
            // The polls before it have been joined.
            (true, WaitOutcome::Unknown) => Some(at),
        };
    }
}

/// Returns true for a call that a program may make again for the same work: a poll, or a wait that ran into its time limit.
pub(super) fn may_be_made_again(call: &Segment) -> bool {
    let ran_into_limit = call.class() == CallClass::Wait && call.outcome == WaitOutcome::NotDone;
    call.call.is_poll() || ran_into_limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intervals::Interval;
    use WaitOutcome::{Done, NotDone};
    use gapscope_trace::lookup::NONE;
    use gapscope_trace::tables::HostCallKind::{self, PollFence, Submit, WaitFences};

    /// Lays calls out behind each other, 10 ns apart, and returns the starts of their waits.
    fn waits_since(calls: &[(HostCallKind, WaitOutcome)]) -> Vec<i64> {
        let calls = calls.iter().zip((0..).step_by(100));
        let mut calls: Vec<Segment> = calls
            .map(|((call, outcome), at_ns)| {
                Segment::new(*call, NONE, 1, *outcome, Interval::new(at_ns, at_ns + 90))
            })
            .collect();
        join(&mut calls);
        calls.iter().map(|call| call.since_ns).collect()
    }

    #[test]
    fn waits_with_a_time_limit_are_one_wait() {
        let limited = (WaitFences, NotDone);
        let ended = (WaitFences, Done);
        assert_eq!(waits_since(&[limited, limited, ended]), [0, 0, 0]);
        assert_eq!(
            waits_since(&[limited, (PollFence, Done), ended]),
            [0, 0, 200]
        );
        // What is waited for after other work, or after a wait that ended, is other work.
        assert_eq!(
            waits_since(&[limited, (Submit, Done), ended]),
            [0, 100, 200]
        );
        assert_eq!(waits_since(&[ended, ended]), [0, 100]);
    }
}

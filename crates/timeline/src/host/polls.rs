//! Marks the polls of a thread that form a wait.
//!
//! A poll asks whether work is done. A poll that finds its work done explains nothing: the program looked and went on. Polls
//! that find it not done, followed by one that finds it done or by a call that waits, are one wait from the first to the last,
//! including the time between them (up to [`POLLS_APART_NS`]). A folded row of polls that found nothing done is a wait of its
//! own, since those polls followed each other closely. Version 1 of the format also folded the poll that found the work done.
//!
//! The trace does not say whether a poll of a semaphore found what it looked for. A program that polls again had not.
//! A poll whose outcome is unknown ends the wait before it and may begin the next.

use super::segment::{Segment, WaitOutcome};
use crate::thresholds::POLLS_APART_NS;

/// Joins the polls of one thread into waits, by setting the fields `waits`, `continues_wait`, `since_ns` and
/// `outcome` of `calls`, which are in order of time.
pub(super) fn join(calls: &mut [Segment]) {
    // The first of the polls so far that did not find their work done.
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
        open = match (call.call.is_poll(), call.outcome) {
            (false, _) | (true, WaitOutcome::Done) => None,
            (true, WaitOutcome::NotDone) => first.or(Some(at)),
            // The polls before it have been joined.
            (true, WaitOutcome::Unknown) => Some(at),
        };
    }
}

//! Which polls are a wait.
//!
//! A poll asks whether work is done. One that found it done explains nothing: the program looked and went on. Polls that
//! did not, followed by one that did or by a call that waits, are one wait from the first to the last, with the time
//! between them ([`POLLS_APART_NS`]). A folded row of polls that found nothing done is a wait of its own: they followed each
//! other closely. Version 1 of the format folded the poll that found the work done too.
//!
//! Whether a poll of a semaphore found what it looked for is not in the trace: who asks again had not.

use super::{Found, Segment};
use crate::thresholds::POLLS_APART_NS;

/// Joins the polls of one thread, whose calls are in order of time, to waits.
pub(super) fn join(calls: &mut [Segment]) {
    // The first of the polls so far that have not found their work done.
    let mut open: Option<usize> = None;
    for at in 0..calls.len() {
        let call = calls[at];
        let apart_ns = |before: &Segment| call.interval.start_ns - before.interval.end_ns;
        let first = open.filter(|_| apart_ns(&calls[at - 1]) <= POLLS_APART_NS);
        let joins = match call.call.is_poll() {
            true => call.found != Found::NotDone,
            false => call.waited,
        };
        if joins && let Some(first) = first {
            calls[first].waited = true;
            let since_ns = calls[first].since_ns;
            for poll in &mut calls[first + 1..=at] {
                poll.waited = true;
                poll.after_poll = true;
                poll.since_ns = since_ns;
            }
            // Of several that found the work done the first ended the wait.
            if call.count > 1 && call.found == Found::Done && !call.waited {
                calls[at].waited = false;
                calls[at - 1].found = Found::Done;
            }
        }
        open = match (call.call.is_poll(), call.found) {
            (false, _) | (true, Found::Done) => None,
            (true, Found::NotDone) => first.or(Some(at)),
            // What is before is joined.
            (true, Found::Unknown) => Some(at),
        };
    }
}

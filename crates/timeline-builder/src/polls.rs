//! Polling calls (which only ask for a state) of a thread that follow each other closely, folded into one row.

use crate::input::{ApiCall, FunctionId};
use gapscope_model::{BETWEEN_POLLS_NS, Span};
use serde::{Deserialize, Serialize};

/// Calls of one thread that asked for the same state, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Polls {
    /// The calls as one: from the start of the first to the return of the last.
    pub call: ApiCall,
    /// How many there were.
    pub count: u32,
    /// Time inside the calls.
    pub busy_ns: i64,
}

impl Polls {
    /// Returns the polls that consist of one call.
    pub fn new(call: ApiCall) -> Polls {
        Polls {
            call,
            count: 1,
            busy_ns: call.span.duration_ns,
        }
    }

    /// Takes in the polls that came next on the same thread. Returns false, and changes nothing, where they belong to
    /// another wait: of another function, with another outcome, or too long after.
    pub(crate) fn join(&mut self, next: &Polls) -> bool {
        let outcome =
            |polls: &Polls| -> (FunctionId, i32) { (polls.call.function, polls.call.result) };
        let (span, next_span) = (self.call.span, next.call.span);
        let is_close = next_span.start_ns >= span.start_ns
            && next_span.start_ns.saturating_sub(span.end_ns()) <= BETWEEN_POLLS_NS;
        if outcome(self) != outcome(next) || !is_close {
            return false;
        }
        let end_ns = span.end_ns().max(next_span.end_ns());
        self.call.span = Span::between(span.start_ns, end_ns);
        self.count = self.count.saturating_add(next.count);
        self.busy_ns = self.busy_ns.saturating_add(next.busy_ns);
        true
    }
}

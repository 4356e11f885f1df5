//! Calls that ask whether work is done. A host that waits so makes a million of them in a second: those that follow each
//! other are one entry.

use crate::hash::FastMap;
use gapscope_spool::event::{Activity, Span};

/// Polls that follow each other so closely are one wait: so the session sees them too.
const BETWEEN_NS: i64 = 100_000;

/// Polls that are not written yet.
#[derive(Debug, Default)]
pub struct Polls {
    /// By thread.
    open: FastMap<u32, Folded>,
}

#[derive(Debug, Clone, Copy)]
struct Folded {
    function: u32,
    begin_ns: i64,
    end_ns: i64,
    count: u32,
    busy_ns: u64,
    result: u32,
}

impl Polls {
    /// A thread asked. Gives what it asked before, when this is not more of the same.
    #[inline]
    pub fn add(&mut self, function: u32, thread: u32, span: Span, result: u32) -> Option<Activity> {
        let new = Folded {
            function,
            begin_ns: span.start_ns,
            end_ns: span.end_ns(),
            count: 1,
            busy_ns: span.duration_ns as u64,
            result,
        };
        match self.open.get_mut(&thread) {
            None => {
                self.open.insert(thread, new);
                None
            }
            Some(folded) if folded.goes_on(&new) => {
                folded.end_ns = new.end_ns;
                folded.count += 1;
                folded.busy_ns = folded.busy_ns.saturating_add(new.busy_ns);
                folded.result = result;
                None
            }
            Some(folded) => Some(std::mem::replace(folded, new).activity(thread)),
        }
    }

    /// A thread did something else. Gives what it asked before.
    #[inline]
    pub fn end(&mut self, thread: u32) -> Option<Activity> {
        if self.open.is_empty() {
            return None;
        }
        self.open
            .remove(&thread)
            .map(|folded| folded.activity(thread))
    }

    /// All that is not written.
    pub fn drain(&mut self) -> impl Iterator<Item = Activity> + '_ {
        self.open
            .drain()
            .map(|(thread, folded)| folded.activity(thread))
    }
}

impl Folded {
    fn goes_on(&self, next: &Folded) -> bool {
        self.function == next.function
            && next.begin_ns >= self.begin_ns
            && next.begin_ns.saturating_sub(self.end_ns) <= BETWEEN_NS
            && self.count < u32::MAX
    }

    fn activity(self, thread: u32) -> Activity {
        Activity::Polls {
            function: self.function,
            thread,
            span: Some(Span {
                start_ns: self.begin_ns,
                duration_ns: self.end_ns.saturating_sub(self.begin_ns).max(0),
            }),
            count: self.count,
            busy_ns: self.busy_ns,
            result: self.result,
        }
    }
}

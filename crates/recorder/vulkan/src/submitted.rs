//! The type of a submission with its queue, as waits of the host name it.

use gapscope_spool::ids;

/// A submission and its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    pub submission: ids::Submission,
    pub queue: ids::Queue,
}

impl Submitted {
    /// Returns the one of two submissions that was submitted later. Of two queues there is none.
    pub fn later(self, other: Submitted) -> Option<Submitted> {
        let later = match self.submission >= other.submission {
            true => self,
            false => other,
        };
        (self.queue == other.queue).then_some(later)
    }

    /// Returns the one of two submissions that was submitted earlier, and so ends first. Of two queues there is none.
    pub fn earlier(self, other: Submitted) -> Option<Submitted> {
        let earlier = match self.submission <= other.submission {
            true => self,
            false => other,
        };
        (self.queue == other.queue).then_some(earlier)
    }
}

//! When command buffers and submissions ran.

use crate::intervals::Interval;
use gapscope_trace::ids::QueueId;

/// A queue of the manifest, or one that only rows name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueueOfGpu {
    pub(crate) id: QueueId,
    pub(crate) gpu: u32,
    /// Row in the manifest.
    pub(crate) row: Option<u32>,
}

/// What the work of a command buffer says about it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandBufferTimes {
    /// Row of its submission, or [`NONE`](gapscope_trace::lookup::NONE).
    pub(crate) submission: u32,
    /// Its own times.
    pub(crate) own: Option<Interval>,
    /// Pieces of work inside, with and without times.
    pub(crate) timed: u32,
    pub(crate) untimed: u32,
    /// What ran of it.
    pub(crate) ran: Ran,
    /// True when it counts as busy from start to end though dispatches are timed.
    pub(crate) whole: bool,
}

impl CommandBufferTimes {
    pub(super) fn new(submission: u32, own: Option<Interval>) -> CommandBufferTimes {
        CommandBufferTimes {
            submission,
            own,
            timed: 0,
            untimed: 0,
            ran: Ran::default(),
            whole: false,
        }
    }
}

/// When the work of a command buffer ran. Without timed work, `first_start_ns` is above `last_end_ns`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ran {
    /// First start and last end of the work, the command buffer itself included where it is work.
    pub(crate) first_start_ns: i64,
    pub(crate) last_end_ns: i64,
    /// Sum and union of the pieces inside.
    pub(crate) sum_ns: i64,
    pub(crate) union_ns: i64,
}

impl Default for Ran {
    fn default() -> Self {
        Ran {
            first_start_ns: i64::MAX,
            last_end_ns: i64::MIN,
            sum_ns: 0,
            union_ns: 0,
        }
    }
}

impl Ran {
    /// Adds work; `inside`: a piece inside, not the command buffer itself. In order of start.
    #[inline]
    pub(super) fn add(&mut self, work: Interval, inside: bool) {
        if inside {
            let fresh = Interval::new(work.start_ns.max(self.last_end_ns), work.end_ns);
            self.sum_ns = self.sum_ns.saturating_add(work.length_ns());
            self.union_ns = self.union_ns.saturating_add(fresh.length_ns());
        }
        self.first_start_ns = self.first_start_ns.min(work.start_ns);
        self.last_end_ns = self.last_end_ns.max(work.end_ns);
    }
}

/// When the work of a submission ran. Without timed work, `first_start_ns` is above `last_end_ns`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SubmissionTimes {
    pub(crate) first_start_ns: i64,
    pub(crate) last_end_ns: i64,
    /// Index in [`Timeline::queues`](super::Timeline::queues).
    pub(crate) queue: u32,
    /// Command buffers of it that are known to have run no work.
    pub(crate) without_work: u32,
}

impl SubmissionTimes {
    pub(super) fn new(queue: u32) -> SubmissionTimes {
        SubmissionTimes {
            first_start_ns: i64::MAX,
            last_end_ns: i64::MIN,
            queue,
            without_work: 0,
        }
    }

    #[inline]
    pub(super) fn add(&mut self, work: Interval) {
        self.first_start_ns = self.first_start_ns.min(work.start_ns);
        self.last_end_ns = self.last_end_ns.max(work.end_ns);
    }

    pub(crate) fn interval(&self) -> Option<Interval> {
        (self.first_start_ns <= self.last_end_ns)
            .then(|| Interval::new(self.first_start_ns, self.last_end_ns))
    }
}

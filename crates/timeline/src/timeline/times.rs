//! The types of the times at which command buffers and submissions ran. The builder of the timeline fills them while
//! it adds work.

use crate::intervals::Interval;
use gapscope_trace::ids::QueueId;

/// A queue of the manifest, or one that only rows name.
#[derive(Debug, Clone, Copy)]
pub struct QueueOfGpu {
    /// The id of the queue.
    pub id: QueueId,
    /// The index of the queue's GPU.
    pub gpu: u32,
    /// The queue's row in the manifest; `None` where only other rows name the queue.
    pub row: Option<u32>,
    /// True where the trace defines queues, and not this one: work that names it ran somewhere else, or is damaged, and its times
    /// count as unknown.
    pub is_undefined: bool,
}

/// The numbers of pieces of work with times that name a queue which the trace does not define.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OnUndefinedQueues {
    /// Dispatches.
    pub dispatches: u64,
    /// Transfers.
    pub transfers: u64,
    /// Pieces of opaque work.
    pub opaque_work: u64,
}

/// The times of a command buffer, and of the work in it.
#[derive(Debug, Clone, Copy)]
pub struct CommandBufferTimes {
    /// The row of the command buffer's submission, or [`NONE`](gapscope_trace::lookup::NONE).
    pub submission: u32,
    /// The command buffer's own times, where the trace has them.
    pub own: Option<Interval>,
    /// The number of pieces of work inside with known times.
    pub timed: u32,
    /// The number of pieces of work inside without known times.
    pub untimed: u32,
    /// The times of the work inside.
    pub ran: Ran,
    /// True where the command buffer counts as busy from start to end, because not all that is inside has times.
    pub whole: bool,
}

impl CommandBufferTimes {
    /// Returns the times of a command buffer whose work has not been added yet.
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

    /// Returns true where some of the work inside may have run at times that the trace does not tell: it has no
    /// times of its own, and the command buffer has none that would cover it.
    pub fn has_untimed_work(&self) -> bool {
        self.own.is_none() && (self.untimed > 0 || !self.ran.has_work())
    }
}

/// The times of a command buffer's work. Without timed work, `first_start_ns` is above `last_end_ns`.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    /// The first start of the work inside. The command buffer itself may be work.
    pub first_start_ns: i64,
    /// The last end of the work inside.
    pub last_end_ns: i64,
    /// The sum of the lengths of the pieces inside.
    pub sum_ns: i64,
    /// The length of the union of the pieces inside.
    pub union_ns: i64,
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
    /// Returns true where some of the work has known times.
    pub fn has_work(&self) -> bool {
        self.first_start_ns <= self.last_end_ns
    }

    /// Adds work, in order of start. `inside` is false for the command buffer itself.
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

/// The times of a submission's work. Without timed work, `first_start_ns` is above `last_end_ns`.
#[derive(Debug, Clone, Copy)]
pub struct SubmissionTimes {
    /// The earliest start of the work.
    pub first_start_ns: i64,
    /// The latest end of the work.
    pub last_end_ns: i64,
    /// The index of the submission's queue in [`Timeline::queues`](crate::Timeline::queues).
    pub queue: u32,
    /// The number of the submission's command buffers that are known to have run no work.
    pub without_work: u32,
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

    /// Returns the time from the first start to the last end, where some of its work is timed.
    pub fn interval(&self) -> Option<Interval> {
        (self.first_start_ns <= self.last_end_ns)
            .then(|| Interval::new(self.first_start_ns, self.last_end_ns))
    }
}

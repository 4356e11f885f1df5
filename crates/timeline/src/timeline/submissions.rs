//! Gives the submissions of each queue in the order of their calls, and tells how a submission may hold up later
//! ones.

use super::index::Timeline;
use crate::intervals::Interval;
use gapscope_trace::tables::SubmissionKind;

/// The way in which a submission may hold up those that come after it.
#[derive(Debug, Clone, Copy)]
pub enum Standing {
    /// The submission has work with known times.
    Timed(Interval),
    /// The submission has work whose times are not known.
    Untimed,
    /// The submission has no work: what came before it is awaited too.
    NoWork(SubmissionKind),
}

/// Returns true for submissions that hand work to a queue, and do not only hold the queue up.
pub fn is_work(kind: SubmissionKind) -> bool {
    use SubmissionKind::*;
    !matches!(
        kind,
        HostFunction | WaitValue | WaitExternal | Prefetch | Decompression
    )
}

impl Timeline<'_> {
    /// Returns the way in which the submission of a row may hold up those that come after it.
    pub fn standing(&self, row: u32) -> Standing {
        let at = row as usize;
        let rows = &self.trace.tables.submissions;
        let times = &self.submissions[at];
        if let Some(interval) = times.interval() {
            return Standing::Timed(interval);
        }
        match rows.kind[at] {
            kind if !is_work(kind) => Standing::NoWork(kind),
            SubmissionKind::CommandBuffers if rows.command_buffers[at] <= times.without_work => {
                Standing::NoWork(SubmissionKind::CommandBuffers)
            }
            _ => Standing::Untimed,
        }
    }

    /// Counts the submissions that hand over work or semaphores, without those that only hold a queue up.
    pub fn submission_count(&self) -> u64 {
        let kinds = self.trace.tables.submissions.kind.iter();
        kinds.filter(|kind| is_work(**kind)).count() as u64
    }

    /// Returns the rows of each queue's submissions, in the order of their calls. They are sorted at the first call, and
    /// kept, because most analyses need them.
    pub fn submissions_by_queue(&self) -> &[Vec<u32>] {
        self.by_queue.get_or_init(|| {
            let mut counts = vec![0; self.queues.len()];
            for times in &self.submissions {
                counts[times.queue as usize] += 1;
            }
            let mut queues: Vec<Vec<u32>> = counts.into_iter().map(Vec::with_capacity).collect();
            for (row, times) in (0..).zip(&self.submissions) {
                queues[times.queue as usize].push(row);
            }
            for rows in &mut queues {
                if !rows.is_sorted_by_key(|row| self.call_order(*row)) {
                    rows.sort_unstable_by_key(|row| self.call_order(*row));
                }
            }
            queues
        })
    }

    /// Returns the key that sorts submissions in the order of their calls.
    pub fn call_order(&self, row: u32) -> impl Ord + use<> {
        let table = &self.trace.tables.submissions;
        (table.start_ns[row as usize], table.id[row as usize], row)
    }
}

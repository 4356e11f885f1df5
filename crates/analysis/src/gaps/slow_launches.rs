//! Finds out what holds up calls that launch kernels and take long: input is a timeline and the length from which on a call is
//! slow, output whether most of the slow time is that of first launches, or was spent while another thread was in a call.
//!
//! What this cannot know: locks inside the driver. That another thread was in a call of the driver meanwhile makes one likely.

use gapscope_timeline::Timeline;
use gapscope_timeline::WorkKind;
use gapscope_timeline::host::{CallClass, HostThread};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::MOST_OF_CALLS_SHARE;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{SubmissionKind, Table};
use std::collections::HashMap;

/// The most slow calls that are compared with the calls of other threads.
const MAX_CALLS: usize = 1 << 10;

/// The time of slow launches by what may have held them up.
pub(super) struct Reasons<'a> {
    total_ns: i64,
    /// The part of the calls that launched a kernel for the first time.
    first_ns: i64,
    /// The time of the calls that were compared with other threads.
    compared_ns: i64,
    /// The part of that time in which another thread was in a call of a function.
    behind: Option<(&'a str, i64)>,
}

impl<'a> Reasons<'a> {
    pub(super) fn new(timeline: &'a Timeline<'a>, least_ns: i64) -> Reasons<'a> {
        let rows = &timeline.trace.tables.submissions;
        let is_slow = |row: &usize| {
            rows.kind[*row] == SubmissionKind::Kernel && rows.duration_ns[*row] >= least_ns
        };
        let first = first_launches(timeline);
        let (mut total_ns, mut first_ns, mut compared_ns) = (0_i64, 0_i64, 0_i64);
        let mut behind: HashMap<&str, i64> = HashMap::new();
        for (number, row) in (0..rows.len()).filter(is_slow).enumerate() {
            let length_ns = rows.duration_ns[row];
            total_ns = total_ns.saturating_add(length_ns);
            if first.get(row) == Some(&true) {
                first_ns = first_ns.saturating_add(length_ns);
            }
            let thread = HostThread::from_row(rows.process[row], rows.thread.at(row));
            let Some(thread) = thread.filter(|_| number < MAX_CALLS) else {
                continue;
            };
            compared_ns = compared_ns.saturating_add(length_ns);
            let call = Interval::new(rows.start_ns[row], rows.end_ns(row));
            let host = timeline.host_threads();
            for other in host.other_threads(thread) {
                let segments = host.segments(other, call);
                // A thread that waits for the GPU holds no lock.
                for segment in segments.filter(|segment| segment.class() != CallClass::Wait) {
                    let ns = segment.interval.intersection(call).length_ns();
                    let name = host.function_name(segment.function);
                    let sum = behind.entry(name.unwrap_or(segment.call.as_str()));
                    let sum = sum.or_default();
                    *sum = sum.saturating_add(ns);
                }
            }
        }
        Reasons {
            total_ns,
            first_ns,
            compared_ns,
            behind: behind.into_iter().max_by_key(|(name, ns)| (*ns, *name)),
        }
    }

    /// Returns true where most of the time is that of first launches.
    pub(super) fn are_first(&self) -> bool {
        ratio(self.first_ns, self.total_ns) >= MOST_OF_CALLS_SHARE
    }

    /// Returns the function in which another thread was for most of the time.
    pub(super) fn behind(&self) -> Option<&'a str> {
        let (function, ns) = self.behind?;
        (ratio(ns, self.compared_ns) >= MOST_OF_CALLS_SHARE).then_some(function)
    }
}

/// Returns for each row of the table of submissions whether it launched a kernel that had not run before.
fn first_launches(timeline: &Timeline) -> Vec<bool> {
    let mut has_run = vec![false; timeline.trace.tables.kernels.len()];
    let mut first = vec![false; timeline.submissions.len()];
    for gpu in &timeline.gpus {
        for work in gpu.works.range(0..gpu.works.len()) {
            let kernel = match work.kind() {
                WorkKind::Dispatch => timeline.kernel_row(work.row()),
                _ => None,
            };
            let submission = timeline.submission_of(&work);
            let (Some(kernel), true) = (kernel, submission != NONE) else {
                continue;
            };
            if let Some(has_run) = has_run.get_mut(kernel)
                && !std::mem::replace(has_run, true)
            {
                first[submission as usize] = true;
            }
        }
    }
    first
}

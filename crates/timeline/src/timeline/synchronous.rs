//! Finds the submission calls that return only after their own work has ended: input are a trace and the times of its
//! submissions, output the rows of the
//! submissions. For the host such a call is a wait.
//!
//! - A copy to pageable memory of the host: the driver returns when the memory is filled.
//! - A kernel or graph that ran during its own call for most of the call, and ended just before the call returned, as with
//!   `CUDA_LAUNCH_BLOCKING=1`.
//!
//! What this cannot know: whether a call that ended before its work, within the clock's error, waited for it.

use super::times::SubmissionTimes;
use crate::intervals::Interval;
use crate::quantity::ratio;
use crate::thresholds::{EARLY_RETURN_NS, SYNC_OWN_NS, SYNC_RETURN_NS, SYNC_SHARE, SYNC_TIMES};
use gapscope_trace::Trace;
use gapscope_trace::ids::SubmissionId;
use gapscope_trace::lookup::{IdIndex, NONE};
use gapscope_trace::tables::{MemoryPlace, SubmissionKind, Table, TransferKind};

/// Returns for each row of the table of submissions whether its call waited for its own work; empty where none did.
pub(super) fn synchronous(
    trace: &Trace,
    submissions: &[SubmissionTimes],
    ids: &IdIndex<SubmissionId>,
) -> Vec<bool> {
    let mut is_synchronous = Vec::new();
    let mut mark = |row: usize| {
        is_synchronous.resize(submissions.len(), false);
        is_synchronous[row] = true;
    };
    let tables = &trace.tables;
    let transfers = &tables.transfers;
    for row in 0..transfers.len() {
        let reads_back = transfers.kind[row] == TransferKind::DeviceToHost
            && transfers.host_memory[row] == Some(MemoryPlace::Pageable);
        let submission = transfers.submission.at(row).filter(|_| reads_back);
        let submission = submission.map(|id| ids.row(id));
        if let Some(submission) = submission.filter(|row| *row != NONE)
            && returns_after_work(trace, submissions, submission as usize)
        {
            mark(submission as usize);
        }
    }
    for (row, kind) in tables.submissions.kind.iter().enumerate() {
        let launches = matches!(kind, SubmissionKind::Kernel | SubmissionKind::Graph);
        if launches && runs_inside_its_call(trace, submissions, row) {
            mark(row);
        }
    }
    is_synchronous
}

/// Returns the interval of the call that made a submission.
fn call(trace: &Trace, row: usize) -> Interval {
    let rows = &trace.tables.submissions;
    Interval::new(rows.start_ns[row], rows.end_ns(row).max(rows.start_ns[row]))
}

/// Returns true where a call returned after its work had ended, within what devices write too late.
fn returns_after_work(trace: &Trace, submissions: &[SubmissionTimes], row: usize) -> bool {
    let end_ns = call(trace, row).end_ns;
    let work = submissions[row].interval();
    work.is_some_and(|work| work.end_ns <= end_ns.saturating_add(EARLY_RETURN_NS))
}

/// Returns true where the work ran in most of its own call, and ended just before the call returned.
fn runs_inside_its_call(trace: &Trace, submissions: &[SubmissionTimes], row: usize) -> bool {
    let call = call(trace, row);
    let Some(work) = submissions[row].interval() else {
        return false;
    };
    let after_ns = call.end_ns.saturating_sub(work.end_ns);
    let ran_ns = work.length_ns();
    work.start_ns >= call.start_ns
        && (0..=SYNC_RETURN_NS).contains(&after_ns)
        && ran_ns as f64 >= SYNC_OWN_NS as f64 * SYNC_TIMES
        && ratio(ran_ns, call.length_ns()) >= SYNC_SHARE
}

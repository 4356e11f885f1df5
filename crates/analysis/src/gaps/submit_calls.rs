//! Adds up the idle time inside the calls that submitted the next work, by what they submit and by how long they took, so
//! that advice can tell many short calls from a few long ones.

use super::pattern::Quartiles;
use super::{Cause, GapPart, HostTime};
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::is_work;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{
    FEW_CALLS_SHARE, LARGE_COPY_BYTES, MOST_OF_CALLS_SHARE, SLOW_CALL_TIMES,
};
use gapscope_trace::ids::SubmissionId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, MemoryPlace, SubmissionKind, Table};
use std::collections::HashMap;
use std::sync::Arc;

/// What a submission call hands to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Submitted {
    /// A kernel.
    Kernel,
    /// A graph.
    Graph,
    /// A large copy whose memory on the host is pageable.
    PageableCopy,
    /// Any other copy or fill.
    Copy,
    /// Command buffers, or anything else.
    Other,
}

const KINDS: usize = 5;

/// The most submissions whose calls give a median.
const MAX_SAMPLED: usize = 1 << 16;

/// Idle time inside of submission calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SubmitCalls {
    /// By what the call submits.
    by_kind: [i64; KINDS],
    /// Waits in large copies of pageable memory, before the calls that submitted the next work.
    pageable_waits_ns: i64,
    /// By the length of the call in powers of two.
    by_length: Vec<Calls>,
}

/// The calls of some range of lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Calls {
    count: u64,
    idle_ns: i64,
    /// The length of the longest call, and the id of its submission.
    longest: Option<(i64, SubmissionId)>,
}

/// A few calls in which most of the idle time passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlowCalls {
    pub(super) count: u64,
    pub(super) idle_ns: i64,
    /// The longest call's submission.
    pub(super) submission: SubmissionId,
    pub(super) longest_ns: i64,
    /// The median length of all submission calls.
    pub(super) median_ns: i64,
}

impl SubmitCalls {
    /// Adds the parts of a gap, as far as they are `inside`, that passed in the call of the submission in `row`.
    pub(super) fn add(
        &mut self,
        timeline: &Timeline,
        is_pageable: &[bool],
        row: u32,
        parts: &[GapPart],
        inside: Interval,
    ) {
        let rows = &timeline.trace.tables.submissions;
        let at = row as usize;
        let call = Interval::new(rows.start_ns[at], rows.end_ns(at).max(rows.start_ns[at]));
        let inside = inside.intersection(call);
        let in_call = parts.iter().filter(|part| part.cause == Cause::SubmitCall);
        let idle_ns: i64 =
            (in_call.map(|part| part.interval().intersection(inside).length_ns())).sum();
        if idle_ns <= 0 {
            return;
        }
        let kind = submitted(rows.kind[at], is_pageable.get(at) == Some(&true));
        let sum = &mut self.by_kind[kind as usize];
        *sum = sum.saturating_add(idle_ns);
        let bin = power(call.length_ns());
        if self.by_length.len() <= bin {
            self.by_length.resize(bin + 1, Calls::default());
        }
        let calls = &mut self.by_length[bin];
        calls.count += 1;
        calls.idle_ns = calls.idle_ns.saturating_add(idle_ns);
        calls.longest = calls.longest.max(Some((call.length_ns(), rows.id[at])));
    }

    /// Returns true where calls that submit things of a kind have at least `MOST_OF_CALLS_SHARE` of `total_ns`.
    pub(super) fn is_mostly(&self, kind: Submitted, total_ns: i64) -> bool {
        ratio(self.by_kind[kind as usize], total_ns) >= MOST_OF_CALLS_SHARE
    }

    /// Returns the few calls that are much longer than the median and have most of `total_ns`, or `None` where there
    /// are no such calls.
    pub(super) fn slow(&self, timeline: &Timeline, total_ns: i64) -> Option<SlowCalls> {
        let rows = &timeline.trace.tables.submissions;
        let typical = typical(timeline, |row| is_work(rows.kind[row]))?;
        let least = power((typical.call_ns as f64 * SLOW_CALL_TIMES) as i64);
        let slow = self.by_length.get(least..).unwrap_or_default();
        let count = slow.iter().map(|calls| calls.count).sum::<u64>();
        let idle_ns = slow.iter().map(|calls| calls.idle_ns).sum::<i64>();
        let (longest_ns, submission) = slow.iter().filter_map(|calls| calls.longest).max()?;
        let is_few = count as f64 <= typical.count as f64 * FEW_CALLS_SHARE;
        (is_few && ratio(idle_ns, total_ns) >= MOST_OF_CALLS_SHARE).then_some(SlowCalls {
            count,
            idle_ns,
            submission,
            longest_ns,
            median_ns: typical.call_ns,
        })
    }
}

fn submitted(kind: SubmissionKind, is_pageable: bool) -> Submitted {
    match kind {
        SubmissionKind::Kernel => Submitted::Kernel,
        SubmissionKind::Graph => Submitted::Graph,
        SubmissionKind::Transfer if is_pageable => Submitted::PageableCopy,
        SubmissionKind::Transfer => Submitted::Copy,
        _ => Submitted::Other,
    }
}

/// Returns the power of two that a length lies above.
fn power(ns: i64) -> usize {
    ns.max(1).ilog2() as usize
}

/// Returns for each row of the table of submissions whether it is a large copy of pageable memory; empty where none is.
pub(super) fn pageable_copies(timeline: &Timeline) -> Vec<bool> {
    let transfers = &timeline.trace.tables.transfers;
    let mut is_pageable = Vec::new();
    for row in 0..transfers.len() {
        let is_large = transfers
            .bytes
            .at(row)
            .is_some_and(|bytes| bytes >= LARGE_COPY_BYTES);
        let submission = transfers.submission.at(row);
        if is_large
            && transfers.host_memory[row] == Some(MemoryPlace::Pageable)
            && let Some(submission) = submission
        {
            let submission = timeline.submission_ids.row(submission);
            if submission != NONE {
                is_pageable.resize(timeline.submissions.len(), false);
                is_pageable[submission as usize] = true;
            }
        }
    }
    is_pageable
}

impl SubmitCalls {
    /// Adds what submitting threads did in other calls before those that submitted the next work: submission calls by
    /// what calls of their function mostly submit, and copies that waited. `calls` are rows of host time by call.
    pub(super) fn add_earlier(
        &mut self,
        timeline: &Timeline,
        is_pageable: &[bool],
        calls: &[HostTime],
    ) {
        let submits = [HostCallKind::Submit, HostCallKind::CopyAndWait].map(HostCallKind::as_str);
        let earlier = || calls.iter().filter(|time| submits.contains(&time.call));
        if earlier().next().is_none() {
            return;
        }
        let kinds = kinds_by_function(timeline, is_pageable);
        for time in earlier() {
            let function = time.function.as_deref().unwrap_or_default();
            let Some(kind) = kinds.get(function) else {
                continue;
            };
            let sum = match time.call == HostCallKind::Submit.as_str() {
                true => &mut self.by_kind[*kind as usize],
                false if *kind == Submitted::PageableCopy => &mut self.pageable_waits_ns,
                false => continue,
            };
            *sum = sum.saturating_add(time.total_ns);
        }
    }

    /// Returns true where waits in large copies of pageable memory have at least `MOST_OF_CALLS_SHARE` of `total_ns`.
    pub(super) fn waits_are_pageable(&self, total_ns: i64) -> bool {
        ratio(self.pageable_waits_ns, total_ns) >= MOST_OF_CALLS_SHARE
    }
}

/// Returns for each function what its calls submit in most of their time.
fn kinds_by_function(timeline: &Timeline, is_pageable: &[bool]) -> HashMap<Arc<str>, Submitted> {
    const ALL: [Submitted; KINDS] = [
        Submitted::Kernel,
        Submitted::Graph,
        Submitted::PageableCopy,
        Submitted::Copy,
        Submitted::Other,
    ];
    let rows = &timeline.trace.tables.submissions;
    let mut times: HashMap<Arc<str>, [i64; KINDS]> = HashMap::new();
    for row in 0..rows.len() {
        if let Some(function) = &rows.function[row] {
            let kind = submitted(rows.kind[row], is_pageable.get(row) == Some(&true));
            if !times.contains_key(function) {
                times.insert(function.clone(), [0; KINDS]);
            }
            if let Some(of_function) = times.get_mut(function) {
                let sum = &mut of_function[kind as usize];
                *sum = sum.saturating_add(rows.duration_ns[row].max(0));
            }
        }
    }
    let most = |times: [i64; KINDS]| ALL.into_iter().max_by_key(|kind| times[*kind as usize]);
    (times.into_iter())
        .filter_map(|(function, times)| Some((function, most(times)?)))
        .collect()
}

/// The medians of some submissions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Typical {
    /// How many submissions there are.
    pub(super) count: u64,
    /// The median length of their calls.
    pub(super) call_ns: i64,
    /// The median length of their work, from the first start to the last end; 0 where no work is timed.
    pub(super) work_ns: i64,
}

/// Returns the medians of the submissions in the rows that `keep` accepts, or `None` where there are none. Of many
/// submissions every n-th is taken.
pub(super) fn typical(timeline: &Timeline, keep: impl Fn(usize) -> bool) -> Option<Typical> {
    let rows = &timeline.trace.tables.submissions;
    let kept = || (0..rows.len()).filter(|row| keep(*row));
    let count = kept().count();
    let sampled = || kept().step_by(count / MAX_SAMPLED + 1);
    let mut calls: Vec<i64> = sampled().map(|row| rows.duration_ns[row]).collect();
    let work = |row: usize| Some(timeline.submissions[row].interval()?.length_ns());
    let mut works: Vec<i64> = sampled().filter_map(work).collect();
    Some(Typical {
        count: count as u64,
        call_ns: Quartiles::new(&mut calls)?.p50,
        work_ns: Quartiles::new(&mut works).map_or(0, |quartiles| quartiles.p50),
    })
}

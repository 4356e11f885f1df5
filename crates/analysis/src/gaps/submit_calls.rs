//! Adds up the idle time inside the calls that submitted the next work, by what they submit and by how long they took, so
//! that advice can tell many short calls from a few long ones.

use super::pattern::Quartiles;
use super::{Cause, GapPart, HostTime, WaitTime};
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::is_work;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{
    FEW_CALLS_SHARE, LARGE_COPY_BYTES, MOST_OF_CALLS_SHARE, SLOW_CALL_TIMES, SLOW_LAUNCH_NS,
};
use gapscope_trace::ids::SubmissionId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{HostCallKind, MemoryPlace, SubmissionKind, Table, TransferKind};
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
    /// A small copy of results to the host.
    Read,
    /// Any other copy or fill.
    Copy,
    /// Command buffers, or anything else.
    Other,
}

const KINDS: usize = 6;

/// The most submissions whose calls give a median.
const MAX_SAMPLED: usize = 1 << 16;

/// Idle time inside of submission calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SubmitCalls {
    /// By what the call submits.
    by_kind: [i64; KINDS],
    /// The length of the calls of each function by what they submit.
    times_by_function: HashMap<Arc<str>, [i64; KINDS]>,
    /// By the length of the call in powers of two.
    by_length: Vec<Calls>,
    /// Those of them that launch kernels.
    launches_by_length: Vec<Calls>,
}

/// The calls of some range of lengths.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Calls {
    count: u64,
    idle_ns: i64,
    /// The length of the longest call, and the id of its submission.
    longest: Option<(i64, SubmissionId)>,
}

impl Calls {
    fn add(&mut self, length_ns: i64, idle_ns: i64, submission: SubmissionId) {
        self.count += 1;
        self.idle_ns = self.idle_ns.saturating_add(idle_ns);
        self.longest = self.longest.max(Some((length_ns, submission)));
    }
}

/// Calls much longer than others, in which most of the idle time passed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SlowCalls {
    pub(super) count: u64,
    pub(super) idle_ns: i64,
    /// The longest call's submission.
    pub(super) submission: SubmissionId,
    pub(super) longest_ns: i64,
    /// The length from which on calls are slow.
    pub(super) least_ns: i64,
    /// What the others take: the median of all submission calls, or the lower quartile of the launches. `None` where all are
    /// slow.
    pub(super) usual_ns: Option<i64>,
}

impl SubmitCalls {
    /// Adds the parts of a gap, as far as they are `inside`, that passed in the call of the submission in `row`.
    pub(super) fn add(
        &mut self,
        timeline: &Timeline,
        copies: &[Submitted],
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
        let kind = submitted(rows.kind[at], copies.get(at));
        let sum = &mut self.by_kind[kind as usize];
        *sum = sum.saturating_add(idle_ns);
        let bin = power(call.length_ns());
        let is_launch = kind == Submitted::Kernel;
        let launches = is_launch.then_some(&mut self.launches_by_length);
        for by_length in [Some(&mut self.by_length), launches].into_iter().flatten() {
            if by_length.len() <= bin {
                by_length.resize(bin + 1, Calls::default());
            }
            by_length[bin].add(call.length_ns(), idle_ns, rows.id[at]);
        }
    }

    /// Adds the sums of other gaps.
    pub(super) fn add_all(&mut self, other: SubmitCalls) {
        for (mine, theirs) in self.by_kind.iter_mut().zip(other.by_kind) {
            *mine = mine.saturating_add(theirs);
        }
        let by_length = [
            (&mut self.by_length, other.by_length),
            (&mut self.launches_by_length, other.launches_by_length),
        ];
        for (mine, theirs) in by_length {
            if mine.len() < theirs.len() {
                mine.resize(theirs.len(), Calls::default());
            }
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                mine.count += theirs.count;
                mine.idle_ns = mine.idle_ns.saturating_add(theirs.idle_ns);
                mine.longest = mine.longest.max(theirs.longest);
            }
        }
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
        let least_ns = (typical.call_ns as f64 * SLOW_CALL_TIMES) as i64;
        let slow = slow_calls(&self.by_length, least_ns, total_ns)?;
        let is_few = slow.count as f64 <= typical.count as f64 * FEW_CALLS_SHARE;
        is_few.then_some(SlowCalls {
            usual_ns: Some(typical.call_ns),
            ..slow
        })
    }

    /// Returns the launches of kernels that are much longer than the launches of a program are, and have most of `total_ns`,
    /// however many they are.
    pub(super) fn slow_launches(&self, timeline: &Timeline, total_ns: i64) -> Option<SlowCalls> {
        let rows = &timeline.trace.tables.submissions;
        let typical = typical(timeline, |row| rows.kind[row] == SubmissionKind::Kernel)?;
        let least_ns = (typical.fast_call_ns as f64 * SLOW_CALL_TIMES) as i64;
        let slow = slow_calls(
            &self.launches_by_length,
            least_ns.min(SLOW_LAUNCH_NS),
            total_ns,
        )?;
        let has_fast = typical.fast_call_ns < SLOW_LAUNCH_NS;
        Some(SlowCalls {
            usual_ns: has_fast.then_some(typical.fast_call_ns),
            ..slow
        })
    }
}

/// Returns the calls of at least `least_ns` where they have most of `total_ns`.
fn slow_calls(by_length: &[Calls], least_ns: i64, total_ns: i64) -> Option<SlowCalls> {
    let slow = by_length.get(power(least_ns)..).unwrap_or_default();
    let idle_ns = slow.iter().map(|calls| calls.idle_ns).sum::<i64>();
    let (longest_ns, submission) = slow.iter().filter_map(|calls| calls.longest).max()?;
    (ratio(idle_ns, total_ns) >= MOST_OF_CALLS_SHARE).then_some(SlowCalls {
        count: slow.iter().map(|calls| calls.count).sum(),
        idle_ns,
        submission,
        longest_ns,
        least_ns,
        usual_ns: None,
    })
}

/// Returns what a submission of a kind submits. `copy` says of what kind it is as a copy.
fn submitted(kind: SubmissionKind, copy: Option<&Submitted>) -> Submitted {
    match kind {
        SubmissionKind::Kernel => Submitted::Kernel,
        SubmissionKind::Graph => Submitted::Graph,
        SubmissionKind::Transfer => copy.copied().unwrap_or(Submitted::Copy),
        _ => Submitted::Other,
    }
}

/// Returns the power of two that a length lies above.
fn power(ns: i64) -> usize {
    ns.max(1).ilog2() as usize
}

/// Returns for each row of the table of submissions what it is as a copy; empty where all copies are plain ones.
pub(super) fn copies(timeline: &Timeline) -> Vec<Submitted> {
    let transfers = &timeline.trace.tables.transfers;
    let mut copies = Vec::new();
    for row in 0..transfers.len() {
        let is_large = (transfers.bytes.at(row)).map(|bytes| bytes >= LARGE_COPY_BYTES);
        let is_pageable = transfers.host_memory[row] == Some(MemoryPlace::Pageable);
        let kind = match (is_large, transfers.kind[row]) {
            (Some(true), _) if is_pageable => Submitted::PageableCopy,
            (Some(false), TransferKind::DeviceToHost) => Submitted::Read,
            _ => continue,
        };
        let submission = transfers.submission.at(row);
        let submission = submission.map(|id| timeline.submission_ids.row(id));
        if let Some(submission) = submission.filter(|row| *row != NONE) {
            copies.resize(timeline.submissions.len(), Submitted::Copy);
            copies[submission as usize] = kind;
        }
    }
    copies
}

impl SubmitCalls {
    /// Adds what submitting threads did in other submission calls before those that submitted the next work, by what calls of
    /// their function mostly submit. `calls` are rows of host time by call.
    pub(super) fn add_earlier(
        &mut self,
        timeline: &Timeline,
        copies: &[Submitted],
        calls: &[HostTime],
    ) {
        let submits = [HostCallKind::Submit, HostCallKind::CopyAndWait].map(HostCallKind::as_str);
        if !calls.iter().any(|time| submits.contains(&time.call)) {
            return;
        }
        self.times_by_function = times_by_function(timeline, copies);
        for time in calls {
            if time.call == HostCallKind::Submit.as_str()
                && let Some(kind) = self.kind_of(time)
            {
                let sum = &mut self.by_kind[kind as usize];
                *sum = sum.saturating_add(time.total_ns);
            }
        }
    }

    /// Returns what calls of a kind and function submit in most of their time.
    fn kind_of(&self, time: &HostTime) -> Option<Submitted> {
        use Submitted::{Copy, Graph, Kernel, Other, PageableCopy, Read};
        let function = time.function.as_deref().unwrap_or_default();
        let times = self.times_by_function.get(function)?;
        let kinds = match time.call == HostCallKind::CopyAndWait.as_str() {
            true => [PageableCopy, Read, Copy].as_slice(),
            false => &[Kernel, Graph, PageableCopy, Read, Copy, Other],
        };
        let kinds = kinds.iter().copied();
        kinds.max_by_key(|kind| times[*kind as usize])
    }

    /// Returns true where waits in calls that copy things of a kind have at least `MOST_OF_CALLS_SHARE` of `total_ns`.
    pub(super) fn waits_are_mostly(
        &self,
        kind: Submitted,
        waits: &[WaitTime],
        total_ns: i64,
    ) -> bool {
        let copies = (waits.iter().map(|wait| &wait.time))
            .filter(|time| time.call == HostCallKind::CopyAndWait.as_str())
            .filter(|time| self.kind_of(time) == Some(kind));
        ratio(copies.map(|time| time.total_ns).sum(), total_ns) >= MOST_OF_CALLS_SHARE
    }
}

/// Returns for each function how long its calls took, by what they submit. The name of functions without one is empty.
fn times_by_function(timeline: &Timeline, copies: &[Submitted]) -> HashMap<Arc<str>, [i64; KINDS]> {
    let rows = &timeline.trace.tables.submissions;
    let mut times: HashMap<Arc<str>, [i64; KINDS]> = HashMap::new();
    for row in 0..rows.len() {
        let function = rows.function[row].as_deref().unwrap_or_default();
        if !times.contains_key(function) {
            times.insert(function.into(), [0; KINDS]);
        }
        if let Some(of_function) = times.get_mut(function) {
            let sum = &mut of_function[submitted(rows.kind[row], copies.get(row)) as usize];
            *sum = sum.saturating_add(rows.duration_ns[row].max(0));
        }
    }
    times
}

/// The medians of some submissions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Typical {
    /// How many submissions there are.
    pub(super) count: u64,
    /// The median length of their calls.
    pub(super) call_ns: i64,
    /// The length that a quarter of their calls does not exceed.
    fast_call_ns: i64,
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
    let calls = Quartiles::new(&mut calls)?;
    Some(Typical {
        count: count as u64,
        call_ns: calls.p50,
        fast_call_ns: calls.p25,
        work_ns: Quartiles::new(&mut works).map_or(0, |quartiles| quartiles.p50),
    })
}

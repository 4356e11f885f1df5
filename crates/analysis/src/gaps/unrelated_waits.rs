//! Finds threads whose waits for the GPU do not hold up another thread, although that one submits soon after each of them.
//!
//! A thread that is held up goes on a certain time after the wait of the other thread returned. A thread with a rhythm of its own goes on a
//! certain time after its own last submission, whenever the wait returned. Which of the two times is the more regular one tells them apart, as
//! soon as there are [`REGULAR_LEAST_GAPS`] of them: the waits are unrelated where the time since the return varies by more than
//! [`UNRELATED_TIMES`] times as much.
//!
//! What this cannot know: which of the two it is where both are equally regular, as in a program whose kernels all take the same time. A
//! thread that waits for work of its own, on queues that the other thread does not use, is then taken for an unrelated one, as of two
//! loops with one period. Otherwise the waits are taken for what held the thread up.

use super::pattern::Quartiles;
use gapscope_timeline::Timeline;
use gapscope_timeline::host::{HostThread, WaitOutcome};
use gapscope_timeline::thresholds::{REGULAR_LEAST_GAPS, UNRELATED_TIMES};
use gapscope_trace::tables::Table;
use std::collections::{HashMap, HashSet};

/// The most returns of a thread that are looked at.
const MAX_RETURNS: usize = 4096;

/// Pairs of a submitting thread and another one whose waits do not hold that thread up.
#[derive(Debug, Default)]
pub(super) struct UnrelatedWaits(HashSet<(HostThread, HostThread)>);

impl UnrelatedWaits {
    pub(super) fn new(timeline: &Timeline) -> UnrelatedWaits {
        let host = timeline.host_threads();
        let table = &timeline.trace.tables.submissions;
        let mut submitted: HashMap<HostThread, Vec<i64>> = HashMap::new();
        for row in 0..table.len() {
            let process = table.process[row];
            if host.has_several_threads(process)
                && let Some(thread) = HostThread::from_row(process, table.thread.at(row))
            {
                submitted
                    .entry(thread)
                    .or_default()
                    .push(table.start_ns[row]);
            }
        }
        let mut queues: HashMap<HostThread, HashSet<u32>> = HashMap::new();
        for (times, row) in timeline.submissions.iter().zip(0..) {
            if let Some(thread) = HostThread::from_row(table.process[row], table.thread.at(row))
                && submitted.contains_key(&thread)
            {
                queues.entry(thread).or_default().insert(times.queue);
            }
        }
        let mut returns: HashMap<HostThread, Vec<i64>> = HashMap::new();
        for (thread, call) in host.all_segments() {
            if call.waits
                && call.is_last
                && call.outcome != WaitOutcome::NotDone
                && host.has_several_threads(thread.process)
            {
                let ends = returns.entry(thread).or_default();
                ends.push(call.interval.end_ns);
            }
        }
        let mut unrelated = HashSet::new();
        for (thread, calls) in &mut submitted {
            calls.sort_unstable();
            let others = returns
                .iter()
                .filter(|(other, _)| other.process == thread.process && *other != thread);
            let others = others.filter(|(other, ends)| {
                let of_both = queues.get(thread).zip(queues.get(other));
                let is_apart = of_both.is_some_and(|(own, others)| own.is_disjoint(others));
                has_own_rhythm(calls, ends, is_apart)
            });
            unrelated.extend(others.map(|(other, _)| (*thread, *other)));
        }
        UnrelatedWaits(unrelated)
    }

    /// Returns true where waits of `other` do not hold up `thread`.
    pub(super) fn has(&self, thread: HostThread, other: HostThread) -> bool {
        self.0.contains(&(thread, other))
    }
}

/// Returns true where a thread submits at more regular times after its own submission before, by `calls_ns`, than after the returns of another
/// thread's waits. Both are in order of time. Where the other thread is `apart`, with work of its own, equally regular times are enough.
fn has_own_rhythm(calls_ns: &[i64], returns_ns: &[i64], is_apart: bool) -> bool {
    let (mut since_return, mut since_call) = (Vec::new(), Vec::new());
    let apart = returns_ns.len() / MAX_RETURNS + 1;
    for return_ns in returns_ns.iter().step_by(apart) {
        let next = calls_ns.partition_point(|call_ns| call_ns <= return_ns);
        // The other thread waits for what this one submitted before.
        if let (Some(next_ns), Some(last_ns)) = (
            calls_ns.get(next),
            next.checked_sub(1).map(|last| calls_ns[last]),
        ) {
            since_return.push(next_ns.saturating_sub(*return_ns));
            since_call.push(next_ns.saturating_sub(last_ns));
        }
    }
    if (since_return.len() as u64) < REGULAR_LEAST_GAPS {
        return false;
    }
    let spread = |times: &mut Vec<i64>| Quartiles::new(times).map(|quartiles| quartiles.spread());
    let spreads = spread(&mut since_return).zip(spread(&mut since_call));
    spreads.is_some_and(|(after_return, after_call)| match is_apart {
        true => after_return as f64 * UNRELATED_TIMES >= after_call as f64,
        false => after_return as f64 > after_call as f64 * UNRELATED_TIMES,
    })
}

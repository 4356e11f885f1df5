//! Joins the work of processes that share a number of a device and use the same correlations (the numbers of calls and their work) at the
//! same time, as a program and its child on one GPU do.
//!
//! Input are the calls and the work that have a correlation. Where each call launches one piece of work, they are paired by kind, a kernel
//! with a launch and a transfer with a copy, and within a kind in order of time: the first call gets the work that ran first. Where
//! a call came after the work that it would get, or the numbers differ, nothing is paired here.

use super::join::{Calls, CollectedWork, Joined, Launches, SourceProcesses};
use crate::profile::Correlation;
use gapscope_model::SubmissionKind;
use gapscope_timeline_builder::{DeviceWorkKind, Function};
use rustc_hash::FxHashMap;

/// The pieces of work that were paired with calls of several processes.
#[derive(Debug, Default)]
pub(super) struct InOrder {
    /// The call of each, by the index of the work.
    pub(super) joined: FxHashMap<u32, Joined>,
    /// The number of those that could as well be another process's, as all calls of their kind came before all of the work.
    pub(super) ambiguous: u64,
}

/// A call or a piece of work, the halves of a launch: whether it is of a transfer, its start and its index.
type TimedHalf = (bool, i64, u32);

impl Launches {
    /// Pairs the work of sources that several processes share.
    pub(super) fn in_order(
        &self,
        works: &[CollectedWork],
        sources: &SourceProcesses,
        calls: &Calls,
        functions: &[Function],
    ) -> InOrder {
        let mut found = InOrder::default();
        let mut groups: FxHashMap<(u32, Correlation), Vec<TimedHalf>> = FxHashMap::default();
        for (at, collected) in (0u32..).zip(works) {
            let is_known = !collected.work.of_graph && sources.is_shared(collected.source);
            let timed = collected.correlation.zip(collected.work.span);
            if let Some((correlation, span)) = timed.filter(|_| is_known) {
                let is_transfer = matches!(collected.work.kind, DeviceWorkKind::Transfer { .. });
                let group = groups.entry((collected.source, correlation)).or_default();
                group.push((is_transfer, span.start_ns, at));
            }
        }
        for ((_, correlation), mut group) in groups {
            let Some(mut launches) = self.of_each(correlation, calls, functions) else {
                continue;
            };
            group.sort_unstable();
            launches.sort_unstable();
            let fits =
                |(launch, work): (&TimedHalf, &TimedHalf)| launch.0 == work.0 && launch.1 <= work.1;
            if launches.len() != group.len() || !launches.iter().zip(&group).all(fits) {
                continue;
            }
            for kind in [false, true] {
                let called = launches.iter().filter(|half| half.0 == kind);
                let ran = group.iter().filter(|half| half.0 == kind);
                let count = ran.clone().count();
                let last_call = called.map(|half| half.1).max();
                let first_work = ran.map(|half| half.1).min();
                if count > 1 && last_call <= first_work {
                    found.ambiguous += count as u64;
                }
            }
            found
                .joined
                .extend(launches.iter().zip(&group).map(|(launch, work)| {
                    let call = launch.2;
                    let process = calls.0[call as usize].0;
                    let call = Some(call);
                    (work.2, Joined { process, call })
                }));
        }
        found
    }

    /// Returns the launch of each process that has a correlation; `None` where a process has several.
    fn of_each(
        &self,
        correlation: Correlation,
        calls: &Calls,
        functions: &[Function],
    ) -> Option<Vec<TimedHalf>> {
        let mut launches = Vec::new();
        for process in &self.processes {
            let key = (*process, correlation);
            if self.again.contains_key(&key) {
                return None;
            }
            let Some(index) = self.first.get(&key).copied() else {
                continue;
            };
            if let Some(kind) = calls.launches(index, functions) {
                let is_transfer = kind == SubmissionKind::Transfer;
                launches.push((is_transfer, calls.start_ns(index), index));
            }
        }
        Some(launches)
    }
}

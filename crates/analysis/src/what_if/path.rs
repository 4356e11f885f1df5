//! Follows a replayed run back from its end to what held each moment: the critical path, by what its time was spent on.

use super::change::Target;
use super::collectives::Arrival;
use super::effects::Delay;
use super::recorded::{Arm, Kind, Recorded, Work, WorkMoment};
use super::replay::Replayed;
use super::runs::Run;
use gapscope_timeline::Timeline;
use gapscope_timeline::host::CallClass;
use gapscope_timeline::quantity::ratio;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::TransferKind;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use wildmatch::WildMatch;

/// The most rows of a path: what takes less is summed up in the last one.
const MAX_ROWS: usize = 12;

/// The time of the critical path that was spent on one thing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PathPart {
    /// The rank whose time it is; absent for a trace of one process, and for what several ranks share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The kind of thing: `communication` between ranks, `kernel`, `transfer`, `opaque-work`, `host-code`, `call`, `wake-up`, `launch-latency`, `queue-gap`,
    /// `handover` between queues, or `rest`.
    pub what: &'static str,
    /// The name of the kernel, the kind of the transfer or the name of the called function; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The time on the path, in nanoseconds.
    pub total_ns: i64,
    /// Of the path.
    pub share: f64,
    /// The least share over all paths that are as long to about 1 %: by how much less time a run takes where this takes less. Null for
    /// the rest.
    pub low: Option<f64>,
    /// The greatest such share: by how much more time a run takes where this takes more. Null for the rest.
    pub high: Option<f64>,
}

impl PathPart {
    /// Returns a part without time on a path.
    pub(super) fn beside(rank: Option<u32>, what: &'static str, name: Option<String>) -> PathPart {
        PathPart {
            rank,
            what,
            name,
            total_ns: 0,
            share: 0.0,
            low: None,
            high: None,
        }
    }

    /// Says how the times of the part are changed; `None` where no replay can change them by themselves.
    pub(super) fn lever(&self) -> Option<Lever> {
        let name = self.name.as_deref();
        Some(match (self.what, name) {
            ("kernel" | "communication", Some(name)) => {
                Lever::Time(Target::Kernels(WildMatch::new(name)))
            }
            ("transfer", Some(name)) => {
                let mut kinds = TransferKind::ALL.iter().copied();
                Lever::Time(Target::Transfers(kinds.find(|kind| kind.as_str() == name)))
            }
            ("call" | "recording", Some(name)) => Lever::Time(Target::Calls(WildMatch::new(name))),
            ("host-code", _) => Lever::Time(Target::Host),
            ("wake-up", _) => Lever::Delay(Delay::WakeUp),
            ("launch-latency", _) => Lever::Delay(Delay::Arm(Arm::Submission)),
            ("queue-gap", _) => Lever::Delay(Delay::Arm(Arm::Queue)),
            ("handover", _) => Lever::Delay(Delay::Arm(Arm::Dependency)),
            _ => return None,
        })
    }
}

/// What is changed to learn how much of a run rests on a part of its path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Lever {
    Time(Target),
    Delay(Delay),
}

/// A kind of thing on a path, with its name.
type Thing = (&'static str, Option<String>);

/// Returns the critical path through replayed runs whose times were kept, the greatest part first. `last` are the last arrivals at
/// their collectives.
pub(super) fn path(runs: &[Run], replayed: &[Replayed], last: &[Arrival]) -> Vec<PathPart> {
    let mut spent: BTreeMap<(Option<u32>, Thing), i64> = BTreeMap::new();
    let ends = replayed.iter().zip(0u32..);
    let end = ends.max_by_key(|(replayed, _)| replayed.end_ns);
    let Some((ends, mut on)) = end else {
        return Vec::new();
    };
    let mut next = ends.last;
    let mut until_ns = i64::MAX;
    // Each moment is held by an earlier one, so that the walk ends.
    while let Some((run, moment)) = runs
        .get(on as usize)
        .and_then(|run| Some((run, run.recorded.moments.get(next as usize)?)))
    {
        let timeline = run.timeline();
        let (began_ns, ended_ns) = replayed[on as usize].times_ns[next as usize];
        // The path leaves a moment when it releases the next one, which may be before its end.
        let ended_ns = ended_ns.min(until_ns);
        let (holder, by) = match &moment.kind {
            Kind::Leave(leave) => {
                let last = &last[leave.collective as usize];
                (last.run, last.at)
            }
            _ => (on, replayed[on as usize].held_by[next as usize]),
        };
        let held = replayed
            .get(holder as usize)
            .and_then(|replayed| replayed.times_ns.get(by as usize));
        let since_ns = match held {
            Some((by_began_ns, by_ended_ns)) => match &moment.kind {
                // Work that overlaps the work before it starts after that work's start.
                Kind::Work(work) if work.overlaps && *by_ended_ns > began_ns => *by_began_ns,
                Kind::Submission(submission) if submission.is_in_call => *by_began_ns,
                Kind::Leave(_) => *by_began_ns,
                _ => *by_ended_ns,
            },
            None => run.recorded.window.start_ns,
        };
        let mut add = |thing: Thing, ns: i64| {
            if ns > 0 {
                let rank = run.rank.filter(|_| thing.0 != "communication");
                let sum = spent.entry((rank, thing)).or_default();
                *sum = sum.saturating_add(ns);
            }
        };
        match &moment.kind {
            Kind::Call(call) => {
                let name = match call.function {
                    NONE => Some(call.call.as_str().to_owned()),
                    function => timeline
                        .host_threads()
                        .function_name(function)
                        .map(str::to_owned),
                };
                let what = match call.class {
                    CallClass::Recording => "recording",
                    _ => "call",
                };
                add((what, name), ended_ns.saturating_sub(began_ns));
                add(("host-code", None), began_ns.saturating_sub(since_ns));
            }
            Kind::Submission(submission) => {
                let what = ["host-code", "call"][usize::from(submission.is_in_call)];
                add((what, None), began_ns.saturating_sub(since_ns));
            }
            Kind::Return(_) => add(("wake-up", None), ended_ns.saturating_sub(since_ns)),
            Kind::Leave(leave) => {
                let name = match run.recorded.kind_at(leave.arrived) {
                    Some(Kind::Work(work)) => thing_of(timeline, work).1,
                    _ => None,
                };
                add(("communication", name), ended_ns.saturating_sub(since_ns));
            }
            Kind::Work(work) => {
                add(thing_of(timeline, work), ended_ns.saturating_sub(began_ns));
                let delay = match run
                    .recorded
                    .moments
                    .get(by as usize)
                    .map(|moment| &moment.kind)
                {
                    Some(Kind::Submission(_)) => "launch-latency",
                    Some(Kind::Work(other)) if other.queue != work.queue => "handover",
                    _ => "queue-gap",
                };
                add((delay, None), began_ns.saturating_sub(since_ns));
            }
        }
        until_ns = since_ns;
        (on, next) = (holder, by);
    }
    rows(spent)
}

/// Returns what a piece of work is.
fn thing_of(timeline: &Timeline, work: &WorkMoment) -> Thing {
    match work.content {
        Work::Kernel(row) if row != NONE => (
            "kernel",
            Some(timeline.kernel_names.name(row as usize).to_owned()),
        ),
        Work::Kernel(_) => ("kernel", None),
        Work::Transfer(kind) => ("transfer", Some(kind.as_str().to_owned())),
        Work::Opaque => ("opaque-work", None),
    }
}

/// Returns for how long kernels of one device ran beside others in a replay whose times were kept.
pub(super) fn overlapped_ns(timeline: &Timeline, recorded: &Recorded, replayed: &Replayed) -> i64 {
    let moments = recorded.moments.iter().zip(&replayed.times_ns);
    let kernels = moments.filter_map(|(moment, times)| match &moment.kind {
        Kind::Work(work) if matches!(work.content, Work::Kernel(_)) => {
            Some((timeline.queues[work.queue as usize].gpu, *times))
        }
        _ => None,
    });
    let mut kernels: Vec<(u32, (i64, i64))> = kernels.collect();
    kernels.sort_unstable();
    let (mut overlapped_ns, mut last) = (0i64, (u32::MAX, i64::MIN));
    for (gpu, (began_ns, ended_ns)) in kernels {
        let until_ns = [i64::MIN, last.1][usize::from(last.0 == gpu)];
        let beside_ns = until_ns.min(ended_ns).saturating_sub(began_ns).max(0);
        overlapped_ns = overlapped_ns.saturating_add(beside_ns);
        last = (gpu, until_ns.max(ended_ns));
    }
    overlapped_ns
}

/// Returns the parts of a path, the greatest first.
fn rows(spent: BTreeMap<(Option<u32>, Thing), i64>) -> Vec<PathPart> {
    let total_ns = spent
        .values()
        .fold(0, |sum: i64, ns| sum.saturating_add(*ns));
    let part = |rank: Option<u32>, (what, name): Thing, ns: i64| PathPart {
        rank,
        what,
        name,
        total_ns: ns,
        share: ratio(ns, total_ns),
        low: None,
        high: None,
    };
    let mut parts: Vec<PathPart> = spent
        .into_iter()
        .map(|((rank, thing), ns)| part(rank, thing, ns))
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.total_ns));
    if parts.len() > MAX_ROWS {
        let rest = parts.split_off(MAX_ROWS - 1);
        parts.push(part(
            None,
            ("rest", None),
            rest.iter()
                .fold(0, |sum: i64, part| sum.saturating_add(part.total_ns)),
        ));
    }
    parts
}

//! Conditions of the machine that may have changed the numbers: heat, power supply, want of memory.
//!
//! They come from the counters that a recording measures beside the program ([`Condition`]). What the counters do not say is not
//! said here either: the manifest's `unmeasured` has the reasons.

mod gpu;
mod machine;

use crate::counters::{Counter, CounterOwner};
use crate::intervals::{self, Interval};
use crate::quantity::duration;
use crate::timeline::Timeline;
use crate::vocabulary::Gpus;
use gapscope_trace::tables::Condition;
use schemars::JsonSchema;
use serde::Serialize;

/// Something that may have changed how long work took.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ConditionNote {
    /// What it was.
    pub kind: ConditionKind,
    /// Index in the findings of the device that it is of; absent for the machine's.
    pub device: Option<u32>,
    /// When it was seen first.
    pub start_ns: i64,
    /// When it was seen last.
    pub end_ns: i64,
    /// For how long it held in between.
    pub held_ns: i64,
    /// It is as it should be, such as the power limit at full load: reports for people leave it out.
    pub is_usual: bool,
    /// What it was, from when on, and what it means.
    pub sentence: String,
}

/// What happened to a GPU or a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionKind {
    /// A GPU or its memory was too hot for its clock.
    Heat,
    /// The power supply asked a GPU to draw less.
    PowerBrake,
    /// A GPU was slowed down, by heat, power or its supply: the driver does not say which.
    Slowdown,
    /// A GPU was at its power limit.
    PowerCap,
    /// The machine, or the program's control group, waited for memory.
    MemoryStall,
    /// The program's control group reached a limit of its memory.
    MemoryLimit,
    /// Processes were killed for want of memory.
    KilledForMemory,
    /// The machine read memory back from swap, or had to write it there.
    Swap,
    /// The machine's thermal state (macOS) was not nominal.
    ThermalState,
}

/// All notes on a trace with these recorded counters: by GPU, then of the machine.
pub fn conditions(timeline: &Timeline, counters: &[Counter]) -> Vec<ConditionNote> {
    if counters.is_empty() {
        return Vec::new();
    }
    let gpus = Gpus::of(&timeline.trace.manifest);
    let mut notes = Vec::new();
    for gpu in 0..gpus.count() {
        let name = match gpus.count() {
            1 => gpus.name(gpu).to_owned(),
            _ => gpus.title(gpu),
        };
        notes.extend(gpu::notes(timeline, counters, gpu, &name));
    }
    notes.extend(machine::notes(timeline, counters));
    notes
}

/// The counter of a condition.
fn find(counters: &[Counter], owner: CounterOwner, condition: Condition) -> Option<&Counter> {
    let mut of_it = counters.iter();
    of_it.find(|c| c.owner == owner && c.name == condition.as_str())
}

/// The recording, which counters may reach out of.
fn recording(timeline: &Timeline) -> Interval {
    let manifest = &timeline.trace.manifest;
    Interval::new(manifest.start_ns, manifest.end_ns)
}

/// The parts of a window in which a counter has a value, with the value.
fn held(counter: &Counter, window: Interval) -> impl Iterator<Item = (Interval, f64)> {
    let steps = counter.steps();
    let nexts: Vec<i64> = (steps.iter().skip(1).map(|step| step.at_ns))
        .chain([window.end_ns])
        .collect();
    let parts = steps.into_iter().zip(nexts);
    parts.filter_map(move |(step, next_ns)| {
        let part = Interval::new(step.at_ns, next_ns).intersection(window);
        step.value.filter(|_| !part.is_empty()).map(|v| (part, v))
    })
}

/// When a counter is at least `least` in a window, as a set.
fn when(counter: Option<&Counter>, window: Interval, least: f64) -> Vec<Interval> {
    let parts = counter.map(|counter| held(counter, window));
    let parts = parts.into_iter().flatten();
    let mut parts: Vec<Interval> = parts
        .filter(|(_, value)| *value >= least)
        .map(|(part, _)| part)
        .collect();
    intervals::union(&mut parts);
    parts
}

/// `for 3.20 s, from 12.4 s on`, of a set that is not empty.
fn times(set: &[Interval], origin_ns: i64) -> String {
    let at = |ns: i64| duration(ns.saturating_sub(origin_ns));
    let length = duration(intervals::length_ns(set));
    match set {
        [one] => format!("for {length}, from {} on", at(one.start_ns)),
        [first, .., last] => format!(
            "for {length} between {} and {}",
            at(first.start_ns),
            at(last.end_ns)
        ),
        [] => String::new(),
    }
}

impl ConditionNote {
    /// A note on the times of a set that is not empty.
    fn of(kind: ConditionKind, device: Option<usize>, set: &[Interval], sentence: String) -> Self {
        let hull = set.iter().copied().reduce(Interval::hull);
        let hull = hull.unwrap_or_default();
        ConditionNote {
            kind,
            device: device.map(|gpu| gpu as u32),
            start_ns: hull.start_ns,
            end_ns: hull.end_ns,
            held_ns: intervals::length_ns(set),
            is_usual: false,
            sentence,
        }
    }
}

//! The type of a note on a condition of the machine, and helpers that read conditions from counters.

use gapscope_timeline::Timeline;
use gapscope_timeline::counters::Counter;
use gapscope_timeline::intervals::{self, Interval};
use gapscope_timeline::quantity::duration;
use schemars::JsonSchema;
use serde::Serialize;

/// Something that may have changed how long work took.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ConditionNote {
    /// The kind of condition.
    pub kind: ConditionKind,
    /// Index in the findings of the device that it concerns; absent for the machine.
    pub device: Option<u32>,
    /// When it was first seen.
    pub start_ns: i64,
    /// When it was last seen.
    pub end_ns: i64,
    /// How long it held in between.
    pub held_ns: i64,
    /// The mean clock while it held, over the greatest clock while the device worked; absent where clocks were not measured, and
    /// for what is not the device's power limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clock_share: Option<f64>,
    /// It is normal, such as the power limit at full load: reports for people leave it out.
    pub is_usual: bool,
    /// The condition, its times, and what it means.
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
    /// Processes were killed for lack of memory.
    KilledForMemory,
    /// Tasks waited for a processor most of the time.
    ProcessorStall,
    /// Tasks waited for a disk most of the time.
    DiskStall,
    /// The machine read memory back from swap, or had to write it there.
    Swap,
    /// The machine's thermal state (macOS) was not nominal.
    ThermalState,
}

/// Returns the interval of the recording. Samples of counters may lie outside of it.
pub(super) fn recording(timeline: &Timeline) -> Interval {
    let manifest = &timeline.trace.manifest;
    Interval::new(manifest.start_ns, manifest.end_ns)
}

/// Returns the set of the times in a window at which a counter is at least `least`, in order of time. Empty without a
/// counter.
pub(super) fn times_above(
    counter: Option<&Counter>,
    window: Interval,
    least: f64,
) -> Vec<Interval> {
    let parts = counter.map(|counter| counter.values_in(window));
    let parts = parts.into_iter().flatten();
    let mut parts: Vec<Interval> = parts
        .filter(|(_, value)| *value >= least)
        .map(|(part, _)| part)
        .collect();
    intervals::union(&mut parts);
    parts
}

/// Returns the time that a counter of lost time, in percent, adds up to over the parts of `window` in which it is at
/// least `least`.
pub(super) fn lost_ns(counter: &Counter, window: Interval, least: f64) -> i64 {
    let parts = counter.values_in(window);
    let parts = parts.filter(|(_, percent)| *percent >= least);
    let lost = parts.map(|(part, percent)| part.length_ns() as f64 * percent / 100.0);
    lost.sum::<f64>() as i64
}

/// Describes a set of times, such as `for 3.20 s, from 12.4 s on`, counted from `origin_ns`. Empty for an empty set.
pub(super) fn describe_times(set: &[Interval], origin_ns: i64) -> String {
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
    /// Makes a note on the times of a set that is not empty.
    pub(super) fn new(
        kind: ConditionKind,
        device: Option<usize>,
        set: &[Interval],
        sentence: String,
    ) -> Self {
        let hull = set.iter().copied().reduce(Interval::hull);
        let hull = hull.unwrap_or_default();
        ConditionNote {
            kind,
            device: device.map(|gpu| gpu as u32),
            start_ns: hull.start_ns,
            end_ns: hull.end_ns,
            held_ns: intervals::length_ns(set),
            clock_share: None,
            is_usual: false,
            sentence,
        }
    }
}

//! Notes, from counters of a GPU, the conditions that held its clocks down while it worked.

use super::note::{ConditionKind, ConditionNote, describe_times, lost_ns, recording, times_above};
use gapscope_timeline::Timeline;
use gapscope_timeline::counters::{Counter, CounterOwner, find};
use gapscope_timeline::intervals::{self, Interval};
use gapscope_timeline::quantity::duration;
use gapscope_timeline::thresholds::{SLOWED_CLOCK, SLOWED_NS};
use gapscope_trace::tables::Condition;

/// The conditions that slow a GPU down, with the kind of the note and the reason in the words of NVML's
/// documentation.
const SLOWDOWNS: [(Condition, ConditionKind, &str); 3] = [
    (
        Condition::ClockHeatHardware,
        ConditionKind::Heat,
        "ran below its clock because of heat (hardware thermal slowdown)",
    ),
    (
        Condition::ClockHeatSoftware,
        ConditionKind::Heat,
        "ran below its clock so that it, or its memory, became no hotter (software thermal slowdown)",
    ),
    (
        Condition::ClockPowerBrake,
        ConditionKind::PowerBrake,
        "ran below its clock because the power supply asked for it (hardware power brake)",
    ),
];
/// The words for a slowdown without a cause.
const UNSPECIFIC: &str = "ran below its clock (hardware slowdown, for which the driver gives no cause: heat, power draw, or \
                          the power supply)";

/// Returns the notes on one GPU, for the time from its first work to its last. `gpu` is its index, `name` is how
/// sentences call it. A condition is noted if it held for `SLOWED_NS` or more in all.
pub fn notes(
    timeline: &Timeline,
    counters: &[Counter],
    gpu: usize,
    name: &str,
) -> Vec<ConditionNote> {
    let worked = timeline.gpus.get(gpu).and_then(|gpu| gpu.work_window());
    let Some(window) = worked.map(|worked| worked.intersection(recording(timeline))) else {
        return Vec::new();
    };
    let origin_ns = timeline.trace.manifest.start_ns;
    let counter = |condition| find(counters, CounterOwner::Gpu(gpu), condition);
    let limited = |condition| times_above(counter(condition), window, f64::MIN_POSITIVE);
    let slowed = |kind, words: &str, set: &[Interval]| {
        let hottest = hottest(counter(Condition::Temperature), set);
        let sentence = format!(
            "{name} {words} {}{hottest}: kernel times of then are not comparable with others.",
            describe_times(set, origin_ns)
        );
        ConditionNote::new(kind, Some(gpu), set, sentence)
    };
    let counts = |set: &[Interval]| intervals::length_ns(set) >= SLOWED_NS;

    let mut notes = Vec::new();
    let mut explained = Vec::new();
    for (condition, kind, words) in SLOWDOWNS {
        let set = limited(condition);
        if counts(&set) {
            notes.push(slowed(kind, words, &set));
        }
        explained.extend(set);
    }
    intervals::union(&mut explained);
    let unspecific = intervals::intersection(
        &limited(Condition::ClockSlowdown),
        &intervals::complement(&explained, window),
    );
    if counts(&unspecific) {
        notes.push(slowed(ConditionKind::Slowdown, UNSPECIFIC, &unspecific));
    }
    // The driver may have added up slowdowns that are too short to be seen by polling.
    if !notes.iter().any(|note| note.kind == ConditionKind::Heat)
        && let Some(violation) = counter(Condition::HeatViolation)
    {
        let lost_ns = lost_ns(violation, window, f64::MIN_POSITIVE);
        if lost_ns >= SLOWED_NS {
            let set = limited(Condition::HeatViolation);
            let sentence = format!(
                "{name} was below the clock that was asked for because of heat for {} in all, as its driver adds it up, from {} on: \
                 kernel times of then are not comparable with others.",
                duration(lost_ns),
                duration(set[0].start_ns.saturating_sub(origin_ns))
            );
            let note = ConditionNote::new(ConditionKind::Heat, Some(gpu), &set, sentence);
            notes.push(ConditionNote {
                held_ns: lost_ns,
                ..note
            });
        }
    }
    let capped = limited(Condition::ClockPowerCap);
    if counts(&capped) {
        let clock = counter(Condition::SmClock);
        let clock_share = clock_share(clock, &capped, window);
        let meaning = match clock_share {
            Some(share) if share <= SLOWED_CLOCK => format!(
                ": on average {:.0} % of its greatest clock, at which the same kernels take up to {:.2} times as long.",
                share * 100.0,
                1.0 / share
            ),
            _ => ", which is usual at full load.".to_owned(),
        };
        let sentence = format!(
            "{name} was at its power limit {}{}{meaning}",
            describe_times(&capped, origin_ns),
            clocks(clock, &capped)
        );
        let note = ConditionNote::new(ConditionKind::PowerCap, Some(gpu), &capped, sentence);
        notes.push(ConditionNote {
            clock_share,
            is_usual: true,
            ..note
        });
    }
    notes
}

/// Returns the text of the greatest temperature, such as `, at up to 87 °C`.
fn hottest(temperature: Option<&Counter>, set: &[Interval]) -> String {
    match range(temperature, set) {
        Some((_, celsius)) => format!(", at up to {celsius:.0} °C"),
        None => String::new(),
    }
}

/// Returns the text of the range of clocks, such as `, with SM clocks from 1208 to 1980 MHz`, or of the one clock.
fn clocks(clock: Option<&Counter>, set: &[Interval]) -> String {
    match range(clock, set) {
        Some((least, most)) => {
            let (least, most) = ((least / 1e6).round(), (most / 1e6).round());
            match least == most {
                true => format!(", with the SM clock at {most} MHz"),
                false => format!(", with SM clocks from {least} to {most} MHz"),
            }
        }
        None => String::new(),
    }
}

/// Returns the mean clock in a set of times, over the greatest in the window.
fn clock_share(clock: Option<&Counter>, set: &[Interval], window: Interval) -> Option<f64> {
    let (_, greatest) = range(clock, &[window])?;
    let clock = clock?;
    let (mut sum, mut sum_ns) = (0.0, 0.0);
    for (part, value) in set.iter().flat_map(|part| clock.values_in(*part)) {
        let ns = part.length_ns() as f64;
        sum += value * ns;
        sum_ns += ns;
    }
    (sum_ns > 0.0 && greatest > 0.0).then(|| sum / sum_ns / greatest)
}

/// Returns the least and the greatest value that a counter has in a set of intervals.
fn range(counter: Option<&Counter>, set: &[Interval]) -> Option<(f64, f64)> {
    let counter = counter?;
    let values = set.iter().flat_map(|part| counter.values_in(*part));
    let values = values.map(|(_, value)| (value, value));
    values.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

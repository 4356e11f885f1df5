//! Notes, from counters of the machine, that memory was short, and the thermal state that macOS reports. All of them
//! are counters of the machine or of the program's cgroup (control group); a cgroup's stalls (times in which a task
//! waited for memory) stand in place of the machine's.

use super::note::{ConditionKind, ConditionNote, describe_times, lost_ns, recording, times_above};
use gapscope_timeline::Timeline;
use gapscope_timeline::counters::{Counter, CounterOwner, find};
use gapscope_timeline::intervals::{self, Interval};
use gapscope_timeline::quantity::{bytes, count_of, duration};
use gapscope_timeline::thresholds::{STALL_NS, STALL_SHARE, SWAPPED_BYTES};
use gapscope_trace::tables::{Condition, THERMAL_STATE};

/// Returns the notes on the machine.
pub fn notes(timeline: &Timeline, counters: &[Counter]) -> Vec<ConditionNote> {
    let window = recording(timeline);
    let counter = |condition| find(counters, CounterOwner::Host, condition);
    let stall =
        |condition, who| counter(condition).and_then(|counter| memory_stall(counter, window, who));
    let group = stall(Condition::GroupMemoryStall, "The program's cgroup");
    let is_group_short = group.is_some();
    let mut notes = Vec::new();
    notes.extend(group.or_else(|| stall(Condition::MemoryStall, "The machine")));
    for (condition, kind, is_usual, words) in [
        (
            Condition::GroupMemoryMax,
            ConditionKind::MemoryLimit,
            // Files that were read fill the memory too.
            !is_group_short,
            "The program's cgroup was at its memory limit (memory.max)",
        ),
        (
            Condition::GroupMemoryHigh,
            ConditionKind::MemoryLimit,
            !is_group_short,
            "The program's cgroup was above memory.high, where its processes are slowed down,",
        ),
        (
            Condition::GroupKilled,
            ConditionKind::KilledForMemory,
            false,
            "For want of memory the kernel killed processes of the program's cgroup",
        ),
    ] {
        let note = counter(condition).and_then(|counter| counted(counter, window, kind, words));
        notes.extend(note.map(|note| ConditionNote { is_usual, ..note }));
    }
    notes.extend(swap(
        counter(Condition::SwapIn),
        counter(Condition::SwapOut),
        window,
    ));
    notes.extend(thermal_states(counters, window));
    notes
}

/// Returns a note on the times in which stalls cost `STALL_SHARE` or more, or `None` where they cost less than
/// `STALL_NS` in all. `who` begins the sentence.
fn memory_stall(counter: &Counter, window: Interval, who: &str) -> Option<ConditionNote> {
    let least = STALL_SHARE * 100.0;
    let lost_ns = lost_ns(counter, window, least);
    if lost_ns < STALL_NS {
        return None;
    }
    let set = times_above(Some(counter), window, least);
    let hull = set.iter().copied().reduce(Interval::hull)?;
    let sentence = format!(
        "{who} stalled on memory for {} of {} (a task or more waited for it), from {} on: calls, copies and gaps of then may be longer \
         for it.",
        duration(lost_ns),
        duration(hull.length_ns()),
        duration(hull.start_ns.saturating_sub(window.start_ns))
    );
    let note = ConditionNote::new(ConditionKind::MemoryStall, None, &set, sentence);
    Some(ConditionNote {
        held_ns: lost_ns,
        ..note
    })
}

/// Returns a note on a counter that counts events up from 0, or `None` where it never rose in the window. `words`
/// begin the sentence, which the count ends.
fn counted(
    counter: &Counter,
    window: Interval,
    kind: ConditionKind,
    words: &str,
) -> Option<ConditionNote> {
    let parts: Vec<(Interval, f64)> = counter.values_in(window).collect();
    let (first, last) = (parts.first()?, parts.last()?);
    let count = (last.1 - first.1).max(0.0) as u64;
    let since = parts.iter().find(|(_, value)| *value > first.1)?;
    let set = [Interval::new(
        since.0.start_ns,
        last.0.start_ns.max(since.0.start_ns),
    )];
    let sentence = format!(
        "{words} {}, first at {}.",
        count_of(count, "time", "times"),
        duration(since.0.start_ns.saturating_sub(window.start_ns))
    );
    Some(ConditionNote::new(kind, None, &set, sentence))
}

/// Returns a note on the bytes moved from and to swap, whose counters are rates in bytes per second, or `None` below
/// `SWAPPED_BYTES`.
fn swap(
    read: Option<&Counter>,
    written: Option<&Counter>,
    window: Interval,
) -> Option<ConditionNote> {
    let moved = |counter: Option<&Counter>| {
        let parts = counter.into_iter().flat_map(|c| c.values_in(window));
        let bytes = parts.map(|(part, rate)| rate * part.length_ns() as f64 / 1e9);
        bytes.sum::<f64>().round() as u64
    };
    let (bytes_in, bytes_out) = (moved(read), moved(written));
    if bytes_in.saturating_add(bytes_out) < SWAPPED_BYTES {
        return None;
    }
    let mut set = times_above(read, window, f64::MIN_POSITIVE);
    set.extend(times_above(written, window, f64::MIN_POSITIVE));
    intervals::union(&mut set);
    let sentence = format!(
        "The machine read {} back from swap and wrote {} to it, {}: calls, copies and gaps of then may be longer for it.",
        bytes(bytes_in),
        bytes(bytes_out),
        describe_times(&set, window.start_ns)
    );
    Some(ConditionNote::new(
        ConditionKind::Swap,
        None,
        &set,
        sentence,
    ))
}

/// Returns notes on thermal states, which imported traces have.
fn thermal_states(counters: &[Counter], window: Interval) -> Vec<ConditionNote> {
    let states = counters.iter().filter_map(|counter| {
        let state = counter.name.strip_prefix(THERMAL_STATE)?;
        let set = times_above(Some(counter), window, f64::MIN_POSITIVE);
        let sentence = format!(
            "The machine's thermal state was {state} {}: kernel times of then are not comparable with others.",
            describe_times(&set, window.start_ns)
        );
        (!set.is_empty())
            .then(|| ConditionNote::new(ConditionKind::ThermalState, None, &set, sentence))
    });
    states.collect()
}

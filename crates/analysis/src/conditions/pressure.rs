//! Says for which share of a time tasks waited for a processor or for a disk, from the kernel's counters of pressure. The counters
//! of the program's cgroup (control group) stand in place of the machine's, where they were recorded.

use super::note::{ConditionKind, ConditionNote, lost_ns, recording, times_above};
use gapscope_timeline::Timeline;
use gapscope_timeline::counters::{Counter, CounterOwner, find};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{duration, ratio, share};
use gapscope_timeline::thresholds::{STALL_NS, STALLED_SHARE};
use gapscope_trace::tables::Condition;

/// The shares of a time in which a task waited for a part of the machine; `None` where that was not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// For a processor.
    pub processors: Option<f64>,
    /// For a disk.
    pub disks: Option<f64>,
}

/// The counters of the program's cgroup and of the machine for one part of the machine.
const PROCESSORS: [Condition; 2] = [Condition::GroupCpuStall, Condition::CpuStall];
const DISKS: [Condition; 2] = [Condition::GroupIoStall, Condition::IoStall];

impl Pressure {
    /// Returns the pressure in a window; nothing is known without a window.
    pub fn new(counters: &[Counter], window: Option<Interval>) -> Pressure {
        let share = |conditions| {
            let window = window.filter(|window| !window.is_empty())?;
            let (counter, _) = measured(counters, conditions)?;
            counter.values_in(window).next()?;
            Some(ratio(lost_ns(counter, window, 0.0), window.length_ns()))
        };
        Pressure {
            processors: share(PROCESSORS),
            disks: share(DISKS),
        }
    }
}

/// Returns the first of the counters that was recorded, and whether it is the cgroup's.
fn measured(counters: &[Counter], conditions: [Condition; 2]) -> Option<(&Counter, bool)> {
    let counter = |condition| find(counters, CounterOwner::Host, condition);
    let [group, machine] = conditions.map(counter);
    (group.map(|counter| (counter, true))).or(machine.map(|counter| (counter, false)))
}

/// Returns the notes on processors and disks for which tasks waited most of the time.
pub(super) fn notes(timeline: &Timeline, counters: &[Counter]) -> Vec<ConditionNote> {
    let window = timeline.work_window().unwrap_or(recording(timeline));
    let stalls = [
        (PROCESSORS, ConditionKind::ProcessorStall, "a processor"),
        (DISKS, ConditionKind::DiskStall, "a disk"),
    ];
    let notes = stalls.into_iter().filter_map(|(conditions, kind, what)| {
        let (counter, is_group) = measured(counters, conditions)?;
        let lost_ns = lost_ns(counter, window, 0.0);
        let lost = ratio(lost_ns, window.length_ns());
        if lost < STALLED_SHARE || lost_ns < STALL_NS {
            return None;
        }
        let whose = match is_group {
            true => "of the program's cgroup",
            false => "of the machine",
        };
        let sentence = format!(
            "A task or more {whose} waited for {what} for {} ({} of the time of GPU work): a late host may have waited for it, and calls \
             and gaps may be longer for it.",
            duration(lost_ns),
            share(lost)
        );
        let set = times_above(Some(counter), window, f64::MIN_POSITIVE);
        let note = ConditionNote::new(kind, None, &set, sentence);
        Some(ConditionNote {
            held_ns: lost_ns,
            ..note
        })
    });
    notes.collect()
}

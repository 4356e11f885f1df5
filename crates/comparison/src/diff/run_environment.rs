//! Notes circumstances of a run (power limits, memory of other programs) that reports do not mention, because they
//! matter only where they differ from the other side. A [`RunDigest`] is what a comparison keeps of a run.

use super::run::{RunDigest, RunEnvironment, is_software};
use gapscope_timeline::Timeline;
use gapscope_timeline::counters::{Counter, CounterOwner, device_memory, find, recorded};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{bytes, share};
use gapscope_timeline::vocabulary::Gpus;
use gapscope_trace::tables::Condition;

/// The ratio of the clocks of both sides from which on the clocks are reported. The value is chosen and not measured.
const OTHER_CLOCK: f64 = 1.03;
/// The share of the recording from which on a limit of the clock is reported.
const LIMITED_SHARE: f64 = 0.1;

/// The share of the recording from which on waiting for a processor is reported. A program with more threads than
/// cores waits for itself.
const STALLED_SHARE: f64 = 0.5;

/// The difference in bytes from which on memory that does not belong to the recorded program is reported: a process
/// on a GPU holds some hundred megabytes before it allocates any.
const OTHERS_BYTES: f64 = 256.0 * 1024.0 * 1024.0;

impl RunEnvironment {
    /// Reads the circumstances from the counters that were recorded.
    fn new(timeline: &Timeline, counters: &[Counter]) -> RunEnvironment {
        let gpus = || (0..timeline.gpus.len()).map(CounterOwner::Gpu);
        let measured = |owner: &CounterOwner| find(counters, *owner, Condition::SmClock).is_some();
        let capped = |owner| mean_share(counters, owner, Condition::ClockPowerCap, timeline);
        let own = device_memory(timeline);
        let others = gpus().filter_map(|owner| {
            let used = find(counters, owner, Condition::MemoryUsed)?;
            let own = own.iter().find(|counter| counter.owner == owner);
            let others = used.samples.iter().map(|sample| {
                let own = own.map_or(0.0, |own| value_at(own, sample.start_ns));
                (sample.value - own).max(0.0) as u64
            });
            others.min()
        });
        RunEnvironment {
            power_capped: gpus().filter(measured).map(capped).reduce(f64::max),
            others_bytes: others.reduce(u64::saturating_add),
            waited: waited(timeline, counters),
            clocks: clocks(timeline, counters),
        }
    }
}

/// Returns the clocks that GPUs reached in the first and in the last third of the time of the GPU work, the lowest of all GPUs.
fn clocks(timeline: &Timeline, counters: &[Counter]) -> Option<[f64; 2]> {
    let window = timeline.work_window()?;
    let third = window.length_ns() / 3;
    let ends = [
        Interval::new(window.start_ns, window.start_ns + third),
        Interval::new(window.end_ns - third, window.end_ns),
    ];
    let reached = |counter: &Counter, end: Interval| {
        let samples = counter.samples.iter();
        let inside =
            samples.filter(|sample| (end.start_ns..=end.end_ns).contains(&sample.start_ns));
        // Between pieces of work a GPU lowers its clock.
        inside.map(|sample| sample.value).reduce(f64::max)
    };
    let gpus = (0..timeline.gpus.len()).map(CounterOwner::Gpu);
    gpus.filter_map(|owner| {
        let counter = find(counters, owner, Condition::SmClock)?;
        let [first, last] = ends.map(|end| reached(counter, end));
        Some([first?, last?])
    })
    .reduce(|a, b| [0, 1].map(|end| f64::min(a[end], b[end])))
}

/// Returns the share of the time of the GPU work in which tasks waited for a processor or for memory, whichever is greater. Those of
/// the program's control group count, where they were measured, and else those of the machine.
fn waited(timeline: &Timeline, counters: &[Counter]) -> Option<f64> {
    let window = timeline.work_window()?;
    let share = |condition| share_in(counters, CounterOwner::Host, condition, window);
    [
        [Condition::GroupCpuStall, Condition::CpuStall],
        [Condition::GroupMemoryStall, Condition::MemoryStall],
    ]
    .into_iter()
    .filter_map(|[group, machine]| share(group).or_else(|| share(machine)))
    .reduce(f64::max)
}

/// Describes in sentences how the normal circumstances of the sides differ.
pub(super) fn differences(before: &[RunDigest], after: &[RunDigest]) -> Vec<String> {
    let sides = |figure: fn(&RunEnvironment) -> Option<f64>| {
        [before, after].map(|runs| {
            let all: Option<Vec<f64>> = runs.iter().map(|run| figure(&run.surroundings)).collect();
            let all = all.filter(|all| !all.is_empty())?;
            Some(all.iter().sum::<f64>() / all.len() as f64)
        })
    };
    let mut sentences = Vec::new();
    if let [Some(first), Some(second)] =
        sides(|of| of.clocks.map(|[start, end]| (start + end) / 2.0))
        && first.max(second) >= OTHER_CLOCK * first.min(second)
    {
        let (slower, ratio) = match first < second {
            true => ("before", second / first),
            false => ("after", first / second),
        };
        sentences.push(format!(
            "A GPU ran at {:.0} MHz before and at {:.0} MHz after: by that alone kernels may take up to {ratio:.2} times as long {slower}.",
            first / 1e6,
            second / 1e6
        ));
    }
    match sides(|of| of.power_capped) {
        [Some(first), Some(second)] if (first - second).abs() >= LIMITED_SHARE => {
            sentences.push(format!(
                "A GPU was at its power limit for {} of the recording before and for {} after: its clock was not the same, nor are \
                 times of kernels.",
                share(first),
                share(second)
            ));
        }
        [Some(part), None] if part >= LIMITED_SHARE => {
            sentences.push(unmeasured(part, ["before", "after"]))
        }
        [None, Some(part)] if part >= LIMITED_SHARE => {
            sentences.push(unmeasured(part, ["after", "before"]))
        }
        _ => {}
    }
    if let [Some(first), Some(second)] = sides(|of| of.others_bytes.map(|bytes| bytes as f64))
        && (first - second).abs() >= OTHERS_BYTES
    {
        sentences.push(format!(
            "Of the GPUs' memory at least {} before and {} after was in use all the time and not by allocations that the traces have: other \
             programs were on a GPU, which share its time, or the traces lack allocations.",
            bytes(first as u64),
            bytes(second as u64)
        ));
    }
    sentences
}

/// Returns the sentence for a power limit that was measured on one side only.
fn unmeasured(part: f64, [side, other]: [&str; 2]) -> String {
    format!(
        "A GPU was at its power limit for {} of the recording {side}; whether one was so {other} was not measured.",
        share(part)
    )
}

/// The limits of a GPU's clock that reports do not mention, since they may be intended, each with its text.
const LIMITS: [(Condition, &str); 4] = [
    (
        Condition::ClockSetting,
        "a setting (application or locked clocks)",
    ),
    (
        Condition::ClockSyncBoost,
        "those of other GPUs (sync boost)",
    ),
    (Condition::ClockDisplay, "that of a display"),
    (
        Condition::ClockOther,
        "a reason that its driver does not name",
    ),
];

impl RunDigest {
    /// Notes limits of the GPUs' clocks, how long tasks of the machine waited for a processor, and memory of other programs.
    pub fn note_surroundings(&mut self, timeline: &Timeline) {
        if timeline.trace.tables.counters.id.is_empty() {
            return;
        }
        let counters = recorded(timeline);
        self.surroundings = RunEnvironment::new(timeline, &counters);
        let gpus = Gpus::new(&timeline.trace.manifest);
        for gpu in 0..gpus.count() {
            let name = gpus.distinct_name(gpu);
            for (condition, by) in LIMITS {
                let part = mean_share(&counters, CounterOwner::Gpu(gpu), condition, timeline);
                if part >= LIMITED_SHARE {
                    self.flaws.push(format!(
                        "The clock of {name} was limited by {by} for {} of the recording.",
                        share(part)
                    ));
                }
            }
        }
        let part = mean_share(&counters, CounterOwner::Host, Condition::CpuStall, timeline);
        // The threads of a software device wait for each other's processors.
        let software = (0..gpus.count()).any(|gpu| is_software(gpus.name(gpu)));
        if part >= STALLED_SHARE && !software {
            self.flaws.push(format!(
                "Tasks of the machine waited for a processor for {} of the recording: other programs ran, or there were more threads than \
                 cores; times of the host and idle times may be longer for it.",
                share(part)
            ));
        }
    }
}

/// Returns the value of a counter, 0 before its first sample.
fn value_at(counter: &Counter, at_ns: i64) -> f64 {
    let until = counter
        .samples
        .partition_point(|sample| sample.start_ns <= at_ns);
    let last = counter.samples[..until].last();
    last.map_or(0.0, |sample| sample.value)
}

/// Returns the mean of a counter of percentages over the recording, where it is known, as a share.
fn mean_share(
    counters: &[Counter],
    owner: CounterOwner,
    condition: Condition,
    timeline: &Timeline,
) -> f64 {
    let manifest = &timeline.trace.manifest;
    let recording = Interval::new(manifest.start_ns, manifest.end_ns);
    share_in(counters, owner, condition, recording).unwrap_or(0.0)
}

/// Returns the mean of a counter of percentages over those parts of an interval where it was measured, as a share.
fn share_in(
    counters: &[Counter],
    owner: CounterOwner,
    condition: Condition,
    interval: Interval,
) -> Option<f64> {
    let counter = find(counters, owner, condition)?;
    let (mut measured_ns, mut sum) = (0.0, 0.0);
    for (part, percent) in counter.values_in(interval) {
        let ns = part.length_ns() as f64;
        measured_ns += ns;
        sum += ns * percent / 100.0;
    }
    (measured_ns > 0.0).then(|| sum / measured_ns)
}

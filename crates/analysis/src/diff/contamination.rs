//! What a comparison says of a run's surroundings besides what each report says: it matters where the other side had it otherwise.

use super::digest::RunDigest;
use super::is_software;
use crate::counters::{Counter, CounterOwner, recorded};
use crate::quantity::share;
use crate::timeline::Timeline;
use crate::vocabulary::Gpus;
use gapscope_trace::tables::Condition;

/// From this share of the recording on, a limit of the clock is told.
const LIMITED_SHARE: f64 = 0.1;

/// From this share of the recording on, waiting for a processor is told. A program with more threads than cores waits for itself.
const STALLED_SHARE: f64 = 0.5;

/// Limits of a GPU's clock that are no condition of their own in reports, as these may be meant.
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
    /// Notes limits of the GPUs' clocks, and how long tasks of the machine waited for a processor.
    pub fn note_surroundings(&mut self, timeline: &Timeline) {
        if timeline.trace.tables.counters.id.is_empty() {
            return;
        }
        let counters = recorded(timeline);
        let gpus = Gpus::of(&timeline.trace.manifest);
        for gpu in 0..gpus.count() {
            let name = match gpus.count() {
                1 => gpus.name(gpu).to_owned(),
                _ => gpus.title(gpu),
            };
            for (condition, by) in LIMITS {
                let part = of(&counters, CounterOwner::Gpu(gpu), condition, timeline);
                if part >= LIMITED_SHARE {
                    self.flaws.push(format!(
                        "The clock of {name} was limited by {by} for {} of the recording.",
                        share(part)
                    ));
                }
            }
        }
        let part = of(&counters, CounterOwner::Host, Condition::CpuStall, timeline);
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

/// The mean of a counter of percents over the recording, where it is known, as a share.
fn of(counters: &[Counter], owner: CounterOwner, condition: Condition, timeline: &Timeline) -> f64 {
    let mut found = counters.iter();
    let Some(counter) = found.find(|c| c.owner == owner && c.name == condition.as_str()) else {
        return 0.0;
    };
    let manifest = &timeline.trace.manifest;
    let steps = counter.steps();
    let ends = steps.iter().skip(1).map(|step| step.at_ns);
    let ends = ends.chain([manifest.end_ns]);
    let (mut known_ns, mut sum) = (0.0, 0.0);
    for (step, end_ns) in steps.iter().zip(ends) {
        let from_ns = step.at_ns.max(manifest.start_ns);
        let ns = end_ns.min(manifest.end_ns).saturating_sub(from_ns).max(0) as f64;
        if let Some(percent) = step.value {
            known_ns += ns;
            sum += ns * percent / 100.0;
        }
    }
    if known_ns > 0.0 { sum / known_ns } else { 0.0 }
}

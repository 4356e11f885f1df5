//! Finds where device times contradict host times: work that seems to start before the call that submitted it, and work
//! that seems to end after the host knew that it had ended (`awaited_work.rs`). Both cannot be, so that the clocks differ by
//! more than the trace states.
//!
//! Input is a timeline; output is at most one [`Contradiction`] of each kind for each device, of those that
//! [`CONTRADICTED_SHARE`] of the compared times show.
//!
//! What this cannot know: how far the clocks differ. The figures are the least that they differ by.

use crate::awaited_work::{AwaitedWork, Witness};
use gapscope_timeline::Timeline;
use gapscope_timeline::durations::Durations;
use gapscope_timeline::quantity::Nanoseconds;
use gapscope_timeline::thresholds::{CONTRADICTED_SHARE, UNSTATED_ERROR_NS};
use schemars::JsonSchema;
use serde::Serialize;

/// Device times of one device that cannot be true together with host times.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Contradiction {
    /// Index of the device in the findings.
    pub device: u32,
    /// What the times seem to show.
    pub kind: ContradictionKind,
    /// How often they do so by more than the clock's error.
    pub count: u64,
    /// How many times were compared.
    pub compared_count: u64,
    /// The clock's stated error; absent where none is stated.
    pub clock_error_ns: Option<i64>,
    /// By how much the times contradict each other in the median, the stated error included.
    pub median_ns: i64,
    /// The most by which they do.
    pub max_ns: i64,
    /// The sum of what they contradict each other by.
    pub total_ns: i64,
    /// The same in one sentence.
    pub sentence: String,
}

/// What times seem to show that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ContradictionKind {
    /// Work starts before the call that submits it.
    StartsBeforeCall,
    /// Work ends after a wait for it has returned.
    EndsAfterWait,
    /// A command buffer ends after it was seen to have finished.
    EndsAfterSeen,
}

/// Returns the contradictions of each device, device by device.
pub(crate) fn contradictions(timeline: &Timeline, awaited: &AwaitedWork) -> Vec<Contradiction> {
    let devices = timeline.gpus.len();
    let mut starts = vec![Compared::default(); devices];
    let allowed_ns: Vec<i64> = (0..devices)
        .map(|gpu| timeline.clock_error_ns(gpu).unwrap_or(UNSTATED_ERROR_NS))
        .collect();
    let gpu_of = |queue: u32| timeline.queues[queue as usize].gpu as usize;
    let calls_ns = &timeline.trace.tables.submissions.start_ns;
    for (times, call_ns) in timeline.submissions.iter().zip(calls_ns) {
        if let Some(work) = times.interval() {
            let gpu = gpu_of(times.queue);
            starts[gpu].count += 1;
            starts[gpu].add(call_ns.saturating_sub(work.start_ns), allowed_ns[gpu]);
        }
    }
    let compared = |counts: &[u64]| -> Vec<Compared> {
        let counts = counts.iter().map(|count| Compared {
            count: *count,
            contradicting_ns: Vec::new(),
        });
        counts.collect()
    };
    let (mut waits, mut seen) = (compared(&awaited.waits), compared(&awaited.seen));
    for late in &awaited.late_ends {
        let gpu = gpu_of(late.queue);
        let ends = match late.witness {
            Witness::Wait => &mut waits[gpu],
            Witness::Seen => &mut seen[gpu],
        };
        ends.add(late.end_ns.saturating_sub(late.told_ns), allowed_ns[gpu]);
    }
    let mut all = Vec::new();
    for (gpu, ((starts, waits), seen)) in starts.into_iter().zip(waits).zip(seen).enumerate() {
        let error_ns = timeline.clock_error_ns(gpu);
        all.extend(starts.told(gpu, ContradictionKind::StartsBeforeCall, error_ns));
        all.extend(waits.told(gpu, ContradictionKind::EndsAfterWait, error_ns));
        all.extend(seen.told(gpu, ContradictionKind::EndsAfterSeen, error_ns));
    }
    all
}

/// The times of one device that were compared.
#[derive(Debug, Clone, Default)]
struct Compared {
    count: u64,
    /// The distances that are greater than the clock's error.
    contradicting_ns: Vec<i64>,
}

impl Compared {
    #[inline]
    fn add(&mut self, distance_ns: i64, allowed_ns: i64) {
        if distance_ns > allowed_ns {
            self.contradicting_ns.push(distance_ns);
        }
    }

    /// Returns the contradiction that these times show, where they do so often enough.
    fn told(
        mut self,
        gpu: usize,
        kind: ContradictionKind,
        error_ns: Option<i64>,
    ) -> Option<Contradiction> {
        let count = self.contradicting_ns.len() as u64;
        if count == 0 || (count as f64) < CONTRADICTED_SHARE * self.count as f64 {
            return None;
        }
        let total_ns =
            (self.contradicting_ns.iter()).fold(0, |sum: i64, ns| sum.saturating_add(*ns));
        let durations = Durations::from_slice(&mut self.contradicting_ns);
        let (median_ns, max_ns) = durations.p50_ns.zip(durations.max_ns)?;
        let seem = match kind {
            ContradictionKind::StartsBeforeCall => "submissions seem to start before their calls",
            ContradictionKind::EndsAfterWait => {
                "waits seem to return before the work that they waited for ends"
            }
            ContradictionKind::EndsAfterSeen => {
                "command buffers seem to end after they were seen to have finished"
            }
        };
        let stated = match error_ns {
            Some(ns) => format!("the clock's error is stated as {}", Nanoseconds(ns)),
            None => "no clock error is stated".to_owned(),
        };
        Some(Contradiction {
            device: gpu as u32,
            kind,
            count,
            compared_count: self.count,
            clock_error_ns: error_ns,
            median_ns,
            max_ns,
            total_ns,
            sentence: format!(
                "Host and device times contradict each other: {count} of {} {seem}, by {} in the median; {stated}.",
                self.count,
                Nanoseconds(median_ns)
            ),
        })
    }
}

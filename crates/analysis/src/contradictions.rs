//! Finds times that cannot be true together. Work seems to start before the call that submitted it, or to end after the host knew that it
//! had ended (`awaited_work.rs`), so that the clocks differ by more than the trace states. Or work seems to end after later work of its
//! stream, to start before work ends that it waits for, or to end after the recording did, so that the times of devices are wrong.
//!
//! Streams are those of CUDA: work of a Vulkan queue may overlap, and may start before a stage of it waits. Work inside of graphs, whose
//! branches run side by side, is in no such order.
//!
//! Input is a timeline; output is at most one [`Contradiction`] of each kind for each device, of those that
//! [`CONTRADICTED_SHARE`] of the compared times show.
//!
//! What this cannot know: how far the clocks differ. The figures are the least that they differ by.

use crate::awaited_work::{AwaitedWork, Witness};
use crate::gaps::api_of;
use gapscope_timeline::Timeline;
use gapscope_timeline::durations::Durations;
use gapscope_timeline::quantity::Nanoseconds;
use gapscope_timeline::thresholds::{CONTRADICTED_SHARE, EARLY_RETURN_NS};
use gapscope_trace::lookup::NONE;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::Table;
use schemars::JsonSchema;
use serde::Serialize;

/// Times of one device that cannot be true together with each other or with host times.
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
    /// Work ends after later work of its stream.
    EndsAfterLaterWork,
    /// Work starts before work ends that it waits for.
    StartsBeforeAwaited,
    /// Work ends after the recording does.
    EndsAfterRecording,
}

impl ContradictionKind {
    /// Returns what times seem to show, as the end of a sentence, and which times are compared.
    fn words(self) -> (&'static str, &'static str) {
        const HOST: &str = "Host and device times";
        const DEVICE: &str = "Device times";
        match self {
            ContradictionKind::StartsBeforeCall => {
                (HOST, "submissions seem to start before their calls")
            }
            ContradictionKind::EndsAfterWait => (
                HOST,
                "waits seem to return before the work that they waited for ends",
            ),
            ContradictionKind::EndsAfterSeen => (
                HOST,
                "command buffers seem to end after they were seen to have finished",
            ),
            ContradictionKind::EndsAfterLaterWork => (
                DEVICE,
                "pieces of work seem to end before earlier work of the same stream",
            ),
            ContradictionKind::StartsBeforeAwaited => (
                DEVICE,
                "pieces of work seem to start before the work ends that they wait for",
            ),
            ContradictionKind::EndsAfterRecording => {
                (HOST, "pieces of work seem to end after the recording")
            }
        }
    }
}

/// Returns the contradictions of each device, device by device.
pub(crate) fn contradictions(timeline: &Timeline, awaited: &AwaitedWork) -> Vec<Contradiction> {
    let devices = timeline.gpus.len();
    let mut starts = vec![Compared::default(); devices];
    let allowed_ns: Vec<i64> = (0..devices)
        .map(|gpu| timeline.clock_error_ns(gpu).unwrap_or(EARLY_RETURN_NS))
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
    let is_stream = streams(timeline);
    let awaited = starts_before_awaited(timeline, &is_stream, &allowed_ns);
    let ends = ends(timeline, &is_stream, &allowed_ns);
    let mut all = Vec::new();
    let each = starts
        .into_iter()
        .zip(waits)
        .zip(seen)
        .zip(awaited)
        .zip(ends);
    for (gpu, ((((starts, waits), seen), awaited), [later, recording])) in each.enumerate() {
        let error_ns = timeline.clock_error_ns(gpu);
        all.extend(starts.told(gpu, ContradictionKind::StartsBeforeCall, error_ns));
        all.extend(waits.told(gpu, ContradictionKind::EndsAfterWait, error_ns));
        all.extend(seen.told(gpu, ContradictionKind::EndsAfterSeen, error_ns));
        all.extend(later.told(gpu, ContradictionKind::EndsAfterLaterWork, error_ns));
        all.extend(awaited.told(gpu, ContradictionKind::StartsBeforeAwaited, error_ns));
        all.extend(recording.told(gpu, ContradictionKind::EndsAfterRecording, error_ns));
    }
    all
}

/// Compares, for each GPU, the ends of work with those of earlier work of their stream, and with the end of the recording.
fn ends(timeline: &Timeline, is_stream: &[bool], allowed_ns: &[i64]) -> Vec<[Compared; 2]> {
    let manifest = &timeline.trace.manifest;
    // A trace without a length does not say when it ended.
    let recorded_until_ns = (manifest.end_ns > manifest.start_ns).then_some(manifest.end_ns);
    let mut last_end_ns = vec![i64::MIN; timeline.queues.len()];
    let each = timeline
        .gpus
        .iter()
        .zip(allowed_ns)
        .map(|(gpu, allowed_ns)| {
            let mut compared: [Compared; 2] = Default::default();
            let [later, recording] = &mut compared;
            for work in &gpu.works {
                let end_ns = work.interval.end_ns;
                if let Some(until_ns) = recorded_until_ns {
                    recording.count += 1;
                    recording.add(end_ns.saturating_sub(until_ns), *allowed_ns);
                }
                let queue = timeline.queue_of(&work) as usize;
                if is_stream[queue] && work.command_buffer == NONE {
                    later.count += 1;
                    let last_ns = &mut last_end_ns[queue];
                    later.add(last_ns.saturating_sub(end_ns), *allowed_ns);
                    *last_ns = end_ns.max(*last_ns);
                }
            }
            compared
        });
    each.collect()
}

/// Compares, for each GPU, the starts of work with the ends of the work of other streams that it waits for.
fn starts_before_awaited(
    timeline: &Timeline,
    is_stream: &[bool],
    allowed_ns: &[i64],
) -> Vec<Compared> {
    let table = &timeline.trace.tables.dependencies;
    let mut compared = vec![Compared::default(); allowed_ns.len()];
    let times = |id| {
        let row = timeline.submission_ids.row(id);
        let times = timeline.submissions.get(row as usize)?;
        let is_of_stream = is_stream[times.queue as usize];
        Some((times.interval().filter(|_| is_of_stream)?, times.queue))
    };
    for row in 0..table.len() {
        let awaited = table.waits_for.at(row).and_then(times);
        let waiting = times(table.submission[row]);
        if let Some(((awaited, of), (waiting, on))) = awaited.zip(waiting)
            && of != on
        {
            let gpu = timeline.queues[on as usize].gpu as usize;
            let other = timeline.queues[of as usize].gpu as usize;
            compared[gpu].count += 1;
            let allowed_ns = match gpu == other {
                true => allowed_ns[gpu],
                false => allowed_ns[gpu].saturating_add(allowed_ns[other]),
            };
            compared[gpu].add(awaited.end_ns.saturating_sub(waiting.start_ns), allowed_ns);
        }
    }
    compared
}

/// Returns for each queue whether it is a stream of CUDA, which runs one piece of work after the other.
fn streams(timeline: &Timeline) -> Vec<bool> {
    let queues = timeline.queues.iter();
    queues
        .map(|queue| api_of(timeline, queue) == Api::Cuda)
        .collect()
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
        let (times, seem) = kind.words();
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
                "{times} contradict each other: {count} of {} {seem}, by {} in the median; {stated}.",
                self.count,
                Nanoseconds(median_ns)
            ),
        })
    }
}

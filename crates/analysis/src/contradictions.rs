//! Finds where device times contradict host times: work that seems to start before the call that submitted it, and work
//! that seems to end after a call has returned that waited for it. Both cannot be, so that the clocks differ by more
//! than the trace states.
//!
//! Input is a timeline; output is at most two [`Contradiction`]s for each device, of those that
//! [`CONTRADICTED_SHARE`] of the compared times show.
//!
//! What this cannot know: how far the clocks differ. The figures are the least that they differ by. Waits for fences,
//! semaphores and events are not compared, since the trace does not say which work they wait for.

use gapscope_timeline::Timeline;
use gapscope_timeline::durations::Durations;
use gapscope_timeline::quantity::Nanoseconds;
use gapscope_timeline::thresholds::{CONTRADICTED_SHARE, UNSTATED_ERROR_NS};
use gapscope_trace::ids::ProcessId;
use gapscope_trace::manifest::Manifest;
use gapscope_trace::tables::{HostCallKind, Table};
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
}

/// Returns the contradictions of each device, device by device.
pub fn contradictions(timeline: &Timeline) -> Vec<Contradiction> {
    let devices = timeline.gpus.len();
    let mut starts = vec![Compared::default(); devices];
    let mut ends = vec![Compared::default(); devices];
    let allowed_ns: Vec<i64> = (0..devices)
        .map(|gpu| timeline.clock_error_ns(gpu).unwrap_or(UNSTATED_ERROR_NS))
        .collect();
    let calls_ns = &timeline.trace.tables.submissions.start_ns;
    for (times, call_ns) in timeline.submissions.iter().zip(calls_ns) {
        if let Some(work) = times.interval() {
            let gpu = timeline.queues[times.queue as usize].gpu as usize;
            let early_ns = call_ns.saturating_sub(work.start_ns);
            starts[gpu].add(early_ns, allowed_ns[gpu]);
        }
    }
    compare_waits(timeline, &allowed_ns, &mut ends);
    let mut all = Vec::new();
    for (gpu, (starts, ends)) in starts.into_iter().zip(ends).enumerate() {
        let error_ns = timeline.clock_error_ns(gpu);
        all.extend(starts.told(gpu, ContradictionKind::StartsBeforeCall, error_ns));
        all.extend(ends.told(gpu, ContradictionKind::EndsAfterWait, error_ns));
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
        self.count += 1;
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
        let durations = Durations::from_slice(&mut self.contradicting_ns);
        let (median_ns, max_ns) = durations.p50_ns.zip(durations.max_ns)?;
        let seem = match kind {
            ContradictionKind::StartsBeforeCall => "submissions seem to start before their calls",
            ContradictionKind::EndsAfterWait => {
                "waits seem to return before the work that they waited for ends"
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
            sentence: format!(
                "Host and device times contradict each other: {count} of {} {seem}, by {} in the median; {stated}.",
                self.count,
                Nanoseconds(median_ns)
            ),
        })
    }
}

/// A finished call that waited for all that had been submitted to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FinishedWait {
    start_ns: i64,
    end_ns: i64,
}

/// Compares the return of each wait for a whole queue, or for a whole device, with the end of what had been submitted
/// before the wait.
fn compare_waits(timeline: &Timeline, allowed_ns: &[i64], ends: &mut [Compared]) {
    let mut waits: Vec<Vec<FinishedWait>> = vec![Vec::new(); timeline.queues.len()];
    let manifest = &timeline.trace.manifest;
    let table = &timeline.trace.tables.host_calls;
    let mut is_any = false;
    for row in 0..table.len() {
        let call = table.call[row];
        let whole_device = match call {
            HostCallKind::WaitDeviceIdle => true,
            HostCallKind::WaitQueueIdle => false,
            _ => continue,
        };
        if table.result[row] != 0 || table.count[row] != 1 {
            continue;
        }
        let process = table.process[row];
        let start_ns = table.start_ns[row];
        let wait = FinishedWait {
            start_ns,
            end_ns: start_ns.saturating_add(table.duration_ns[row]),
        };
        for (queue, waits) in timeline.queues.iter().zip(&mut waits) {
            let waited = match whole_device {
                true => {
                    only_device(manifest, process)
                        == queue.row.map(|row| manifest.queues[row as usize].device)
                }
                false => table.queue.at(row) == Some(queue.id),
            };
            if waited && queue.row.is_some() {
                waits.push(wait);
                is_any = true;
            }
        }
    }
    if !is_any {
        return;
    }
    let table = &timeline.trace.tables.submissions;
    let rows = timeline.submissions_by_queue(|row| timeline.submissions[row].interval().is_some());
    for (queue, (mut waits, rows)) in waits.into_iter().zip(rows).enumerate() {
        waits.sort_unstable();
        let gpu = timeline.queues[queue].gpu as usize;
        let mut rows = rows.into_iter().map(|row| row as usize).peekable();
        let mut last_end_ns = i64::MIN;
        for wait in waits {
            // A call of another thread that is in progress as the wait begins may hand over work too late for it.
            let returned = |row: &usize| table.end_ns(*row) <= wait.start_ns;
            let mut has_fresh_work = false;
            while let Some(row) = rows.next_if(returned) {
                last_end_ns = last_end_ns.max(timeline.submissions[row].last_end_ns);
                has_fresh_work = true;
            }
            if has_fresh_work {
                ends[gpu].add(last_end_ns.saturating_sub(wait.end_ns), allowed_ns[gpu]);
            }
        }
    }
}

/// Returns the only device of a process, or `None` where the process has several.
fn only_device(manifest: &Manifest, process: ProcessId) -> Option<gapscope_trace::ids::DeviceId> {
    let mut devices = (manifest.devices.iter()).filter(|device| device.process == process);
    let first = devices.next()?;
    devices.next().is_none().then_some(first.id)
}

//! Figures over time, as steps: each sample is a time and the value from there on.

use crate::timeline::Timeline;
use gapscope_trace::ids::{AllocationId, DeviceId, ProcessId, QueueId};
use gapscope_trace::tables::{MemoryEvent, Table};
use std::collections::{BTreeMap, HashMap};

/// Steps of a figure, in order of time; no two at one time.
pub type Series = Vec<(i64, u64)>;

/// Device memory that the programs had allocated, in bytes, by GPU (an index of [`Timeline::gpus`]); GPUs without any
/// allocation are left out. Frees of what the trace does not show allocated do not count.
pub fn memory(timeline: &Timeline) -> BTreeMap<usize, Series> {
    let rows = &timeline.trace.tables.memory;
    let devices = &timeline.trace.manifest.devices;
    let mut gpus: HashMap<DeviceId, usize> = HashMap::new();
    for (index, gpu) in timeline.gpus.iter().enumerate() {
        for row in &gpu.devices {
            gpus.entry(devices[*row].id).or_insert(index);
        }
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    // At one time, what is freed makes room for what is allocated.
    order.sort_by_key(|row| (rows.at_ns[*row], rows.event[*row] != MemoryEvent::Free));
    let mut live: HashMap<(ProcessId, DeviceId, AllocationId), u64> = HashMap::new();
    let mut steps: BTreeMap<usize, Vec<(i64, i128)>> = BTreeMap::new();
    for row in order {
        let Some(gpu) = gpus.get(&rows.device[row]) else {
            continue;
        };
        let key = (rows.process[row], rows.device[row], rows.allocation[row]);
        let step = match rows.event[row] {
            MemoryEvent::Allocate => {
                live.insert(key, rows.bytes[row]);
                i128::from(rows.bytes[row])
            }
            MemoryEvent::Free => match live.remove(&key) {
                Some(bytes) => -i128::from(bytes),
                None => continue,
            },
            MemoryEvent::Unknown => continue,
        };
        steps.entry(*gpu).or_default().push((rows.at_ns[row], step));
    }
    let series = steps.into_iter().map(|(gpu, steps)| (gpu, sums(steps)));
    series.collect()
}

/// Submissions of each queue, by its id in the trace, that are not finished: from the begin of the call to the end of
/// their last work. Submissions without timed work are left out.
pub fn queue_depths(timeline: &Timeline) -> BTreeMap<QueueId, Series> {
    let starts = &timeline.trace.tables.submissions.start_ns;
    let mut outstanding: BTreeMap<QueueId, Vec<(i64, i64)>> = BTreeMap::new();
    for (times, start_ns) in timeline.submissions.iter().zip(starts) {
        if let Some(work) = times.interval().filter(|work| work.end_ns >= *start_ns) {
            let queue = timeline.queues[times.queue as usize].id;
            outstanding
                .entry(queue)
                .or_default()
                .push((*start_ns, work.end_ns));
        }
    }
    let series = outstanding
        .into_iter()
        .map(|(queue, times)| (queue, depth(&times)));
    series.collect()
}

/// How many of these intervals, `(begin, end)` in nanoseconds, hold each time.
pub fn depth(intervals: &[(i64, i64)]) -> Series {
    let begins = intervals.iter().map(|(begin_ns, _)| (*begin_ns, 1));
    let ends = intervals.iter().map(|(_, end_ns)| (*end_ns, -1));
    let mut steps: Vec<(i64, i128)> = begins.chain(ends).collect();
    steps.sort_unstable();
    sums(steps)
}

/// The values after all steps of each time.
fn sums(steps: Vec<(i64, i128)>) -> Series {
    let mut samples = Series::new();
    let mut value = 0i128;
    for (at_ns, step) in steps {
        value += step;
        let sample = (at_ns, u64::try_from(value.max(0)).unwrap_or(u64::MAX));
        match samples.last_mut() {
            Some(last) if last.0 == at_ns => *last = sample,
            _ => samples.push(sample),
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::Trace;

    #[test]
    fn depth_counts_what_is_outstanding() {
        let series = depth(&[(0, 10), (5, 20), (10, 12)]);
        assert_eq!(series, [(0, 1), (5, 2), (10, 2), (12, 1), (20, 0)]);
    }

    #[test]
    fn figures_are_by_gpu_and_by_queue() {
        let trace = Trace::from_text(
            "device id=1\nqueue id=4 device=1
            memory process=1 device=1 at_ns=10 event=allocate allocation=1 bytes=100
            memory process=1 device=1 at_ns=20 event=allocate allocation=2 bytes=50
            memory process=1 device=1 at_ns=20 event=free allocation=1 bytes=100
            memory process=1 device=1 at_ns=30 event=free allocation=9 bytes=7
            submission id=1 process=1 queue=4 thread=1 start_ns=0 duration_ns=5
            submission id=2 process=1 queue=4 thread=1 start_ns=6 duration_ns=1
            command_buffer id=1 queue=4 submission=1 dispatches=1
            dispatch command_buffer=1 queue=4 kernel=1 start_ns=10 duration_ns=30",
        )
        .unwrap();
        let timeline = Timeline::of(&trace);
        assert_eq!(memory(&timeline)[&0], [(10, 100), (20, 50)]);
        assert_eq!(queue_depths(&timeline)[&QueueId(4)], [(0, 1), (40, 0)]);
        assert_eq!(queue_depths(&timeline).len(), 1);
    }
}

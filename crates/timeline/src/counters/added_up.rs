//! Makes the counters that are added up: device memory from allocations and frees, and queue depth from submissions.
//! A counter is a series of samples, each a value that holds from its time until the next sample.

use super::{Counter, CounterKey, CounterOwner, Sample};
use crate::allocations::{MemoryChange, each_step};
use crate::intervals::Interval;
use crate::timeline::Timeline;
use gapscope_trace::ids::QueueId;
use gapscope_trace::tables::CounterUnit;
use std::collections::BTreeMap;

impl Counter {
    /// Returns the counter of the memory of the GPU with this index, without samples yet.
    pub(super) fn device_memory(gpu: usize) -> Counter {
        Counter {
            key: CounterKey::DeviceMemory(gpu),
            owner: CounterOwner::Gpu(gpu),
            name: "device memory allocated".to_owned(),
            unit: CounterUnit::Bytes,
            source: "allocations".to_owned(),
            samples: Vec::new(),
        }
    }

    /// Returns the counter of a queue's unfinished submissions, without samples yet.
    pub(super) fn queue_depth(queue: QueueId) -> Counter {
        Counter {
            key: CounterKey::QueueDepth(queue),
            owner: CounterOwner::Queue(queue),
            name: "submissions outstanding".to_owned(),
            unit: CounterUnit::Count,
            source: "submissions".to_owned(),
            samples: Vec::new(),
        }
    }
}

/// Returns the device memory that the programs had allocated, for each GPU with allocations. Frees of memory whose
/// allocation is not in the trace do not count.
pub fn device_memory(timeline: &Timeline) -> Vec<Counter> {
    let mut steps: BTreeMap<usize, Vec<Step>> = BTreeMap::new();
    each_step(timeline, |step| {
        let by = match step.change {
            MemoryChange::Allocated { bytes } => signed(bytes),
            MemoryChange::Freed { bytes } => -signed(bytes),
            MemoryChange::FreedUnknown => return,
        };
        let at_ns = step.at_ns;
        steps.entry(step.gpu).or_default().push(Step { at_ns, by });
    });
    let counter = |(gpu, steps)| Counter {
        samples: sums(steps),
        ..Counter::device_memory(gpu)
    };
    steps.into_iter().map(counter).collect()
}

/// Returns the number of unfinished submissions of each queue: from the start of the call to the end of their last
/// work or command buffer. Submissions without either are left out, and queues without any other.
pub fn queue_depths(timeline: &Timeline) -> Vec<Counter> {
    let tables = &timeline.trace.tables;
    let works = timeline.submissions.iter().map(|times| times.interval());
    let mut ends: Vec<Option<i64>> = works.map(|work| work.map(|work| work.end_ns)).collect();
    let rows = &tables.command_buffers;
    for (row, times) in timeline.command_buffers.iter().enumerate() {
        if let Some(interval) = Interval::from_row(rows.start_ns.at(row), rows.duration_ns.at(row))
            && let Some(end_ns) = ends.get_mut(times.submission as usize)
        {
            *end_ns = (*end_ns).max(Some(interval.end_ns));
        }
    }
    let mut steps: BTreeMap<QueueId, Vec<Step>> = BTreeMap::new();
    for (row, start_ns) in tables.submissions.start_ns.iter().enumerate() {
        let Some(end_ns) = ends[row].filter(|end_ns| end_ns >= start_ns) else {
            continue;
        };
        let queue = timeline.queues[timeline.submissions[row].queue as usize].id;
        steps.entry(queue).or_default().extend([
            Step {
                at_ns: *start_ns,
                by: 1,
            },
            Step {
                at_ns: end_ns,
                by: -1,
            },
        ]);
    }
    let counter = |(queue, mut steps): (QueueId, Vec<Step>)| {
        steps.sort_unstable_by_key(|step| step.at_ns);
        Counter {
            samples: sums(steps),
            ..Counter::queue_depth(queue)
        }
    };
    steps.into_iter().map(counter).collect()
}

/// A change of a quantity at a time.
#[derive(Debug, Clone, Copy)]
struct Step {
    at_ns: i64,
    /// The change of the quantity, in the counter's unit.
    by: i64,
}

/// Converts a size in bytes. Sizes above `i64::MAX` become `i64::MAX`.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns one sample for each time that `steps`, sorted by time, have: the sum of all changes up to and at that
/// time, and 0 where the sum is negative.
fn sums(steps: Vec<Step>) -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    let mut value = 0i128;
    for step in steps {
        value += i128::from(step.by);
        let sample = Sample {
            start_ns: step.at_ns,
            duration_ns: None,
            value: value.max(0) as f64,
        };
        match samples.last_mut() {
            Some(last) if last.start_ns == step.at_ns => *last = sample,
            _ => samples.push(sample),
        }
    }
    samples
}

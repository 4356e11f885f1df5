//! Collects the counters of a trace: quantities over time, such as the memory that is allocated on a GPU.
//!
//! Counters have three origins: device memory is added up from allocations, the depth of a queue from submissions, and all
//! others are in the trace as they were measured. Code that draws or writes counters takes all of them from [`counters`].

mod added_up;
mod measured;

pub use added_up::{device_memory, queue_depths};
pub use measured::{CounterRow, counter_rows, recorded};

use crate::intervals::Interval;
use crate::timeline::Timeline;
use crate::vocabulary::Gpus;
use gapscope_trace::Trace;
use gapscope_trace::ids::{CounterId, DeviceId, QueueId};
use gapscope_trace::tables::{Condition, CounterUnit, Table};
use std::collections::BTreeSet;

/// A quantity over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// The identity of the counter.
    pub key: CounterKey,
    /// The thing that the counter describes.
    pub owner: CounterOwner,
    /// The name for people, such as `device memory allocated`.
    pub name: String,
    /// The unit of the values.
    pub unit: CounterUnit,
    /// The source of the values: `allocations`, `submissions`, or the source that the trace names.
    pub source: String,
    /// The values in order of start.
    pub samples: Vec<Sample>,
}

/// The identity of a counter in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CounterKey {
    /// The memory that the programs had allocated on a GPU, by its index in [`Timeline::gpus`].
    DeviceMemory(usize),
    /// The number of unfinished submissions of a queue.
    QueueDepth(QueueId),
    /// A counter of the trace's table.
    Recorded(CounterId),
}

/// The thing that a counter describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CounterOwner {
    /// A GPU, by its index in [`Timeline::gpus`].
    Gpu(usize),
    /// A queue, by its id.
    Queue(QueueId),
    /// The machine, or a device that the manifest does not list.
    Host,
}

/// A value of a counter, which holds for a known time or until the next sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The time from which the value holds.
    pub start_ns: i64,
    /// The time over which the value is a mean; `None` for a value that holds until the next sample.
    pub duration_ns: Option<i64>,
    /// The value.
    pub value: f64,
}

/// A value of a counter from some time on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CounterStep {
    /// The time from which the value holds.
    pub at_ns: i64,
    /// The value; `None` where it is not known.
    pub value: Option<f64>,
}

/// Returns all counters of a trace: of device memory by GPU, of queue depth by queue, then the recorded ones as the trace lists them.
pub fn counters(timeline: &Timeline) -> Vec<Counter> {
    let mut counters = device_memory(timeline);
    counters.extend(queue_depths(timeline));
    counters.extend(recorded(timeline));
    counters
}

/// Returns the counters of a trace without their samples, before the trace is analysed. A queue may turn out to have no
/// submission with timed work, and so no samples.
pub fn listed(trace: &Trace, gpus: &Gpus) -> Vec<Counter> {
    let tables = &trace.tables;
    let devices: BTreeSet<DeviceId> = tables.memory.device.iter().copied().collect();
    let with_memory = devices.into_iter().filter_map(|id| gpus.of_device(id));
    let with_memory: BTreeSet<usize> = with_memory.collect();
    let queues: BTreeSet<QueueId> = tables.submissions.queue.iter().copied().collect();
    let recorded = 0..tables.counters.len();
    (with_memory.into_iter().map(Counter::device_memory))
        .chain(queues.into_iter().map(Counter::queue_depth))
        .chain(recorded.map(|row| Counter::recorded(&tables.counters, row, gpus)))
        .collect()
}

impl Counter {
    /// Returns the counter's values as steps, each of which holds until the next. The value is not known where the
    /// time of a mean is over and the next mean has not begun.
    pub fn steps(&self) -> Vec<CounterStep> {
        let nexts = self.samples.iter().skip(1).map(|next| Some(next.start_ns));
        let mut steps = Vec::with_capacity(self.samples.len());
        for (sample, next_ns) in self.samples.iter().zip(nexts.chain([None])) {
            steps.push(CounterStep {
                at_ns: sample.start_ns,
                value: Some(sample.value),
            });
            let end_ns = sample
                .duration_ns
                .map(|ns| sample.start_ns.saturating_add(ns));
            if let Some(end_ns) = end_ns.filter(|end_ns| next_ns.is_none_or(|next| *end_ns < next))
            {
                steps.push(CounterStep {
                    at_ns: end_ns,
                    value: None,
                });
            }
        }
        steps
    }

    /// Returns the parts of a window in which the counter has a value, with the value.
    pub fn values_in(&self, window: Interval) -> impl Iterator<Item = (Interval, f64)> {
        let steps = self.steps();
        let nexts: Vec<i64> = (steps.iter().skip(1).map(|step| step.at_ns))
            .chain([window.end_ns])
            .collect();
        let parts = steps.into_iter().zip(nexts);
        parts.filter_map(move |(step, next_ns)| {
            let part = Interval::new(step.at_ns, next_ns).intersection(window);
            step.value.filter(|_| !part.is_empty()).map(|v| (part, v))
        })
    }
}

/// Returns the counter of `owner` that measures a condition.
pub fn find(counters: &[Counter], owner: CounterOwner, condition: Condition) -> Option<&Counter> {
    let mut counters = counters.iter();
    counters.find(|counter| counter.owner == owner && counter.name == condition.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(counter: &Counter) -> Vec<(i64, f64)> {
        let samples = counter.samples.iter();
        samples
            .map(|sample| (sample.start_ns, sample.value))
            .collect()
    }

    #[test]
    fn memory_is_by_gpu_and_depth_by_queue() {
        let trace = Trace::from_text(
            "device id=1\nqueue id=4 device=1
            memory process=1 device=1 at_ns=10 event=allocate allocation=1 bytes=100
            memory process=1 device=1 at_ns=20 event=allocate allocation=2 bytes=50
            memory process=1 device=1 at_ns=20 event=free allocation=1 bytes=100
            memory process=1 device=1 at_ns=30 event=free allocation=9 bytes=7
            submission id=1 process=1 queue=4 thread=1 start_ns=0 duration_ns=5
            submission id=2 process=1 queue=4 thread=1 start_ns=6 duration_ns=1
            submission id=3 process=1 queue=4 thread=1 start_ns=20 duration_ns=1
            command_buffer id=1 queue=4 submission=1 dispatches=1
            command_buffer id=3 queue=4 submission=3 dispatches=1
            dispatch command_buffer=1 queue=4 kernel=1 start_ns=10 duration_ns=30
            dispatch command_buffer=3 queue=4 kernel=1 start_ns=40 duration_ns=5",
        )
        .unwrap();
        let counters = counters(&Timeline::new(&trace));
        let keys: Vec<_> = counters.iter().map(|counter| counter.key).collect();
        let listed = listed(&trace, &Gpus::new(&trace.manifest));
        assert!(listed.iter().map(|counter| counter.key).eq(keys.clone()));
        let depth = CounterKey::QueueDepth(QueueId(4));
        assert_eq!(keys, [CounterKey::DeviceMemory(0), depth]);
        assert_eq!(values(&counters[0]), [(10, 100.0), (20, 50.0)]);
        let depths = [(0, 1.0), (20, 2.0), (40, 1.0), (45, 0.0)];
        assert_eq!(values(&counters[1]), depths);
    }

    #[test]
    fn the_mean_of_a_recorded_counter_is_over_time() {
        let trace = Trace::from_text(
            "manifest start_ns=0 end_ns=100
            device id=1\nqueue id=4 device=1
            counter id=1 name=power unit=watts device=1 source=driver
            counter id=2 name=load unit=percent queue=4 source=sampler
            counter id=3 name=none unit=count source=sampler
            counter_value counter=1 start_ns=60 value=200
            counter_value counter=1 start_ns=0 value=100
            counter_value counter=2 start_ns=0 duration_ns=10 value=10
            counter_value counter=2 start_ns=50 duration_ns=30 value=50
            counter_value counter=9 start_ns=0 value=1",
        )
        .unwrap();
        let rows = counter_rows(&recorded(&Timeline::new(&trace)), trace.manifest.end_ns);
        assert_eq!(
            rows[0].mean,
            Some(140.0),
            "60 ns of 100 W, then 40 ns of 200 W"
        );
        assert_eq!((rows[0].min, rows[0].max), (Some(100.0), Some(200.0)));
        assert_eq!((rows[0].device, rows[0].queue_id), (Some(0), None));
        assert_eq!(rows[1].mean, Some(40.0), "10 ns of 10 %, 30 ns of 50 %");
        let steps = recorded(&Timeline::new(&trace))[1].steps();
        let steps: Vec<_> = steps.iter().map(|step| (step.at_ns, step.value)).collect();
        assert_eq!(
            steps,
            [(0, Some(10.0)), (10, None), (50, Some(50.0)), (80, None)]
        );
        assert_eq!((rows[1].device, rows[1].queue_id), (None, Some(QueueId(4))));
        assert_eq!(rows[2].value_count, 0);
        assert_eq!(rows[2].mean, None);
        assert_eq!(rows[2].max, None);
    }
}

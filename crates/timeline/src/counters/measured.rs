//! Reads from a trace's tables the counters that the recording measured. The input is the tables `counters` and
//! `counter_values`, the output one [`Counter`] for each row of `counters`, and the figures of each for tables of
//! findings.

use super::{Counter, CounterKey, CounterOwner, Sample};
use crate::intervals::Interval;
use crate::timeline::Timeline;
use crate::vocabulary::Gpus;
use gapscope_trace::ids::QueueId;
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::tables::{CounterUnit, Counters, Table};
use schemars::JsonSchema;
use serde::Serialize;

/// Returns the counters of the trace's table, in its order, each with its finite values as samples sorted by start.
/// The duration of a sample is `None` where the table has none or a negative one: the value then holds until the
/// next.
pub fn recorded(timeline: &Timeline) -> Vec<Counter> {
    let tables = &timeline.trace.tables;
    let values = &tables.counter_values;
    let rows = IdIndex::new(&tables.counters.id);
    let gpus = Gpus::new(&timeline.trace.manifest);
    let mut counters: Vec<Counter> = (0..tables.counters.len())
        .map(|row| Counter::recorded(&tables.counters, row, &gpus))
        .collect();
    for row in 0..values.len() {
        if let Some(counter) = rows.get(values.counter[row])
            && values.value[row].is_finite()
        {
            counters[counter].samples.push(Sample {
                start_ns: values.start_ns[row],
                duration_ns: values.duration_ns.at(row).filter(|ns| *ns >= 0),
                value: values.value[row],
            });
        }
    }
    for counter in &mut counters {
        counter.samples.sort_by_key(|sample| sample.start_ns);
    }
    counters
}

/// A recorded counter in figures.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CounterRow {
    /// Its name.
    pub name: String,
    /// The unit of its values.
    #[schemars(with = "String")]
    pub unit: CounterUnit,
    /// Index in the findings of its device; absent for counters of the machine, and where a queue is named.
    pub device: Option<u32>,
    /// Id of its queue.
    pub queue_id: Option<QueueId>,
    /// The source of its values.
    pub source: String,
    /// How many values it has.
    pub value_count: u64,
    /// Their mean over the time that they hold.
    pub mean: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
}

/// Returns the figures of each recorded counter, such as its mean. The recording ends at `end_ns`.
pub fn counter_rows(recorded: &[Counter], end_ns: i64) -> Vec<CounterRow> {
    let row = |counter: &Counter| {
        let values = || counter.samples.iter().map(|sample| sample.value);
        CounterRow {
            device: match counter.owner {
                CounterOwner::Gpu(gpu) => Some(gpu as u32),
                CounterOwner::Queue(_) | CounterOwner::Host => None,
            },
            queue_id: match counter.owner {
                CounterOwner::Queue(queue) => Some(queue),
                CounterOwner::Gpu(_) | CounterOwner::Host => None,
            },
            value_count: counter.samples.len() as u64,
            mean: counter.mean(end_ns),
            min: values().reduce(f64::min),
            max: values().reduce(f64::max),
            name: counter.name.clone(),
            unit: counter.unit,
            source: counter.source.clone(),
        }
    };
    recorded.iter().map(row).collect()
}

impl Counter {
    /// Returns the counter of a row of the trace's table, without samples.
    pub(super) fn recorded(rows: &Counters, row: usize, gpus: &Gpus) -> Counter {
        Counter {
            key: CounterKey::Recorded(rows.id[row]),
            owner: match (rows.queue.at(row), rows.device.at(row)) {
                (Some(queue), _) => CounterOwner::Queue(queue),
                (None, Some(device)) => {
                    let gpu = gpus.of_device(device);
                    gpu.map_or(CounterOwner::Host, CounterOwner::Gpu)
                }
                (None, None) => CounterOwner::Host,
            },
            name: rows.name[row].to_string(),
            unit: rows.unit[row],
            source: rows.source[row].to_string(),
            samples: Vec::new(),
        }
    }

    /// Returns the mean over the time for which the counter's values hold, the last value until `end_ns`. Where they
    /// hold for no time, each value has the same weight.
    fn mean(&self, end_ns: i64) -> Option<f64> {
        let nexts = self.samples.iter().skip(1).map(|next| next.start_ns);
        let (mut area, mut held_ns, mut sum) = (0.0, 0.0, 0.0);
        for (sample, next_ns) in self.samples.iter().zip(nexts.chain([end_ns])) {
            let until_ns = match sample.duration_ns {
                Some(ns) => sample.start_ns.saturating_add(ns),
                None => next_ns,
            };
            let ns = Interval::new(sample.start_ns, until_ns).length_ns() as f64;
            area += sample.value * ns;
            held_ns += ns;
            sum += sample.value;
        }
        match held_ns > 0.0 {
            true => Some(area / held_ns),
            false if self.samples.is_empty() => None,
            false => Some(sum / self.samples.len() as f64),
        }
    }
}

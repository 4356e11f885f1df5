//! Tracks the counters of a trace (quantities over time), and adds values of hardware counters: samples at a fixed
//! rate, and values that were counted while command buffers ran (performance queries of Vulkan).

use super::Assembler;
use crate::counters::pipe::{Batch, Column};
use gapscope_model::HardwareCounter;
use gapscope_spool::event::{PerformanceCounter, PerformanceUnit};
use gapscope_trace::ids::{CounterId, DeviceId};
use gapscope_trace::tables::{Counter, CounterUnit, CounterValue, Table, Tables};
use serde::{Deserialize, Serialize};

/// The counters of a trace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    /// The id of the next counter.
    next: u32,
    sampled: Vec<Sampled>,
    /// The counters of queue families that count; of equal families the last holds.
    counted: Vec<Counted>,
}

/// The counters of the performance queries of a queue family.
#[derive(Debug, Serialize, Deserialize)]
struct Counted {
    device: DeviceId,
    /// The index of the queue family.
    family: u32,
    /// The id of each counter with its unit in Vulkan, in the order of the values.
    counters: Vec<(CounterId, PerformanceUnit)>,
}

/// A sampled hardware counter of a device, with its id in the trace.
#[derive(Debug, Serialize, Deserialize)]
struct Sampled {
    device: DeviceId,
    counter: HardwareCounter,
    /// The text that says where the values come from.
    source: String,
    id: CounterId,
}

impl Counters {
    /// Returns the id of a new counter.
    pub fn new_id(&mut self) -> CounterId {
        let id = CounterId(self.next);
        self.next += 1;
        id
    }

    /// Adds the counters of a queue family's performance queries.
    pub fn count(
        &mut self,
        device: DeviceId,
        family: u32,
        counters: &[PerformanceCounter],
        tables: &mut Tables,
    ) {
        let counters = counters.iter().map(|counter| {
            let id = self.new_id();
            let (unit, amount) = unit(counter.unit);
            let amount = if amount {
                ", by the time that it took"
            } else {
                ""
            };
            tables.counters.push(Counter {
                id,
                name: counter.name.as_str().into(),
                unit,
                device: Some(device),
                queue: None,
                source: format!(
                    "{}, VK_KHR_performance_query of each command buffer{amount}",
                    counter.category
                )
                .into(),
            });
            (id, counter.unit)
        });
        let counters = counters.collect();
        self.counted.push(Counted {
            device,
            family,
            counters,
        });
    }

    /// Adds the values that were counted while a command buffer ran. Amounts become means over its time, as the
    /// values of all counters are. Returns false if the counters of the values are unknown.
    pub fn counted(
        &self,
        (device, family): (DeviceId, u32),
        values: &[f64],
        (start_ns, duration_ns): (i64, i64),
        tables: &mut Tables,
    ) -> bool {
        let of_it = |c: &&Counted| c.device == device && c.family == family;
        let Some(counted) = self.counted.iter().rev().find(of_it) else {
            return false;
        };
        for ((counter, unit), value) in counted.counters.iter().zip(values) {
            if let Some(value) = mean(*unit, *value, duration_ns) {
                tables.counter_values.push(CounterValue {
                    counter: *counter,
                    start_ns,
                    duration_ns: Some(duration_ns),
                    value,
                });
            }
        }
        true
    }

    /// Returns the id of a sampled counter of a device, which the first call makes and writes.
    fn sampled_counter(
        &mut self,
        device: DeviceId,
        column: &Column,
        tables: &mut Tables,
    ) -> CounterId {
        let known = self.sampled.iter().find(|s| {
            s.device == device && s.counter == column.counter && s.source == column.source
        });
        if let Some(known) = known {
            return known.id;
        }
        let id = self.new_id();
        self.sampled.push(Sampled {
            device,
            counter: column.counter,
            source: column.source.clone(),
            id,
        });
        tables.counters.push(Counter {
            id,
            name: column.counter.as_str().into(),
            unit: column.counter.unit(),
            device: Some(device),
            queue: None,
            source: column.source.as_str().into(),
        });
        id
    }
}

/// Returns the unit of a performance counter in the trace, and whether its values are amounts, which become means.
fn unit(unit: PerformanceUnit) -> (CounterUnit, bool) {
    match unit {
        PerformanceUnit::Percentage => (CounterUnit::Percent, false),
        PerformanceUnit::Nanoseconds => (CounterUnit::Percent, true),
        PerformanceUnit::Bytes => (CounterUnit::BytesPerSecond, true),
        PerformanceUnit::BytesPerSecond => (CounterUnit::BytesPerSecond, false),
        PerformanceUnit::Kelvin => (CounterUnit::Celsius, false),
        PerformanceUnit::Watts => (CounterUnit::Watts, false),
        PerformanceUnit::Hertz => (CounterUnit::Hertz, false),
        PerformanceUnit::Cycles => (CounterUnit::Hertz, true),
        PerformanceUnit::Generic | PerformanceUnit::Volts | PerformanceUnit::Amps => {
            (CounterUnit::Unknown, unit == PerformanceUnit::Generic)
        }
    }
}

/// Converts a value of a performance query to a mean over the time of its command buffer. Returns `None` if the mean
/// is unknown.
fn mean(unit: PerformanceUnit, value: f64, duration_ns: i64) -> Option<f64> {
    let per_ns = || (duration_ns > 0).then(|| value / duration_ns as f64);
    let mean = match unit {
        PerformanceUnit::Nanoseconds => 100.0 * per_ns()?,
        PerformanceUnit::Bytes | PerformanceUnit::Cycles | PerformanceUnit::Generic => {
            1e9 * per_ns()?
        }
        PerformanceUnit::Kelvin => value - 273.15,
        _ => value,
    };
    mean.is_finite().then_some(mean)
}

impl Assembler {
    /// Returns the device of a GPU. Each process has the GPU as a device of its own; one of these devices stands for
    /// the GPU.
    pub(super) fn gpu(&self, uuid: &str) -> Option<DeviceId> {
        let of_gpu = |d: &&super::Device| *d.facts.uuid == *uuid;
        self.devices.iter().find(of_gpu).map(|d| d.facts.id)
    }

    /// Returns true if the trace has the GPU.
    pub(crate) fn has_gpu(&self, uuid: &str) -> bool {
        self.gpu(uuid).is_some()
    }

    /// Adds samples. Samples of a GPU that is not in the trace are ignored.
    pub(crate) fn counter_samples(
        &mut self,
        uuid: &str,
        columns: &[Column],
        batch: &Batch,
        tables: &mut Tables,
    ) {
        let Some(device) = self.gpu(uuid) else {
            return;
        };
        let ids: Vec<CounterId> = (columns.iter())
            .map(|column| self.counters.sampled_counter(device, column, tables))
            .collect();
        for sample in batch.samples(columns.len()) {
            for (counter, value) in ids.iter().zip(sample.values) {
                // A share of nothing, such as hits without requests, is unknown.
                if value.is_finite() {
                    tables.counter_values.push(CounterValue {
                        counter: *counter,
                        start_ns: sample.start_ns,
                        duration_ns: Some(sample.duration_ns),
                        value: *value,
                    });
                }
            }
        }
    }
}

//! The counters of a trace, and samples of those that are hardware's.

use super::Assembler;
use crate::counters::pipe::{Batch, Column};
use gapscope_model::HardwareCounter;
use gapscope_trace::ids::{CounterId, DeviceId};
use gapscope_trace::tables::{Counter, CounterValue, Table, Tables};
use serde::{Deserialize, Serialize};

/// The counters that there are.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Counters {
    next: u32,
    sampled: Vec<Sampled>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Sampled {
    device: DeviceId,
    counter: HardwareCounter,
    source: String,
    id: CounterId,
}

impl Counters {
    /// The id of one more.
    pub fn new_id(&mut self) -> CounterId {
        let id = CounterId(self.next);
        self.next += 1;
        id
    }

    fn of(&mut self, device: DeviceId, column: &Column, tables: &mut Tables) -> CounterId {
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

impl Assembler {
    /// The device of a GPU. Each process has the GPU as a device of its own: one of them stands for it.
    pub(super) fn gpu(&self, uuid: &str) -> Option<DeviceId> {
        let of_gpu = |d: &&super::Device| *d.facts.uuid == *uuid;
        self.devices.iter().find(of_gpu).map(|d| d.facts.id)
    }

    /// Takes samples into the trace. Those of a GPU that this trace has not are none of it.
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
            .map(|column| self.counters.of(device, column, tables))
            .collect();
        for sample in batch.samples(columns.len()) {
            for (counter, value) in ids.iter().zip(sample.values) {
                // A share of nothing, such as hits without a request, is not known.
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

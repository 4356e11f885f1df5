//! Readings of conditions as counters: only changes become rows.

use super::Assembler;
use super::counters::Counters;
use crate::conditions::{Of, Reading};
use gapscope_trace::ids::{CounterId, DeviceId};
use gapscope_trace::tables::{Condition, Counter, CounterValue, Table, Tables};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A value that is not read again for so long is not known any more.
const HOLDS_NS: i64 = 30_000_000_000;

/// The conditions of one trace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Conditions {
    held: Vec<Held>,
}

/// A condition and the value that it had last.
#[derive(Debug, Serialize, Deserialize)]
struct Held {
    device: Option<DeviceId>,
    condition: Condition,
    source: Arc<str>,
    /// Its counter, once it is one.
    counter: Option<CounterId>,
    /// Since when it is known without a break.
    known_ns: i64,
    seen_ns: i64,
    value: Option<f64>,
}

impl Assembler {
    /// Takes a reading into the trace. One of a GPU that this trace has not is none of it.
    pub fn condition(&mut self, reading: &Reading, tables: &mut Tables) {
        let device = match &reading.of {
            Of::Machine if self.processes.ids().next().is_none() => return,
            Of::Machine => None,
            Of::Gpu(uuid) => match self.gpu(uuid) {
                Some(device) => Some(device),
                None => return,
            },
        };
        let counters = &mut self.counters;
        self.conditions.read(device, reading, counters, tables);
    }
}

impl Conditions {
    fn read(
        &mut self,
        device: Option<DeviceId>,
        reading: &Reading,
        counters: &mut Counters,
        tables: &mut Tables,
    ) {
        let condition = reading.condition;
        let of_it = |h: &Held| h.device == device && h.condition == condition;
        let at = self.held.iter().position(of_it).unwrap_or_else(|| {
            self.held.push(Held {
                device,
                condition,
                source: reading.source.clone(),
                counter: None,
                known_ns: reading.from_ns,
                seen_ns: reading.from_ns,
                value: None,
            });
            self.held.len() - 1
        });
        let held = &mut self.held[at];
        let Some(value) = reading.value else {
            held.end(tables);
            return;
        };
        if held.value.is_none() {
            held.known_ns = reading.from_ns;
        }
        if held.counter.is_none() && (value != 0.0 || !condition.is_event()) {
            let id = counters.new_id();
            held.counter = Some(id);
            tables.counters.push(Counter {
                id,
                name: condition.as_str().into(),
                unit: condition.unit(),
                device,
                queue: None,
                source: held.source.clone(),
            });
            if held.value == Some(0.0) {
                held.write(held.known_ns, None, tables);
            }
        }
        if held.value.replace(value) != Some(value) {
            held.write(reading.from_ns, None, tables);
        }
        held.seen_ns = reading.seen_ns;
    }

    /// Nothing more is read: what was not seen for long before the end is not known there.
    pub fn finish(&mut self, end_ns: i64, tables: &mut Tables) {
        for held in &mut self.held {
            if end_ns.saturating_sub(held.seen_ns) > HOLDS_NS {
                held.end(tables);
            }
        }
    }
}

impl Held {
    /// From where it was seen last on it is not known.
    fn end(&mut self, tables: &mut Tables) {
        if self.value.is_some() {
            self.write(self.seen_ns, Some(0), tables);
            self.value = None;
        }
    }

    fn write(&self, start_ns: i64, duration_ns: Option<i64>, tables: &mut Tables) {
        if let (Some(counter), Some(value)) = (self.counter, self.value) {
            tables.counter_values.push(CounterValue {
                counter,
                start_ns,
                duration_ns,
                value,
            });
        }
    }
}

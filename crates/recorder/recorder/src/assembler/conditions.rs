//! Converts readings of conditions (states of the machine or a GPU, such as heat or clocks) to counters, in which
//! only changes become rows.

use super::Assembler;
use super::counters::Counters;
use crate::conditions::{ConditionSubject, Reading};
use gapscope_trace::ids::{CounterId, DeviceId};
use gapscope_trace::tables::{Condition, Counter, CounterValue, Table, Tables};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The longest time for which a value counts as known without another reading.
const MAX_HOLD_NS: i64 = 30_000_000_000;

/// The conditions of a trace.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Conditions {
    held: Vec<HeldCondition>,
}

/// A condition and its last value.
#[derive(Debug, Serialize, Deserialize)]
struct HeldCondition {
    /// The GPU; `None` for a condition of the machine.
    device: Option<DeviceId>,
    condition: Condition,
    /// The name of what reads the condition.
    source: Arc<str>,
    /// The counter, once the condition has one.
    counter: Option<CounterId>,
    /// The start of the interval in which the condition is known without a break.
    known_ns: i64,
    /// The time of the last reading.
    seen_ns: i64,
    /// The last value; `None` while it is unknown.
    value: Option<f64>,
}

impl Assembler {
    /// Adds a reading. Readings of a GPU that is not in the trace, or of the machine before any process, are ignored.
    pub fn condition(&mut self, reading: &Reading, tables: &mut Tables) {
        let device = match &reading.of {
            ConditionSubject::Machine if self.processes.ids().next().is_none() => return,
            ConditionSubject::Machine => None,
            ConditionSubject::Gpu(uuid) => match self.gpu(uuid) {
                Some(device) => Some(device),
                None => return,
            },
        };
        let counters = &mut self.counters;
        self.conditions.read(device, reading, counters, tables);
    }
}

impl Conditions {
    /// Takes a reading. A condition gets a counter at its first value; one of events, at its first that is not 0.
    fn read(
        &mut self,
        device: Option<DeviceId>,
        reading: &Reading,
        counters: &mut Counters,
        tables: &mut Tables,
    ) {
        let condition = reading.condition;
        let of_it = |h: &HeldCondition| h.device == device && h.condition == condition;
        let at = self.held.iter().position(of_it).unwrap_or_else(|| {
            self.held.push(HeldCondition {
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
            // The zeros before the first event were known, too.
            if held.value == Some(0.0) {
                held.write(held.known_ns, None, tables);
            }
        }
        if held.value.replace(value) != Some(value) {
            held.write(reading.from_ns, None, tables);
        }
        held.seen_ns = reading.seen_ns;
    }

    /// Ends the conditions. A value that was not read for long before the end is unknown there.
    pub fn finish(&mut self, end_ns: i64, tables: &mut Tables) {
        for held in &mut self.held {
            if end_ns.saturating_sub(held.seen_ns) > MAX_HOLD_NS {
                held.end(tables);
            }
        }
    }
}

impl HeldCondition {
    /// Marks the value as unknown from its last reading on.
    fn end(&mut self, tables: &mut Tables) {
        if self.value.is_some() {
            self.write(self.seen_ns, Some(0), tables);
            self.value = None;
        }
    }

    /// Appends the value as a row, if the condition has a counter. A duration of 0 says that no value is known after.
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

//! Collects the values of counters: of PyTorch's memory, and of counters that other programs write. Values become
//! rows at once; [`Counters::push_into`] adds the rows of the counters themselves at the end.

use super::event::Event;
use super::json::{self, members};
use super::number::{real, whole};
use gapscope_trace::Tables;
use gapscope_trace::ids::{CounterId, DeviceId};
use gapscope_trace::tables::{Counter, CounterUnit, CounterValue, Table};
use rustc_hash::FxHashMap;

/// The maximum number of counters, because a file may name any number of them. Values of further counters are only
/// counted.
const MAX_COUNTERS: usize = 1 << 14;

/// The identity of a counter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum CounterKey {
    /// A counter of PyTorch's memory: the event's argument, and the number of the device or `None` for the host.
    Memory(&'static str, Option<u32>),
    /// A counter of another program: its process, name and series as the file writes them.
    Own(Box<[u8]>),
}

/// The counters that were seen so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    ids: FxHashMap<CounterKey, CounterId>,
    /// The counters and their names, in the order of their ids.
    all: Vec<(CounterKey, String)>,
    /// The number of values that are no numbers or belong to counters beyond the maximum.
    pub(super) lost: u64,
    /// What is added to the ids, where the trace has counters of other files.
    first: u32,
}

impl Counters {
    /// Makes the ids of the counters begin behind a number.
    pub(super) fn begin_with(&mut self, first: u32) {
        self.first = first;
    }

    /// Returns the id of a counter, which `name` names if it is new; `None` beyond the maximum.
    fn id(&mut self, key: CounterKey, name: impl FnOnce() -> String) -> Option<CounterId> {
        if let Some(id) = self.ids.get(&key) {
            return Some(*id);
        }
        if self.all.len() >= MAX_COUNTERS {
            return None;
        }
        let id = self.numbered(self.all.len());
        self.all.push((key.clone(), name()));
        self.ids.insert(key, id);
        Some(id)
    }

    /// Returns the id of the counter with an index.
    fn numbered(&self, index: usize) -> CounterId {
        CounterId(self.first + index as u32 + 1)
    }

    /// Adds a value, or counts it as lost without a counter or a number.
    fn push(&mut self, id: Option<CounterId>, at_ns: i64, value: Option<f64>, to: &mut Tables) {
        match (id, value) {
            (Some(counter), Some(value)) => to.counter_values.push(CounterValue {
                counter,
                start_ns: at_ns,
                duration_ns: None,
                value,
            }),
            _ => self.lost += 1,
        }
    }

    /// Adds an event of PyTorch's memory profiler, which has the total after an allocation or a free.
    pub(super) fn memory(&mut self, args: &[u8], at_ns: i64, to: &mut Tables) {
        let (mut of_host, mut device) = (false, 0);
        let mut values: [(&'static str, Option<f64>); 2] =
            [("allocated", None), ("reserved", None)];
        for (key, value) in members(args) {
            match key {
                b"Device Type" => of_host = whole(value) == Some(0),
                b"Device Id" => {
                    device = whole(value)
                        .and_then(|id| u32::try_from(id).ok())
                        .unwrap_or(0);
                }
                b"Total Allocated" => values[0].1 = real(value),
                b"Total Reserved" => values[1].1 = real(value),
                _ => {}
            }
        }
        for (what, value) in values {
            // Host memory is never reserved.
            if value.is_none() || (of_host && what == "reserved") {
                continue;
            }
            let key = CounterKey::Memory(what, (!of_host).then_some(device));
            let id = self.id(key, || match of_host {
                true => format!("PyTorch: host memory {what}"),
                false => format!("PyTorch: memory {what}"),
            });
            self.push(id, at_ns, value, to);
        }
    }

    /// Adds a counter event, which has a value in each of its arguments.
    pub(super) fn values(&mut self, event: &Event, at_ns: i64, to: &mut Tables) {
        for (series, value) in members(event.args) {
            let key = [event.pid, event.id, event.name, series].join(&0);
            let id = self.id(CounterKey::Own(key.into()), || {
                let (name, series) = (json::text(event.name), json::text(series));
                match series.is_empty() || name == series {
                    true => name.into_owned(),
                    false => format!("{name}: {series}"),
                }
            });
            self.push(id, at_ns, real(value), to);
        }
    }

    /// Appends a row to the table of counters for each counter. `device` returns the device with a number; without
    /// one, the number is in the counter's name.
    pub(super) fn push_into(&self, device: impl Fn(u32) -> Option<DeviceId>, to: &mut Tables) {
        for (index, (key, name)) in self.all.iter().enumerate() {
            let (unit, device) = match key {
                CounterKey::Memory(_, number) => (CounterUnit::Bytes, number.and_then(&device)),
                CounterKey::Own(_) => (CounterUnit::Count, None),
            };
            let name = match key {
                CounterKey::Memory(_, Some(number)) if device.is_none() => {
                    format!("{name} on device {number}")
                }
                _ => name.clone(),
            };
            to.counters.push(Counter {
                id: self.numbered(index),
                name: name.into(),
                unit,
                device,
                queue: None,
                source: "import".into(),
            });
        }
    }
}

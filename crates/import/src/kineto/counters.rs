//! Counters: PyTorch's memory, and what other programs count.

use super::event::Event;
use super::json::{self, members};
use super::number::{real, whole};
use gapscope_trace::Tables;
use gapscope_trace::ids::{CounterId, DeviceId};
use gapscope_trace::tables::{Counter, CounterUnit, CounterValue, Table};
use rustc_hash::FxHashMap;

/// More counters than this are one: names may hold anything.
const MOST: usize = 1 << 14;

/// Which counter it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Which {
    /// PyTorch's memory: its argument, and the device, or the host's.
    Memory(&'static str, Option<u32>),
    /// Process, name and series as they are written.
    Own(Box<[u8]>),
}

/// All counters so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    ids: FxHashMap<Which, CounterId>,
    /// With names, in order of their ids.
    all: Vec<(Which, String)>,
    /// Values that had no counter left, or were no numbers.
    pub(super) lost: u64,
}

impl Counters {
    fn id(&mut self, which: Which, name: impl FnOnce() -> String) -> Option<CounterId> {
        if let Some(id) = self.ids.get(&which) {
            return Some(*id);
        }
        if self.all.len() >= MOST {
            return None;
        }
        let id = CounterId(self.all.len() as u32 + 1);
        self.all.push((which.clone(), name()));
        self.ids.insert(which, id);
        Some(id)
    }

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

    /// An event of PyTorch's memory profiler: what is allocated after an allocation or a free.
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
            // Nothing is ever reserved of the host's memory.
            if value.is_none() || (of_host && what == "reserved") {
                continue;
            }
            let which = Which::Memory(what, (!of_host).then_some(device));
            let id = self.id(which, || match of_host {
                true => format!("PyTorch: host memory {what}"),
                false => format!("PyTorch: memory {what}"),
            });
            self.push(id, at_ns, value, to);
        }
    }

    /// A counter event: a value for each of its arguments.
    pub(super) fn values(&mut self, event: &Event, at_ns: i64, to: &mut Tables) {
        for (series, value) in members(event.args) {
            let key = [event.pid, event.id, event.name, series].join(&0);
            let id = self.id(Which::Own(key.into()), || {
                let (name, series) = (json::text(event.name), json::text(series));
                match series.is_empty() || name == series {
                    true => name.into_owned(),
                    false => format!("{name}: {series}"),
                }
            });
            self.push(id, at_ns, real(value), to);
        }
    }

    /// Appends a row for each counter.
    pub(super) fn push_into(&self, device: impl Fn(u32) -> Option<DeviceId>, to: &mut Tables) {
        for (index, (which, name)) in self.all.iter().enumerate() {
            let (unit, device) = match which {
                Which::Memory(_, number) => (CounterUnit::Bytes, number.and_then(&device)),
                Which::Own(_) => (CounterUnit::Count, None),
            };
            let name = match which {
                Which::Memory(_, Some(number)) if device.is_none() => {
                    format!("{name} on device {number}")
                }
                _ => name.clone(),
            };
            to.counters.push(Counter {
                id: CounterId(index as u32 + 1),
                name: name.into(),
                unit,
                device,
                queue: None,
                source: "import".into(),
            });
        }
    }
}

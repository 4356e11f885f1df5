//! Reads the counters, memory totals, clock frequencies and allocations of GPUs from packets, and writes their rows.
//! Values of described counters are kept until [`GpuCounters::complete`], because they are unordered. A sequence is
//! the packets of one writer; an interned descriptor is one that the sequence then refers to by its number, `iid`.

use super::build::Builder;
use super::sequence::Sequence;
use crate::Error;
use crate::protobuf::{Message, Packed, Value};
use gapscope_trace::LossKind;
use gapscope_trace::ids::{AllocationId, DeviceId};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{CounterUnit, MemoryEvent, MemoryRow, Table};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Perfetto's abbreviations of its units, which count from 1.
const SYMBOLS: &str = "b kb mb gb tb pb B kB MB GB TB PB Hz kHz MHz GHz THz PHz ns us ms s min hr Vertex Pixel \
    Triangle mW W kW J V A C F K % Primitive Fragment Instruction";

/// A counter with the description that a packet gives.
#[derive(Debug, Clone)]
struct Described {
    name: Arc<str>,
    unit: CounterUnit,
    /// The factor and the offset that convert values to the unit.
    scale: (f64, f64),
    /// True if a value holds from its time on; false if it holds up to its time.
    forwards: bool,
    gpu: u32,
    /// The times and values in the order of the file, in which the values of several sequences are unordered.
    samples: Vec<(i64, f64)>,
}

/// The counters and allocations that were read so far.
#[derive(Default)]
pub(super) struct GpuCounters {
    /// The counters that events describe, by number; they are valid in the whole file.
    global: FxHashMap<u64, Described>,
    /// The counters of interned descriptors, by the numbers of sequence, descriptor and counter.
    interned: FxHashMap<(u32, u64, u64), Described>,
    /// Allocations with their sizes, by process and handle of the device memory.
    allocations: FxHashMap<(u32, u64), (AllocationId, u64)>,
    /// The last allocation id that was given.
    next_allocation: u32,
}

impl GpuCounters {
    /// Reads a packet with descriptions or values of counters. `id` is the number of the sequence that wrote it.
    pub fn event(
        &mut self,
        event: Message,
        at_ns: Option<i64>,
        id: u32,
        sequence: &Sequence,
        builder: &mut Builder,
    ) {
        let (mut gpu, mut descriptor, mut iid) = (0, None, None);
        for (number, value) in event.fields() {
            match number {
                1 => descriptor = value.message(),
                3 => gpu = value.number() as u32,
                4 => iid = Some(value.number()),
                _ => {}
            }
        }
        if let Some(descriptor) = descriptor {
            for (counter, described) in descriptions(descriptor, gpu) {
                // The first description of a counter's number counts.
                self.global.entry(counter).or_insert(described);
            }
        }
        for (number, value) in event.fields() {
            let (2, Some(sample)) = (number, value.message()) else {
                continue;
            };
            let (mut counter, mut number) = (0, f64::NAN);
            for (field, value) in sample.fields() {
                match field {
                    1 => counter = value.number(),
                    2 => number = value.signed() as f64,
                    3 => number = value.double(),
                    _ => {}
                }
            }
            let described = match iid {
                Some(iid) => self.interned(id, iid, counter, sequence),
                None => self.global.get_mut(&counter),
            };
            let (Some(described), Some(at_ns)) = (described, at_ns) else {
                let reason = match at_ns {
                    Some(_) => "nothing describes their counters",
                    None => "they have no time on the trace's clock",
                };
                builder.inventory.lose("values of counters", 1, reason);
                continue;
            };
            let value = number * described.scale.0 + described.scale.1;
            if value.is_finite() {
                described.samples.push((at_ns, value));
            } else {
                let reason = "they are not numbers";
                builder.inventory.lose("values of counters", 1, reason);
            }
        }
    }

    /// Writes all values of described counters.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn complete(self, builder: &mut Builder) -> Result<(), Error> {
        let mut all: Vec<(u32, u64, u64, Described)> = Vec::new();
        all.extend(
            self.global
                .into_iter()
                .map(|(id, described)| (0, 0, id, described)),
        );
        let interned = self.interned.into_iter();
        all.extend(interned.map(|((sequence, iid, id), described)| (sequence, iid, id, described)));
        all.sort_by_key(|(sequence, iid, id, _)| (*sequence, *iid, *id));
        for (_, _, _, described) in all {
            write(described, builder)?;
        }
        Ok(())
    }

    /// Returns a counter of an interned descriptor; `None` if the sequence has not described it.
    fn interned(
        &mut self,
        id: u32,
        iid: u64,
        counter: u64,
        sequence: &Sequence,
    ) -> Option<&mut Described> {
        let key = (id, iid, counter);
        if !self.interned.contains_key(&key) {
            let (gpu, bytes) = sequence.interned.counter_descriptors.get(&iid)?;
            let torn = std::cell::Cell::new(0);
            for (counter, described) in descriptions(Message::new(bytes, &torn), *gpu) {
                self.interned.entry((id, iid, counter)).or_insert(described);
            }
        }
        self.interned.get_mut(&key)
    }

    /// Reads the amount of GPU memory that is in use by all processes or by one process.
    pub fn memory_total(&mut self, event: Message, at_ns: Option<i64>, builder: &mut Builder) {
        let [gpu, pid, bytes] = event.last([1, 2, 3]).map(Value::number);
        let Some(at_ns) = at_ns else {
            let reason = "they have no time on the trace's clock";
            builder.inventory.lose("values of counters", 1, reason);
            return;
        };
        let name = match pid {
            0 => "GPU memory in use by all".to_owned(),
            pid => format!("GPU memory in use by process {}", pid as u32),
        };
        let device = builder.gpu(gpu as u32);
        let (unit, value) = (CounterUnit::Bytes, bytes as f64);
        builder.counter_value(&name, unit, Some(device), at_ns, None, value);
    }

    /// Reads the clock frequency of a GPU.
    pub fn frequency(&mut self, event: Message, at_ns: Option<i64>, builder: &mut Builder) {
        let [gpu, khz] = event.last([1, 2]).map(Value::number);
        let Some(at_ns) = at_ns else {
            let reason = "they have no time on the trace's clock";
            builder.inventory.lose("values of counters", 1, reason);
            return;
        };
        let device = builder.gpu(gpu as u32);
        let value = khz as f64 * 1000.0;
        let unit = CounterUnit::Hertz;
        builder.counter_value("GPU clock", unit, Some(device), at_ns, None, value);
    }

    /// Reads an event of Vulkan memory; allocations of device memory become rows. `clock` converts the event's own
    /// time, which takes precedence over that of the packet.
    pub fn vulkan_memory(
        &mut self,
        event: Message,
        packet_ns: Option<i64>,
        clock: impl FnOnce(&mut Builder, u64) -> Option<i64>,
        builder: &mut Builder,
    ) {
        let (mut source, mut operation, mut time) = (0, 0, None);
        let (mut pid, mut bytes, mut heap) = (0, None, 0);
        let (mut address, mut memory) = (0, 0);
        for (number, value) in event.fields() {
            match number {
                1 => source = value.number(),
                2 => operation = value.number(),
                3 => time = Some(value.number()),
                4 => pid = value.number() as u32,
                5 => address = value.number(),
                6 => bytes = Some(value.number()),
                17 => memory = value.number(),
                19 => heap = value.number() as u32,
                _ => {}
            }
        }
        const DEVICE_MEMORY: u64 = 3;
        const CREATE: u64 = 1;
        const DESTROY: u64 = 2;
        let at_ns = match time {
            Some(time) => clock(builder, time),
            None => packet_ns,
        };
        let (true, Some(at_ns)) = (source == DEVICE_MEMORY, at_ns) else {
            let reason = "they are of the driver or of objects in memory, or have no time";
            builder.inventory.lose(LossKind::MemoryEvents, 1, reason);
            return;
        };
        let Some(process) = builder.process(pid) else {
            return;
        };
        let device = builder.device(process, 0, Api::Vulkan, None);
        let key = (pid, if memory == 0 { address } else { memory });
        let (event, allocation, bytes) = match operation {
            CREATE => {
                self.next_allocation += 1;
                let allocation = AllocationId(self.next_allocation);
                let bytes = bytes.unwrap_or(0);
                self.allocations.insert(key, (allocation, bytes));
                (MemoryEvent::Allocate, allocation, bytes)
            }
            DESTROY => match self.allocations.remove(&key) {
                Some((allocation, bytes)) => (MemoryEvent::Free, allocation, bytes),
                None => {
                    let reason = "they free what was allocated before the trace";
                    builder.inventory.lose(LossKind::MemoryEvents, 1, reason);
                    return;
                }
            },
            _ => {
                let reason = "they bind or annotate memory";
                builder.inventory.lose(LossKind::MemoryEvents, 1, reason);
                return;
            }
        };
        builder.inventory.spans(at_ns, at_ns);
        builder.trace.tables_mut().memory.push(MemoryRow {
            process,
            device,
            at_ns,
            event,
            allocation,
            bytes,
            heap,
        });
    }
}

impl Builder {
    /// Returns the id of the first device with a number in any process, or else of a new device.
    fn gpu(&mut self, gpu: u32) -> DeviceId {
        if let Some(device) = self.inventory.any_device(gpu) {
            return device;
        }
        let process = self.inventory.process(self.first_pass.unnamed_pid());
        self.device(process, gpu, Api::Unknown, None)
    }
}

/// Writes the values of a counter by time. One whose values hold up to their times loses the first value.
fn write(described: Described, builder: &mut Builder) -> Result<(), Error> {
    let Some(device) = (!described.samples.is_empty()).then(|| builder.gpu(described.gpu)) else {
        return Ok(());
    };
    let mut samples = described.samples;
    samples.sort_by_key(|(at_ns, _)| *at_ns);
    let (name, unit, device) = (&*described.name, described.unit, Some(device));
    if described.forwards {
        for (at_ns, value) in samples {
            builder.counter_value(name, unit, device, at_ns, None, value);
            builder.trace.flush()?;
        }
        return Ok(());
    }
    let reason = "they are the first of a counter, each of a time whose start is not known";
    builder.inventory.lose("values of counters", 1, reason);
    for pair in samples.windows(2) {
        let ((start_ns, _), (end_ns, value)) = (pair[0], pair[1]);
        if start_ns == end_ns {
            let reason = "several of one counter are of one time";
            builder.inventory.lose("values of counters", 1, reason);
            continue;
        }
        let duration_ns = Some(end_ns.saturating_sub(start_ns));
        builder.counter_value(name, unit, device, start_ns, duration_ns, value);
        builder.trace.flush()?;
    }
    Ok(())
}

/// Returns the counters that a descriptor describes, each with its id.
fn descriptions(descriptor: Message, gpu: u32) -> Vec<(u64, Described)> {
    let specs = descriptor.fields().filter(|(number, _)| *number == 1);
    let specs = specs.filter_map(|(_, value)| value.message());
    specs
        .map(|spec| {
            let (mut id, mut name, mut forwards) = (0, Arc::default(), false);
            let (mut above, mut below) = (Vec::new(), Vec::new());
            for (number, value) in spec.fields() {
                match number {
                    1 => id = value.number(),
                    2 => name = value.text().into(),
                    7 => above.extend(value.numbers(Packed::Varint)),
                    8 => below.extend(value.numbers(Packed::Varint)),
                    11 => forwards = value.number() == 2,
                    _ => {}
                }
            }
            let (unit, scale, rest) = unit(&above, &below);
            let described = Described {
                name: match rest {
                    Some(unit) => format!("{name} [{unit}]").into(),
                    None => name,
                },
                unit,
                scale,
                forwards,
                gpu,
                samples: Vec::new(),
            };
            (id, described)
        })
        .collect()
}

/// Converts Perfetto's units in the numerator and denominator of a counter. Returns the unit of traces, the factor
/// and offset that convert values to it, and the text of a unit that traces do not have.
fn unit(above: &[u64], below: &[u64]) -> (CounterUnit, (f64, f64), Option<String>) {
    let above: Vec<u64> = above.iter().copied().filter(|unit| *unit != 0).collect();
    let below: Vec<u64> = below.iter().copied().filter(|unit| *unit != 0).collect();
    let times = |scale: f64| (scale, 0.0);
    let bytes = |unit: u64| 1024f64.powi(unit as i32 - 7);
    let known = match (above.as_slice(), below.as_slice()) {
        ([], []) => Some((CounterUnit::Count, times(1.0))),
        ([unit @ 7..=12], []) => Some((CounterUnit::Bytes, times(bytes(*unit)))),
        ([unit @ 7..=12], [22]) => Some((CounterUnit::BytesPerSecond, times(bytes(*unit)))),
        ([unit @ 13..=18], []) => {
            Some((CounterUnit::Hertz, times(1000f64.powi(*unit as i32 - 13))))
        }
        ([], [22]) => Some((CounterUnit::Hertz, times(1.0))),
        ([28], []) => Some((CounterUnit::Watts, times(0.001))),
        ([29], []) => Some((CounterUnit::Watts, times(1.0))),
        ([30], []) => Some((CounterUnit::Watts, times(1000.0))),
        ([34], []) => Some((CounterUnit::Celsius, times(1.0))),
        ([35], []) => Some((CounterUnit::Celsius, (5.0 / 9.0, -160.0 / 9.0))),
        ([36], []) => Some((CounterUnit::Celsius, (1.0, -273.15))),
        ([37], []) => Some((CounterUnit::Percent, times(1.0))),
        _ => None,
    };
    if let Some((unit, scale)) = known {
        return (unit, scale, None);
    }
    let text = |units: &[u64]| {
        let symbol = |unit: &u64| SYMBOLS.split(' ').nth(*unit as usize - 1).unwrap_or("?");
        units.iter().map(symbol).collect::<Vec<_>>().join(":")
    };
    let rest = match below.is_empty() {
        true => text(&above),
        false => format!("{}/{}", text(&above), text(&below)),
    };
    (CounterUnit::Unknown, times(1.0), Some(rest))
}

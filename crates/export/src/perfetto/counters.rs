//! Writes the counters of a scene (the parts of a trace that every format shows): those of GPUs as Perfetto's GPU
//! counters, others as counter tracks.

use super::protobuf::Message;
use super::{Writer, event, packet, track};
use crate::scene::Counter;
use gapscope_trace::tables::CounterUnit;
use std::io::{self, Write};

// Numbers of fields and enums in protos/perfetto/common/gpu_counter_descriptor.proto and trace/track_event/*.proto.
mod unit {
    pub const BYTE: u64 = 7;
    pub const HERTZ: u64 = 13;
    pub const SECOND: u64 = 22;
    pub const WATT: u64 = 29;
    pub const CELSIUS: u64 = 34;
    pub const PERCENT: u64 = 37;
}
mod spec {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const NUMERATOR_UNITS: u32 = 7;
    pub const DENOMINATOR_UNITS: u32 = 8;
    pub const GROUPS: u32 = 10;
    pub const VALUE_DIRECTION: u32 = 11;
}
mod value {
    pub const COUNTER_ID: u32 = 1;
    pub const INTEGER: u32 = 2;
    pub const DOUBLE: u32 = 3;
}
// The field of a counter track's unit, and values of enums.
const UNIT_NAME: u32 = 6;
const GROUP_SYSTEM: u64 = 1;
const GROUP_MEMORY: u64 = 5;
const BACKWARDS_LOOKING: u64 = 1;

impl<W: Write> Writer<'_, W> {
    /// Writes a GPU counter: its description, then its values. Perfetto takes a value for the time since the sample
    /// before, so each is written at the end of its time, and the first also at its start.
    pub(super) fn gpu_counter(&mut self, gpu: u32, counter: &Counter) -> io::Result<()> {
        self.next_uuid += 1;
        // The id is unique in the whole file. The low half counts up from 2.
        let id = self.next_uuid & 0xffff_ffff;
        self.describe(gpu, id, counter)?;
        let ends = counter.samples.iter().skip(1).map(|next| next.start_ns);
        let last_ns = counter.end_ns.unwrap_or(self.scene.end_ns);
        let first = (counter.samples.first()).map(|first| (first.start_ns, first.value));
        let values = counter.samples.iter().map(|sample| sample.value);
        let values = ends.chain([last_ns]).zip(values);
        let mut before_ns = i64::MIN;
        for (end_ns, value) in first.into_iter().chain(values) {
            before_ns = end_ns.max(before_ns);
            self.part.clear();
            self.part.number(value::COUNTER_ID, id);
            match counter.unit {
                CounterUnit::Bytes | CounterUnit::Count if value.fract() == 0.0 => {
                    self.part.number(value::INTEGER, value as i64 as u64);
                }
                _ => self.part.double(value::DOUBLE, value),
            }
            self.event.clear();
            self.event.message(2, &self.part);
            self.event.number(3, gpu.into());
            let at_ns = self.ns(before_ns);
            self.packet.number(packet::TIMESTAMP, at_ns);
            self.packet.message(packet::GPU_COUNTERS, &self.event);
            self.end_packet()?;
        }
        Ok(())
    }

    /// Writes the packet that gives a GPU counter its id, name, units and group in Perfetto's UI.
    fn describe(&mut self, gpu: u32, id: u64, counter: &Counter) -> io::Result<()> {
        let mut described = Message::default();
        described.number(spec::ID, id);
        described.text(spec::NAME, &counter.name);
        let (numerator, denominator) = units(counter.unit);
        if let Some(numerator) = numerator {
            described.number(spec::NUMERATOR_UNITS, numerator);
        }
        if let Some(denominator) = denominator {
            described.number(spec::DENOMINATOR_UNITS, denominator);
        }
        let group = match counter.unit {
            CounterUnit::Bytes | CounterUnit::BytesPerSecond => GROUP_MEMORY,
            _ => GROUP_SYSTEM,
        };
        described.number(spec::GROUPS, group);
        described.number(spec::VALUE_DIRECTION, BACKWARDS_LOOKING);
        let mut descriptor = Message::default();
        descriptor.message(1, &described);
        self.event.clear();
        self.event.message(1, &descriptor);
        self.event.number(3, gpu.into());
        self.packet.message(packet::GPU_COUNTERS, &self.event);
        self.packet
            .number(packet::TIMESTAMP, self.ns(self.scene.origin_ns));
        self.end_packet()
    }

    /// Writes a counter track under `root`.
    pub(super) fn counter(&mut self, root: u64, counter: &Counter) -> io::Result<()> {
        let uuid = self.uuid();
        let mut described = Message::default();
        described.text(UNIT_NAME, counter.unit.as_str());
        let mut descriptor = Message::default();
        descriptor.text(track::NAME, &counter.name);
        descriptor.message(track::COUNTER, &described);
        self.descriptor(uuid, Some(root), 0, descriptor)?;
        for sample in &counter.samples {
            self.event.clear();
            self.event.number(event::TYPE, event::COUNTER);
            self.event.number(event::TRACK, uuid);
            self.event.double(event::DOUBLE_VALUE, sample.value);
            self.end_event(sample.start_ns)?;
        }
        Ok(())
    }
}

/// Returns Perfetto's units of a value: the numerator and the denominator, each absent where Perfetto needs none.
fn units(unit: CounterUnit) -> (Option<u64>, Option<u64>) {
    match unit {
        CounterUnit::Bytes => (Some(unit::BYTE), None),
        CounterUnit::BytesPerSecond => (Some(unit::BYTE), Some(unit::SECOND)),
        CounterUnit::Percent => (Some(unit::PERCENT), None),
        CounterUnit::Hertz => (Some(unit::HERTZ), None),
        CounterUnit::Watts => (Some(unit::WATT), None),
        CounterUnit::Celsius => (Some(unit::CELSIUS), None),
        CounterUnit::Count | CounterUnit::Unknown => (None, None),
    }
}

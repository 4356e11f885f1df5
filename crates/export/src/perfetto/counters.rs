//! Figures of GPUs over time, as GPU counters.

use super::message::Message;
use super::{Writer, packet};
use crate::scene::{Counter, Unit};
use std::io::{self, Write};

const BYTE: u64 = 7;
const GROUP_SYSTEM: u64 = 1;
const GROUP_MEMORY: u64 = 5;
const BACKWARDS_LOOKING: u64 = 1;

impl<W: Write> Writer<'_, W> {
    /// Perfetto takes the value of a sample for that since the sample before, so each is written at the end of its time.
    pub(super) fn counters(&mut self, gpu: u32, counters: &[Counter]) -> io::Result<()> {
        for counter in counters {
            self.next_uuid += 1;
            // Told apart in the whole file. The low half counts up from 2.
            let id = self.next_uuid & 0xffff_ffff;
            self.describe(gpu, id, counter)?;
            let mut before = 0;
            let end_ns = self.scene.end_ns;
            let end = counter
                .samples
                .last()
                .map(|(at_ns, _)| (end_ns.max(*at_ns), 0));
            for (at_ns, value) in counter.samples.iter().copied().chain(end) {
                self.part.clear();
                self.part.number(1, id);
                self.part.number(
                    2,
                    std::mem::replace(&mut before, value).min(i64::MAX as u64),
                );
                self.event.clear();
                self.event.message(2, &self.part);
                self.event.number(3, gpu.into());
                let at_ns = self.ns(at_ns);
                self.packet.number(packet::TIMESTAMP, at_ns);
                self.packet.message(packet::GPU_COUNTERS, &self.event);
                self.end_packet()?;
            }
        }
        Ok(())
    }

    fn describe(&mut self, gpu: u32, id: u64, counter: &Counter) -> io::Result<()> {
        let mut spec = Message::default();
        spec.number(1, id);
        spec.text(2, &counter.name);
        let group = match counter.unit {
            Unit::Bytes => {
                spec.number(7, BYTE);
                GROUP_MEMORY
            }
            Unit::Count => GROUP_SYSTEM,
        };
        spec.number(10, group);
        spec.number(11, BACKWARDS_LOOKING);
        let mut descriptor = Message::default();
        descriptor.message(1, &spec);
        self.event.clear();
        self.event.message(1, &descriptor);
        self.event.number(3, gpu.into());
        self.packet.message(packet::GPU_COUNTERS, &self.event);
        self.packet
            .number(packet::TIMESTAMP, self.ns(self.scene.origin_ns));
        self.end_packet()
    }
}

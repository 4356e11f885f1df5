//! Writes protobuf: Perfetto's packets and XSpace profiles of JAX.

use super::Document;
use super::chance::{Chance, Clock};

fn varint(mut number: u64, to: &mut Vec<u8>) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// A message that is being written.
#[derive(Debug, Default, Clone)]
struct Message(Vec<u8>);

impl Message {
    /// Adds a number; in an odd case it is another one, or of another type.
    fn number(mut self, chance: &mut Chance, field: u64, usual: u64) -> Message {
        let value = chance.number(usual);
        match chance.is_odd() && chance.rng.bool() {
            true => {
                varint(field << 3 | 1, &mut self.0);
                self.0.extend(value.to_le_bytes());
            }
            false => {
                varint(field << 3, &mut self.0);
                varint(value, &mut self.0);
            }
        }
        self
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> Message {
        varint(field << 3 | 2, &mut self.0);
        varint(value.len() as u64, &mut self.0);
        self.0.extend(value);
        self
    }

    fn text(self, chance: &mut Chance, field: u64, usual: &str) -> Message {
        let text = chance.text(usual);
        self.bytes(field, text.as_bytes())
    }

    /// Adds a message; in an odd case it is missing, or there twice, or without its end.
    fn message(self, chance: &mut Chance, field: u64, inner: &Message) -> Message {
        if !chance.is_odd() {
            return self.bytes(field, &inner.0);
        }
        match chance.rng.u8(0..3) {
            0 => self,
            1 => self.bytes(field, &inner.0).bytes(field, &inner.0),
            _ => self.bytes(field, &inner.0[..inner.0.len() / 2]),
        }
    }
}

/// Writes a trace of Perfetto.
pub fn perfetto(chance: &mut Chance) -> Document {
    let mut clock = Clock::new(chance);
    let mut trace = Message::default();
    let (mut work, mut number) = (0, 0);
    let packet = |chance: &mut Chance, trace: Message, at: u64, field: u64, inner: &Message| {
        let packet = Message::default()
            .number(chance, 8, at)
            .number(chance, 10, 1);
        let packet = packet.message(chance, field, inner);
        trace.message(chance, 1, &packet)
    };
    // The first packet of a sequence says that its interned texts begin.
    let entry = |chance: &mut Chance, id: u64, name: &str| {
        Message::default()
            .number(chance, 1, id)
            .text(chance, 2, name)
    };
    let (name, category) = (
        entry(chance, 1, "cudaLaunchKernel"),
        entry(chance, 1, "kernel"),
    );
    let stage = Message::default()
        .number(chance, 1, 1)
        .text(chance, 2, "Compute");
    let interned = Message::default()
        .message(chance, 2, &name)
        .message(chance, 1, &category)
        .message(chance, 24, &stage);
    let first = Message::default()
        .number(chance, 10, 1)
        .number(chance, 13, 3)
        .message(chance, 12, &interned);
    trace = trace.message(chance, 1, &first);
    if chance.rng.bool() {
        let mut snapshot = Message::default();
        for id in [6, 1, 3] {
            let reading =
                Message::default()
                    .number(chance, 1, id)
                    .number(chance, 2, clock.now_ns + id);
            snapshot = snapshot.message(chance, 1, &reading);
        }
        trace = packet(chance, trace, clock.now_ns, 6, &snapshot);
    }
    for (uuid, track) in [(1, "main"), (2, "Stream 7 (GPU)"), (3, "counter")] {
        let thread = Message::default()
            .number(chance, 1, 42)
            .number(chance, 2, 10 + uuid)
            .text(chance, 5, track);
        let mut descriptor = Message::default()
            .number(chance, 1, uuid)
            .text(chance, 2, track);
        descriptor = match uuid {
            1 => descriptor.message(chance, 4, &thread),
            3 => {
                let counter = Message::default().number(chance, 3, 2).number(chance, 4, 1);
                descriptor.message(chance, 8, &counter)
            }
            _ => descriptor,
        };
        trace = packet(chance, trace, clock.now_ns, 60, &descriptor);
    }
    for _ in 0..chance.below(24) {
        let at = clock.next(chance);
        number += 1;
        match chance.rng.u8(0..8) {
            // A slice of the host, with its end.
            0..3 => {
                let track = 1;
                let begin = Message::default()
                    .number(chance, 9, 1)
                    .number(chance, 11, track)
                    .number(chance, 10, 1)
                    .number(chance, 47, number);
                trace = packet(chance, trace, at, 11, &begin);
                let end = Message::default()
                    .number(chance, 9, 2)
                    .number(chance, 11, track);
                let at = clock.next(chance);
                trace = packet(chance, trace, at, 11, &end);
            }
            // A slice of a GPU.
            3 => {
                let begin = Message::default()
                    .number(chance, 9, 1)
                    .number(chance, 11, 2)
                    .text(chance, 22, "kernel")
                    .text(chance, 23, "scale")
                    .number(chance, 36, number);
                trace = packet(chance, trace, at, 11, &begin);
                let end = Message::default()
                    .number(chance, 9, 2)
                    .number(chance, 11, 2);
                let at = clock.next(chance);
                trace = packet(chance, trace, at, 11, &end);
                work += 1;
            }
            4 | 5 => {
                let stage = Message::default()
                    .number(chance, 1, number)
                    .number(chance, 2, 300)
                    .number(chance, 4, 1)
                    .number(chance, 13, 1)
                    .number(chance, 14, 1)
                    .number(chance, 6, number);
                trace = packet(chance, trace, at, 53, &stage);
                work += 1;
            }
            6 => {
                let value = Message::default()
                    .number(chance, 9, 4)
                    .number(chance, 11, 3)
                    .number(chance, 30, at);
                trace = packet(chance, trace, at, 11, &value);
            }
            _ => {
                let submit = Message::default()
                    .number(chance, 1, 200)
                    .number(chance, 2, 42)
                    .number(chance, 3, 11)
                    .number(chance, 6, number);
                let event = Message::default().message(chance, 2, &submit);
                trace = packet(chance, trace, at, 65, &event);
            }
        }
    }
    let _ = work;
    Document {
        files: vec![("run.pftrace".to_owned(), trace.0)],
        // How many stages become work depends on their descriptions, which the test of Perfetto's own traces checks.
        work: Document::UNKNOWN,
    }
}

/// The names of the facts of a profile; the id of each is its place, from 1 on.
const FACTS: [&str; 10] = [
    "correlation_id",
    "kernel_details",
    "memcpy_details",
    "cuda_graph_id",
    "hlo_module",
    "hlo_op",
    "tf_op",
    "device_vendor",
    "core_count",
    "name",
];

/// Writes an XSpace profile.
pub fn xplane(chance: &mut Chance) -> Document {
    let mut space = Message::default();
    let mut work = 0;
    let count = chance.below(10);
    for (plane, line) in [
        ("/host:CPU", "python3"),
        ("/device:GPU:0", "Stream #20(Compute)"),
        ("/device:GPU:1", "Stream #7"),
        ("Task Environment", ""),
    ] {
        let is_gpu = plane.starts_with("/device");
        let mut rows = Message::default()
            .number(chance, 1, 1)
            .text(chance, 2, line)
            .number(chance, 3, 1_700_000_000_000_000_000);
        let mut names = Message::default();
        let mut clock = Clock { now_ns: 1 };
        for id in 1..=count {
            let start_ns = clock.next(chance);
            let mut event = Message::default()
                .number(chance, 1, id)
                .number(chance, 2, start_ns * 1000)
                .number(chance, 3, 20_000_000);
            let details = chance.one_of(&[
                "regs:32 grid:16,1,1 block:512,1,1",
                "regs:4294967295 grid:,, block:x",
                "kind_src:device size:64",
            ]);
            for (fact, text) in [
                (1, ""),
                (2 + chance.below(2), details),
                (5, "jit_f"),
                (7, "a/b"),
            ] {
                let fact_message = Message::default().number(chance, 1, fact);
                let fact_message = match text {
                    "" => fact_message.number(chance, 3, id),
                    text => fact_message.text(chance, 5, text),
                };
                event = event.message(chance, 4, &fact_message);
            }
            rows = rows.message(chance, 4, &event);
            let name = chance.one_of(&[
                "gemm",
                "MemcpyH2D",
                "cuLaunchKernel",
                "cuGraphLaunch:5",
                "loop_add_fusion",
                "CudaGraphExec:3",
            ]);
            let name = Message::default()
                .number(chance, 1, id)
                .text(chance, 2, name);
            let entry = Message::default()
                .number(chance, 1, id)
                .message(chance, 2, &name);
            names = names.message(chance, 4, &entry);
            work += u64::from(is_gpu);
        }
        for (id, fact) in (1..).zip(FACTS) {
            let name = Message::default()
                .number(chance, 1, id)
                .text(chance, 2, fact);
            let entry = Message::default()
                .number(chance, 1, id)
                .message(chance, 2, &name);
            names = names.message(chance, 5, &entry);
        }
        let mut written = Message::default().text(chance, 2, plane);
        written = written.message(chance, 3, &rows);
        written.0.extend(names.0);
        space = space.message(chance, 1, &written);
    }
    Document {
        files: vec![("a.xplane.pb".to_owned(), space.0)],
        work,
    }
}

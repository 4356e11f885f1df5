//! Keeps the state of each sequence (the packets of one writer): the clock, texts and defaults that a packet sets for
//! the packets after it. Each pass calls [`Sequences::advance`] for every packet, in the order of the file.

use crate::protobuf::{Message, Value};
use rustc_hash::FxHashMap;
use std::sync::Arc;

// Fields of TracePacket.
pub(super) const CLOCK_SNAPSHOT: u32 = 6;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const INTERNED_DATA: u32 = 12;
const SEQUENCE_FLAGS: u32 = 13;
const STATE_CLEARED: u32 = 41;
const PREVIOUS_DROPPED: u32 = 42;
const CLOCK: u32 = 58;
const DEFAULTS: u32 = 59;
/// The first number of a sequence's own clock.
const FIRST_OWN_CLOCK: u64 = 64;
const FLAG_CLEARED: u64 = 1;
const FLAG_NEEDS_STATE: u64 = 2;

/// The fields of a packet that place it in its sequence.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Header {
    pub sequence: u32,
    pub timestamp: Option<u64>,
    /// The clock of `timestamp`; if the packet names none, the sequence's default clock.
    pub clock: Option<u64>,
    /// True if the packet needs interned data that were lost.
    pub undecodable: bool,
    /// True if packets of the sequence were lost before this packet.
    pub follows_loss: bool,
}

impl Header {
    /// Returns the time with its clock where the clock is one of the system's, which count nanoseconds. A sequence's own
    /// clock may count from the packet before.
    pub fn on_builtin_clock(&self) -> Option<(u64, i64)> {
        let clock = self.clock.unwrap_or(0);
        let start_ns = i64::try_from(self.timestamp?).ok()?;
        (clock < FIRST_OWN_CLOCK).then_some((clock, start_ns))
    }
}

/// The name and description of a stage or a queue.
#[derive(Debug, Clone, Default)]
pub(super) struct Specification {
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// The kind of the stage: 1 is graphics, 2 is compute.
    pub category: u64,
}

/// The process and API of a graphics context.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Context {
    pub pid: u32,
    pub api: u64,
}

/// A kernel as packets name it.
#[derive(Debug, Clone, Default)]
pub(super) struct ComputeKernel {
    pub name: Arc<str>,
    pub demangled_name: Option<Arc<str>>,
    /// The integer arguments with their names.
    pub arguments: Vec<(Arc<str>, u64)>,
}

/// The interned data of a sequence: the texts and descriptions that its packets name by a number.
#[derive(Debug, Default)]
pub(super) struct Interned {
    pub categories: FxHashMap<u64, Arc<str>>,
    pub event_names: FxHashMap<u64, Arc<str>>,
    pub annotation_names: FxHashMap<u64, Arc<str>>,
    pub texts: FxHashMap<u64, Arc<str>>,
    pub specifications: FxHashMap<u64, Specification>,
    pub contexts: FxHashMap<u64, Context>,
    pub kernels: FxHashMap<u64, ComputeKernel>,
    /// The names of arguments of kernels and launches.
    argument_names: FxHashMap<u64, Arc<str>>,
    /// The descriptors of counters by id: the GPU and the undecoded counters.
    pub counter_descriptors: FxHashMap<u64, (u32, Vec<u8>)>,
}

/// The state of one sequence.
#[derive(Debug, Default)]
pub(super) struct Sequence {
    /// Whether a packet of the sequence came before.
    seen: bool,
    /// True if all interned data since the last reset were read.
    valid: bool,
    /// The clock and the track of packets that name none.
    default_clock: Option<u64>,
    pub default_track: Option<u64>,
    /// The pid and thread id of all events of the sequence, in old traces; `None` in newer ones.
    pub thread: Option<(u32, u32)>,
    /// The time from which delta times count in old traces, in microseconds.
    pub reference_us: i64,
    pub interned: Interned,
}

/// The states of all sequences, by the sequence's number.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    sequences: FxHashMap<u32, Sequence>,
}

impl Sequences {
    /// Returns the state of a sequence, which is new if the sequence was not seen before.
    pub fn entry(&mut self, sequence: u32) -> &mut Sequence {
        self.sequences.entry(sequence).or_default()
    }

    /// Applies a packet to the state of its sequence and returns the packet's header.
    pub fn advance(&mut self, packet: Message) -> Header {
        let mut header = Header::default();
        let (mut flags, mut dropped) = (0, false);
        let (mut interned, mut defaults) = (None, None);
        for (number, value) in packet.fields() {
            match number {
                TIMESTAMP => header.timestamp = Some(value.number()),
                SEQUENCE => header.sequence = value.number() as u32,
                CLOCK => header.clock = Some(value.number()),
                SEQUENCE_FLAGS => flags |= value.number(),
                STATE_CLEARED if value.number() != 0 => flags |= FLAG_CLEARED,
                PREVIOUS_DROPPED => dropped = value.number() != 0,
                INTERNED_DATA => interned = value.message(),
                DEFAULTS => defaults = value.message(),
                _ => {}
            }
        }
        let sequence = self.entry(header.sequence);
        // The first packet of a sequence always has this flag.
        header.follows_loss = dropped && sequence.seen;
        if header.follows_loss {
            sequence.valid = false;
        }
        sequence.seen = true;
        if flags & FLAG_CLEARED != 0 {
            sequence.valid = true;
            sequence.interned = Interned::default();
            sequence.default_clock = None;
            sequence.default_track = None;
        }
        if let Some(defaults) = defaults {
            sequence.set_defaults(defaults);
        }
        if let Some(interned) = interned {
            sequence.interned.add(interned);
        }
        header.clock = header.clock.or(sequence.default_clock);
        header.undecodable = flags & FLAG_NEEDS_STATE != 0 && !sequence.valid;
        header
    }
}

impl Sequence {
    /// Sets the default clock, and the default track if the packet names one.
    fn set_defaults(&mut self, defaults: Message) {
        for (number, value) in defaults.fields() {
            match number {
                58 => self.default_clock = Some(value.number()),
                11 => {
                    let track = value.message().and_then(|event| event.field(11));
                    self.default_track = track.map(Value::number).or(self.default_track);
                }
                _ => {}
            }
        }
    }
}

impl Interned {
    /// Adds the texts and descriptions that a packet interns.
    fn add(&mut self, data: Message) {
        for (number, value) in data.fields() {
            let Some(entry) = value.message() else {
                continue;
            };
            let texts = match number {
                1 => &mut self.categories,
                2 => &mut self.event_names,
                3 => &mut self.annotation_names,
                29 => &mut self.texts,
                1001 => &mut self.argument_names,
                23 => {
                    self.add_context(entry);
                    continue;
                }
                24 => {
                    self.add_specification(entry);
                    continue;
                }
                47 => {
                    self.add_counters(entry);
                    continue;
                }
                1000 => {
                    self.add_kernel(entry);
                    continue;
                }
                _ => continue,
            };
            let [id, text] = entry.last([1, 2]);
            texts.insert(id.number(), text.text().into());
        }
    }

    /// Adds the process and API of a graphics context.
    fn add_context(&mut self, entry: Message) {
        let [id, pid, api] = entry.last([1, 2, 3]);
        let context = Context {
            pid: pid.number() as u32,
            api: api.number(),
        };
        self.contexts.insert(id.number(), context);
    }

    /// Adds the name of a queue or of a stage.
    fn add_specification(&mut self, entry: Message) {
        let [id, name, description, category] = entry.last([1, 2, 3, 4]);
        let specification = Specification {
            name: name.text().into(),
            description: description.text().into(),
            category: category.number(),
        };
        self.specifications.insert(id.number(), specification);
    }

    /// Keeps a descriptor of counters, which `counters` decodes when a value refers to it.
    fn add_counters(&mut self, entry: Message) {
        let [id, descriptor, gpu] = entry.last([1, 2, 3]);
        let descriptor = descriptor.message().map_or(&[][..], Message::bytes);
        let described = (gpu.number() as u32, descriptor.to_vec());
        self.counter_descriptors.insert(id.number(), described);
    }

    /// Adds a kernel with its integer arguments.
    fn add_kernel(&mut self, entry: Message) {
        let (mut id, mut kernel) = (0, ComputeKernel::default());
        for (number, value) in entry.fields() {
            match (number, value.message()) {
                (1, _) => id = value.number(),
                (2, _) => kernel.name = value.text().into(),
                (3, _) => kernel.demangled_name = Some(value.text().into()),
                (5, Some(argument)) => kernel.arguments.extend(self.argument(argument)),
                _ => {}
            }
        }
        self.kernels.insert(id, kernel);
    }

    /// Returns the name and value of an integer argument of a kernel or a launch; `None` for other values.
    pub fn argument(&self, argument: Message) -> Option<(Arc<str>, u64)> {
        let (mut name, mut number) = (None, None);
        for (field, value) in argument.fields() {
            match field {
                1 => name = self.argument_names.get(&value.number()).cloned(),
                2 => name = Some(value.text().into()),
                3 | 4 => number = Some(value.number()),
                _ => {}
            }
        }
        Some((name?, number?))
    }
}

//! Decodes track events: the slices, instants and counter values of a track, with their names, arguments and links.
//! The first pass over the file asks only for [`links`], the second for all with [`decode`]. A sequence is the
//! packets of one writer; it keeps the texts, clock and defaults that its events refer to.

use super::sequence::Sequence;
use crate::doubtful_times::ROUNDING_NS;
use crate::protobuf::{Message, Packed, Value};
use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// The effect of an event on its track.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    Begin,
    End,
    Instant,
    /// A complete slice with its duration.
    Complete(i64),
    /// The start of a slice that overlaps others without nesting, with its id.
    BeginAsync(u64),
    /// The end of such a slice, with its id.
    EndAsync(u64),
    /// A value of the track's counter.
    Counter(f64),
    /// An event of an unsupported kind.
    Other,
}

/// The value of an argument of an event.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Detail {
    Integer(i64),
    Unsigned(u64),
    Real(f64),
    Text(Arc<str>),
    List(Vec<u64>),
}

impl Detail {
    /// Returns an integer that is not negative.
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Detail::Integer(number) => u64::try_from(*number).ok(),
            Detail::Unsigned(number) => Some(*number),
            // Some writers write all numbers as floating point.
            Detail::Real(number) if number.fract() == 0.0 && (0.0..9e15).contains(number) => {
                Some(*number as u64)
            }
            Detail::Real(_) | Detail::List(_) => None,
            Detail::Text(text) => text.parse().ok(),
        }
    }
}

/// A decoded track event.
#[derive(Debug, Clone)]
pub(super) struct Event {
    pub at_ns: i64,
    /// True where the time is known. If not, `at_ns` is the time that the file has in its place.
    pub is_timed: bool,
    pub track: u64,
    pub step: Step,
    pub name: Arc<str>,
    /// The first category.
    pub category: Arc<str>,
    /// The arguments with their names.
    pub details: Vec<(Arc<str>, Detail)>,
    /// The ids of the flows (arrows between slices) that start or end here.
    pub flows: Vec<u64>,
    /// The ids of the render stages that the event submitted.
    pub submitted: Vec<u64>,
    /// The number of values of further counters in the event, which are not read.
    pub extra_values: u64,
}

impl Event {
    /// Returns a number that two slices share where they agree in everything, their times included; `None` for slices so short that
    /// different ones may agree.
    pub fn fingerprint(&self, end_ns: i64) -> Option<u64> {
        let duration_ns = end_ns.saturating_sub(self.at_ns);
        if !self.is_timed || duration_ns <= ROUNDING_NS {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (self.track, self.at_ns, duration_ns).hash(&mut hasher);
        (&self.name, &self.category, &self.flows, &self.submitted).hash(&mut hasher);
        for (name, detail) in &self.details {
            name.hash(&mut hasher);
            match detail {
                Detail::Integer(number) => number.hash(&mut hasher),
                Detail::Unsigned(number) => number.hash(&mut hasher),
                Detail::Real(number) => number.to_bits().hash(&mut hasher),
                Detail::Text(text) => text.hash(&mut hasher),
                Detail::List(numbers) => numbers.hash(&mut hasher),
            }
        }
        Some(hasher.finish())
    }

    /// Returns an argument by its name.
    pub fn detail(&self, name: &str) -> Option<&Detail> {
        let found = self.details.iter().find(|(key, _)| &**key == name)?;
        Some(&found.1)
    }

    pub fn text(&self, name: &str) -> Option<&Arc<str>> {
        match self.detail(name)? {
            Detail::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns an argument that is an integer and not negative.
    pub fn unsigned(&self, name: &str) -> Option<u64> {
        self.detail(name)?.unsigned()
    }

    /// Formats the arguments as a marker's payload: `bytes=4096, root=0`; `None` without arguments.
    pub fn payload(&self) -> Option<Arc<str>> {
        let mut text = String::new();
        for (name, detail) in &self.details {
            if !text.is_empty() {
                text.push_str(", ");
            }
            // Writing to a text does not fail.
            let _ = match detail {
                Detail::Integer(number) => write!(text, "{name}={number}"),
                Detail::Unsigned(number) => write!(text, "{name}={number}"),
                Detail::Real(number) => write!(text, "{name}={number}"),
                Detail::Text(value) => write!(text, "{name}={value}"),
                Detail::List(numbers) => write!(text, "{name}={numbers:?}"),
            };
        }
        (!text.is_empty()).then(|| text.into())
    }
}

/// The kind of GPU work that profilers mean by a category of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GpuCategory {
    Kernel,
    Transfer,
}

/// Returns the kind of GPU work for a category of Kineto, rocprofv3 or rocprof-sys; `None` for other categories.
pub(super) fn gpu_category(category: &str) -> Option<GpuCategory> {
    match category {
        "kernel" | "kernel_dispatch" | "concurrent_kernel" | "rocm_kernel_dispatch" => {
            Some(GpuCategory::Kernel)
        }
        "gpu_memcpy" | "gpu_memset" | "memory_copy" | "rocm_memory_copy" => {
            Some(GpuCategory::Transfer)
        }
        _ => None,
    }
}

/// Returns an id of a track for a thread without a track descriptor, as in old traces.
pub(super) fn thread_track(pid: u32, tid: u32) -> u64 {
    // The ids of other tracks are random numbers or pointers, so that collisions are unlikely.
    (0x7468_7264 << 32) ^ (u64::from(pid) << 24) ^ u64::from(tid)
}

/// The track, thread, flows and stages that an event is linked to.
#[derive(Default)]
pub(super) struct Links {
    pub track: u64,
    pub category: Arc<str>,
    pub flows: Vec<u64>,
    pub submitted: Vec<u64>,
    /// The pid and thread id that an event of an old trace names; `None` in newer traces.
    pub thread: Option<(u32, u32)>,
}

/// Decodes the links of an event and nothing else.
pub(super) fn links(event: Message, sequence: &Sequence) -> Links {
    let mut links = Links {
        track: default_track(sequence),
        ..Links::default()
    };
    for (number, value) in event.fields() {
        match number {
            11 => links.track = value.number(),
            3 if links.category.is_empty() => {
                links.category = first_category(value, sequence);
            }
            22 if links.category.is_empty() => links.category = value.text().into(),
            36 | 42 => links.flows.extend(value.numbers(Packed::Varint)),
            47 | 48 => links.flows.extend(value.numbers(Packed::Fixed64)),
            3000 => links.submitted = submitted(value),
            6 => {
                let legacy = value.message();
                links.thread = legacy.and_then(|legacy| named_thread(legacy, sequence));
            }
            _ => {}
        }
    }
    if let Some((pid, tid)) = links.thread {
        links.track = thread_track(pid, tid);
    }
    links
}

/// Returns the process and thread of an event in the legacy format of Chrome's JSON.
fn named_thread(legacy: Message, sequence: &Sequence) -> Option<(u32, u32)> {
    let known = sequence.thread.unwrap_or_default();
    let pid = legacy.field(18).map(|value| value.number() as u32);
    let tid = legacy.field(19).map(|value| value.number() as u32);
    (pid.is_some() || tid.is_some()).then(|| (pid.unwrap_or(known.0), tid.unwrap_or(known.1)))
}

/// Returns the track of events that name none: the sequence's default track, or else 0, which has no descriptor.
fn default_track(sequence: &Sequence) -> u64 {
    let thread = sequence.thread.map(|(pid, tid)| thread_track(pid, tid));
    sequence.default_track.or(thread).unwrap_or(0)
}

/// Returns the text of the first of an event's interned categories; empty if it is not known.
fn first_category(value: Value, sequence: &Sequence) -> Arc<str> {
    let first = value.numbers(Packed::Varint).next();
    let text = first.and_then(|id| sequence.interned.categories.get(&id));
    text.cloned().unwrap_or_default()
}

/// Returns the ids of the render stages in an event's `gpu_correlation`.
fn submitted(correlation: Value) -> Vec<u64> {
    let fields = correlation.message().into_iter().flat_map(Message::fields);
    let of = fields.filter(|(number, _)| *number == 1);
    of.flat_map(|(_, value)| value.numbers(Packed::Varint))
        .collect()
}

/// Decodes an event at `at_ns`, the time of its packet, over which a time of the event's own takes precedence.
/// `shift_ns` is added to the latter. Returns `None` if the time is unknown. Times that are relative to the event before move the sequence's time on.
pub(super) fn decode(
    message: Message,
    at_ns: Option<i64>,
    shift_ns: i64,
    sequence: &mut Sequence,
) -> Option<Event> {
    let mut event = Event {
        at_ns: at_ns.unwrap_or(0),
        is_timed: true,
        track: default_track(sequence),
        step: Step::Other,
        name: Arc::default(),
        category: Arc::default(),
        details: Vec::new(),
        flows: Vec::new(),
        submitted: Vec::new(),
        extra_values: 0,
    };
    let mut timed = at_ns.is_some();
    let (mut kind, mut value_of_counter, mut legacy) = (0, None, None);
    for (number, value) in message.fields() {
        match number {
            1 | 16 => {
                let us = value.signed();
                let us = match number {
                    1 => sequence.reference_us.wrapping_add(us),
                    _ => us,
                };
                if number == 1 {
                    sequence.reference_us = us;
                }
                event.at_ns = us.checked_mul(1000)?.checked_add(shift_ns)?;
                timed = true;
            }
            3 if event.category.is_empty() => event.category = first_category(value, sequence),
            22 if event.category.is_empty() => event.category = value.text().into(),
            4 => event.details.extend(
                value
                    .message()
                    .and_then(|annotation| detail(annotation, sequence)),
            ),
            6 => legacy = value.message(),
            9 => kind = value.number(),
            10 => {
                let name = sequence.interned.event_names.get(&value.number());
                event.name = name.cloned().unwrap_or_default();
            }
            23 => event.name = value.text().into(),
            11 => event.track = value.number(),
            12 | 46 => event.extra_values += 1,
            30 => value_of_counter = Some(value.signed() as f64),
            44 => value_of_counter = Some(value.double()),
            36 | 42 => event.flows.extend(value.numbers(Packed::Varint)),
            47 | 48 => event.flows.extend(value.numbers(Packed::Fixed64)),
            3000 => event.submitted = submitted(value),
            _ => {}
        }
    }
    event.step = match (kind, value_of_counter) {
        (1, _) => Step::Begin,
        (2, _) => Step::End,
        (3, _) => Step::Instant,
        (4, Some(value)) => Step::Counter(value),
        _ => Step::Other,
    };
    if let Some(legacy) = legacy {
        if let Some((pid, tid)) = named_thread(legacy, sequence) {
            event.track = thread_track(pid, tid);
        }
        if kind == 0 {
            apply_legacy(legacy, &mut event, sequence)?;
        }
    }
    timed.then_some(event)
}

/// Applies the legacy fields of Chrome's JSON, such as the phase, to an event. `None` if its duration is impossible.
fn apply_legacy(legacy: Message, event: &mut Event, sequence: &Sequence) -> Option<()> {
    let (mut phase, mut duration_us, mut id) = (0, 0i64, 0);
    for (number, value) in legacy.fields() {
        match number {
            1 if event.name.is_empty() => {
                let name = sequence.interned.event_names.get(&value.number());
                event.name = name.cloned().unwrap_or_default();
            }
            2 => phase = value.number(),
            3 => duration_us = value.signed(),
            6 | 10 | 11 => id = value.number(),
            _ => {}
        }
    }
    let phase = u8::try_from(phase).unwrap_or(0);
    event.step = match phase {
        b'B' => Step::Begin,
        b'E' => Step::End,
        b'X' => Step::Complete(duration_us.checked_mul(1000)?),
        b'i' | b'I' | b'n' => Step::Instant,
        b'b' | b'S' => Step::BeginAsync(id),
        b'e' | b'F' => Step::EndAsync(id),
        _ => Step::Other,
    };
    Some(())
}

/// Returns the name and value of an argument; `None` for values of other types.
fn detail(annotation: Message, sequence: &Sequence) -> Option<(Arc<str>, Detail)> {
    let (mut name, mut detail) = (None, None);
    for (number, value) in annotation.fields() {
        match number {
            1 => {
                name = sequence
                    .interned
                    .annotation_names
                    .get(&value.number())
                    .cloned()
            }
            10 => name = Some(value.text().into()),
            2 | 3 | 7 => detail = Some(Detail::Unsigned(value.number())),
            4 => detail = Some(Detail::Integer(value.signed())),
            5 => detail = Some(Detail::Real(value.double())),
            6 | 9 => detail = Some(Detail::Text(value.text().into())),
            17 => {
                let text = sequence.interned.texts.get(&value.number());
                detail = text.cloned().map(Detail::Text);
            }
            // Only lists of numbers, such as the shapes of launches, are supported.
            12 => {
                let inner = value.message();
                let mut fields = inner.into_iter().flat_map(Message::fields);
                let number = fields.find(|(number, _)| matches!(number, 3 | 4));
                if let Some((_, value)) = number {
                    match &mut detail {
                        Some(Detail::List(list)) => list.push(value.number()),
                        _ => detail = Some(Detail::List(vec![value.number()])),
                    }
                }
            }
            _ => {}
        }
    }
    Some((name?, detail?))
}

//! Decodes planes (a GPU's streams or the host's threads, as lines of events) and the names that events refer to.

use crate::protobuf::{Message, Value};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The name and facts that events of one kind share.
pub(super) struct EventMetadata<'a> {
    pub name: Cow<'a, str>,
    /// The undecoded facts of the kind.
    pub stats: Vec<Message<'a>>,
}

/// A decoded plane of the file.
pub(super) struct Plane<'a> {
    /// The number of the GPU; `None` for planes of the host.
    pub gpu: Option<u32>,
    /// True if the plane's lines are threads of the host.
    pub is_host: bool,
    pub name: Cow<'a, str>,
    pub lines: Vec<Message<'a>>,
    /// The kinds of events, and in `stats` the names of facts and texts, by id.
    events: FxHashMap<i64, EventMetadata<'a>>,
    stats: FxHashMap<i64, Cow<'a, str>>,
    /// The undecoded facts of the plane itself.
    pub own_stats: Vec<Message<'a>>,
    /// The size of the plane in the file.
    pub bytes: u64,
}

impl<'a> Plane<'a> {
    /// Decodes a plane, and keeps its lines undecoded.
    pub fn parse(message: Message<'a>) -> Plane<'a> {
        let mut plane = Plane {
            gpu: None,
            is_host: false,
            name: Cow::Borrowed(""),
            lines: Vec::new(),
            events: FxHashMap::default(),
            stats: FxHashMap::default(),
            own_stats: Vec::new(),
            bytes: message.bytes().len() as u64,
        };
        for (number, value) in message.fields() {
            match (number, value.message()) {
                (2, Some(_)) => plane.name = value.text(),
                (3, Some(line)) => plane.lines.push(line),
                (4, Some(entry)) => plane.add_event(entry),
                (5, Some(entry)) => plane.add_stat(entry),
                (6, Some(stat)) => plane.own_stats.push(stat),
                _ => {}
            }
        }
        let gpu = plane.name.strip_prefix("/device:GPU:");
        let digits = |text: &str| {
            let end = text.find(|c: char| !c.is_ascii_digit());
            text[..end.unwrap_or(text.len())].parse().ok()
        };
        plane.gpu = gpu.and_then(digits);
        plane.is_host = matches!(
            &*plane.name,
            "/host:CPU" | "/host:CUPTI" | "/host:ROCTRACER" | "/host:python-tracer"
        );
        plane
    }

    /// Returns the facts that events of a kind share, by the kind's id.
    pub fn event(&self, id: i64) -> Option<&EventMetadata<'a>> {
        self.events.get(&id)
    }

    /// Decodes a fact and returns its name and value; `None` if it lacks one. The value may refer to a text that the
    /// plane keeps once.
    pub fn stat(&self, stat: Message<'a>) -> Option<(&str, Fact<'a>)> {
        let (mut name, mut fact) = (None, None);
        for (number, value) in stat.fields() {
            match number {
                1 => name = self.stats.get(&value.signed()),
                2 => fact = Some(Fact::Number(value.double())),
                3 => fact = Some(Fact::Unsigned(value.number())),
                4 => fact = Some(Fact::Integer(value.signed())),
                5 => fact = Some(Fact::Text(value.text())),
                7 => fact = Some(Fact::Text(self.stats.get(&value.signed())?.clone())),
                _ => {}
            }
        }
        Some((name?, fact?))
    }

    /// Reads a kind of events with its id.
    fn add_event(&mut self, entry: Message<'a>) {
        let key = entry.field(1).map_or(0, Value::signed);
        let Some(metadata) = entry.field(2).and_then(Value::message) else {
            return;
        };
        let mut event = EventMetadata {
            name: Cow::Borrowed(""),
            stats: Vec::new(),
        };
        for (number, value) in metadata.fields() {
            match (number, value.message()) {
                (2, Some(_)) => event.name = value.text(),
                (5, Some(stat)) => event.stats.push(stat),
                _ => {}
            }
        }
        self.events.insert(key, event);
    }

    /// Reads the name of a fact, or a text, with its id.
    fn add_stat(&mut self, entry: Message<'a>) {
        let key = entry.field(1).map_or(0, Value::signed);
        let metadata = entry.field(2).and_then(Value::message);
        let name = metadata.and_then(|metadata| metadata.field(2));
        self.stats
            .insert(key, name.map(Value::text).unwrap_or_default());
    }
}

/// The value of a fact.
#[derive(Debug, Clone)]
pub(super) enum Fact<'a> {
    Number(f64),
    Unsigned(u64),
    Integer(i64),
    Text(Cow<'a, str>),
}

impl Fact<'_> {
    /// Returns the value if it is an integer that is not negative, or the text of one.
    pub fn unsigned(&self) -> Option<u64> {
        match self {
            Fact::Unsigned(number) => Some(*number),
            Fact::Integer(number) => u64::try_from(*number).ok(),
            Fact::Text(text) => text.parse().ok(),
            Fact::Number(_) => None,
        }
    }

    /// Returns the value if it is a text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Fact::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl std::fmt::Display for Fact<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Fact::Number(number) => number.fmt(f),
            Fact::Unsigned(number) => number.fmt(f),
            Fact::Integer(number) => number.fmt(f),
            Fact::Text(text) => text.fmt(f),
        }
    }
}

//! Decodes the XML elements of cells into values. xctrace writes a value once, with an id, and then refers to it by
//! the id; a value may contain other values. `document` fills an [`Element`] as its parts come, and asks for its
//! [`Element::value`] at its end. `fmt` is an attribute with the value in a form for people.

use std::rc::Rc;

/// A value of a cell, as far as an import uses it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// The absence of a value (`<sentinel/>`), or a value that cannot be read.
    Nothing,
    /// A whole number: a time in nanoseconds, an id, or a size.
    Number(u64),
    Text(Rc<str>),
    Process(Rc<Process>),
    Thread(Rc<Thread>),
}

/// A process in the exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: u32,
    pub name: Rc<str>,
}

/// A thread in the exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub tid: u64,
    pub name: Rc<str>,
}

/// The encoding of the elements with one tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number in the text; `fmt`, the form for people, is rounded and never used.
    Number,
    /// A text: the text of the element, or else the first text inside, or else `fmt`.
    Text,
    /// A text whose `fmt` has more information than the text of the element, which counts only without `fmt`.
    Shown,
    Process,
    Thread,
    /// The element `<sentinel/>`, which stands for a missing value.
    Sentinel,
    /// An element that no import uses, and whose value is not kept.
    Unused,
}

impl Kind {
    /// Returns the encoding of the elements with a tag.
    pub fn from_tag(tag: &str) -> Kind {
        match tag {
            "start-time"
            | "event-time"
            | "sample-time"
            | "duration"
            | "uint32"
            | "uint64"
            | "pid"
            | "tid"
            | "size-in-bytes"
            | "metal-command-buffer-id"
            | "metal-nesting-level"
            | "gpu-hardware-trace"
            | "mach-absolute-time"
            | "os-signpost-identifier" => Kind::Number,
            "string"
            | "formatted-label"
            | "metal-object-label"
            | "narrative"
            | "gpu-channel-name"
            | "metal-event-name"
            | "metal-device-name"
            | "gpu-driver-name"
            | "gpu-memory-event-name"
            | "gpu-state"
            | "gpu-performance-state"
            | "thermal-state"
            | "boolean"
            | "event-type"
            | "subsystem" => Kind::Text,
            "mach-timebase-info" | "os-log-metadata" => Kind::Shown,
            "process" => Kind::Process,
            "thread" => Kind::Thread,
            "sentinel" => Kind::Sentinel,
            _ => Kind::Unused,
        }
    }
}

/// An element that is being read.
#[derive(Debug, Default)]
pub(crate) struct Element {
    /// The id by which later elements refer to it; `None` if it has none.
    pub id: Option<u64>,
    fmt: String,
    text: String,
    /// The first text inside it.
    inner_text: Option<Rc<str>>,
    pid: Option<u32>,
    tid: Option<u64>,
}

impl Element {
    /// Prepares the element for the next use and keeps its memory.
    pub fn reset(&mut self) {
        self.id = None;
        self.fmt.clear();
        self.text.clear();
        self.inner_text = None;
        self.pid = None;
        self.tid = None;
    }

    pub fn set_fmt(&mut self, fmt: &str) {
        self.fmt.push_str(fmt);
    }

    pub fn add_text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Adds the value of an element inside this element.
    pub fn add_inner(&mut self, tag: &str, value: &Value) {
        match (tag, value) {
            ("pid", Value::Number(pid)) => self.pid = u32::try_from(*pid).ok(),
            ("tid", Value::Number(tid)) => self.tid = Some(*tid),
            (_, Value::Text(text)) if self.inner_text.is_none() => {
                self.inner_text = Some(text.clone());
            }
            _ => {}
        }
    }

    /// Returns the value of the element, whose tag has the encoding `kind`.
    pub fn value(&self, kind: Kind) -> Value {
        let text = self.text.trim();
        match kind {
            Kind::Number => number(text).map_or(Value::Nothing, Value::Number),
            Kind::Text => match (text, &self.inner_text, self.fmt.as_str()) {
                ("", Some(inner), _) => Value::Text(inner.clone()),
                ("", None, "") => Value::Nothing,
                ("", None, fmt) => Value::Text(fmt.into()),
                (text, ..) => Value::Text(text.into()),
            },
            Kind::Shown => Value::Text(match (self.fmt.as_str(), text, &self.inner_text) {
                ("", "", Some(inner)) => inner.clone(),
                ("", text, _) => text.into(),
                (fmt, ..) => fmt.into(),
            }),
            Kind::Process => self
                .process()
                .map_or(Value::Nothing, |process| Value::Process(Rc::new(process))),
            Kind::Thread => self.tid.map_or(Value::Nothing, |tid| {
                Value::Thread(Rc::new(Thread {
                    tid,
                    name: before(&self.fmt, " (0x").into(),
                }))
            }),
            Kind::Sentinel | Kind::Unused => Value::Nothing,
        }
    }

    /// Returns the process, by the pid inside the element or else by a `fmt` of the form `NAME (PID)`.
    fn process(&self) -> Option<Process> {
        let shown = self.fmt.trim_end();
        let in_fmt = shown
            .strip_suffix(')')
            .and_then(|shown| shown.rsplit_once(" ("));
        let pid = self
            .pid
            .or_else(|| in_fmt.and_then(|(_, pid)| pid.parse().ok()))?;
        Some(Process {
            pid,
            name: in_fmt.map_or(shown, |(name, _)| name).into(),
        })
    }
}

/// Parses a whole number, decimal or as `0x…`; `None` for other texts.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the text before the first `mark`, or the whole text if it has no `mark`.
fn before<'a>(text: &'a str, mark: &str) -> &'a str {
    match text.find(mark) {
        Some(at) => &text[..at],
        None => text,
    }
}

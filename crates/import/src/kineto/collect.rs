//! Takes events one after the other: markers and counters are written at once, GPU work and calls are kept until all are there.

use super::category::Category;
use super::counters::Counters;
use super::document::Sink;
use super::event::Event;
use super::facts::{Annotation, Call, KernelShape, Lane, Stream, Synchronisation, Work, WorkKind};
use super::lanes::Lanes;
use super::metadata::Metadata;
use super::operands::Operands;
use super::source::Source;
use super::texts::{TextId, Texts};
use super::work::{WorkArgs, correlation};
use super::xla::XlaArgs;
use crate::output::NewTrace;
use crate::{Error, Output};
use gapscope_model::{Ledger, LossKind};
use gapscope_trace::build::Labels;
use gapscope_trace::ids::LabelId;
use gapscope_trace::tables::{Marker, MarkerScope, Table};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::Arc;

/// The domain of operators' markers.
const OPERATOR: &[u8] = b"operator";
/// The domain of the markers of Python's functions.
const PYTHON: &[u8] = b"python";
/// The domain of other ranges of the host.
const HOST: &[u8] = b"host";

/// Times from here on, 1995, are since 1970, and not since a machine's start.
const SINCE_1970_NS: i64 = 25 * 365 * DAY_NS;
const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// What is added to times: those since 1970 count from the beginning of the day, since a trace's times are of a clock that counts from
/// a machine's start.
pub(super) fn shift_of(first_ns: i64) -> i64 {
    match first_ns {
        SINCE_1970_NS.. => first_ns % DAY_NS - first_ns,
        _ => 0,
    }
}

/// An asynchronous range that has begun: category, name, id.
type Pending = FxHashMap<(TextId, TextId, TextId), Vec<(u32, i64)>>;

/// What was found so far.
pub(super) struct Collector<'o, 'p> {
    pub(super) output: &'o Output<'p>,
    /// Bytes of files before this one, and of all.
    pub(super) bytes: (u64, u64),
    /// What is added to all times; `None` until the first one came, which decides it.
    pub(super) shift_ns: Option<i64>,
    pub(super) new: NewTrace,
    pub(super) texts: Texts,
    pub(super) labels: Labels,
    /// The label without a parent of each text, by its id.
    flat_labels: Vec<Option<LabelId>>,
    pub(super) lanes: Lanes,
    pub(super) streams: Numbered<Stream>,
    pub(super) shapes: Numbered<KernelShape>,
    pub(super) works: Vec<Work>,
    pub(super) calls: Vec<Call>,
    pub(super) synchronisations: Vec<Synchronisation>,
    pub(super) overheads: Vec<Call>,
    /// Collectives: indices of works, with what PyTorch says of them.
    pub(super) collectives: Vec<(usize, String)>,
    operands: Operands,
    pub(super) counters: Counters,
    pub(super) metadata: Metadata,
    pub(super) ledger: Ledger,
    pending: Pending,
    /// First start and last end of anything.
    pub(super) extent: Option<(i64, i64)>,
    /// Where markers of Python's functions are there, the host's code was slowed down.
    pub(super) python_functions: u64,
    /// Calls are HIP's.
    pub(super) uses_hip: bool,
    pub(super) markers: u64,
}

/// Things that get numbers, in the order in which they are first seen.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    numbers: FxHashMap<T, u32>,
    pub(super) all: Vec<T>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered {
            numbers: FxHashMap::default(),
            all: Vec::new(),
        }
    }
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    pub(super) fn number(&mut self, of: T) -> u32 {
        *self.numbers.entry(of).or_insert_with(|| {
            self.all.push(of);
            self.all.len() as u32 - 1
        })
    }
}

impl<'o, 'p> Collector<'o, 'p> {
    pub(super) fn of(
        output: &'o Output<'p>,
        new: NewTrace,
        bytes: (u64, u64),
        shift_ns: Option<i64>,
    ) -> Collector<'o, 'p> {
        Collector {
            output,
            bytes,
            shift_ns,
            new,
            texts: Texts::default(),
            labels: Labels::default(),
            flat_labels: Vec::new(),
            lanes: Lanes::default(),
            streams: Numbered::default(),
            shapes: Numbered::default(),
            works: Vec::new(),
            calls: Vec::new(),
            synchronisations: Vec::new(),
            overheads: Vec::new(),
            collectives: Vec::new(),
            operands: Operands::default(),
            counters: Counters::default(),
            metadata: Metadata::default(),
            ledger: Ledger::default(),
            pending: FxHashMap::default(),
            extent: None,
            python_functions: 0,
            uses_hip: false,
            markers: 0,
        }
    }

    /// An event's times. `None`: they are impossible, which is counted.
    fn times(&mut self, event: &Event) -> Option<(i64, i64)> {
        let times = (event.end_ns())
            .zip(event.start_ns)
            .map(|(end_ns, start_ns)| (start_ns, end_ns));
        let Some((start_ns, end_ns)) = times.and_then(|(s, e)| self.placed(s, e)) else {
            let reason = "their times are absent or impossible";
            self.ledger.add(LossKind::Other("events".into()), 1, reason);
            return None;
        };
        Some((start_ns, end_ns - start_ns))
    }

    /// An interval on the trace's clock, which the trace then covers.
    fn placed(&mut self, start_ns: i64, end_ns: i64) -> Option<(i64, i64)> {
        let shift_ns = *self.shift_ns.get_or_insert_with(|| shift_of(start_ns));
        let start_ns = start_ns.checked_add(shift_ns)?;
        let end_ns = end_ns.checked_add(shift_ns)?;
        self.extent = Some(match self.extent {
            Some((first, last)) => (first.min(start_ns), last.max(end_ns)),
            None => (start_ns, end_ns),
        });
        Some((start_ns, end_ns))
    }

    fn moment(&mut self, event: &Event) -> Option<i64> {
        let at_ns = event.start_ns.and_then(|ns| self.placed(ns, ns));
        if at_ns.is_none() {
            let reason = "their times are absent or impossible";
            self.ledger.add(LossKind::Other("events".into()), 1, reason);
        }
        at_ns.map(|(ns, _)| ns)
    }

    fn lost(&mut self, what: &str, category: &[u8], reason: &'static str) {
        let category = String::from_utf8_lossy(&category[..category.len().min(64)]);
        let kind = match category.is_empty() {
            true => what.to_owned(),
            false => format!("{what} of category {category}"),
        };
        self.ledger.add(LossKind::of(kind), 1, reason);
    }

    pub(super) fn flat_label(&mut self, text: TextId) -> LabelId {
        let at = text.0 as usize;
        if let Some(Some(label)) = self.flat_labels.get(at) {
            return *label;
        }
        let label = self.labels.named(None, self.texts.get(text));
        if self.flat_labels.len() <= at {
            self.flat_labels.resize(at + 1, None);
        }
        self.flat_labels[at] = Some(label);
        label
    }

    /// Adds a marker of a thread.
    pub(super) fn marker(
        &mut self,
        lane: u32,
        (name, domain, category): (TextId, TextId, Option<TextId>),
        (start_ns, duration_ns): (i64, i64),
        payload: Option<Arc<str>>,
    ) -> Result<(), Error> {
        let label = self.flat_label(name);
        let Lane {
            process, thread, ..
        } = self.lanes.all[lane as usize];
        let category = category.map(|category| self.texts.get(category).clone());
        self.markers += 1;
        self.new.tables_mut().markers.push(Marker {
            process,
            scope: MarkerScope::Thread,
            label,
            queue: None,
            thread: Some(thread),
            command_buffer: None,
            start_ns: Some(start_ns),
            duration_ns: Some(duration_ns),
            domain: Some(self.texts.get(domain).clone()),
            category,
            payload,
        });
        match self.markers % 1024 {
            0 => self.new.flush(),
            _ => Ok(()),
        }
    }

    /// An event with a start and a duration.
    fn complete(&mut self, event: &Event) -> Result<(), Error> {
        let category = match event.category.is_empty() {
            true => self.lanes.category_of(event),
            false => Category::of(event.category),
        };
        if category == Category::DeviceAnnotation {
            // The labels of the work say the same.
            return Ok(());
        }
        let Some((start_ns, duration_ns)) = self.times(event) else {
            return Ok(());
        };
        match category {
            Category::Operator => {
                let payload = self.operands.of(event.args);
                self.range(event, OPERATOR, (start_ns, duration_ns), payload)?;
            }
            Category::Python => {
                self.python_functions += 1;
                self.range(event, PYTHON, (start_ns, duration_ns), None)?;
            }
            Category::Annotation => {
                let name = self.texts.id(event.name);
                let end_ns = start_ns + duration_ns;
                let lane = self.lanes.of(event.pid, event.tid);
                self.lanes.all[lane as usize].annotations.push(Annotation {
                    name,
                    start_ns,
                    end_ns,
                });
            }
            Category::Kernel | Category::Copy | Category::Fill => {
                self.work(event, category, start_ns, duration_ns);
            }
            Category::Call => {
                let call = self.call(event, start_ns, duration_ns);
                self.uses_hip |= event.name.starts_with(b"hip");
                self.calls.push(call);
            }
            Category::Overhead => {
                let call = Call {
                    function: self.texts.id(event.name),
                    lane: u32::MAX,
                    start_ns,
                    duration_ns,
                    correlation: Default::default(),
                };
                self.overheads.push(call);
            }
            Category::Device(number) => self.device_work(event, number, start_ns, duration_ns),
            Category::Synchronisation => self.synchronisation(event),
            Category::Span | Category::DeviceAnnotation | Category::LaunchFlow => {}
            Category::Other => {
                self.other_range(event, (start_ns, duration_ns))?;
            }
        }
        Ok(())
    }

    fn range(
        &mut self,
        event: &Event,
        domain: &[u8],
        times: (i64, i64),
        payload: Option<Arc<str>>,
    ) -> Result<(), Error> {
        let lane = self.lanes.of(event.pid, event.tid);
        let (name, domain) = (self.texts.id(event.name), self.texts.id(domain));
        self.marker(lane, (name, domain, None), times, payload)
    }

    /// A range of the host that is none of PyTorch's.
    fn other_range(&mut self, event: &Event, times: (i64, i64)) -> Result<(), Error> {
        let lane = self.lanes.of(event.pid, event.tid);
        let (name, domain) = (self.texts.id(event.name), self.texts.id(HOST));
        let category = self.category_text(event.category);
        self.marker(lane, (name, domain, category), times, None)
    }

    fn category_text(&mut self, category: &[u8]) -> Option<TextId> {
        (!category.is_empty()).then(|| self.texts.id(category))
    }

    fn call(&mut self, event: &Event, start_ns: i64, duration_ns: i64) -> Call {
        let correlation = super::json::members(event.args)
            .find(|(key, _)| matches!(*key, b"correlation" | b"correlation_id"))
            .map(|(_, value)| correlation(value));
        Call {
            function: self.texts.id(event.name),
            lane: self.lanes.of(event.pid, event.tid),
            start_ns,
            duration_ns,
            correlation: correlation.unwrap_or_default(),
        }
    }

    fn work(&mut self, event: &Event, category: Category, start_ns: i64, duration_ns: i64) {
        let args = WorkArgs::of(event.args);
        let stream = args.stream(event.pid, event.tid);
        let name = self.texts.id(event.name);
        let kind = match category {
            Category::Copy => args.copy(self.texts.get(name)),
            Category::Fill => args.fill(),
            _ => WorkKind::Kernel {
                shape: self.shapes.number(args.shape(name)),
                groups: args.groups(),
            },
        };
        if args.collective.is_some() {
            let payload = super::collectives::payload(event.args);
            self.collectives.push((self.works.len(), payload));
        }
        self.works.push(Work {
            correlation: args.correlation,
            start_ns,
            duration_ns,
            stream: self.streams.number(stream),
            of_graph: args.of_graph,
            kind,
            label: None,
        });
    }

    /// Work of a device whose name its process has, as XLA's profiler writes it.
    fn device_work(&mut self, event: &Event, device: u32, start_ns: i64, duration_ns: i64) {
        let args = XlaArgs::of(event.args);
        let name = self.texts.id(event.name);
        let kind = match args.transfer(self.texts.get(name)) {
            Some(kind) => kind,
            None => WorkKind::Kernel {
                shape: self.shapes.number(args.shape(name)),
                groups: args.groups(),
            },
        };
        let mut label = None;
        for text in args
            .scope
            .split(|byte| *byte == b'/')
            .filter(|t| !t.is_empty())
        {
            label = Some(self.labels.named(label, &super::json::text(text)));
        }
        let stream = Stream {
            device,
            context: 0,
            stream: super::number::whole(event.tid).map_or(0, |tid| tid as u32),
        };
        self.works.push(Work {
            correlation: args.correlation,
            start_ns,
            duration_ns,
            stream: self.streams.number(stream),
            of_graph: false,
            kind,
            label,
        });
    }

    fn synchronisation(&mut self, event: &Event) {
        let args = WorkArgs::of(event.args);
        let (mut recorded_by, mut waits_on) = (Default::default(), None);
        for (key, value) in super::json::members(event.args) {
            match key {
                b"wait_on_cuda_event_record_corr_id" => recorded_by = correlation(value),
                b"wait_on_stream" => waits_on = args.other_stream(value),
                _ => {}
            }
        }
        // A wait for a whole context names no stream.
        let stream = args.stream(b"", event.tid);
        let known = stream.stream != u32::MAX && !event.name.starts_with(b"Context");
        self.synchronisations.push(Synchronisation {
            correlation: args.correlation,
            stream: known.then(|| self.streams.number(stream)),
            waits_on: waits_on.map(|stream| self.streams.number(stream)),
            recorded_by,
        });
    }

    fn begin(&mut self, event: &Event) {
        let Some(start_ns) = self.moment(event) else {
            return;
        };
        let (name, category) = (
            self.texts.id(event.name),
            self.category_text(event.category),
        );
        let lane = self.lanes.of(event.pid, event.tid);
        self.lanes.all[lane as usize].open.push(super::facts::Open {
            name,
            category,
            start_ns,
        });
    }

    fn end(&mut self, event: &Event) -> Result<(), Error> {
        let Some(end_ns) = self.moment(event) else {
            return Ok(());
        };
        let lane = self.lanes.of(event.pid, event.tid);
        match self.lanes.all[lane as usize].open.pop() {
            Some(open) if open.start_ns <= end_ns => {
                let times = (open.start_ns, end_ns - open.start_ns);
                let domain = self.texts.id(HOST);
                self.marker(lane, (open.name, domain, open.category), times, None)
            }
            _ => {
                self.lost(
                    "ends of ranges",
                    event.category,
                    "their beginning is not in the file",
                );
                Ok(())
            }
        }
    }

    fn asynchronous(&mut self, event: &Event, begins: bool) -> Result<(), Error> {
        let Some(at_ns) = self.moment(event) else {
            return Ok(());
        };
        let (name, category) = (self.texts.id(event.name), self.texts.id(event.category));
        let key = (category, name, self.texts.id(event.id));
        if begins {
            let lane = self.lanes.of(event.pid, event.tid);
            self.pending.entry(key).or_default().push((lane, at_ns));
            return Ok(());
        }
        match self.pending.get_mut(&key).and_then(Vec::pop) {
            Some((lane, start_ns)) if start_ns <= at_ns => {
                let category = self.category_text(event.category);
                let domain = self.texts.id(HOST);
                let times = (start_ns, at_ns - start_ns);
                self.marker(lane, (name, domain, category), times, None)
            }
            _ => {
                self.lost(
                    "ends of ranges",
                    event.category,
                    "their beginning is not in the file",
                );
                Ok(())
            }
        }
    }

    fn instant(&mut self, event: &Event) -> Result<(), Error> {
        let Some(at_ns) = self.moment(event) else {
            return Ok(());
        };
        if event.name == b"[memory]" {
            let tables = self.new.tables_mut();
            self.counters.memory(event.args, at_ns, tables);
            return Ok(());
        }
        // The profiler's own marks are not of a thread.
        if event.pid == b"Traces" || event.pid.is_empty() {
            return Ok(());
        }
        self.other_range(event, (at_ns, 0))
    }

    /// What began and never ended.
    pub(super) fn finish_ranges(&mut self) {
        let open: usize = self.lanes.all.iter().map(|lane| lane.open.len()).sum();
        let pending: usize = self.pending.values().map(Vec::len).sum();
        let reason = "their end is not in the file";
        let ranges = LossKind::Other("ranges".into());
        self.ledger.add(ranges, (open + pending) as u64, reason);
    }
}

impl Sink for Collector<'_, '_> {
    type Error = Error;

    fn event(&mut self, event: &Event) -> Result<(), Error> {
        match event.phase {
            b'X' => self.complete(event),
            b'B' => {
                self.begin(event);
                Ok(())
            }
            b'E' => self.end(event),
            b'i' | b'I' | b'R' => self.instant(event),
            b'b' | b'S' => self.asynchronous(event, true),
            b'e' | b'F' => self.asynchronous(event, false),
            b'n' | b'T' | b'p' => self.instant(event),
            b'M' => {
                self.lanes.metadata(event);
                Ok(())
            }
            b'C' => {
                if let Some(at_ns) = self.moment(event) {
                    let tables = self.new.tables_mut();
                    self.counters.values(event, at_ns, tables);
                }
                Ok(())
            }
            b's' | b't' | b'f' => {
                if Category::of(event.category) != Category::LaunchFlow {
                    self.lost("arrows", event.category, "traces have no place for them");
                }
                Ok(())
            }
            _ => {
                self.lost("events", event.category, "traces have no place for them");
                Ok(())
            }
        }
    }

    fn member(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.metadata.member(key, value);
        Ok(())
    }

    fn progress(&mut self, source: &Source) -> Result<(), Error> {
        source.progress(self.output, self.bytes.0, self.bytes.1);
        self.new.flush()
    }
}

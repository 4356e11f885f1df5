//! Collects the events of a document. Markers and counters are written to the trace at once; GPU work and calls are
//! kept until all events were read.

use super::category::Category;
use super::counters::Counters;
use super::document::Sink;
use super::event::Event;
use super::facts::{Annotation, Call, DeviceEvent, KernelShape, Stream, Synchronisation, WorkKind};
use super::lanes::Lanes;
use super::metadata::Metadata;
use super::numbered::{Numbered, Streams};
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
use rustc_hash::FxHashMap;

/// The domain of operators' markers.
const OPERATOR: &[u8] = b"operator";
/// The domain of the markers of Python's functions.
const PYTHON: &[u8] = b"python";
/// The domain of other ranges of the host.
pub(super) const HOST: &[u8] = b"host";

/// The start of 1995. A later time counts from 1970, and an earlier time counts from the start of the machine.
const SINCE_1970_NS: i64 = 25 * 365 * DAY_NS;
const DAY_NS: i64 = 24 * 3600 * 1_000_000_000;

/// Returns the offset that is added to times, from the first time of the document. A time since 1970 is made to
/// count from the beginning of its day, because the clock of a trace counts from the start of the machine.
pub(super) fn shift_of(first_ns: i64) -> i64 {
    match first_ns {
        SINCE_1970_NS.. => first_ns % DAY_NS - first_ns,
        _ => 0,
    }
}

/// Asynchronous ranges that have begun, by category, name and id: the index of the thread's lane, and the start.
type Pending = FxHashMap<(TextId, TextId, TextId), Vec<(u32, i64)>>;

/// The events that were collected so far.
pub(super) struct Collector<'o, 'p> {
    pub(super) output: &'o Output<'p>,
    /// The size in bytes of the files that were read before this file, and of all files.
    pub(super) bytes: (u64, u64),
    /// The offset that is added to all times; `None` before the first event, which decides the offset.
    pub(super) shift_ns: Option<i64>,
    pub(super) new: NewTrace,
    pub(super) texts: Texts,
    pub(super) labels: Labels,
    /// The label without a parent of each text, by the id of the text.
    pub(super) flat_labels: Vec<Option<LabelId>>,
    pub(super) lanes: Lanes,
    pub(super) streams: Streams,
    pub(super) shapes: Numbered<KernelShape>,
    pub(super) works: Vec<DeviceEvent>,
    pub(super) calls: Vec<Call>,
    pub(super) synchronisations: Vec<Synchronisation>,
    pub(super) overheads: Vec<Call>,
    /// The collectives: for each one the index in `works`, and PyTorch's description.
    pub(super) collectives: Vec<(usize, String)>,
    operands: Operands,
    pub(super) counters: Counters,
    pub(super) metadata: Metadata,
    pub(super) ledger: Ledger,
    pub(super) pending: Pending,
    /// The first start and the last end of all events; `None` before the first event.
    pub(super) extent: Option<(i64, i64)>,
    /// The number of markers of Python functions. Their recording slows the host's code down.
    pub(super) python_functions: u64,
    /// True if the calls are HIP's.
    pub(super) uses_hip: bool,
    pub(super) markers: u64,
}

impl<'o, 'p> Collector<'o, 'p> {
    pub(super) fn new(
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
            streams: Streams::default(),
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

    /// Returns the start and end of an event. Impossible times are counted and give `None`.
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

    /// Converts an interval to the trace's clock and extends the trace's span to cover it; `None` if the result
    /// overflows.
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

    pub(super) fn moment(&mut self, event: &Event) -> Option<i64> {
        let at_ns = event.start_ns.and_then(|ns| self.placed(ns, ns));
        if at_ns.is_none() {
            let reason = "their times are absent or impossible";
            self.ledger.add(LossKind::Other("events".into()), 1, reason);
        }
        at_ns.map(|(ns, _)| ns)
    }

    pub(super) fn lost(&mut self, what: &str, category: &[u8], reason: &'static str) {
        let category = String::from_utf8_lossy(&category[..category.len().min(64)]);
        let kind = match category.is_empty() {
            true => what.to_owned(),
            false => format!("{what} of category {category}"),
        };
        self.ledger.add(LossKind::from_text(kind), 1, reason);
    }

    /// Collects an event with a start and a duration.
    fn complete(&mut self, event: &Event) -> Result<(), Error> {
        let category = match event.category.is_empty() {
            true => self.lanes.category_of(event),
            false => Category::parse(event.category),
        };
        if category == Category::DeviceAnnotation {
            // The labels of the work carry the same information.
            return Ok(());
        }
        let Some((start_ns, duration_ns)) = self.times(event) else {
            return Ok(());
        };
        match category {
            Category::Operator => {
                let payload = self.operands.payload(event.args);
                self.range(event, OPERATOR, (start_ns, duration_ns), payload)?;
            }
            Category::Python => {
                self.python_functions += 1;
                self.range(event, PYTHON, (start_ns, duration_ns), None)?;
            }
            Category::Annotation => {
                let name = self.texts.id(event.name);
                let end_ns = start_ns + duration_ns;
                let Some(lane) = self.lane(event) else {
                    return Ok(());
                };
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
                self.calls.extend(call);
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

    /// Returns the index of the event's lane (its thread). If there are too many threads, the event is counted and
    /// the result is `None`.
    pub(super) fn lane(&mut self, event: &Event) -> Option<u32> {
        let lane = self.lanes.index(event.pid, event.tid);
        if lane.is_none() {
            let reason = "the file names more threads than any program has";
            self.ledger.add(LossKind::Other("events".into()), 1, reason);
        }
        lane
    }

    /// Returns the number of a stream. A stream beyond the maximum is counted and gives `None`.
    fn stream(&mut self, stream: Stream) -> Option<u32> {
        let number = self.streams.number(stream);
        if number.is_none() {
            let reason = "the file names more streams or devices than any program has";
            self.ledger.add(LossKind::CudaActivities, 1, reason);
        }
        number
    }

    fn call(&mut self, event: &Event, start_ns: i64, duration_ns: i64) -> Option<Call> {
        let correlation = super::json::members(event.args)
            .find(|(key, _)| matches!(*key, b"correlation" | b"correlation_id"))
            .map(|(_, value)| correlation(value));
        Some(Call {
            function: self.texts.id(event.name),
            lane: self.lane(event)?,
            start_ns,
            duration_ns,
            correlation: correlation.unwrap_or_default(),
        })
    }

    fn work(&mut self, event: &Event, category: Category, start_ns: i64, duration_ns: i64) {
        let args = WorkArgs::parse(event.args);
        let Some(stream) = self.stream(args.stream(event.pid, event.tid)) else {
            return;
        };
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
        self.works.push(DeviceEvent {
            correlation: args.correlation,
            start_ns,
            duration_ns,
            stream,
            of_graph: args.of_graph,
            kind,
            label: None,
        });
    }

    /// Collects work of a device in the form of XLA's profiler, in which the event's process has the device's name.
    fn device_work(&mut self, event: &Event, device: u32, start_ns: i64, duration_ns: i64) {
        let args = XlaArgs::parse(event.args);
        let stream = Stream {
            device: Some(device),
            context: 0,
            stream: super::number::whole(event.tid).and_then(|tid| u32::try_from(tid).ok()),
        };
        let Some(stream) = self.stream(stream) else {
            return;
        };
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
        self.works.push(DeviceEvent {
            correlation: args.correlation,
            start_ns,
            duration_ns,
            stream,
            of_graph: false,
            kind,
            label,
        });
    }

    fn synchronisation(&mut self, event: &Event) {
        let args = WorkArgs::parse(event.args);
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
        let is_named = stream.stream.is_some_and(|stream| stream != u32::MAX);
        let known = is_named && !event.name.starts_with(b"Context");
        self.synchronisations.push(Synchronisation {
            correlation: args.correlation,
            stream: known.then(|| self.streams.number(stream)).flatten(),
            waits_on: waits_on.and_then(|stream| self.streams.number(stream)),
            recorded_by,
        });
    }
}

impl Sink for Collector<'_, '_> {
    type Error = Error;

    /// Collects an event by its phase: a range, an instant, metadata, values of counters, or an arrow.
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
                if Category::parse(event.category) != Category::LaunchFlow {
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

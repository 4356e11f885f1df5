//! Collects the events of a document, a receiver of what `document` reads. Markers and counters are written to the
//! trace at once; GPU work, calls and annotations are kept until all events were read, for `assemble`.

use super::category::Category;
use super::counters::Counters;
use super::document::Sink;
use super::event::Event;
use super::facts::{
    Autograd, DocumentChoice, LeftOut, OpenRanges, Scope, Synchronisation, TracePart, label_of,
};
use super::join::{CollectedWork, WorkSource};
use super::json;
use super::lanes::{Lanes, function_of};
use super::metadata::Metadata;
use super::operands::Operands;
use super::producers::{self, Producers};
use super::source::Source;
use super::streams::{Stream, Streams};
use super::work::{WorkArgs, category_by_args, copied_bytes, correlation, is_correlation};
use super::xla::XlaArgs;
use crate::inventory::KernelFacts;
use crate::offset::Drift;
use crate::output::NewTrace;
use crate::profile::{
    ApiCall, CallQueue, Correlation, DeviceWork, DeviceWorkKind, HostRange, Overhead, Profile, Span,
};
use crate::since_1970::{self, Times, shift_of};
use crate::{Error, GpuRows, Output};
use gapscope_model::{LossKind, OverheadKind, UNKNOWN_RESULT};
use gapscope_timeline_builder::rows;
use gapscope_trace::build::{Interner, TextId};
use gapscope_trace::ids::{KernelId, ProcessId, QueueId};
use gapscope_trace::manifest::Api;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// The domain of operators' markers.
const OPERATOR: &[u8] = b"operator";
/// The domain of the markers of Python's functions.
const PYTHON: &[u8] = b"python";
/// The domain of other ranges of the host.
pub(super) const HOST: &[u8] = b"host";

/// Returns whether an event of the category `Operator` is a range that the program set. In 2021 PyTorch's profiler had
/// no category of their own for them. Operators have a namespace (`aten::add`), and the nodes of the backward pass end
/// with `Backward`, at times followed by a number.
pub(super) fn is_annotation_of_2021(event: &Event) -> bool {
    let name = event.name.trim_ascii_end();
    let digits = name
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let word = &name[..name.len() - digits];
    event.category == b"Operator"
        && !word.ends_with(b"Backward")
        && !word.ends_with(b"record_param_comms")
        && (memchr::memchr(b'#', name).is_some() || memchr::memmem::find(name, b"::").is_none())
}

/// Returns a category without the numbers at its end, as in `Flow_3_0`, by which each event would be a loss of its own.
fn without_numbers(category: &str) -> &str {
    let is_of_number = |c: char| c.is_ascii_digit() || matches!(c, '_' | '-' | '#' | ' ');
    let end = category.trim_end_matches(is_of_number);
    let separated = category[end.len()..].starts_with(|c: char| !c.is_ascii_digit());
    if separated { end } else { category }
}

/// The events that were collected so far.
pub(super) struct Collector<'o, 'p> {
    pub(super) output: &'o Output<'p>,
    /// The size in bytes of the files that were read before this file, and of all files.
    pub(super) bytes: (u64, u64),
    /// The offset that is added to all times; `None` before the first event, by which it is guessed.
    pub(super) shift_ns: Option<i64>,
    /// The times of the file, by which the guess is checked.
    pub(super) times: Times,
    /// What the drift of the clocks adds to all times, beside that.
    drift: Drift,
    /// The trace to which rows are pushed.
    pub(super) new: NewTrace,
    /// The texts of the file by their bytes between quotes.
    texts: FxHashMap<Box<[u8]>, TextId>,
    pub(super) profile: Profile,
    pub(super) lanes: Lanes,
    /// The process to which work belongs that no call launched.
    pub(super) main: ProcessId,
    pub(super) streams: Streams,
    /// The kernels of the file, without their processes.
    pub(super) shapes: Interner<KernelFacts, KernelId>,
    /// The work of devices. Queues and kernels have their ids in the file, in `streams` and `shapes`.
    pub(super) works: Vec<CollectedWork>,
    /// The devices of the file whose events the work is, by [`CollectedWork::source`].
    pub(super) sources: Vec<WorkSource>,
    source_numbers: FxHashMap<WorkSource, u32>,
    /// The source of the last event, because neighbours mostly share one.
    latest_source: u32,
    /// The kernels of NCCL that do not describe their collective, by their index in `works`.
    pub(super) nccl_works: Vec<u32>,
    /// PyTorch's descriptions of collectives, with the lane and the time of the call that they are of.
    pub(super) described_calls: Vec<(u32, Span, String)>,
    /// When the profiler stopped recording, where the file says that.
    pub(super) end_ns: Option<i64>,
    pub(super) synchronisations: Vec<Synchronisation>,
    pub(super) overheads: Vec<Overhead>,
    /// The collectives (work of several ranks): the index of each one's kernel in `works`, and PyTorch's description.
    pub(super) collectives: Vec<(u32, String)>,
    /// The beginning of the names of the processes whose events are taken; empty where all are.
    prefix: Vec<u8>,
    documents: DocumentChoice<'o>,
    /// True while the document that is being read is taken.
    is_taken: bool,
    /// True where the reading stopped at a second document.
    pub(super) is_stopped: bool,
    operands: Operands,
    pub(super) counters: Counters,
    pub(super) metadata: Metadata,
    pub(super) producers: Producers,
    /// The rows that the user says are a GPU's, and their scopes.
    pub(super) gpu_rows: &'o [GpuRows],
    pub(super) scopes: Vec<Scope>,
    /// The names of the ranges of the host that label work, and of those of devices with their numbers.
    annotations: FxHashSet<TextId>,
    device_annotations: FxHashMap<TextId, u64>,
    /// The number of scopes on these rows whose times are impossible.
    pub(super) untimed_scopes: u64,
    pub(super) open: OpenRanges,
    /// Counts calls and work in place of taking them; `None` where they are taken.
    pub(super) left_out: Option<LeftOut>,
    pub(super) autograd: Autograd,
    /// The number of markers of Python functions. Their recording slows the host's code down.
    pub(super) python_functions: u64,
    /// The bytes that calls copy, by process and correlation, where the calls say it; `None` where several calls contradict
    /// each other.
    pub(super) copied_bytes: FxHashMap<(ProcessId, Correlation), Option<u64>>,
    /// True if the calls are HIP's.
    pub(super) uses_hip: bool,
    /// True if calls are Vulkan's.
    pub(super) uses_vulkan: bool,
    /// The number of markers that have been written.
    pub(super) markers: u64,
}

impl<'o, 'p> Collector<'o, 'p> {
    pub(super) fn new(
        output: &'o Output<'p>,
        new: NewTrace,
        part: TracePart<'o>,
        gpu_rows: &'o [GpuRows],
    ) -> Collector<'o, 'p> {
        Collector {
            output,
            bytes: part.bytes,
            shift_ns: part.shift_ns,
            times: Times::default(),
            drift: part.drift,
            new,
            texts: FxHashMap::default(),
            profile: Profile::new("", Api::Cuda),
            lanes: Lanes::with_names(part.names.cloned().unwrap_or_default()),
            main: ProcessId::default(),
            streams: Streams::default(),
            shapes: Interner::default(),
            works: Vec::new(),
            sources: Vec::new(),
            source_numbers: FxHashMap::default(),
            latest_source: 0,
            nccl_works: Vec::new(),
            described_calls: Vec::new(),
            end_ns: None,
            synchronisations: Vec::new(),
            overheads: Vec::new(),
            collectives: Vec::new(),
            prefix: part.prefix.to_vec(),
            documents: part.documents,
            is_taken: true,
            is_stopped: false,
            operands: Operands::default(),
            counters: Counters::default(),
            metadata: Metadata::default(),
            producers: Producers::default(),
            gpu_rows,
            scopes: Vec::new(),
            annotations: FxHashSet::default(),
            device_annotations: FxHashMap::default(),
            untimed_scopes: 0,
            open: OpenRanges::default(),
            left_out: None,
            autograd: Autograd::default(),
            python_functions: 0,
            copied_bytes: FxHashMap::default(),
            uses_hip: false,
            uses_vulkan: false,
            markers: 0,
        }
    }

    /// Returns the id of a text from the bytes between its quotes.
    #[inline]
    pub(super) fn text(&mut self, written: &[u8]) -> TextId {
        if let Some(id) = self.texts.get(written) {
            return *id;
        }
        let id = self.profile.text(&json::text(written));
        self.texts.insert(Box::from(written), id);
        id
    }

    /// Converts the times of an event to the trace's clock. Impossible times are counted and give `None`.
    fn span(&mut self, event: &Event) -> Option<Span> {
        let times = event.start_ns.zip(event.end_ns());
        let span = self.placed(times)?;
        // A start of 0 may stand for an unknown time, and one before 0 may be impossible. Rows that keep such a time extend the trace
        // when they are written.
        if event.start_ns > Some(0) {
            self.profile.inventory.spans(span.start_ns, span.end_ns());
        }
        Some(span)
    }

    /// Adds the offset to a start and an end. Impossible times are counted and give `None`.
    pub(super) fn placed(&mut self, times: Option<(i64, i64)>) -> Option<Span> {
        let span = self.shifted(times);
        if span.is_none() {
            self.lose_event("their times are absent or impossible");
        }
        span
    }

    /// Adds the offset to a start and an end; `None` where they are impossible.
    fn shifted(&mut self, times: Option<(i64, i64)>) -> Option<Span> {
        let (start_ns, end_ns) = times?;
        self.times.add(start_ns, end_ns);
        // A time of 0 says nothing, because it may stand for an unknown one; such times are taken away later.
        if start_ns == 0 {
            return Span::checked(self.on_clock(start_ns)?, self.on_clock(end_ns)?);
        }
        self.shift_ns.get_or_insert_with(|| shift_of(start_ns));
        since_1970::checked(self.on_clock(start_ns)?, self.on_clock(end_ns)?)
    }

    /// Returns a time of the file on the clock of the trace; `None` where that is impossible.
    pub(super) fn on_clock(&self, ns: i64) -> Option<i64> {
        let shifted = ns.checked_add(self.shift_ns.unwrap_or(0))?;
        shifted.checked_add(self.drift.at(ns))
    }

    /// Converts the start of an event like [`Self::span`].
    pub(super) fn moment(&mut self, event: &Event) -> Option<i64> {
        let at_ns = event.start_ns.map(|ns| (ns, ns));
        let at_ns = self.placed(at_ns)?.start_ns;
        if event.start_ns > Some(0) {
            self.profile.inventory.spans(at_ns, at_ns);
        }
        Some(at_ns)
    }

    /// Counts the ranges of devices as lost whose ranges of the host are not in the file.
    pub(super) fn lose_device_annotations(&mut self) {
        let unknown = self.device_annotations.iter();
        let unknown = unknown.filter(|(name, _)| !self.annotations.contains(name));
        let count = unknown.map(|(_, count)| *count).sum();
        let reason = "the file has them as ranges of the device alone, without those of the threads that launched the work";
        self.profile.inventory.lose(LossKind::Labels, count, reason);
    }

    /// Counts a lost event.
    fn lose_event(&mut self, reason: &'static str) {
        self.profile.inventory.lose("events", 1, reason);
    }

    /// Counts a loss of `what`, by the event's category, of which the first 64 bytes are named.
    pub(super) fn lost(&mut self, what: &str, category: &[u8], reason: &'static str) {
        let category = String::from_utf8_lossy(&category[..category.len().min(64)]);
        let category = without_numbers(&category);
        let kind = match category.is_empty() {
            true => what.to_owned(),
            false => format!("{what} of category {category}"),
        };
        self.profile.inventory.lose(kind, 1, reason);
    }

    /// Returns the category of an event with a start and a duration.
    pub(super) fn category(&mut self, event: &Event) -> Category {
        let category = match producers::category_of(event) {
            Some(category) => category,
            None if event.category.is_empty() => self.lanes.category_of(event),
            None => Category::parse(event.category),
        };
        if category != Category::Other {
            return category;
        }
        if event.category == b"hpu_op" {
            return self.lanes.category_of_hpu(event);
        }
        match category_by_args(event) {
            // Its own category says nothing, and the name of its process may.
            Category::Other if !event.category.is_empty() => self.lanes.category_by_process(event),
            category => category,
        }
    }

    /// Collects an event with a start and a duration, by its category or, where it has none, by its process and name.
    pub(super) fn complete(&mut self, event: &Event) -> Result<(), Error> {
        if self.complete_scope(event) {
            return Ok(());
        }
        let category = self.category(event);
        if category == Category::DeviceAnnotation {
            // The labels of the work carry the same information, where the file has the range of the host, too.
            if event.category == b"gpu_user_annotation" {
                let name = self.text(event.name);
                *self.device_annotations.entry(name).or_default() += 1;
            }
            return Ok(());
        }
        if category == Category::DeviceEvent {
            let reason = "traces have no place for the times at which a device reaches events";
            self.lost("events", event.category, reason);
            return Ok(());
        }
        if let Some(left_out) = &mut self.left_out
            && (category == Category::Call || category.is_work())
        {
            match category {
                Category::Call => left_out.calls += 1,
                _ => left_out.work += 1,
            }
            return Ok(());
        }
        if category.is_work() {
            self.device_event(event, category);
            return Ok(());
        }
        let Some(span) = self.span(event) else {
            return Ok(());
        };
        match category {
            Category::Operator if is_annotation_of_2021(event) => self.annotation(event, span),
            Category::Operator => {
                self.describe_call(event, span);
                self.backward_node(event, span);
                let payload = self.operands.payload(event.args);
                self.range(event, OPERATOR, span, payload)?;
            }
            Category::Python => {
                self.python_functions += 1;
                self.range(event, PYTHON, span, None)?;
            }
            Category::Annotation => self.annotation(event, span),
            Category::Call => self.call(event, span),
            Category::Overhead => {
                let kind = match OverheadKind::from_tool_name(&json::text(event.name)) {
                    OverheadKind::Unknown => OverheadKind::Instrumentation,
                    kind => kind,
                };
                self.overheads.push(Overhead {
                    thread: None,
                    span,
                    kind,
                    tool: "CUPTI",
                });
            }
            Category::Synchronisation => self.synchronisation(event),
            Category::Other => {
                self.other_range(event, span)?;
            }
            // Work, its labels and events of the device were taken before.
            Category::Kernel
            | Category::Copy
            | Category::Fill
            | Category::Device(_)
            | Category::OtherProducer(_)
            | Category::DeviceAnnotation
            | Category::DeviceEvent
            | Category::Span
            | Category::LaunchFlow => {}
        }
        Ok(())
    }

    /// Collects work of a device. Where its times are absent or impossible, the work itself is known.
    pub(super) fn device_event(&mut self, event: &Event, category: Category) {
        let span = self.shifted(event.start_ns.zip(event.end_ns()));
        match category {
            Category::Device(number) => self.device_work(event, number, span),
            Category::OtherProducer(producer) => self.work_of_producer(event, producer, span),
            _ => self.work(event, category, span),
        }
    }

    /// Returns the index of the event's lane (its thread). If there are too many threads, the event is counted and
    /// the result is `None`.
    pub(super) fn lane(&mut self, event: &Event) -> Option<u32> {
        let lane = self.lanes.index(event.pid, event.tid);
        if lane.is_none() {
            self.lose_event("the file names more threads than any program has");
        }
        lane
    }

    /// Returns the id of a stream in the file. A stream beyond the maximum is counted and gives `None`.
    pub(super) fn stream(&mut self, stream: Stream) -> Option<QueueId> {
        let id = self.streams.id(stream);
        if id.is_none() {
            let reason = "the file names more streams or devices than any program has";
            (self.profile.inventory).lose(LossKind::GpuIntervals, 1, reason);
        }
        id
    }

    /// Collects a range that labels the work that its thread launches.
    fn annotation(&mut self, event: &Event, span: Span) {
        let name = self.text(event.name);
        self.annotations.insert(name);
        let Some(lane) = self.lane(event) else { return };
        let name = json::text(event.name);
        let (text, payload) = label_of(&name);
        let lane = &self.lanes.all[lane as usize];
        let range = HostRange {
            process: lane.process,
            thread: Some(lane.thread),
            of_process: false,
            text: self.profile.text(text),
            domain: None,
            category: None,
            payload: payload.map(|payload| self.profile.text(payload)),
            start_ns: span.start_ns,
            end_ns: Some(span.end_ns()),
            labels_work: true,
            has_row: true,
        };
        self.profile.recorded.ranges.push(range);
    }

    /// Collects a call of a runtime or driver.
    fn call(&mut self, event: &Event, span: Span) {
        self.uses_hip |= event.name.starts_with(b"hip");
        self.uses_vulkan |= event.name.starts_with(b"vk");
        let Some(lane) = self.lane(event) else { return };
        let lane = &mut self.lanes.all[lane as usize];
        lane.is_host = true;
        let mut args = json::members(event.args);
        let id = args.find(|(key, _)| is_correlation(key));
        let name = json::text(event.name);
        let name = match event.category {
            b"" => Cow::Borrowed(function_of(&name)),
            _ => name,
        };
        if let Some(kind) = producers::drawn_kind(event, &name) {
            // A call of which gapscope's drawing says what it does.
            let row = rows::one_host_call(
                lane.process,
                Some(lane.thread),
                kind,
                span,
                Some(name.as_ref().into()).filter(|_| name != kind.as_str()),
            );
            match producers::drawn_queue(event).flatten() {
                Some(queue) => self.producers.drawn_rows.push((queue, row)),
                None => rows::host_call(self.new.tables_mut(), row),
            }
            return;
        }
        let function = self.profile.function(&name);
        let class = self.profile.recorded.functions[function.0 as usize].class;
        let call = ApiCall {
            function,
            thread: Some(lane.thread),
            correlation: id
                .and_then(|(_, value)| correlation(value))
                .or_else(|| producers::connection(event.args))
                .or_else(|| producers::submission(event.args)),
            span,
            // The file does not have the results of polls.
            result: if class.is_poll() { UNKNOWN_RESULT } else { 0 },
            queue: CallQueue::Unknown,
            host_functions: None,
            graph: None,
        };
        if let Some((id, bytes)) = call.correlation.zip(copied_bytes(&name, event.args)) {
            let known = self.copied_bytes.entry((lane.process, id));
            let known = known.or_insert(Some(bytes));
            *known = known.filter(|known| *known == bytes);
        }
        if let Some(queue) = producers::drawn_queue(event) {
            let index = self.profile.recorded.calls.len();
            self.producers.drawn_calls.push((index, queue));
        }
        self.profile.recorded.calls.push((lane.process, call));
    }

    /// Keeps what an operator of PyTorch says of a collective. Kernels of NCCL that its thread launches inside of it
    /// are of that collective.
    fn describe_call(&mut self, event: &Event, span: Span) {
        if event.name != b"record_param_comms" {
            return;
        }
        let mut args = json::members(event.args);
        if args.any(|(key, _)| key == b"Collective name")
            && let Some(lane) = self.lane(event)
        {
            let payload = super::collectives::payload(event.args);
            self.described_calls.push((lane, span, payload));
        }
    }

    /// Returns the number of the device whose event an event is.
    fn source(&mut self, event: &Event, device: Option<u32>) -> u32 {
        let is_latest = |source: &WorkSource| *source.pid == *event.pid && source.device == device;
        if self
            .sources
            .get(self.latest_source as usize)
            .is_some_and(is_latest)
        {
            return self.latest_source;
        }
        let source = WorkSource {
            pid: event.pid.into(),
            device,
        };
        let sources = &mut self.sources;
        self.latest_source = *self
            .source_numbers
            .entry(source)
            .or_insert_with_key(|source| {
                sources.push(source.clone());
                sources.len() as u32 - 1
            });
        self.latest_source
    }

    /// Keeps a piece of work.
    pub(super) fn push_work(
        &mut self,
        event: &Event,
        device: Option<u32>,
        correlation: Option<Correlation>,
        work: DeviceWork,
    ) {
        let source = self.source(event, device);
        self.works.push(CollectedWork {
            source,
            correlation,
            work,
        });
    }

    /// Collects a kernel, copy or fill of a device, and the description of its collective.
    fn work(&mut self, event: &Event, category: Category, span: Option<Span>) {
        let args = WorkArgs::parse(event.args);
        // Some writers, such as ONNX Runtime, put work under the process of the host, whose number is that of no device.
        // rocprof puts the copies of all devices under one process.
        let is_of_host = event.category != b"hpu_op" && self.lanes.has_process(event.pid)
            || self.lanes.is_of_copies(event.pid);
        let device = match is_of_host {
            true => b"",
            false => event.pid,
        };
        let stream = args.stream(device, event.tid);
        let Some(queue) = self.stream(stream) else {
            return;
        };
        let kind = match category {
            Category::Copy => args.copy(&json::text(event.name)),
            Category::Fill => args.fill(),
            _ => {
                let facts = args.kernel_facts(self.text(event.name));
                DeviceWorkKind::Kernel {
                    kernel: self.shapes.id(facts),
                    groups: args.groups(),
                }
            }
        };
        let index = self.works.len() as u32;
        if args.collective.is_some() {
            let payload = super::collectives::payload(event.args);
            self.collectives.push((index, payload));
        } else if category == Category::Kernel && event.name.starts_with(b"nccl") {
            self.nccl_works.push(index);
        }
        let work = DeviceWork {
            queue,
            span,
            of_graph: args.of_graph && args.correlation.is_some(),
            graph: args.graph,
            graph_node: None,
            label: None,
            kind,
        };
        self.push_work(event, stream.device, args.correlation, work);
    }

    /// Collects work of a device in the form of XLA's profiler, in which the event's process has the device's name.
    fn device_work(&mut self, event: &Event, device: u32, span: Option<Span>) {
        let args = XlaArgs::parse(event.args);
        let stream = Stream {
            device: Some(device),
            context: 0,
            stream: super::number::whole(event.tid).and_then(|tid| u32::try_from(tid).ok()),
        };
        let Some(queue) = self.stream(stream) else {
            return;
        };
        let kind = match args.transfer(&json::text(event.name)) {
            Some(kind) => kind,
            None => {
                let facts = args.kernel_facts(self.text(event.name));
                DeviceWorkKind::Kernel {
                    kernel: self.shapes.id(facts),
                    groups: args.groups(),
                }
            }
        };
        let labels = &mut self.profile.inventory.labels;
        let scopes = args.scope.split(|byte| *byte == b'/');
        let label = scopes
            .filter(|scope| !scope.is_empty())
            .fold(None, |around, scope| {
                Some(labels.named(around, &json::text(scope)))
            });
        let work = DeviceWork {
            queue,
            span,
            of_graph: false,
            graph: None,
            graph_node: None,
            label,
            kind,
        };
        self.push_work(event, Some(device), args.correlation, work);
    }

    /// Collects a wait of the host or of a stream.
    fn synchronisation(&mut self, event: &Event) {
        let args = WorkArgs::parse(event.args);
        let (mut recorded_by, mut waits_on) = (None, None);
        for (key, value) in json::members(event.args) {
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
        let source = self.source(event, stream.device);
        self.synchronisations.push(Synchronisation {
            source,
            correlation: args.correlation,
            stream: known.then(|| self.streams.id(stream)).flatten(),
            waits_on: waits_on.and_then(|stream| self.streams.id(stream)),
            recorded_by,
        });
    }
}

impl Sink for Collector<'_, '_> {
    type Error = Error;

    fn document(&mut self, number: u64) -> bool {
        match self.documents {
            DocumentChoice::All => {}
            DocumentChoice::Only => self.is_stopped = number > 0,
            DocumentChoice::Numbers(numbers) => self.is_taken = numbers.contains(&number),
        }
        !self.is_stopped
    }

    /// Collects an event by its phase: a range, an instant, metadata, values of counters, or an arrow.
    fn event(&mut self, event: &Event) -> Result<(), Error> {
        if !self.is_taken {
            return Ok(());
        }
        let own;
        let event = match self.prefix.as_slice() {
            [] => event,
            prefix => {
                let Some(pid) = event.pid.strip_prefix(prefix) else {
                    return Ok(());
                };
                own = Event {
                    pid: pid.trim_ascii(),
                    ..*event
                };
                &own
            }
        };
        let event = &self.in_unit(event);
        match event.phase {
            b'X' => self.complete(event),
            b'B' => self.of_thread(event, true),
            b'E' => self.of_thread(event, false),
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
                if Category::parse(event.category) != Category::LaunchFlow
                    && !self.backward_arrow(event)
                    && !self.arrow_of_producer(event)
                {
                    self.lost("arrows", event.category, "traces have no place for them");
                }
                Ok(())
            }
            // An empty object ends the list where a writer puts a comma behind each event, such as XLA's and PaddlePaddle's.
            0 if event.is_empty() => Ok(()),
            // A start and a duration are a range, also where a writer leaves the phase out.
            0 if event.start_ns.is_some() && event.duration_ns.is_some() => self.complete(event),
            _ => {
                self.lost("events", event.category, "traces have no place for them");
                Ok(())
            }
        }
    }

    fn member(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        if self.is_taken {
            self.metadata.member(key, value);
        }
        Ok(())
    }

    fn progress(&mut self, source: &Source) -> Result<(), Error> {
        source.progress(self.output, self.bytes.0, self.bytes.1);
        self.new.flush()
    }
}

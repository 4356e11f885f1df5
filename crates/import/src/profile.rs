//! Collects the calls, the work and the labels of a profile in memory and writes them as one trace.
//!
//! Readers of formats push rows in any order into [`Profile::recorded`], and name processes, devices and queues in
//! [`Profile::inventory`]. [`Profile::write`] builds the rows of the trace with `gapscope_timeline_builder`, which also
//! builds the rows of traces that gapscope records.

pub(crate) use gapscope_model::Span;
pub(crate) use gapscope_timeline_builder::{
    ApiCall, CallQueue, Correlation, DeviceWork, DeviceWorkKind, FileReasons, FunctionId,
    GraphChange, GraphId, GraphNodeId, HostEventWait, HostRange, MadeGraph, Overhead, StreamEvent,
    StreamPlace,
};

use crate::inventory::Inventory;
use crate::output::{NewTrace, Output};
use crate::since_1970::Times;
use crate::{Error, Options, functions};
use gapscope_model::cuda::base_name;
use gapscope_timeline_builder::{Function, Ids, Recorded, Shared};
use gapscope_trace::build::{CountedId, TextId};
use gapscope_trace::ids::*;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{MemoryRow, Table};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;

/// What a kind of file says of all of its times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FileTimes {
    /// The time of the trace at which the file's clock is 0.
    pub zero_ns: i64,
    /// When the recording ended, on the trace's clock, where the file says that.
    pub end_ns: Option<i64>,
    /// Streams of CUDA run one piece of work at a time, and queues of the file are such streams.
    pub streams_are_queues: bool,
}

/// The rows of a profile.
#[derive(Default)]
pub(crate) struct Profile {
    pub inventory: Inventory,
    /// Calls, work, labels and stream events.
    pub recorded: Recorded,
    /// The API of devices that do not say another one.
    pub api: Api,
    /// The ids of functions by name, as files write them.
    function_ids: FxHashMap<Arc<str>, FunctionId>,
    /// The queue that each call waited for, by process and correlation (the number that joins a call with its
    /// work).
    pub awaited: FxHashMap<(ProcessId, Correlation), QueueId>,
    /// Allocations and frees of device memory.
    pub memory: Vec<MemoryRow>,
    /// What the file says of all of its times.
    pub times: FileTimes,
}

impl Profile {
    /// Creates an empty profile of devices that are used through `api`. `tool` made the recording.
    pub fn new(tool: &str, api: Api) -> Profile {
        Profile {
            inventory: Inventory::new(tool),
            api,
            ..Profile::default()
        }
    }

    /// Returns the id of a text.
    pub fn text(&mut self, text: &str) -> TextId {
        self.inventory.labels.text(text)
    }

    /// Returns the id of the device with a number in a process, or of the process's unknown device if there is no
    /// number.
    pub fn device(&mut self, process: ProcessId, number: Option<u32>) -> DeviceId {
        let api = self.api;
        self.inventory.device(process, number, |device| {
            device.api = api;
            if number.is_some() {
                device.name.clear();
            }
        })
    }

    /// Returns the id of the function with a name. Names that differ only in the suffix of a version have one id.
    pub fn function(&mut self, name: &str) -> FunctionId {
        if let Some(id) = self.function_ids.get(name) {
            return *id;
        }
        let base = base_name(name);
        let class = functions::class_of(name).unwrap_or_default();
        let functions = &mut self.recorded.functions;
        let is_same = |function: &Function| &*function.name == base && function.class == class;
        let known = functions.iter().position(is_same);
        let id = FunctionId(known.unwrap_or(functions.len()) as u32);
        if known.is_none() {
            let name = Arc::from(base);
            functions.push(Function { class, name });
        }
        self.function_ids.insert(Arc::from(name), id);
        id
    }

    /// Moves the labels and losses of a profile that another thread filled into this profile.
    pub fn take_labels(&mut self, other: Profile) {
        let inventory = &mut self.inventory;
        let processes: Vec<_> = (other.inventory.processes())
            .map(|(_, pid)| match pid {
                0 => inventory.unnamed_process(),
                pid => inventory.process(pid),
            })
            .collect();
        let mut texts = FxHashMap::default();
        let mut own_text = |text: TextId| {
            *texts
                .entry(text)
                .or_insert_with(|| inventory.labels.text(other.inventory.labels.text_of(text)))
        };
        let mut ranges = other.recorded.ranges;
        for range in &mut ranges {
            range.process = processes[range.process.index()];
            range.text = own_text(range.text);
            for text in [&mut range.domain, &mut range.category, &mut range.payload] {
                *text = text.map(&mut own_text);
            }
        }
        self.recorded.ranges.append(&mut ranges);
        self.inventory.losses.merge(&other.inventory.losses);
    }

    /// Returns true if there are calls, work or labels.
    pub fn has_rows(&self) -> bool {
        let Recorded {
            calls,
            work,
            ranges,
            ..
        } = &self.recorded;
        !(calls.is_empty() && work.is_empty() && ranges.is_empty())
    }

    /// Returns the time from the first to the last of calls, work and labels.
    pub fn rows_span_ns(&self) -> Range<i64> {
        let calls = self.recorded.calls.iter().map(|(_, call)| call.span);
        let work = self.recorded.work.iter();
        let work = work.filter_map(|(_, _, work)| work.span);
        let ranges = self.recorded.ranges.iter().map(|range| {
            let end_ns = range.end_ns.unwrap_or(range.start_ns);
            Span::between(range.start_ns, end_ns)
        });
        let spans = calls.chain(work).chain(ranges);
        let (start_ns, end_ns) = spans.fold((i64::MAX, i64::MIN), |(start_ns, end_ns), span| {
            (start_ns.min(span.start_ns), end_ns.max(span.end_ns()))
        });
        start_ns..end_ns
    }

    /// Adds `by_ns` to all times of rows, which converts them to another clock.
    pub fn shift(&mut self, by_ns: i64) {
        let later = |ns: &mut i64| *ns = ns.saturating_add(by_ns);
        later(&mut self.times.zero_ns);
        self.times.end_ns.iter_mut().for_each(later);
        let calls = self.recorded.calls.iter_mut();
        calls.for_each(|(_, call)| later(&mut call.span.start_ns));
        let work = self.recorded.work.iter_mut();
        let spans = work.filter_map(|(_, _, work)| work.span.as_mut());
        spans.for_each(|span| later(&mut span.start_ns));
        for range in &mut self.recorded.ranges {
            later(&mut range.start_ns);
            range.end_ns.iter_mut().for_each(later);
        }
        let graphs = self.recorded.graphs.iter_mut();
        graphs.for_each(|made| later(&mut made.at_ns));
        let overheads = self.recorded.overheads.iter_mut();
        overheads.for_each(|(_, overhead)| later(&mut overhead.span.start_ns));
        self.memory.iter_mut().for_each(|row| later(&mut row.at_ns));
    }

    /// Returns what is to be added to all times because they count from 1970; 0 where they do not. `earlier_ns` is
    /// added to them anyway.
    pub fn shift_since_1970(&self, earlier_ns: i64) -> i64 {
        let recorded = &self.recorded;
        let spans = (recorded.calls.iter().map(|(_, call)| call.span))
            .chain(recorded.work.iter().filter_map(|(_, _, work)| work.span));
        let ranges = recorded.ranges.iter();
        let ranges = ranges.map(|range| (range.start_ns, range.end_ns.unwrap_or(range.start_ns)));
        let mut times = Times::default();
        for (start_ns, end_ns) in spans
            .map(|span| (span.start_ns, span.end_ns()))
            .chain(ranges)
            .filter(|(start_ns, _)| *start_ns != 0)
        {
            let later = |ns: i64| ns.saturating_add(earlier_ns);
            times.add(later(start_ns), later(end_ns));
        }
        times.shift_ns()
    }

    /// Makes times since 1970 count from the beginning of a day, as those of a trace may.
    fn count_from_a_day(&mut self) {
        let shift_ns = self.shift_since_1970(0);
        if shift_ns != 0 {
            self.shift(shift_ns);
            let start_unix_ns = &mut self.inventory.manifest.start_unix_ns;
            let zero_unix_ns = start_unix_ns.unwrap_or(0);
            *start_unix_ns = Some(zero_unix_ns.saturating_sub(shift_ns));
        }
    }

    /// Joins the rows, writes them and completes the trace. `reasons` says why facts may be missing in this kind of
    /// file.
    ///
    /// # Errors
    /// The system refuses to write.
    pub fn write(
        mut self,
        reasons: FileReasons,
        options: &Options,
        mut new: NewTrace,
        output: &mut Output,
    ) -> Result<(), Error> {
        self.count_from_a_day();
        self.drop_stray_devices();
        self.doubt_times();
        self.complete_calls();
        let inventory = &mut self.inventory;
        let shared = Shared {
            labels: &mut inventory.labels,
            ledger: &mut inventory.losses,
            ids: &mut Ids::default(),
            reasons,
        };
        self.recorded.build(shared, &mut new)?;
        self.memory.sort_by_key(|row| row.at_ns);
        for row in self.memory {
            new.tables_mut().memory.push(row);
            new.flush()?;
        }
        self.inventory.finish(new, options, output)
    }

    /// Gives calls the queues for which they waited, lists their threads, and extends the span of the trace to cover
    /// all rows.
    fn complete_calls(&mut self) {
        let inventory = &mut self.inventory;
        let mut threads = FxHashSet::default();
        for (process, call) in &mut self.recorded.calls {
            let queue = (call.correlation).and_then(|id| self.awaited.get(&(*process, id)));
            call.queue = queue.map_or(call.queue, |queue| CallQueue::Known(*queue));
            threads.extend(call.thread.map(|thread| (*process, thread)));
            inventory.spans(call.span.start_ns, call.span.end_ns());
        }
        for (process, thread) in threads {
            inventory.thread(process, thread, "");
        }
        for span in self
            .recorded
            .work
            .iter()
            .filter_map(|(_, _, work)| work.span)
        {
            inventory.spans(span.start_ns, span.end_ns());
        }
        for range in &self.recorded.ranges {
            inventory.spans(range.start_ns, range.end_ns.unwrap_or(range.start_ns));
        }
    }
}

//! A program of which everything is at hand, as of a file that is imported: takes its calls, work, labels and stream
//! events in any order, puts them in order of time, and builds their rows. [`Recorded`] is filled first, then
//! [`Recorded::build`] writes all rows to a [`RowSink`].

mod builders;

use crate::bounds::Bounds;
use crate::event_waits::StreamPlace;
use crate::input::{ApiCall, Correlation, DeviceWork, Function};
use crate::output::{Ids, Reasons};
use crate::overheads::Overhead;
use builders::{Builders, EarlyWork, OpenRange};
use gapscope_model::{GraphChange, Ledger};
use gapscope_trace::build::{Labels, TextId};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::Tables;
use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A label of a host thread or a process whose start and end are both known.
#[derive(Debug, Clone)]
pub struct HostRange {
    /// The process.
    pub process: ProcessId,
    /// The thread; `None` where the file does not say it.
    pub thread: Option<ThreadId>,
    /// It is of the process: it may end on another thread, and nothing nests in it.
    pub of_process: bool,
    /// Its text.
    pub text: TextId,
    /// The name of its domain.
    pub domain: Option<TextId>,
    /// The name of its category.
    pub category: Option<TextId>,
    /// The value that tells it from others of the same text.
    pub payload: Option<TextId>,
    /// When it starts.
    pub start_ns: i64,
    /// When it ends; `None` where it was open at the end.
    pub end_ns: Option<i64>,
    /// The work that its thread launches inside it has it.
    pub labels_work: bool,
    /// It has a row. Others, such as the steps of another thread, only label work.
    pub has_row: bool,
}

/// An event, or a wait for one, that a call put on a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamEvent {
    /// The process.
    pub process: ProcessId,
    /// Where it stands among what is put on the stream.
    pub place: StreamPlace,
    /// The event.
    pub event: u64,
}

/// A call of the host that waits for an event.
#[derive(Debug, Clone, Copy)]
pub struct HostEventWait {
    /// The process.
    pub process: ProcessId,
    /// The call that waits.
    pub correlation: Correlation,
    /// The event.
    pub event: u64,
}

/// A change that a thread made to a graph.
#[derive(Debug, Clone, Copy)]
pub struct MadeGraph {
    /// The process.
    pub process: ProcessId,
    /// The thread; `None` where the file does not say it.
    pub thread: Option<ThreadId>,
    /// When.
    pub at_ns: i64,
    /// The change, whose own time does not count.
    pub change: GraphChange,
}

/// Everything that was recorded of a program.
#[derive(Debug, Default)]
pub struct Recorded {
    /// Functions, by the index that calls have.
    pub functions: Vec<Function>,
    /// Calls, each with its process.
    pub calls: Vec<(ProcessId, ApiCall)>,
    /// Work, each piece with its process and the correlation of its call.
    pub work: Vec<(ProcessId, Option<Correlation>, DeviceWork)>,
    /// Labels.
    pub ranges: Vec<HostRange>,
    /// Time that the driver or the tracing took.
    pub overheads: Vec<(ProcessId, Overhead)>,
    /// Events that were recorded on streams.
    pub events: Vec<StreamEvent>,
    /// Waits of streams for events.
    pub waits: Vec<StreamEvent>,
    /// Waits of the host for events.
    pub host_waits: Vec<HostEventWait>,
    /// The numbers of calls do not ascend in their order, so that they do not say what a call waited for.
    pub is_unordered: bool,
    /// How graphs were made; those of each thread in its order.
    pub graphs: Vec<MadeGraph>,
}

/// What the rows of a recorded program share with the rest of its trace.
pub struct Shared<'a> {
    /// The labels of the trace.
    pub labels: &'a mut Labels,
    /// The losses of the trace.
    pub ledger: &'a mut Ledger,
    /// The ids of the trace.
    pub ids: &'a mut Ids,
    /// The reasons of losses.
    pub reasons: FileReasons,
}

/// Why something is not in a file.
#[derive(Debug, Clone, Copy)]
pub struct FileReasons {
    /// Of work: its times and its call.
    pub work: Reasons,
    /// Why work that was launched is missing.
    pub never_came: &'static str,
    /// Why it is not known what streams waited for.
    pub unknown_waits: &'static str,
}

impl Default for FileReasons {
    fn default() -> FileReasons {
        FileReasons {
            work: Reasons {
                untimed: "the file has the time 0 for them, or times that are impossible",
                without_call: "the record of the call is missing",
            },
            never_came: "they were launched, and the file has no rows of what the device did",
            unknown_waits: "the file does not say where the events were recorded that streams waited for",
        }
    }
}

/// One thing that happened, in order of time. Labels come before the graphs that are made and the calls at the same time, and calls before work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    RangeEnd,
    RangeStart,
    Graph,
    Call,
    Work,
}

impl Recorded {
    /// Builds the rows: those of work without times and of overheads come last. The sink is flushed now and then.
    ///
    /// # Errors
    /// Those of the sink.
    pub fn build<S: RowSink>(mut self, shared: Shared<'_>, sink: &mut S) -> Result<(), S::Error> {
        // Without events, what is waited for came not long before.
        let submissions = match self.waits.is_empty() && self.host_waits.is_empty() {
            true => Bounds::LIVE.submissions,
            false => Bounds::NONE.submissions,
        };
        let mut builders = Builders {
            bounds: Bounds {
                submissions,
                ..Bounds::NONE
            },
            functions: std::mem::take(&mut self.functions),
            names: (self.ranges.iter())
                .flat_map(|range| [range.domain, range.category])
                .flatten()
                .collect(),
            builders: BTreeMap::new(),
            early: EarlyWork::default(),
            process_ranges: 0,
            is_unordered: self.is_unordered,
            shared,
        };
        for (process, correlation) in self.other_launches(&builders.functions) {
            builders.builder(process).other_launches.insert(correlation);
        }
        let events = std::mem::take(&mut self.events);
        let host_waits = std::mem::take(&mut self.host_waits);
        builders.stream_events(
            events,
            std::mem::take(&mut self.waits),
            &host_waits,
            sink.tables(),
        );
        self.sort();
        let untimed = (self.work).partition_point(|(_, _, work)| work.span.is_none());
        let (untimed, timed) = self.work.split_at(untimed);
        let mut timed = timed.iter().peekable();
        let mut calls = self.calls.iter().peekable();
        let mut ranges = self.ranges.iter().peekable();
        let mut graphs = self.graphs.iter().peekable();
        let mut open: BinaryHeap<Reverse<OpenRange>> = BinaryHeap::new();
        let mut rows = 0u32;
        loop {
            let tables = sink.tables();
            let next = [
                open.peek().map(|open| (open.0.end_ns, Next::RangeEnd)),
                (ranges.peek()).map(|range| (range.start_ns, Next::RangeStart)),
                (graphs.peek()).map(|made| (made.at_ns, Next::Graph)),
                (calls.peek()).map(|(_, call)| (call.span.start_ns, Next::Call)),
                (timed.peek().and_then(|(_, _, work)| work.span))
                    .map(|span| (span.start_ns, Next::Work)),
            ];
            match next.into_iter().flatten().min() {
                None => break,
                Some((_, Next::RangeEnd)) => {
                    if let Some(Reverse(ended)) = open.pop() {
                        builders.end(&ended, tables);
                    }
                }
                Some((_, Next::RangeStart)) => {
                    if let Some(range) = ranges.next() {
                        open.extend(builders.start(range, tables).map(Reverse));
                    }
                }
                Some((_, Next::Graph)) => {
                    if let Some(made) = graphs.next() {
                        let builder = builders.builder(made.process);
                        builder.graph_changed(made.thread, made.change.at(made.at_ns));
                    }
                }
                Some((_, Next::Call)) => {
                    if let Some((process, call)) = calls.next() {
                        builders.with(*process, tables, |builder, out| builder.call(*call, out));
                    }
                }
                Some((_, Next::Work)) => {
                    if let Some(work) = timed.next() {
                        builders.work(work, tables);
                    }
                }
            }
            rows = rows.wrapping_add(1);
            if rows.is_multiple_of(1 << 10) {
                sink.flush()?;
            }
        }
        for work in untimed {
            builders.work(work, sink.tables());
        }
        for (process, overhead) in &self.overheads {
            builders.with(*process, sink.tables(), |builder, out| {
                builder.overhead(overhead, out);
            });
            sink.flush()?;
        }
        builders.finish(sink.tables());
        sink.flush()
    }

    /// Returns the correlations of work whose calls are of functions that are not known to launch some, wait or poll.
    fn other_launches(&self, functions: &[Function]) -> FxHashSet<(ProcessId, Correlation)> {
        let is_other = |call: &ApiCall| {
            let class = (functions.get(call.function.0 as usize)).map(|function| function.class);
            let class = class.unwrap_or_default();
            class.submission_kind().is_none() && !class.is_wait() && !class.is_poll()
        };
        let others = self.calls.iter().filter(|(_, call)| is_other(call));
        let others: FxHashSet<_> = others
            .filter_map(|(process, call)| Some((*process, call.correlation?)))
            .collect();
        if others.is_empty() {
            return others;
        }
        let work = self.work.iter();
        work.filter_map(|(process, correlation, _)| Some((*process, (*correlation)?)))
            .filter(|launch| others.contains(launch))
            .collect()
    }

    /// Puts everything in order of time; of ranges that begin together the outer one is first.
    fn sort(&mut self) {
        let Recorded {
            calls,
            work,
            ranges,
            graphs,
            ..
        } = self;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let end_ns = |range: &HostRange| range.end_ns.unwrap_or(i64::MAX);
                ranges.sort_by_key(|range| (range.start_ns, Reverse(end_ns(range))));
            });
            graphs.sort_by_key(|made| made.at_ns);
            calls.sort_by_key(|(_, call)| (call.span.start_ns, call.correlation));
            work.sort_by_key(|(_, _, work)| work.span.map(|span| span.start_ns));
        });
    }
}

/// Where rows go that are taken out now and then.
pub trait RowSink {
    /// Why rows could not be taken out.
    type Error;
    /// Returns the tables for new rows.
    fn tables(&mut self) -> &mut Tables;
    /// Lets rows be taken out, where there are enough of them.
    ///
    /// # Errors
    /// The sink says.
    fn flush(&mut self) -> Result<(), Self::Error>;
}

impl RowSink for Tables {
    type Error = std::convert::Infallible;
    fn tables(&mut self) -> &mut Tables {
        self
    }
    fn flush(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

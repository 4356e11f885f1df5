//! Keeps a builder of rows for each process of a program, and hands its work, labels and waits over to that builder.

use super::{HostEventWait, HostRange, Shared, StreamEvent};
use crate::bounds::Bounds;
use crate::builder::TimelineBuilder;
use crate::event_waits::EventOccurrence;
use crate::input::{Correlation, DeviceWork, Function, FunctionId};
use crate::labels::{CategoryId, LabelDomain, LabelKey, LabelScope, LabelStart, ProcessRangeId};
use crate::output::{Joined, Observer, Output};
use gapscope_model::LossKind;
use gapscope_trace::build::{CountedId, TextId};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::Tables;
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;

/// Counts work that seems to begin before its call. Such times are a loss.
#[derive(Default)]
pub(super) struct EarlyWork {
    count: u64,
}

impl Observer for EarlyWork {
    fn joined(&mut self, joined: Joined<'_>) {
        self.count += u64::from(joined.span.start_ns < joined.call.span.start_ns);
    }
}

/// A label that has started, by the time at which it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenRange {
    pub end_ns: i64,
    process: ProcessId,
    thread: Option<ThreadId>,
    key: LabelKey,
}

impl Ord for OpenRange {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // Of those that end together the inner one ends first.
        (self.end_ns.cmp(&other.end_ns)).then_with(|| other.key.cmp(&self.key))
    }
}

impl PartialOrd for OpenRange {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The builders of all processes.
pub(super) struct Builders<'a> {
    pub bounds: Bounds,
    pub functions: Vec<Function>,
    /// The names of domains and categories, by which NVTX groups labels.
    pub names: FxHashSet<TextId>,
    pub builders: BTreeMap<ProcessId, TimelineBuilder>,
    /// Counts early work of all processes.
    pub early: EarlyWork,
    /// How many ranges of processes there are so far.
    pub process_ranges: u64,
    /// The numbers of calls do not ascend in their order.
    pub is_unordered: bool,
    pub shared: Shared<'a>,
}

impl Builders<'_> {
    /// Returns the builder of a process, which is made, with all functions and names, when it is first asked for.
    pub fn builder(&mut self, process: ProcessId) -> &mut TimelineBuilder {
        self.builders.entry(process).or_insert_with(|| {
            let mut builder = TimelineBuilder::new(self.bounds);
            builder.launches.counts_all_graphs = true;
            builder.is_unordered = self.is_unordered;
            for (id, function) in (0..).map(FunctionId).zip(&self.functions) {
                builder.add_function(id, function.clone());
            }
            for name in &self.names {
                let (number, name) = (number(Some(*name)), self.shared.labels.shared_text(*name));
                let labels = &mut builder.labels;
                labels.name_domain(LabelDomain::Program(number), name.clone());
                labels.name_category(CategoryId(number), name);
            }
            builder
        })
    }

    /// Calls `change` with the builder of a process and the output that its rows go to; returns what `change`
    /// returns.
    pub fn with<T>(
        &mut self,
        process: ProcessId,
        tables: &mut Tables,
        change: impl FnOnce(&mut TimelineBuilder, &mut Output<'_>) -> T,
    ) -> T {
        self.builder(process);
        let Some(builder) = self.builders.get_mut(&process) else {
            unreachable!("it was made above");
        };
        let mut out = Output {
            process,
            tables,
            labels: self.shared.labels,
            ledger: self.shared.ledger,
            ids: self.shared.ids,
            observer: &mut self.early,
            now_ns: 0,
            reasons: self.shared.reasons.work,
        };
        change(builder, &mut out)
    }

    /// Hands over a piece of work.
    pub fn work(
        &mut self,
        (process, correlation, work): &(ProcessId, Option<Correlation>, DeviceWork),
        tables: &mut Tables,
    ) {
        self.with(*process, tables, |builder, out| {
            builder.work(*correlation, *work, out);
        });
    }

    /// Hands over events and waits. Each event's occurrences are numbered, so that a wait is for the latest one before it.
    pub fn stream_events(
        &mut self,
        mut events: Vec<StreamEvent>,
        mut waits: Vec<StreamEvent>,
        host_waits: &[HostEventWait],
        tables: &mut Tables,
    ) {
        let order = |event: &StreamEvent| (event.process, event.event, event.place.correlation);
        events.sort_by_key(order);
        waits.sort_by_key(|wait| (wait.process, wait.place.correlation));
        let occurrence = |event: u64, at: usize| EventOccurrence {
            event,
            number: at as u64 + 1,
        };
        for (at, event) in events.iter().enumerate() {
            let builder = self.builder(event.process);
            builder.event_recorded(occurrence(event.event, at), event.place);
        }
        let record_before = |process: ProcessId, event: u64, correlation: Correlation| {
            let before =
                events.partition_point(|other| order(other) < (process, event, correlation));
            before.checked_sub(1).filter(|at| {
                let record = &events[*at];
                (record.process, record.event) == (process, event)
            })
        };
        for wait in &waits {
            let record = record_before(wait.process, wait.event, wait.place.correlation);
            // One that no record precedes is for an occurrence that nothing knows.
            let occurrence = occurrence(wait.event, record.unwrap_or(usize::MAX - 1));
            let builder = self.builder(wait.process);
            builder.stream_waits(wait.place, occurrence, 0);
        }
        for wait in host_waits {
            if let Some(at) = record_before(wait.process, wait.event, wait.correlation) {
                let occurrence = occurrence(wait.event, at);
                self.with(wait.process, tables, |builder, out| {
                    builder.event_of_call(wait.correlation, occurrence, out);
                });
            }
        }
    }

    /// Starts a label; one without length is written as a moment, one of a process is ended at once. Returns the
    /// label where it has to be ended later, `None` also where its end is not known.
    pub fn start(&mut self, range: &HostRange, tables: &mut Tables) -> Option<OpenRange> {
        let thread = range.thread;
        let payload = range
            .payload
            .map(|text| self.shared.labels.shared_text(text));
        let start = LabelStart {
            thread,
            domain: LabelDomain::Program(number(range.domain)),
            text: range.text,
            at_ns: range.start_ns,
            category: CategoryId(number(range.category)),
            payload,
            labels_work: range.labels_work,
            has_row: range.has_row,
        };
        self.process_ranges += u64::from(range.of_process);
        let process_range = ProcessRangeId(self.process_ranges);
        self.with(range.process, tables, |builder, out| {
            let (labels, out) = (&mut builder.labels, &mut out.label_rows());
            if range.of_process {
                labels.begin_process_range(process_range, start, out);
                if let Some(end_ns) = range.end_ns {
                    labels.end(thread, LabelScope::Process(process_range), end_ns, out);
                }
                return None;
            }
            if range.end_ns == Some(range.start_ns) {
                labels.instant(start, out);
                return None;
            }
            let key = labels.begin(start, out);
            Some(OpenRange {
                end_ns: range.end_ns?,
                process: range.process,
                thread,
                key,
            })
        })
    }

    /// Ends a label that [`Self::start`] returned.
    pub fn end(&mut self, range: &OpenRange, tables: &mut Tables) {
        self.with(range.process, tables, |builder, out| {
            let scope = LabelScope::Key(range.key);
            let out = &mut out.label_rows();
            (builder.labels).end(range.thread, scope, range.end_ns, out);
        });
    }

    /// Finishes all builders, and adds what they could not tell to the losses.
    pub fn finish(&mut self, tables: &mut Tables) {
        let processes: Vec<ProcessId> = self.builders.keys().copied().collect();
        let reasons = self.shared.reasons;
        for process in processes {
            let finished = self.with(process, tables, |builder, out| {
                builder.finish(Some(reasons.never_came), out)
            });
            let losses = [
                (
                    LossKind::LabelEnds,
                    finished.unended_labels,
                    "they were open when the recording ended",
                ),
                (
                    LossKind::Waits,
                    finished.unknown_waits,
                    reasons.unknown_waits,
                ),
                (
                    LossKind::HostCallsOfWork,
                    finished.collisions,
                    "another call of the process has the same correlation",
                ),
            ];
            for (kind, count, reason) in losses {
                self.shared.ledger.add(kind, count, reason);
            }
        }
        let reason = "the work seems to begin before the call that launched it";
        (self.shared.ledger).add(LossKind::PlausibleDeviceTimes, self.early.count, reason);
    }
}

/// Returns the number of the domain or category with a name: names are numbered as texts are, and 0 stands for none.
fn number(name: Option<TextId>) -> u32 {
    name.map_or(0, |name| name.index() as u32 + 1)
}

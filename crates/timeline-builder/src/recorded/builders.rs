//! One builder for each process of a recorded program: takes what happened next and hands it to the builder of its process.

use super::{HostRange, Shared, StreamEvent};
use crate::bounds::Bounds;
use crate::builder::{Finished, Joined, Observer, Output, TimelineBuilder};
use crate::event_waits::EventOccurrence;
use crate::input::{Correlation, DeviceWork, Function, FunctionId};
use crate::labels::{CategoryId, LabelDomain, LabelKey, LabelStart};
use crate::rows;
use gapscope_model::LossKind;
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::tables::{Marker, MarkerScope, Tables};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Counts work that seems to begin before its call.
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
    pub domains: BTreeMap<u32, Arc<str>>,
    pub categories: BTreeMap<u32, Arc<str>>,
    pub builders: BTreeMap<ProcessId, TimelineBuilder>,
    pub early: EarlyWork,
    pub shared: Shared<'a>,
}

impl Builders<'_> {
    pub fn builder(&mut self, process: ProcessId) -> &mut TimelineBuilder {
        self.builders.entry(process).or_insert_with(|| {
            let mut builder = TimelineBuilder::new(self.bounds);
            for (id, function) in (0..).map(FunctionId).zip(&self.functions) {
                builder.add_function(id, function.clone());
            }
            for (domain, name) in &self.domains {
                let domain = LabelDomain::Program(*domain);
                builder.labels.name_domain(domain, name.clone());
            }
            for (category, name) in &self.categories {
                let category = CategoryId(*category);
                builder.labels.name_category(category, name.clone());
            }
            builder
        })
    }

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
    pub fn stream_events(&mut self, mut events: Vec<StreamEvent>, mut waits: Vec<StreamEvent>) {
        let order = |event: &StreamEvent| (event.process, event.event, event.place.correlation);
        events.sort_by_key(order);
        waits.sort_by_key(|wait| (wait.process, wait.place.correlation));
        let occurrence = |event: &StreamEvent, at: usize| EventOccurrence {
            event: event.event,
            number: at as u64 + 1,
        };
        for (at, event) in events.iter().enumerate() {
            let builder = self.builder(event.process);
            builder.event_recorded(occurrence(event, at), event.place);
        }
        for wait in &waits {
            let before = events.partition_point(|event| order(event) < order(wait));
            let record = before.checked_sub(1).filter(|at| {
                let event = &events[*at];
                (event.process, event.event) == (wait.process, wait.event)
            });
            // One that no record precedes is for an occurrence that nothing knows.
            let occurrence = occurrence(wait, record.unwrap_or(usize::MAX - 1));
            let builder = self.builder(wait.process);
            builder.stream_waits(wait.place, occurrence, 0);
        }
    }

    /// Starts a label. Returns it where it has to be ended.
    pub fn start(&mut self, range: &HostRange, tables: &mut Tables) -> Option<OpenRange> {
        let start = LabelStart {
            thread: range.thread,
            domain: LabelDomain::Program(range.domain),
            text: range.text,
            at_ns: range.start_ns,
            category: range.category,
            payload: range.payload.clone(),
            labels_work: range.labels_work,
            has_row: range.has_row,
        };
        if range.of_process {
            self.process_range(range, tables);
            return None;
        }
        let process = range.process;
        self.with(process, tables, |builder, out| {
            if range.end_ns == Some(range.start_ns) {
                builder
                    .labels
                    .instant(process, start, out.labels, out.tables);
                return None;
            }
            let key = builder.labels.begin(process, start, out.labels, out.tables);
            Some(OpenRange {
                end_ns: range.end_ns?,
                process,
                thread: range.thread,
                key,
            })
        })
    }

    fn process_range(&mut self, range: &HostRange, tables: &mut Tables) {
        let label = self.shared.labels.label(None, range.text);
        let duration_ns = range
            .end_ns
            .map(|end_ns| end_ns.saturating_sub(range.start_ns));
        let scope = MarkerScope::Process;
        let start_ns = Some(range.start_ns);
        let row = rows::marker_row(range.process, scope, label, start_ns, duration_ns);
        let row = Marker {
            thread: range.thread,
            domain: self.domains.get(&range.domain).cloned(),
            category: self.categories.get(&range.category.0).cloned(),
            payload: range.payload.clone(),
            ..row
        };
        rows::marker(tables, row);
        if range.end_ns.is_none() {
            self.unended(1);
        }
    }

    pub fn end(&mut self, range: &OpenRange, tables: &mut Tables) {
        let OpenRange {
            end_ns,
            process,
            thread,
            key,
        } = *range;
        self.with(process, tables, |builder, out| {
            let labels = &mut builder.labels;
            labels.end_key(process, thread, key, end_ns, out.labels, out.tables);
        });
    }

    fn unended(&mut self, count: u64) {
        let reason = "they were open when the recording ended";
        (self.shared.ledger).add(LossKind::Other("ends of labels".into()), count, reason);
    }

    pub fn finish(&mut self, tables: &mut Tables) {
        let processes: Vec<ProcessId> = self.builders.keys().copied().collect();
        let reasons = self.shared.reasons;
        for process in processes {
            let (finished, unended): (Finished, u64) =
                self.with(process, tables, |builder, out| {
                    let finished = builder.finish(Some(reasons.never_came), out);
                    (finished, builder.labels.finish(process, out.tables))
                });
            self.unended(unended);
            let ledger = &mut *self.shared.ledger;
            ledger.add(
                LossKind::Waits,
                finished.unknown_waits,
                reasons.unknown_waits,
            );
            let reason = "another call of the process has the same correlation";
            ledger.add(LossKind::HostCallsOfWork, finished.collisions, reason);
        }
        let reason = "the work seems to begin before the call that launched it";
        (self.shared.ledger).add(LossKind::PlausibleDeviceTimes, self.early.count, reason);
    }
}

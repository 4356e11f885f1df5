//! Takes the scopes of rows that the user says are a GPU's: times between two timestamps of the device, in their nesting, without
//! a call that launched what ran in them. wgpu-profiler writes such files.
//!
//! A scope without a scope inside of it is work, timed as a whole. A scope around others is a label of them: whether the
//! device worked in the rest of its time is not in the file, so that this time is no work, and a note says how long it is.

use super::collect::Collector;
use super::event::Event;
use super::facts::Scope;
use super::number::in_units;
use crate::Error;
use crate::gpu_rows::{GpuRows, Row};
use crate::inventory::UNKNOWN_GPU;
use crate::profile::Span;
use gapscope_model::LossKind;
use gapscope_timeline_builder::rows::{self, WorkPlace};
use gapscope_trace::ids::{LabelId, ProcessId, QueueId};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{Marker, MarkerScope, OpaqueWorkKind};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// How much later than the scope around it a scope may end: both ends are sums of a start and a duration, each rounded to a
/// nanosecond.
const ROUNDING_NS: i64 = 2;

/// A scope in which others may lie: where it ends, its label, and how much of it lies in scopes inside.
struct Around {
    index: usize,
    end_ns: i64,
    label: LabelId,
    /// The end of what is covered so far, and the time that is not.
    covered_ns: i64,
    bare_ns: i64,
    has_inner: bool,
}

impl<'o> Collector<'o, '_> {
    /// Returns the rows with an event that the user says are a GPU's. `category` is that of its range.
    fn gpu_row(&self, event: &Event, category: &[u8]) -> Option<&'o GpuRows> {
        let [process, thread] = self.lanes.names(event.pid, event.tid);
        let row = Row {
            pid: event.pid,
            tid: event.tid,
            process,
            thread,
            category,
        };
        self.gpu_rows.iter().find(|rows| rows.has(row))
    }

    /// Returns an event with times in the unit that the user says its row has. Without `--gpu` nothing is looked at.
    pub(super) fn in_unit<'e>(&self, event: &Event<'e>) -> Event<'e> {
        let rows = match self.gpu_rows.is_empty() {
            true => None,
            false => self.gpu_row(event, event.category),
        };
        let Some(rows) = rows else { return *event };
        let decimals = rows.unit.decimals();
        let [start_ns, duration_ns] = event.written.map(|text| in_units(text, decimals));
        Event {
            start_ns,
            duration_ns,
            ..*event
        }
    }

    /// Keeps a complete event as a scope where its row is a GPU's; returns false for other events.
    pub(super) fn complete_scope(&mut self, event: &Event) -> bool {
        if self.gpu_rows.is_empty() {
            return false;
        }
        let Some(rows) = self.gpu_row(event, event.category) else {
            return false;
        };
        let span = self.placed(event.start_ns.zip(event.end_ns()));
        self.untimed_scopes += u64::from(span.is_none());
        if let Some(span) = span
            && let Some(lane) = self.lane(event)
        {
            let (device, name) = (rows.device, self.text(event.name));
            self.scopes.push(Scope {
                lane,
                device,
                span,
                name,
            });
        }
        true
    }

    /// Writes the scopes as work and labels of the queues that stand for their rows.
    ///
    /// # Errors
    /// The rows that the user named have no scope, or the trace cannot be written.
    pub(super) fn write_scopes(&mut self) -> Result<(), Error> {
        let mut scopes = std::mem::take(&mut self.scopes);
        if scopes.is_empty() && !self.gpu_rows.is_empty() {
            if self.untimed_scopes > 0 {
                let count = self.untimed_scopes;
                return Err(Error::nothing(format!(
                    "{count} scopes lie on rows that --gpu names, and none has a time that is possible: name the unit of their times, as in unit=ns"
                )));
            }
            let rows = self.rows().unwrap_or_default();
            return Err(Error::nothing(format!(
                "no scope lies on a row that --gpu names. {rows}"
            )));
        }
        if scopes.is_empty() {
            return Ok(());
        }
        // The sort is stable: of equal scopes the first in the file is the outer one.
        scopes.sort_by_key(|scope| {
            (
                scope.lane,
                scope.span.start_ns,
                Reverse(scope.span.end_ns()),
            )
        });
        let (mut work, mut outer, mut bare_ns) = (0_u64, 0_u64, 0_i64);
        let mut queues: FxHashMap<(u32, u32), (ProcessId, QueueId)> = FxHashMap::default();
        for of_lane in scopes.chunk_by(|a, b| a.lane == b.lane) {
            let mut open: Vec<Around> = Vec::new();
            let mut close = |around: Around, collector: &mut Self| {
                let scope = of_lane[around.index];
                let (process, queue) = *queues
                    .entry((scope.lane, scope.device))
                    .or_insert_with(|| collector.queue_of_row(scope.lane, scope.device));
                let Span {
                    start_ns,
                    duration_ns,
                } = scope.span;
                collector
                    .profile
                    .inventory
                    .spans(start_ns, scope.span.end_ns());
                let tables = collector.new.tables_mut();
                if around.has_inner {
                    outer += 1;
                    bare_ns += around.bare_ns + (around.end_ns - around.covered_ns).max(0);
                    let scope = MarkerScope::Queue;
                    let row = rows::marker_row(
                        process,
                        scope,
                        around.label,
                        Some(start_ns),
                        Some(duration_ns),
                    );
                    rows::marker(
                        tables,
                        Marker {
                            queue: Some(queue),
                            ..row
                        },
                    );
                } else {
                    work += 1;
                    let place = WorkPlace {
                        label: Some(around.label),
                        ..WorkPlace::new(queue, Some(scope.span))
                    };
                    rows::opaque_work(tables, place, OpaqueWorkKind::Other);
                }
                collector.new.flush()
            };
            for (index, scope) in of_lane.iter().enumerate() {
                let (start_ns, end_ns) = (scope.span.start_ns, scope.span.end_ns());
                // Scopes that only overlap are of several encoders: none is inside of the other.
                while let Some(around) = open.pop_if(|around| {
                    around.end_ns <= start_ns || around.end_ns + ROUNDING_NS < end_ns
                }) {
                    close(around, self)?;
                }
                if let Some(around) = open.last_mut() {
                    around.bare_ns += (start_ns - around.covered_ns).max(0);
                    around.covered_ns = around.covered_ns.max(end_ns);
                    around.has_inner = true;
                }
                let around = open.last().map(|around| around.label);
                let label = self.profile.inventory.labels.label(around, scope.name);
                open.push(Around {
                    index,
                    end_ns,
                    label,
                    covered_ns: start_ns,
                    bare_ns: 0,
                    has_inner: false,
                });
            }
            while let Some(around) = open.pop() {
                close(around, self)?;
            }
        }
        let inventory = &mut self.profile.inventory;
        let reason = "the rows that --gpu names have scopes of the device and no calls";
        inventory.lose(LossKind::HostCallsOfWork, work, reason);
        inventory.note("Times of the rows that --gpu names are the GPU's own: the file does not say how they lie to times of host threads.");
        if outer > 0 {
            let ms = bare_ns as f64 / 1e6;
            inventory.note(format!(
                "Scopes around others ({outer}) are labels, and those without any inside ({work}) are the work. {ms:.3} ms of the outer scopes lie in no inner one: whether the GPU worked then is not known, and the figures count that time as idle."
            ));
        }
        Ok(())
    }

    /// Returns the process of a row of the file and the queue that stands for it.
    fn queue_of_row(&mut self, lane: u32, device: u32) -> (ProcessId, QueueId) {
        let lane = &self.lanes.all[lane as usize];
        let (process, thread) = (lane.process, lane.thread.0);
        let name = match &lane.name {
            Some(name) => name.to_string(),
            None => format!("row {thread}"),
        };
        let inventory = &mut self.profile.inventory;
        let device = inventory.device(process, Some(device), |row| {
            row.api = Api::Unknown;
            row.name = format!("{UNKNOWN_GPU} {device}");
        });
        (process, inventory.add_queue(device, Some(name)))
    }
}

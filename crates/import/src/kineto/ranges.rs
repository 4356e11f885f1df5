//! Writes ranges of the host (operators, functions of Python, ranges of other profilers) as markers of threads. A
//! range comes as one event, as a beginning and an end on one thread, or as those of an asynchronous range.

use super::category::Category;
use super::collect::{Collector, HOST};
use super::event::Event;
use super::facts::{Lane, OpenRange};
use crate::Error;
use crate::profile::Span;
use gapscope_timeline_builder::rows;
use gapscope_trace::build::TextId;
use gapscope_trace::tables::{Marker, MarkerScope};
use std::sync::Arc;

impl Collector<'_, '_> {
    /// Writes a marker of a lane (a host thread, by its index), and lets the trace write its rows every 1024 markers.
    fn marker(
        &mut self,
        lane: u32,
        (name, domain, category): (TextId, TextId, Option<TextId>),
        span: Span,
        payload: Option<Arc<str>>,
    ) -> Result<(), Error> {
        let labels = &mut self.profile.inventory.labels;
        let label = labels.label(None, name);
        let lane = &mut self.lanes.all[lane as usize];
        lane.ranges += 1;
        lane.first = lane.first.or(Some(name));
        let Lane {
            process, thread, ..
        } = *lane;
        self.markers += 1;
        let (start_ns, duration_ns) = (Some(span.start_ns), Some(span.duration_ns));
        let row = rows::marker_row(process, MarkerScope::Thread, label, start_ns, duration_ns);
        let row = Marker {
            thread: Some(thread),
            domain: Some(labels.shared_text(domain)),
            category: category.map(|category| labels.shared_text(category)),
            payload,
            ..row
        };
        rows::marker(self.new.tables_mut(), row);
        match self.markers % 1024 {
            0 => self.new.flush(),
            _ => Ok(()),
        }
    }

    /// Writes the marker of an operator or of a function of Python.
    pub(super) fn range(
        &mut self,
        event: &Event,
        domain: &[u8],
        span: Span,
        payload: Option<Arc<str>>,
    ) -> Result<(), Error> {
        let Some(lane) = self.lane(event) else {
            return Ok(());
        };
        self.lanes.all[lane as usize].is_host = true;
        let (name, domain) = (self.text(event.name), self.text(domain));
        self.marker(lane, (name, domain, None), span, payload)
    }

    /// Adds a range of the host that another profiler than PyTorch's wrote.
    pub(super) fn other_range(&mut self, event: &Event, span: Span) -> Result<(), Error> {
        let Some(lane) = self.lane(event) else {
            return Ok(());
        };
        let (name, domain) = (self.text(event.name), self.text(HOST));
        let category = self.category_text(event.category);
        self.marker(lane, (name, domain, category), span, None)
    }

    /// Returns the id of a category; `None` for an empty one.
    fn category_text(&mut self, category: &[u8]) -> Option<TextId> {
        (!category.is_empty()).then(|| self.text(category))
    }

    /// Opens a range of a thread, inside those that are open, or ends the innermost one.
    pub(super) fn of_thread(&mut self, event: &Event, begins: bool) -> Result<(), Error> {
        let key = [event.pid, b"\0", event.tid].concat();
        let unpaired = self.open.of_threads.entry(key.into()).or_default();
        let ended = unpaired.take(event, begins);
        self.ended(event.args, event.start_ns, ended)
    }

    /// Begins or ends a range whose beginning and end have one category, name and id.
    pub(super) fn asynchronous(&mut self, event: &Event, begins: bool) -> Result<(), Error> {
        let key = [event.category, event.name, event.id].map(|text| self.text(text));
        let unpaired = self.open.asynchronous.entry(key.into()).or_default();
        let ended = unpaired.take(event, begins);
        self.ended(event.args, event.start_ns, ended)
    }

    /// Takes a range with its end, which has arguments and a time, as a complete event.
    fn ended(
        &mut self,
        args: &[u8],
        end_ns: Option<i64>,
        range: Option<OpenRange>,
    ) -> Result<(), Error> {
        let Some(mut range) = range else {
            return Ok(());
        };
        range.add_args(args);
        self.complete(&range.complete(end_ns))
    }

    /// Takes the ranges whose ends stand before their beginnings, as where a file's events are in reverse order.
    ///
    /// # Errors
    /// The trace cannot be written.
    pub(super) fn pair_ranges_by_time(&mut self) -> Result<(), Error> {
        let mut open = std::mem::take(&mut self.open);
        for unpaired in open.all_mut() {
            for (begin, end) in unpaired.pairs_by_time() {
                self.ended(&end.args, end.start_ns, Some(begin))?;
            }
        }
        self.open = open;
        Ok(())
    }

    /// Takes the work that began and never ended: its times are not known.
    pub(super) fn take_open_work(&mut self) {
        let mut open = std::mem::take(&mut self.open);
        for unpaired in open.all_mut() {
            unpaired.begins.retain(|range| {
                let event = range.complete(None);
                let category = self.category(&event);
                if category.is_work() {
                    self.device_event(&event, category);
                }
                !category.is_work()
            });
        }
        self.open = open;
    }

    /// Writes an instant as a marker without duration, or a value of PyTorch's memory as one of its counters. Work is work,
    /// whatever the phase of its event.
    pub(super) fn instant(&mut self, event: &Event) -> Result<(), Error> {
        if Category::parse(event.category).is_work() {
            return self.complete(event);
        }
        let Some(at_ns) = self.moment(event) else {
            return Ok(());
        };
        if event.name == b"[memory]" {
            let tables = self.new.tables_mut();
            self.counters.memory(event.args, at_ns, tables);
            return Ok(());
        }
        if event.name == b"Record Window End" {
            self.end_ns = self.end_ns.max(Some(at_ns));
        }
        // The profiler's own marks belong to no thread.
        if event.pid == b"Traces" || event.pid.is_empty() {
            return Ok(());
        }
        self.other_range(event, Span::between(at_ns, at_ns))
    }

    /// Counts the ranges that began and never ended, and the ends without a beginning, as losses.
    pub(super) fn finish_ranges(&mut self) {
        let open = std::mem::take(&mut self.open);
        let count: usize = open.all().map(|unpaired| unpaired.begins.len()).sum();
        let reason = "their end is not in the file";
        (self.profile.inventory).lose("ranges", count as u64, reason);
        for end in open.all().flat_map(|unpaired| &unpaired.ends) {
            let reason = "their beginning is not in the file";
            self.lost("ends of ranges", &end.category, reason);
        }
    }
}

//! Writes ranges of the host (operators, annotations, functions of Python) as markers of threads.

use super::collect::{Collector, HOST};
use super::event::Event;
use super::facts::{Lane, OpenRange};
use super::texts::TextId;
use crate::Error;
use gapscope_model::LossKind;
use gapscope_timeline_builder::rows;
use gapscope_trace::ids::LabelId;
use gapscope_trace::tables::{Marker, MarkerScope};
use std::sync::Arc;

impl Collector<'_, '_> {
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

    /// Writes a marker of a lane; its times are the start and the duration.
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
        let scope = MarkerScope::Thread;
        let row = rows::marker_row(process, scope, label, Some(start_ns), Some(duration_ns));
        let row = Marker {
            thread: Some(thread),
            domain: Some(self.texts.get(domain).clone()),
            category,
            payload,
            ..row
        };
        rows::marker(self.new.tables_mut(), row);
        match self.markers % 1024 {
            0 => self.new.flush(),
            _ => Ok(()),
        }
    }

    pub(super) fn range(
        &mut self,
        event: &Event,
        domain: &[u8],
        times: (i64, i64),
        payload: Option<Arc<str>>,
    ) -> Result<(), Error> {
        let Some(lane) = self.lane(event) else {
            return Ok(());
        };
        let (name, domain) = (self.texts.id(event.name), self.texts.id(domain));
        self.marker(lane, (name, domain, None), times, payload)
    }

    /// Adds a range of the host that another profiler than PyTorch's wrote.
    pub(super) fn other_range(&mut self, event: &Event, times: (i64, i64)) -> Result<(), Error> {
        let Some(lane) = self.lane(event) else {
            return Ok(());
        };
        let (name, domain) = (self.texts.id(event.name), self.texts.id(HOST));
        let category = self.category_text(event.category);
        self.marker(lane, (name, domain, category), times, None)
    }

    fn category_text(&mut self, category: &[u8]) -> Option<TextId> {
        (!category.is_empty()).then(|| self.texts.id(category))
    }

    pub(super) fn begin(&mut self, event: &Event) {
        let Some(start_ns) = self.moment(event) else {
            return;
        };
        let (name, category) = (
            self.texts.id(event.name),
            self.category_text(event.category),
        );
        let Some(lane) = self.lane(event) else {
            return;
        };
        self.lanes.all[lane as usize].open.push(OpenRange {
            name,
            category,
            start_ns,
        });
    }

    /// Ends the innermost open range of a lane and writes its marker.
    pub(super) fn end(&mut self, event: &Event) -> Result<(), Error> {
        let Some(end_ns) = self.moment(event) else {
            return Ok(());
        };
        let Some(lane) = self.lane(event) else {
            return Ok(());
        };
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

    /// Begins or ends a range whose beginning and end have one category, name and id.
    pub(super) fn asynchronous(&mut self, event: &Event, begins: bool) -> Result<(), Error> {
        let Some(at_ns) = self.moment(event) else {
            return Ok(());
        };
        let (name, category) = (self.texts.id(event.name), self.texts.id(event.category));
        let key = (category, name, self.texts.id(event.id));
        if begins {
            if let Some(lane) = self.lane(event) {
                self.pending.entry(key).or_default().push((lane, at_ns));
            }
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

    pub(super) fn instant(&mut self, event: &Event) -> Result<(), Error> {
        let Some(at_ns) = self.moment(event) else {
            return Ok(());
        };
        if event.name == b"[memory]" {
            let tables = self.new.tables_mut();
            self.counters.memory(event.args, at_ns, tables);
            return Ok(());
        }
        // The profiler's own marks belong to no thread.
        if event.pid == b"Traces" || event.pid.is_empty() {
            return Ok(());
        }
        self.other_range(event, (at_ns, 0))
    }

    /// Adds the ranges that began and never ended.
    pub(super) fn finish_ranges(&mut self) {
        let open: usize = self.lanes.all.iter().map(|lane| lane.open.len()).sum();
        let pending: usize = self.pending.values().map(Vec::len).sum();
        let reason = "their end is not in the file";
        let ranges = LossKind::Other("ranges".into());
        self.ledger.add(ranges, (open + pending) as u64, reason);
    }
}

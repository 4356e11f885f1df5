//! Findings about the work under some labels.

use crate::finding::Finding;
use crate::intervals::Interval;
use crate::latency;
use crate::timeline::Timeline;
use crate::{Findings, Options};
use gapscope_trace::Trace;
use gapscope_trace::ids::{CommandBufferId, Id, LabelId, SubmissionId};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::optional::Optional;
use gapscope_trace::tables::{Dispatches, Table, Tables};

/// The columns of a table of work that say where its rows belong.
struct Owners<'a> {
    command_buffers: &'a Optional<CommandBufferId>,
    labels: &'a Optional<LabelId>,
    submissions: &'a Optional<SubmissionId>,
}

macro_rules! owners {
    ($rows:expr) => {
        Owners {
            command_buffers: &$rows.command_buffer,
            labels: &$rows.label,
            submissions: &$rows.submission,
        }
    };
}

/// The work under labels that contain a text.
#[derive(Debug)]
pub struct UnderLabel {
    /// What is found about it, and when it ran; `None` when there is no such work.
    part: Option<(Findings, Option<Interval>)>,
    submissions: Marked<SubmissionId>,
}

impl UnderLabel {
    /// Finds the work of a trace, whose dispatches `feed` hands over, twice, as it does for [`Timeline::of_pieces`]. `None`
    /// where it gives none.
    pub fn of(
        trace: &Trace,
        text: &str,
        options: &Options,
        feed: impl Fn(&mut (dyn FnMut(&Dispatches) + Send)) -> Option<()>,
    ) -> Option<UnderLabel> {
        let mut under = Under::of(trace, text);
        let mut dispatches = 0;
        feed(&mut |piece| dispatches += under.add(owners!(piece)))?;
        if !under.any {
            return Some(UnderLabel {
                part: None,
                submissions: under.submissions,
            });
        }
        let part = under.trace(trace);
        let (timeline, ()) = Timeline::of_pieces(&part, dispatches, |take| {
            feed(&mut |piece| take(&piece.select(&under.selected(&owners!(piece)))))
        })?;
        let options = Options {
            exclude_warm_up: false,
            ..options.clone()
        };
        let findings = Findings::of_timeline(&timeline, &options);
        Some(UnderLabel {
            part: Some((findings, timeline.work_window())),
            submissions: under.submissions,
        })
    }

    /// Findings about that work, on the timeline of the whole trace; `None` when there is no such work.
    ///
    /// Counts and tables are of that work only. Gaps and verdict are of the whole device from the first such work to the
    /// last with known times, since what runs in between keeps the device busy whatever its label.
    pub fn findings(self, timeline: &Timeline, options: &Options) -> Option<Findings> {
        let (part, window) = self.part?;
        let options = Options {
            window,
            ..options.clone()
        };
        let whole = Findings::of_timeline(timeline, &options);
        Some(Findings {
            analysed_window: whole.analysed_window,
            verdict: whole.verdict,
            verdict_evidence: whole.verdict_evidence,
            devices: whole.devices,
            gaps: whole.gaps,
            idle_time: whole.idle_time,
            fill: whole.fill,
            warm_up: whole.warm_up,
            memory: whole.memory,
            counters: whole.counters,
            conditions: whole.conditions,
            // What such work waited for may be other work.
            latency: Finding {
                value: latency::latency_of(timeline, |id| self.submissions.has(id)),
                ..whole.latency
            },
            ..part
        })
    }
}

/// Rows of a table that are marked, by their ids.
#[derive(Debug, Clone)]
struct Marked<I> {
    ids: IdIndex<I>,
    rows: Vec<bool>,
}

impl<I: Id> Marked<I> {
    fn none(ids: &[I]) -> Marked<I> {
        Marked {
            ids: IdIndex::new(ids),
            rows: vec![false; ids.len()],
        }
    }

    fn mark(&mut self, id: I) {
        if let Some(row) = self.ids.get(id) {
            self.rows[row] = true;
        }
    }

    fn has(&self, id: I) -> bool {
        self.ids.get(id).is_some_and(|row| self.rows[row])
    }

    fn all(&self, ids: &[I]) -> Vec<bool> {
        ids.iter().map(|id| self.has(*id)).collect()
    }
}

/// What of a trace is under the labels.
struct Under {
    labels: Marked<LabelId>,
    /// Command buffers that are under them.
    around: Marked<CommandBufferId>,
    /// Command buffers with work that is.
    command_buffers: Marked<CommandBufferId>,
    submissions: Marked<SubmissionId>,
    any: bool,
}

impl Under {
    /// All but the dispatches.
    fn of(trace: &Trace, text: &str) -> Under {
        let tables = &trace.tables;
        let rows = &tables.labels;
        let mut labels = Marked::none(&rows.id);
        for row in 0..rows.len() {
            let matches = |row: usize| rows.text[row].contains(text);
            if rows.outwards(&labels.ids, row).any(matches) {
                labels.mark(rows.id[row]);
            }
        }
        let rows = &tables.command_buffers;
        let mut around = Marked::none(&rows.id);
        for (id, label) in rows.id.iter().zip(&rows.label) {
            if label.is_some_and(|label| labels.has(label)) {
                around.mark(*id);
            }
        }
        let mut under = Under {
            labels,
            any: around.rows.contains(&true),
            command_buffers: around.clone(),
            around,
            submissions: Marked::none(&tables.submissions.id),
        };
        under.add(owners!(tables.transfers));
        under.add(owners!(tables.opaque_work));
        under
    }

    /// Which rows are selected: those under the labels by themselves, or by their command buffer.
    fn selected(&self, work: &Owners) -> Vec<bool> {
        let rows = work.labels.iter().zip(work.command_buffers);
        rows.map(|(label, command_buffer)| match label {
            Some(label) => self.labels.has(label),
            None => command_buffer.is_some_and(|id| self.around.has(id)),
        })
        .collect()
    }

    /// Marks where the selected rows belong, and gives their number.
    fn add(&mut self, work: Owners) -> usize {
        let mut count = 0;
        let selected = self.selected(&work).into_iter().enumerate();
        for (row, _) in selected.filter(|(_, selected)| *selected) {
            count += 1;
            if let Some(id) = work.command_buffers.at(row) {
                self.command_buffers.mark(id);
            }
            if let Some(id) = work.submissions.at(row) {
                self.submissions.mark(id);
            }
        }
        self.any |= count > 0;
        count
    }

    /// The work as a trace of its own, without its dispatches, once those have been added.
    fn trace(&mut self, whole: &Trace) -> Trace {
        let from = &whole.tables;
        let command_buffers = self.command_buffers.all(&from.command_buffers.id);
        let command_buffers = from.command_buffers.select(&command_buffers);
        for submission in &command_buffers.submission {
            self.submissions.mark(*submission);
        }
        let submissions = self.submissions.all(&from.submissions.id);
        Trace {
            manifest: whole.manifest.clone(),
            tables: Tables {
                command_buffers,
                submissions: from.submissions.select(&submissions),
                transfers: from
                    .transfers
                    .select(&self.selected(&owners!(from.transfers))),
                opaque_work: from
                    .opaque_work
                    .select(&self.selected(&owners!(from.opaque_work))),
                kernels: from.kernels.clone(),
                labels: from.labels.clone(),
                markers: from.markers.clone(),
                buffers: from.buffers.clone(),
                bindings: from.bindings.clone(),
                ..Tables::default()
            },
            unread: whole.unread.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "
        device id=1
        queue id=1 device=1
        label id=1 text=step
        label id=2 text=matmul parent=1
        label id=3 text=other
        submission id=1 process=1 queue=1 thread=1 start_ns=0 duration_ns=10
        command_buffer id=1 process=1 queue=1 submission=1 dispatches=3
        command_buffer id=2 process=1 queue=1 submission=1 dispatches=1 label=3
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=100us duration_ns=100us label=1
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=200us duration_ns=100us
        dispatch command_buffer=1 queue=1 kernel=1 start_ns=400us duration_ns=100us label=2
        dispatch command_buffer=2 queue=1 kernel=1 start_ns=500us duration_ns=100us";

    fn under(text: &str) -> Option<Findings> {
        under_in(TRACE, text)
    }

    fn under_in(trace: &str, text: &str) -> Option<Findings> {
        let trace = Trace::from_text(trace).unwrap();
        let options = Options::default();
        let feed = |take: &mut (dyn FnMut(&Dispatches) + Send)| {
            take(&trace.tables.dispatches);
            Some(())
        };
        let under = UnderLabel::of(&trace, text, &options, feed).unwrap();
        under.findings(&Timeline::of(&trace), &options)
    }

    #[test]
    fn labels_inside_count_and_other_work_does_not() {
        let findings = under("step").unwrap();
        assert_eq!(findings.dispatch_count, 2);
        assert_eq!(findings.gpu_busy_ns, Some(200_000));
        assert_eq!(under("matmul").unwrap().dispatch_count, 1);
    }

    #[test]
    fn other_work_in_between_is_no_gap() {
        let findings = under("step").unwrap();
        assert_eq!(findings.idle_time.total_ns, 100_000);
    }

    #[test]
    fn a_command_buffers_label_is_its_works() {
        assert_eq!(under("other").unwrap().dispatch_count, 1);
    }

    #[test]
    fn an_unknown_label_has_no_findings() {
        assert_eq!(under("nothing"), None);
    }

    #[test]
    fn labels_that_are_each_others_parents_end() {
        let text = TRACE.replace("id=1 text=step", "id=1 text=step parent=2");
        assert!(under_in(&text, "nothing").is_none());
    }
}

//! Labels that the program set through the SDK, which Instruments records as signposts.

use super::super::facts::{Mark, Signpost};
use super::{Builder, PROCESS, thread_id};
use gapscope_trace::LossKind;
use gapscope_trace::ids::{LabelId, ThreadId};
use gapscope_trace::tables::{Marker, MarkerScope, Table};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The innermost label of each thread at each time.
#[derive(Debug, Default)]
pub(super) struct ThreadLabels(FxHashMap<Option<ThreadId>, Vec<Change>>);

/// From a time on.
#[derive(Debug, Clone, Copy)]
struct Change {
    at_ns: i64,
    label: Option<LabelId>,
}

impl ThreadLabels {
    pub fn at(&self, thread: Option<ThreadId>, ns: i64) -> Option<LabelId> {
        let changes = self.0.get(&thread)?;
        let after = changes.partition_point(|change| change.at_ns <= ns);
        changes[..after].last()?.label
    }
}

/// A label that has begun.
struct Open {
    id: u64,
    label: LabelId,
    /// Its place among `markers`.
    marker: usize,
}

impl Builder {
    /// Adds the markers.
    pub(super) fn program_labels(&mut self) -> ThreadLabels {
        let mut signposts = std::mem::take(&mut self.facts.signposts);
        signposts.retain(|signpost| self.is_target(signpost.pid));
        // The rows of one thread stand in order; a signpost is in each table of its run that takes its category.
        signposts.sort_by_key(|signpost| signpost.at_ns);
        let mut seen = rustc_hash::FxHashSet::default();
        signposts.retain(|signpost| seen.insert((signpost.id, signpost.mark)));

        let mut labels = ThreadLabels::default();
        let mut open: FxHashMap<Option<ThreadId>, Vec<Open>> = FxHashMap::default();
        let mut markers = Vec::new();
        let mut unbegun = 0;
        for Signpost {
            at_ns,
            mark,
            tid,
            id,
            text,
            ..
        } in signposts
        {
            let thread = tid.map(thread_id);
            let stack = open.entry(thread).or_default();
            let text = text.as_deref().unwrap_or_default();
            match mark {
                Mark::Begin | Mark::Event => {
                    let around = stack.last().map(|open| open.label);
                    let label = self.labels.named(around, text);
                    let at = self.base_ns.saturating_add(at_ns);
                    markers.push(Marker {
                        process: PROCESS,
                        scope: MarkerScope::Thread,
                        label,
                        queue: None,
                        thread,
                        command_buffer: None,
                        start_ns: Some(at),
                        duration_ns: (mark == Mark::Event).then_some(0),
                        domain: None,
                        category: None,
                        payload: None,
                    });
                    if mark == Mark::Begin {
                        let marker = markers.len() - 1;
                        stack.push(Open { id, label, marker });
                    }
                }
                Mark::End => match stack.iter().rposition(|open| open.id == id) {
                    Some(place) => {
                        let ended: &mut Marker = &mut markers[stack.remove(place).marker];
                        let at = self.base_ns.saturating_add(at_ns);
                        ended.duration_ns = ended.start_ns.map(|start_ns| at - start_ns);
                    }
                    None => unbegun += 1,
                },
            }
            labels.0.entry(thread).or_default().push(Change {
                at_ns,
                label: stack.last().map(|open| open.label),
            });
        }
        let unended: usize = open.values().map(Vec::len).sum();
        self.facts.losses.add(
            LossKind::Other(Cow::Borrowed("starts of labels")),
            unbegun,
            "they began before the recording",
        );
        self.facts.losses.add(
            LossKind::Other(Cow::Borrowed("ends of labels")),
            unended as u64,
            "they were open when the recording ended",
        );
        for marker in markers {
            self.trace.tables.markers.push(marker);
        }
        labels
    }
}

//! Adds the labels that the program set through gapscope's SDK, which Instruments records as signposts (messages of a
//! program to Instruments): a begin and an end for each label, or one event for an instant.

use super::super::facts::{Mark, Signpost};
use super::{Builder, PROCESS, thread_id};
use gapscope_timeline_builder::{
    CategoryId, LabelDomain, LabelKey, LabelRows, LabelScope, LabelStart, ThreadLabels,
};
use gapscope_trace::LossKind;
use gapscope_trace::ids::ThreadId;
use rustc_hash::FxHashMap;

impl Builder {
    /// Writes the labels, and returns them for the work of their threads. An end closes the last begin of its id on
    /// its thread; an end without a begin, and a begin without an end, count as losses.
    pub(super) fn program_labels(&mut self) -> ThreadLabels {
        let mut signposts = std::mem::take(&mut self.facts.signposts);
        signposts.retain(|signpost| self.is_target(signpost.pid));
        // The rows of a thread must be in order. A signpost is in each table of its run that takes its category.
        signposts.sort_by_key(|signpost| signpost.at_ns);
        let mut seen = rustc_hash::FxHashSet::default();
        signposts.retain(|signpost| seen.insert((signpost.id, signpost.mark)));

        let mut labels = ThreadLabels::default();
        let mut open: FxHashMap<(Option<ThreadId>, u64), Vec<LabelKey>> = FxHashMap::default();
        let out = &mut LabelRows {
            process: PROCESS,
            labels: &mut self.labels,
            tables: &mut self.trace.tables,
        };
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
            let at_ns = self.base_ns.saturating_add(at_ns);
            let start = LabelStart {
                thread,
                domain: LabelDomain::Program(0),
                text: out.labels.text(text.as_deref().unwrap_or_default()),
                at_ns,
                category: CategoryId::default(),
                payload: None,
                labels_work: true,
                has_row: true,
            };
            let of_signpost = open.entry((thread, id)).or_default();
            match mark {
                Mark::Begin => {
                    of_signpost.push(labels.begin(start, out));
                }
                Mark::Event => labels.instant(start, out),
                Mark::End => match of_signpost.pop() {
                    Some(key) => labels.end(thread, LabelScope::Key(key), at_ns, out),
                    None => unbegun += 1,
                },
            }
        }
        let unended: usize = open.values().map(Vec::len).sum();
        self.facts.losses.add(
            LossKind::LabelStarts,
            unbegun,
            "they began before the recording",
        );
        self.facts.losses.add(
            LossKind::LabelEnds,
            unended as u64,
            "they were open when the recording ended",
        );
        labels
    }
}

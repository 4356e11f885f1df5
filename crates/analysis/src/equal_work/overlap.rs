//! Finds what speaks against comparing two labels: one may lie in the other, and other threads may have launched work of a label.
//!
//! The engine of PyTorch's autograd launches the work of a backward pass from a thread of its own, which is in no label of the thread
//! that called it. Work that a thread launches outside of all labels may belong to a label of another thread of its process,
//! where nearly all of that work is launched while the label is open, although it is open for a part of the time only.

use super::extent::Instances;
use crate::labels::LabelTree;
use gapscope_timeline::Timeline;
use gapscope_timeline::intervals::{Interval, length_ns, union};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{MEANWHILE_OPEN_SHARE, MEANWHILE_SHARE};
use gapscope_trace::ids::{ProcessId, ThreadId};
use gapscope_trace::lookup::NONE;
use rustc_hash::FxHashMap;

/// Returns the side whose labels lie around labels with work of the other side; `None` where none do.
pub(super) fn outer_side(
    timeline: &Timeline,
    tree: &LabelTree,
    instances: &Instances,
) -> Option<usize> {
    let mut has_work = vec![false; tree.count()];
    for gpu in &timeline.gpus {
        for work in &gpu.works {
            if let Some(has) =
                has_work.get_mut(tree.node_of_row(timeline.label_row_of(&work)) as usize)
            {
                *has = true;
            }
        }
    }
    let around = |node: usize| std::iter::successors(Some(node), |node| tree.parent(*node));
    let used = (0..tree.count()).filter(|node| has_work[*node]);
    let mut outer = used.filter_map(|node| {
        let mut sides = around(node).filter_map(|node| instances.side_at(node));
        let inner = sides.next()?;
        sides.find(|side| *side != inner)
    });
    outer.next()
}

/// The work that a thread launched outside of all labels.
#[derive(Default)]
struct Unlabelled {
    all_ns: i64,
    /// The part of it that was launched while a label of each side was open on another thread.
    meanwhile_ns: Vec<i64>,
    called: Option<Interval>,
}

/// Returns for each side the time of work outside of all labels that may belong to the side's labels.
pub(super) fn meanwhile_ns(
    timeline: &Timeline,
    tree: &LabelTree,
    instances: &Instances,
    sides: usize,
) -> Vec<i64> {
    let submissions = &timeline.trace.tables.submissions;
    let mut threads: FxHashMap<(ProcessId, ThreadId), Unlabelled> = FxHashMap::default();
    timeline.each_work(|work| {
        if tree.node_of_row(timeline.label_row_of(work)) != NONE {
            return;
        }
        let row = timeline.submission_of(work) as usize;
        let (Some(process), Some(thread)) =
            (submissions.process.get(row), submissions.thread.get(row))
        else {
            return;
        };
        let called_ns = submissions.start_ns[row];
        let unlabelled = threads
            .entry((*process, thread))
            .or_insert_with(|| Unlabelled {
                meanwhile_ns: vec![0; sides],
                ..Unlabelled::default()
            });
        let ns = work.interval.length_ns();
        unlabelled.all_ns = unlabelled.all_ns.saturating_add(ns);
        let called = Interval::new(called_ns, submissions.end_ns(row));
        unlabelled.called = Some(unlabelled.called.map_or(called, |all| all.hull(called)));
        for (side, meanwhile_ns) in unlabelled.meanwhile_ns.iter_mut().enumerate() {
            if instances.is_open(side, *process, called_ns) {
                *meanwhile_ns = meanwhile_ns.saturating_add(ns);
            }
        }
    });
    let mut sums = vec![0; sides];
    for ((process, _), unlabelled) in threads {
        let Some(called) = unlabelled.called else {
            continue;
        };
        for (side, sum) in sums.iter_mut().enumerate() {
            let ns = unlabelled.meanwhile_ns[side];
            if ratio(ns, unlabelled.all_ns) < MEANWHILE_SHARE {
                continue;
            }
            let mut open: Vec<Interval> = (instances.open(side, process))
                .map(|open| open.intersection(called))
                .collect();
            union(&mut open);
            if ratio(length_ns(&open), called.length_ns()) <= MEANWHILE_OPEN_SHARE {
                *sum = i64::saturating_add(*sum, ns);
            }
        }
    }
    sums
}

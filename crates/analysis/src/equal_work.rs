//! Compares equal work: two parts of a trace, or two traces, that do the same work in different ways.
//!
//! A program with faster kernels can leave the device idle for longer between them, so a busy share says nothing about speed.
//! What counts is the cost of the same work: dispatches, command buffers, bytes, busy time, time from start to end.
//!
//! Where the sides are labels, each instance of a label is an *evaluation*, and each evaluation a sample: figures are medians of
//! evaluations, and [`crate::samples`] says whether a difference is more than their spread. Evaluations in the
//! [warm-up](crate::warm_up) are left out, and so is the first evaluation of a side if code is compiled, loaded or first run in
//! it. Elsewhere figures are totals, and comparing them is right only when both sides did the work equally often.
//!
//! What this cannot know: whether both parts really do equal work. That is the caller's claim.
//!
//! Order: `extent.rs` tells which side and evaluation a piece of work belongs to; `measure.rs` sums the work up;
//! `cost.rs` makes a [`WorkCost`] of the sums of a side; [`compare`] compares two costs, with `comparison.rs`,
//! `changes.rs` and `sentences.rs`.

mod changes;
mod comparison;
mod cost;
mod difference;
mod extent;
mod figure;
mod measure;
mod overlap;
mod place;
mod sentences;
mod sum;
mod unknown;
mod work_cost;

pub use comparison::{Basis, CauseChange, KernelChange, Ratio, WorkComparison};
pub use figure::Figure;
pub use work_cost::{LeftOut, Reason, WorkCost};

use crate::labels::LabelTree;
use crate::warm_up::FirstUses;
use comparison::CopyEvidence;
use extent::{Extent, Instances};
use gapscope_timeline::Timeline;
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::label_match::LabelName;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::SAME_KERNELS;

/// The columns of markers that tell which work lies in which evaluation. Without them the number of evaluations is known, but
/// not which work is whose: there are no samples.
pub(crate) const MARKERS: &[&str] = &[
    "scope",
    "queue",
    "thread",
    "command_buffer",
    "start_ns",
    "duration_ns",
];

impl WorkCost {
    /// Measures the work under the labels that each of `names` means ([`LabelName`]), with all work inside these
    /// labels, and returns a cost for each name. A label counts wherever it nests. `bindings` give the bytes that
    /// dispatches have bound. Without `first_uses` no evaluation is left out as warm-up.
    pub fn from_labels(
        timeline: &Timeline,
        bindings: &BindingSets,
        names: &[&str],
        first_uses: Option<&FirstUses>,
    ) -> Vec<WorkCost> {
        let tree = LabelTree::new(timeline.trace);
        let labels = names
            .iter()
            .map(|name| LabelName::new(timeline.trace, name));
        let labels: Vec<LabelName> = labels.collect();
        // The number of the side that a node of the tree belongs to.
        let side = |node: usize| LabelName::first_of(&labels, tree.text(node));
        let instances = Instances::new(timeline, &tree, &side);
        let outer = overlap::outer_side(timeline, &tree, &instances);
        let meanwhile_ns = overlap::meanwhile_ns(timeline, &tree, &instances, names.len());
        let extent = Extent::Labels(instances);
        let mut works = costs(timeline, bindings, names, &extent, first_uses);
        for (side, (work, meanwhile_ns)) in works.iter_mut().zip(meanwhile_ns).enumerate() {
            work.is_around_other = outer == Some(side);
            work.meanwhile_ns = (meanwhile_ns > 0).then_some(meanwhile_ns);
        }
        works
    }

    /// Measures the work under the labels whose path (texts from the outermost label on, joined by ` / `) `matches`, with all
    /// work inside them. Labels with the same text in different places are different labels here.
    pub fn from_label_path(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        first_uses: Option<&FirstUses>,
        matches: impl Fn(&str) -> bool,
    ) -> WorkCost {
        let tree = LabelTree::new(timeline.trace);
        // The only side is number 0.
        let side = |node: usize| matches(&tree.path(node)).then_some(0);
        let extent = Extent::Labels(Instances::new(timeline, &tree, &side));
        let mut works = costs(timeline, bindings, &[name], &extent, first_uses);
        works.pop().unwrap_or_default()
    }

    /// Measures all work of a trace.
    pub fn from_trace(timeline: &Timeline, bindings: &BindingSets, name: &str) -> WorkCost {
        let mut works = costs(timeline, bindings, &[name], &Extent::All, None);
        works.pop().unwrap_or_default()
    }

    /// Measures the work that starts in `window`.
    pub fn from_window(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        window: Interval,
    ) -> WorkCost {
        let mut works = costs(timeline, bindings, &[name], &Extent::Window(window), None);
        works.pop().unwrap_or_default()
    }
}

/// Measures the work in `extent`, whose sides have the given names, and returns the cost of each side.
fn costs(
    timeline: &Timeline,
    bindings: &BindingSets,
    names: &[&str],
    extent: &Extent,
    first_uses: Option<&FirstUses>,
) -> Vec<WorkCost> {
    let measured = measure::measure(timeline, bindings, extent, names.len());
    (names.iter().enumerate())
        .map(|(number, name)| cost::cost(timeline, extent, &measured, (number, name), first_uses))
        .collect()
}

/// Compares the work under two labels of one trace. Returns `None` when one of the labels has no work.
pub fn equal_work(
    timeline: &Timeline,
    bindings: &BindingSets,
    first_uses: Option<&FirstUses>,
    before: &str,
    after: &str,
) -> Option<WorkComparison> {
    let works = WorkCost::from_labels(timeline, bindings, &[before, after], first_uses);
    let [before, after] = <[WorkCost; 2]>::try_from(works).ok()?;
    let has_none = |work: &WorkCost| work.is_empty() && work.meanwhile_ns.is_none();
    (!has_none(&before) && !has_none(&after)).then(|| compare(before, after))
}

/// Compares two works that are meant to be equal in what they do.
pub fn compare(before: WorkCost, after: WorkCost) -> WorkComparison {
    let counted = |work: &WorkCost| work.evaluations.is_some_and(|n| n > 0);
    let per_evaluation = counted(&before) && counted(&after);
    let shared = before.shared_kernels(&after);
    // The basis of the claim that both did equal work. The caller's labels count for more than common kernels, since fusion
    // changes kernels, but not where one side launched none.
    let few = shared.is_some_and(|(common, all)| ratio(common as i64, all as i64) < SAME_KERNELS);
    let mut comparison = WorkComparison {
        per_evaluation,
        basis: match shared {
            _ if before.is_around_other || after.is_around_other => Basis::Nested,
            _ if before.lacks_work() || after.lacks_work() => Basis::OtherThreads,
            _ if before.only_one_dispatches(&after) => Basis::NoCommonKernel,
            _ if per_evaluation => Basis::Labels,
            Some((0, _)) => Basis::NoCommonKernel,
            _ if few => Basis::FewCommonKernels,
            _ => Basis::Claim,
        },
        few_common_kernels: few,
        launch_sizes: None,
        size_sentences: Vec::new(),
        copy_sizes: CopyEvidence::Equal,
        common_kernels: shared.map(|(common, _)| common),
        all_kernels: shared.map(|(_, all)| all),
        kernels: Vec::new(),
        causes: Vec::new(),
        ratios: (Figure::ALL.into_iter())
            .map(|figure| Ratio::new(figure, &before, &after, per_evaluation))
            .collect(),
        sentences: Vec::new(),
        before,
        after,
    };
    if let Some((evidence, sentences)) = changes::sizes(&comparison) {
        comparison.launch_sizes = Some(evidence);
        comparison.size_sentences = sentences;
    }
    comparison.copy_sizes = changes::copies(&comparison);
    comparison.kernels = changes::kernels(&comparison);
    comparison.causes = changes::causes(&comparison);
    comparison.sentences = sentences::sentences(&comparison);
    comparison
}

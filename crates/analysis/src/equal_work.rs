//! Equal work: two parts of a trace, or two traces, that do the same work in different ways.
//!
//! A faster program leaves the device idle for longer between its kernels, so a busy share says nothing about speed.
//! What counts is what the same work costs: dispatches, command buffers, bytes, busy time, time from start to end.
//!
//! Where the sides are labels, each instance of a label is an *evaluation*, and each evaluation a sample: figures are medians of
//! evaluations, and [`crate::samples`] says whether a difference is more than their spread. Evaluations in the
//! [warm-up](crate::warm_up) are left out, and so is the first of a side in which code is compiled, loaded or first run. Elsewhere
//! figures are totals, and comparing them is right only when both sides did the work equally often.
//!
//! What this cannot know: whether both parts really do equal work. That is the caller's claim.

mod changes;
mod cost;
mod extent;
mod measure;
mod place;
mod sentences;
mod sum;

use crate::bound_bytes::BindingSets;
use crate::gaps::GapTotal;
use crate::intervals::Interval;
use crate::labels::LabelTree;
use crate::quantity::ratio;
use crate::samples::{MedianRatio, Spread};
use crate::thresholds::SAME_KERNELS;
use crate::timeline::Timeline;
use crate::verdict::Bound;
use crate::warm_up::FirstUses;
use changes::KernelCost;
pub use changes::{CauseChange, KernelChange};
use extent::{Extent, Instances};
use gapscope_trace::manifest::Api;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Columns of markers that say which work lies in which evaluation. Without them evaluations are counted, and are no samples.
pub(crate) const MARKERS: &[&str] = &[
    "scope",
    "queue",
    "thread",
    "command_buffer",
    "start_ns",
    "duration_ns",
];

/// What a part of a trace cost. Counts, bytes and times are of all of its work, warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct WorkCost {
    /// The label, or what the caller calls the trace.
    pub name: String,
    /// How often the work was done: instances of the label. Absent when it is not known.
    pub evaluations: Option<u64>,
    /// Those of them that are samples; the others are left out, or it is not known what was done in them.
    pub counted_evaluations: u64,
    /// Evaluations that are no samples, and why.
    pub left_out: Vec<LeftOut>,
    /// Dispatches; absent where the trace does not record them.
    pub dispatch_count: Option<u64>,
    /// Why they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatches_unknown_because: Option<String>,
    /// Command buffers (CUDA: graph launches) with its work.
    pub command_buffer_count: Option<u64>,
    /// Submissions with its work.
    pub submission_count: Option<u64>,
    /// Bytes of the ranges bound for reading, summed over dispatches; absent unless all dispatches have bindings.
    pub bound_read_bytes: Option<u64>,
    /// The same for writing.
    pub bound_written_bytes: Option<u64>,
    /// Transfers.
    pub transfer_count: u64,
    /// Their bytes, where all are known.
    pub transfer_bytes: Option<u64>,
    /// Pieces of its work whose times are not known, and that are not in the times below.
    pub untimed_count: u64,
    /// Time in which at least one piece of the work ran.
    pub gpu_busy_ns: Option<i64>,
    /// From the start of its first piece to the end of its last; where pieces of the other work lie between, the sum
    /// over the stretches without them.
    pub wall_ns: Option<i64>,
    /// From the start of its first piece to the end of its last, without the evaluations that are left out.
    pub window: Option<Interval>,
    /// What bounds the speed in that window.
    pub verdict: Bound,
    /// The same in a sentence, or why it is not known.
    pub verdict_sentence: String,
    /// By figure, of the evaluations that count.
    #[serde(skip)]
    samples: [Vec<f64>; Figure::ALL.len()],
    /// An evaluation is a command buffer with the label, since passes have no other instances of labels.
    #[serde(skip)]
    by_command_buffers: bool,
    /// Pieces timed as a whole, which may hold dispatches that are not counted.
    #[serde(skip)]
    whole_count: u64,
    /// What each kernel that it ran cost, by the kernel's whole name.
    #[serde(skip)]
    kernels: BTreeMap<String, KernelCost>,
    /// Idle time in `window` by cause; absent where it is not known.
    #[serde(skip)]
    idle: Option<Vec<GapTotal>>,
    /// Whose words suit it.
    #[serde(skip)]
    api: Api,
}

/// Evaluations that are no samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Why.
    pub because: Reason,
    /// How many.
    pub count: u64,
}

/// Why an evaluation is no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It starts in the recording's warm-up.
    WarmUp,
    /// It is the first of its side, and code was compiled, loaded or first run in it.
    FirstUse,
    /// No GPU work was launched in it.
    NoWork,
    /// Some of its work may be of another evaluation.
    Unclear,
    /// The recording ended in it.
    Unfinished,
}

/// What of two works is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Figure {
    /// Dispatches.
    #[default]
    #[serde(rename = "dispatches")]
    Dispatches,
    /// Command buffers (CUDA: graph launches). One that several evaluations share counts for each in part.
    #[serde(rename = "command buffers")]
    CommandBuffers,
    /// Submissions; shared ones likewise.
    #[serde(rename = "submissions")]
    Submissions,
    /// Bytes of the ranges bound for reading and for writing.
    #[serde(rename = "bytes bound")]
    BoundBytes,
    /// Bytes that transfers wrote.
    #[serde(rename = "transfer bytes")]
    TransferBytes,
    /// Time in which the GPU was busy.
    #[serde(rename = "GPU busy ns")]
    GpuBusy,
    /// Time from the start of the first work to the end of the last.
    #[serde(rename = "wall ns")]
    Wall,
    /// Time from the start of an evaluation's work to the start of the next one's, where they follow each other and no other work
    /// starts in between: what an evaluation takes in a loop, the host's part included.
    #[serde(rename = "start to start ns")]
    Pace,
}

impl Figure {
    /// All of them.
    pub const ALL: [Figure; 8] = [
        Figure::Dispatches,
        Figure::CommandBuffers,
        Figure::Submissions,
        Figure::BoundBytes,
        Figure::TransferBytes,
        Figure::GpuBusy,
        Figure::Wall,
        Figure::Pace,
    ];

    /// True for times; the others are counts and bytes.
    pub const fn is_time(self) -> bool {
        matches!(self, Figure::GpuBusy | Figure::Wall | Figure::Pace)
    }

    fn total(self, work: &WorkCost) -> Option<f64> {
        let count = |count: Option<u64>| count.map(|count| count as f64);
        match self {
            Figure::Dispatches => count(work.dispatch_count),
            Figure::CommandBuffers => count(work.command_buffer_count),
            Figure::Submissions => count(work.submission_count),
            Figure::BoundBytes => count(work.bound_bytes()),
            Figure::TransferBytes => count(work.transfer_bytes),
            Figure::GpuBusy => work.gpu_busy_ns.map(|ns| ns as f64),
            Figure::Wall => work.wall_ns.map(|ns| ns as f64),
            Figure::Pace => None,
        }
    }
}

/// One figure of two works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// Of what.
    #[serde(rename = "what")]
    pub figure: Figure,
    /// Before: the median of the evaluations, or the total.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    /// `before / after`: above 1, after needs less.
    pub ratio: Option<f64>,
    /// The true ratio is between this one, ...
    pub low: Option<f64>,
    /// ... and this one, in 95 of 100 cases. Absent where too few evaluations are known.
    pub high: Option<f64>,
    /// True where that interval holds 1, so that the difference may be chance; absent without an interval.
    pub within_noise: Option<bool>,
    /// The evaluations before.
    pub before_spread: Option<Spread>,
    /// The evaluations after.
    pub after_spread: Option<Spread>,
}

/// Two works compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct WorkComparison {
    /// The work before.
    pub before: WorkCost,
    /// The work after.
    pub after: WorkCost,
    /// True when the figures in `ratios` are for one evaluation; else for all of the work.
    pub per_evaluation: bool,
    /// What says that the work is equal, or that it is not.
    pub basis: Basis,
    /// Kernels that ran on both sides; absent where those of one are not known.
    pub common_kernels: Option<u64>,
    /// Kernels that ran on one of them at least.
    pub all_kernels: Option<u64>,
    /// Less than [`SAME_KERNELS`] of them ran on both sides, as where kernels were fused.
    #[serde(skip)]
    few_common_kernels: bool,
    /// What changed by kernel: means of all evaluations, warm-up included, or totals. What differs most comes first.
    pub kernels: Vec<KernelChange>,
    /// What changed in the idle time of the devices from the first work of a side to its last, by cause; empty where it is not known.
    pub causes: Vec<CauseChange>,
    /// The figures.
    pub ratios: Vec<Ratio>,
    /// What they mean, in sentences.
    pub sentences: Vec<String>,
}

/// What says that two works are equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The program's labels: one evaluation is compared with one. Fusion leaves no kernel as it was, so that how many are in both
    /// decides nothing here.
    Labels,
    /// The caller alone: how often each side did the work is not known.
    #[default]
    Claim,
    /// Nothing: no kernel ran on both sides, and no labels say that both are equal, or one side launched none.
    NoCommonKernel,
    /// Nothing: less than [`SAME_KERNELS`] of the kernels ran on both sides.
    FewCommonKernels,
}

impl Basis {
    /// The sides did different work, as far as their kernels tell: no figure of one says anything of the other.
    pub const fn is_unlike(self) -> bool {
        matches!(self, Basis::NoCommonKernel | Basis::FewCommonKernels)
    }
}

impl WorkCost {
    /// The work under each of `labels`, with all that is inside these labels. A label counts wherever it nests. Without
    /// `first_uses` no evaluation is left out as warm-up.
    pub fn of_labels(
        timeline: &Timeline,
        bindings: &BindingSets,
        labels: &[&str],
        first_uses: Option<&FirstUses>,
    ) -> Vec<WorkCost> {
        let tree = LabelTree::of(timeline.trace);
        let own = |node: usize| labels.iter().position(|label| *label == tree.text(node));
        let extent = Extent::Labels(Instances::of(timeline, &tree, &own));
        costs(timeline, bindings, labels, &extent, first_uses)
    }

    /// The work under the labels whose path (texts from the outermost label on, joined by ` / `) `matches`, with all
    /// that is inside them. Labels of one text in different places are different labels here.
    pub fn of_label_path(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        first_uses: Option<&FirstUses>,
        matches: impl Fn(&str) -> bool,
    ) -> WorkCost {
        let tree = LabelTree::of(timeline.trace);
        let own = |node: usize| matches(&tree.path(node)).then_some(0);
        let extent = Extent::Labels(Instances::of(timeline, &tree, &own));
        let mut works = costs(timeline, bindings, &[name], &extent, first_uses);
        works.pop().unwrap_or_default()
    }

    /// All work of a trace.
    pub fn of_trace(timeline: &Timeline, bindings: &BindingSets, name: &str) -> WorkCost {
        let mut works = costs(timeline, bindings, &[name], &Extent::All, None);
        works.pop().unwrap_or_default()
    }

    /// The work that starts in `window`.
    pub fn of_window(
        timeline: &Timeline,
        bindings: &BindingSets,
        name: &str,
        window: Interval,
    ) -> WorkCost {
        let mut works = costs(timeline, bindings, &[name], &Extent::Window(window), None);
        works.pop().unwrap_or_default()
    }

    /// True when there is no work in it.
    pub fn is_empty(&self) -> bool {
        self.dispatch_count.unwrap_or(0) + self.transfer_count == 0 && self.gpu_busy_ns.is_none()
    }

    /// Kernels that ran on both sides, and on one of them at least; `None` where those of one are not known.
    fn shared_kernels(&self, other: &WorkCost) -> Option<(u64, u64)> {
        let unknown = |work: &WorkCost| work.kernels.is_empty() && !work.launched_none();
        if unknown(self) || unknown(other) || self.kernels.len() + other.kernels.len() == 0 {
            return None;
        }
        let common = (self.kernels.keys()).filter(|name| other.kernels.contains_key(*name));
        let common = common.count() as u64;
        let all = (self.kernels.len() + other.kernels.len()) as u64 - common;
        Some((common, all))
    }

    /// It launched no kernel, as far as everything in it is known.
    fn launched_none(&self) -> bool {
        self.dispatch_count == Some(0) && self.whole_count == 0
    }

    /// One of them launched kernels, and the other none.
    fn only_one_dispatches(&self, other: &WorkCost) -> bool {
        let some = |work: &WorkCost| work.dispatch_count.is_some_and(|count| count > 0);
        (some(self) && other.launched_none()) || (some(other) && self.launched_none())
    }

    fn bound_bytes(&self) -> Option<u64> {
        Some(
            self.bound_read_bytes?
                .saturating_add(self.bound_written_bytes?),
        )
    }

    /// A figure of each evaluation that counts, in order of time; empty where it is not known.
    pub fn samples(&self, figure: Figure) -> &[f64] {
        &self.samples[figure as usize]
    }

    /// A figure for one evaluation.
    fn each(&self, figure: Figure) -> Option<f64> {
        if let Some(spread) = Spread::of(self.samples(figure)) {
            return Some(spread.median);
        }
        // Between evaluations there may be anything.
        let evaluations = self
            .evaluations
            .filter(|n| *n > 0 && figure != Figure::Wall)?;
        // What is unknown in some of them is unknown.
        let unknown = self.counted_evaluations > 0 && figure.is_time();
        let total = figure.total(self).filter(|_| !unknown)?;
        Some(total / evaluations as f64)
    }
}

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

/// Compares the work under two labels of one trace. `None` when one of them has no work.
pub fn equal_work(
    timeline: &Timeline,
    bindings: &BindingSets,
    first_uses: Option<&FirstUses>,
    before: &str,
    after: &str,
) -> Option<WorkComparison> {
    let works = WorkCost::of_labels(timeline, bindings, &[before, after], first_uses);
    let [before, after] = <[WorkCost; 2]>::try_from(works).ok()?;
    (!before.is_empty() && !after.is_empty()).then(|| compare(before, after))
}

/// Compares two works that are meant to be equal in what they do.
pub fn compare(before: WorkCost, after: WorkCost) -> WorkComparison {
    let counted = |work: &WorkCost| work.evaluations.is_some_and(|n| n > 0);
    let per_evaluation = counted(&before) && counted(&after);
    let shared = before.shared_kernels(&after);
    let few = shared.is_some_and(|(common, all)| ratio(common as i64, all as i64) < SAME_KERNELS);
    let mut comparison = WorkComparison {
        per_evaluation,
        basis: match shared {
            _ if before.only_one_dispatches(&after) => Basis::NoCommonKernel,
            _ if per_evaluation => Basis::Labels,
            Some((0, _)) => Basis::NoCommonKernel,
            _ if few => Basis::FewCommonKernels,
            _ => Basis::Claim,
        },
        few_common_kernels: few,
        common_kernels: shared.map(|(common, _)| common),
        all_kernels: shared.map(|(_, all)| all),
        kernels: Vec::new(),
        causes: Vec::new(),
        ratios: (Figure::ALL.into_iter())
            .map(|figure| Ratio::of(figure, &before, &after, per_evaluation))
            .collect(),
        sentences: Vec::new(),
        before,
        after,
    };
    comparison.kernels = changes::kernels(&comparison);
    comparison.causes = changes::causes(&comparison);
    comparison.sentences = sentences::sentences(&comparison);
    comparison
}

impl Ratio {
    fn of(figure: Figure, before: &WorkCost, after: &WorkCost, per_evaluation: bool) -> Ratio {
        let works = [before, after];
        if !per_evaluation {
            let [before, after] = works.map(|work| figure.total(work));
            return Ratio::of_values(figure, before, after);
        }
        let [first, second] = works.map(|work| work.samples(figure));
        let compared = MedianRatio::of(first, second);
        let interval = compared.as_ref().and_then(|ratio| ratio.interval);
        let [before, after] = works.map(|work| work.each(figure));
        Ratio {
            low: interval.map(|[low, _]| low),
            high: interval.map(|[_, high]| high),
            within_noise: compared.and_then(|ratio| ratio.is_within_noise()),
            before_spread: Spread::of(first),
            after_spread: Spread::of(second),
            ..Ratio::of_values(figure, before, after)
        }
    }

    fn of_values(figure: Figure, before: Option<f64>, after: Option<f64>) -> Ratio {
        let both = before.zip(after).filter(|(_, after)| *after > 0.0);
        Ratio {
            figure,
            before,
            after,
            ratio: both.map(|(before, after)| before / after),
            ..Ratio::default()
        }
    }
}

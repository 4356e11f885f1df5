//! The types of a comparison of two works (two parts of a trace, or two traces, that do the same in different ways),
//! and the constructor that compares their costs. Where labels select the works, each instance is an evaluation.

use super::figure::Figure;
use super::work_cost::WorkCost;
use crate::gaps::Cause;
use crate::launch_sizes::SizeEvidence;
use crate::samples::{MedianRatio, Spread};
#[cfg(doc)]
use gapscope_timeline::thresholds::SAME_KERNELS;
use schemars::JsonSchema;
use serde::Serialize;

/// One figure of two works.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Ratio {
    /// The figure.
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
    /// The spread of the evaluations before.
    pub before_spread: Option<Spread>,
    /// The spread of the evaluations after.
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
    /// The basis for taking the work as equal, or as not equal.
    pub basis: Basis,
    /// Kernels that ran on both sides; absent where those of one are not known.
    pub common_kernels: Option<u64>,
    /// Kernels that ran on at least one side.
    pub all_kernels: Option<u64>,
    /// What the sizes of the dispatches of kernels on both sides say of equal work; absent where no such sizes are known.
    pub launch_sizes: Option<SizeEvidence>,
    /// What differs in these sizes, in sentences.
    #[serde(skip)]
    pub(super) size_sentences: Vec<String>,
    /// Whether the sizes of transfers show equal work.
    #[serde(skip)]
    pub(super) copy_sizes: CopyEvidence,
    /// Less than [`SAME_KERNELS`] of them ran on both sides, as where kernels were fused.
    #[serde(skip)]
    pub(super) few_common_kernels: bool,
    /// Changes by kernel: means of all evaluations, warm-up included, or totals. The greatest difference comes first.
    pub kernels: Vec<KernelChange>,
    /// Changes of the devices' idle time from the first work of a side to its last, by cause; empty where it is not known.
    pub causes: Vec<CauseChange>,
    /// The figures.
    pub ratios: Vec<Ratio>,
    /// The meaning of the figures, in sentences.
    pub sentences: Vec<String>,
}

/// What the sizes of transfers say of the work of both sides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum CopyEvidence {
    /// Nothing against equal work, or nothing at all.
    #[default]
    Equal,
    /// Both have another number of transfers, or of their bytes.
    OtherSums,
    /// As many transfers have as many bytes in all, in other sizes or directions, as the sentence says.
    OtherSizes(String),
}

/// The basis for taking two works as equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The program's labels: one evaluation is compared with one. The number of common kernels does not matter, because
    /// fusion changes kernels.
    Labels,
    /// The caller alone: how often each side did the work is not known.
    #[default]
    Claim,
    /// Nothing: no kernel ran on both sides and no labels say that they are equal, or one side launched no kernel.
    NoCommonKernel,
    /// Nothing: less than [`SAME_KERNELS`] of the kernels ran on both sides.
    FewCommonKernels,
    /// Nothing: the label of one side lies in that of the other, whose figures are without the inner one.
    Nested,
    /// Nothing: other threads launched work while a label was open that may belong to the label, such as a backward pass.
    OtherThreads,
}

impl Basis {
    /// Returns true where the sides did different work, as far as their kernels tell, so that no figure of one side
    /// tells anything of the other.
    pub const fn is_unlike(self) -> bool {
        !matches!(self, Basis::Labels | Basis::Claim)
    }
}

/// The change of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelChange {
    /// Its name.
    pub name: String,
    /// Dispatches before: of an evaluation on average, or in total; absent where dispatches are not recorded.
    pub before_count: Option<f64>,
    /// Dispatches after.
    pub after_count: Option<f64>,
    /// Their time before, in nanoseconds; absent where times of some are not known.
    pub before_ns: Option<f64>,
    /// Their time after.
    pub after_ns: Option<f64>,
}

/// The change of the idle time of one cause.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CauseChange {
    /// The cause.
    pub cause: Cause,
    /// Idle time before, in nanoseconds: of an evaluation on average, or in total; absent where it is not known.
    pub before_ns: Option<f64>,
    /// Idle time after.
    pub after_ns: Option<f64>,
}

impl Ratio {
    /// Compares a figure of two works: medians of their evaluations with the interval of the ratio, or totals without
    /// one.
    pub(super) fn new(
        figure: Figure,
        before: &WorkCost,
        after: &WorkCost,
        per_evaluation: bool,
    ) -> Ratio {
        let works = [before, after];
        if !per_evaluation {
            let [before, after] = works.map(|work| work.total(figure));
            return Ratio::from_values(figure, before, after);
        }
        let [first, second] = works.map(|work| work.samples(figure));
        let compared = MedianRatio::from_samples(first, second);
        let interval = compared.as_ref().and_then(|ratio| ratio.interval);
        let [before, after] = works.map(|work| work.each(figure));
        Ratio {
            low: interval.map(|[low, _]| low),
            high: interval.map(|[_, high]| high),
            within_noise: compared.and_then(|ratio| ratio.is_within_noise()),
            before_spread: Spread::from_samples(first),
            after_spread: Spread::from_samples(second),
            ..Ratio::from_values(figure, before, after)
        }
    }

    /// Makes a ratio of two values, without an interval. There is no ratio where one is not known or `after` is 0.
    fn from_values(figure: Figure, before: Option<f64>, after: Option<f64>) -> Ratio {
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

//! The cost of one side of a comparison of equal work: its counts, times and evaluations (executions).

use super::figure::Figure;
use super::sum::Runs;
use crate::bound::Bound;
use crate::copy_sizes::CopySizes;
use crate::gaps::GapTotal;
use crate::samples::Spread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::OWN_SHARE;
use gapscope_trace::manifest::Api;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The cost of a part of a trace. Counts, bytes and times are of all of its work, warm-up included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct WorkCost {
    /// The label, or the caller's name for the trace.
    pub name: String,
    /// How often the work was done: instances of the label. Absent when it is not known.
    pub evaluations: Option<u64>,
    /// How many evaluations are samples; the others are left out, or it is not known what was done in them.
    pub counted_evaluations: u64,
    /// Evaluations that are no samples, and why.
    pub left_out: Vec<LeftOut>,
    /// Dispatches; absent where the trace does not record them.
    pub dispatch_count: Option<u64>,
    /// Why they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dispatches_unknown_because: Option<String>,
    /// Workgroups of all dispatches, where all are known.
    pub workgroup_count: Option<u64>,
    /// Threads in these workgroups, where all are known.
    pub thread_count: Option<u64>,
    /// Command buffers (CUDA: graph launches) with its work.
    pub command_buffer_count: Option<u64>,
    /// Submissions with its work.
    pub submission_count: Option<u64>,
    /// Bytes of the ranges bound for reading, summed over dispatches; absent unless all dispatches have bindings.
    pub bound_read_bytes: Option<u64>,
    /// Bytes of the ranges bound for writing, likewise.
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
    /// What bounds the speed in `window`.
    pub verdict: Bound,
    /// The verdict in a sentence, or why it is not known.
    pub verdict_sentence: String,
    /// Time of work outside of all labels that other threads launched while the side's label was open, and hardly otherwise: it may
    /// belong to the label. Absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meanwhile_ns: Option<i64>,
    /// The label of the other side lies in this side's label.
    #[serde(skip)]
    pub(super) is_around_other: bool,
    /// Samples by figure, of the evaluations that count.
    #[serde(skip)]
    pub(super) samples: [Vec<f64>; Figure::ALL.len()],
    /// An evaluation is a command buffer with the label, since passes have no other instances of labels.
    #[serde(skip)]
    pub(super) by_command_buffers: bool,
    /// Pieces timed as a whole, which may hold dispatches that are not counted.
    #[serde(skip)]
    pub(super) whole_count: u64,
    /// The sizes of single transfers by kind.
    #[serde(skip)]
    pub(super) copies: CopySizes<String>,
    /// The cost of each kernel that it ran, by the kernel's whole name.
    #[serde(skip)]
    pub(super) kernels: BTreeMap<String, KernelCost>,
    /// Idle time in `window` by cause; absent where it is not known.
    #[serde(skip)]
    pub(super) idle: Option<Vec<GapTotal>>,
    /// The API whose words suit it.
    #[serde(skip)]
    pub(super) api: Api,
}

/// Evaluations that are no samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOut {
    /// The reason.
    pub because: Reason,
    /// How many evaluations.
    pub count: u64,
}

/// Why an evaluation is no sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It starts in the recording's warm-up.
    WarmUp,
    /// It is the first evaluation of its side, and code was compiled, loaded or first run in it.
    FirstUse,
    /// No GPU work was launched in it.
    NoWork,
    /// Some of its work may belong to another evaluation.
    Unclear,
    /// The recording ended in it.
    Unfinished,
}

/// The cost of a side's runs of a kernel.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct KernelCost {
    /// The name that the kernel has in the trace's tables.
    pub(super) name: String,
    pub(super) runs: Runs,
}

impl WorkCost {
    /// Returns true where the side has no work.
    pub fn is_empty(&self) -> bool {
        self.dispatch_count.unwrap_or(0) + self.transfer_count == 0 && self.gpu_busy_ns.is_none()
    }

    /// Returns true where work of other threads that may belong to the side is a part of the side's time that counts.
    pub(super) fn lacks_work(&self) -> bool {
        let own_ns = self.gpu_busy_ns.unwrap_or(0);
        let all_ns = own_ns.saturating_add(self.meanwhile_ns.unwrap_or(0));
        self.meanwhile_ns.is_some() && ratio(own_ns, all_ns) < OWN_SHARE
    }

    /// Counts the kernels that ran on both sides, and those that ran on at least one. Returns `None` where the kernels of a
    /// side are not known.
    pub(super) fn shared_kernels(&self, other: &WorkCost) -> Option<(u64, u64)> {
        let unknown = |work: &WorkCost| work.kernels.is_empty() && !work.launched_none();
        if unknown(self) || unknown(other) || self.kernels.len() + other.kernels.len() == 0 {
            return None;
        }
        let common = (self.kernels.keys()).filter(|name| other.kernels.contains_key(*name));
        let common = common.count() as u64;
        let all = (self.kernels.len() + other.kernels.len()) as u64 - common;
        Some((common, all))
    }

    /// Returns true where the side launched no kernel and everything in it is known.
    pub(super) fn launched_none(&self) -> bool {
        self.dispatch_count == Some(0) && self.whole_count == 0
    }

    /// Returns true where one of the sides launched kernels and the other launched none.
    pub(super) fn only_one_dispatches(&self, other: &WorkCost) -> bool {
        let some = |work: &WorkCost| work.dispatch_count.is_some_and(|count| count > 0);
        (some(self) && other.launched_none()) || (some(other) && self.launched_none())
    }

    /// Returns the bytes bound for reading and writing together.
    pub(super) fn bound_bytes(&self) -> Option<u64> {
        Some(
            self.bound_read_bytes?
                .saturating_add(self.bound_written_bytes?),
        )
    }

    /// Returns a figure of each evaluation that counts, in order of time, or nothing where it is not known.
    pub fn samples(&self, figure: Figure) -> &[f64] {
        &self.samples[figure as usize]
    }

    /// Returns a figure for one evaluation: the median of the samples, otherwise the total over the evaluations,
    /// where that is a fair mean.
    pub(super) fn each(&self, figure: Figure) -> Option<f64> {
        if let Some(spread) = Spread::from_samples(self.samples(figure)) {
            return Some(spread.median);
        }
        // Other work may lie between evaluations.
        let evaluations = self
            .evaluations
            .filter(|n| *n > 0 && figure != Figure::Wall)?;
        // A time that is unknown in some evaluations is unknown.
        let unknown = self.counted_evaluations > 0 && figure.is_time();
        let total = self.total(figure).filter(|_| !unknown)?;
        Some(total / evaluations as f64)
    }

    /// Returns a figure summed over all of the side's work, or `None` where it is not known. A pace has no sum.
    pub(super) fn total(&self, figure: Figure) -> Option<f64> {
        let count = |count: Option<u64>| count.map(|count| count as f64);
        match figure {
            Figure::Dispatches => count(self.dispatch_count),
            Figure::Workgroups => count(self.workgroup_count),
            Figure::Threads => count(self.thread_count),
            Figure::CommandBuffers => count(self.command_buffer_count),
            Figure::Submissions => count(self.submission_count),
            Figure::BoundBytes => count(self.bound_bytes()),
            Figure::TransferBytes => count(self.transfer_bytes),
            Figure::GpuBusy => self.gpu_busy_ns.map(|ns| ns as f64),
            Figure::Wall => self.wall_ns.map(|ns| ns as f64),
            Figure::Pace => None,
        }
    }
}

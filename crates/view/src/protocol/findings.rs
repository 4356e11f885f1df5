//! The messages with the results of analyses: findings, graphs of the data flow, instances of labels, and compared
//! ranks. `answers` and `ranks` make them. A rank is a process of a distributed program with a trace of its own.

use gapscope_analysis::cause_note::CauseNote;
use gapscope_analysis::fill::DeviceFill;
use gapscope_analysis::gaps::{GapTotal, IdleTime};
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::transfers::TransferRow;
use gapscope_analysis::verdict::{Bound, Evidence};
use gapscope_comparison::ranks::RankFindings;
use gapscope_report::{HeadSentences, json};
use gapscope_timeline::busy::DeviceBusy;
use gapscope_timeline::intervals::Interval;
use schemars::JsonSchema;
use serde::Serialize;

/// What `gapscope report --json` prints, and what the page needs besides.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Findings")]
pub struct FindingsAnswer<'a> {
    #[serde(flatten)]
    pub report: json::Json<'a>,
    /// The generation of a live trace that the findings are of.
    pub generation: u64,
    /// The sentences beside the verdict, as the report prints them.
    pub head: HeadSentences,
    /// For each of `gaps` what the report says of it.
    pub gap_notes: Vec<CauseNote>,
    /// For each of `kernels` its rows.
    pub kernel_rows: Vec<KernelRows<'a>>,
    /// For each of `labels` its path as an index in `strings`.
    pub label_names: Vec<Option<u32>>,
}

/// The rows of the table `kernels` that a kernel of the findings has, and its name as an index in `strings`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct KernelRows<'a> {
    pub name: Option<u32>,
    pub kernels: &'a [usize],
}

/// What the analyses say of a range of time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RangeFindings {
    pub window: Interval,
    pub verdict: Bound,
    #[serde(flatten)]
    pub evidence: Evidence,
    pub devices: Vec<DeviceBusy>,
    pub gpu_busy_ns: Option<i64>,
    pub gaps: Vec<GapTotal>,
    pub idle_time: IdleTime,
    pub fill: Vec<DeviceFill>,
    /// Dispatches that start in it.
    pub dispatch_count: u64,
    /// Kernels of the dispatches that start in it.
    pub kernels: Vec<Kernel>,
    /// Transfers that start in it, by kind.
    pub transfers: Vec<TransferRow>,
    /// Bytes of them; null where the size of one is not known.
    pub transfer_bytes: Option<String>,
}

/// Where a label was set, by start; at most 10,000.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Instances {
    pub instances: Vec<Instance>,
    /// How often it was set.
    pub count: usize,
}

/// A time for which a label was set.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Instance {
    pub start_ns: i64,
    pub duration_ns: i64,
    /// The id of its track.
    pub track: String,
    /// The row of the table `markers`.
    pub row: usize,
}

/// The ranks of the program compared, with the collectives of the greatest skews under `longest`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RanksAnswer<'a> {
    #[serde(flatten)]
    pub ranks: RankFindings,
    /// The index of the trace of each of `ranks`.
    pub traces: &'a [usize],
}

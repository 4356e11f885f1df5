//! All analyses of one trace.

use crate::bound_bytes::BindingSets;
use crate::busy::{self, DeviceBusy};
use crate::command_buffers::{self, CommandBuffers};
use crate::drift::{self, Drift};
use crate::gaps::{self, GapTotal, IdleTime};
use crate::intervals::Interval;
use crate::kernels::{self, Kernel};
use crate::labels::LabelRow;
use crate::latency::{self, QueueLatency};
use crate::memory_timeline::{self, MemoryRow};
use crate::timeline::Timeline;
use crate::transfers::{self, TransferRow};
use crate::verdict::{self, Bound, Evidence};
use crate::warm_up::WarmUp;
use crate::work::WorkComparison;
use gapscope_trace::Trace;
use gapscope_trace::manifest::{Loss, SamplingMode};
use gapscope_trace::tables::Table;
use serde::Serialize;

/// What to analyse.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Leave warm-up out of gaps and verdict. Default: true.
    pub exclude_warm_up: bool,
    /// Judge gaps and verdict in this part of the recording only; warm-up is then not looked for.
    pub window: Option<Interval>,
    /// Gaps shorter than this are counted apart and not explained. Default: 0, so that all are.
    pub gap_threshold_ns: i64,
    /// How many of the longest gaps, command buffers and the like to list. Default: 10.
    pub longest: usize,
    /// Labels of two parts that do equal work, before and after: `("eager", "compiled")`.
    pub equal_work: Option<(String, String)>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            exclude_warm_up: true,
            window: None,
            gap_threshold_ns: 0,
            longest: 10,
            equal_work: None,
        }
    }
}

/// What a trace says. Counts and tables are of the whole recording; gaps and verdict are of the analysed window.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Findings {
    /// How the GPU was sampled.
    pub sampling_mode: SamplingMode,
    /// Length of the recording; absent when its end is not known.
    pub wall_ns: Option<i64>,
    /// Time in which at least one device ran something, over the whole recording. Absent when nothing was timed.
    pub gpu_busy_ns: Option<i64>,
    /// From the begin of the first work of any device to the end of the last.
    pub work_window: Option<Interval>,
    /// The part of it that gaps and verdict are of: without warm-up.
    pub analysed_window: Option<Interval>,
    /// The greatest error of a device time on the host's clock, over the devices that ran work; absent when one is
    /// not known.
    pub clock_error_ns: Option<i64>,
    /// What bounds the speed.
    pub verdict: Bound,
    /// Why.
    pub verdict_evidence: Evidence,
    /// Dispatches.
    pub dispatch_count: u64,
    /// Dispatches whose times are known.
    pub timed_dispatch_count: u64,
    /// Submitted command buffers.
    pub command_buffer_count: u64,
    /// Submissions.
    pub submission_count: u64,
    /// Transfers.
    pub transfer_count: u64,
    /// Bytes that transfers of known size wrote.
    pub transfer_bytes: u64,
    /// Transfers of unknown size.
    pub transfer_unknown_bytes_count: u64,
    /// Devices.
    pub devices: Vec<DeviceBusy>,
    /// Idle time of the devices by cause, the greatest first.
    pub gaps: Vec<GapTotal>,
    /// Idle time in detail.
    pub idle_time: IdleTime,
    /// Kernels, the greatest total first, untimed ones after by count.
    pub kernels: Vec<Kernel>,
    /// Labels, parents before their children, siblings by busy time.
    pub labels: Vec<LabelRow>,
    /// Command buffers.
    pub command_buffers: CommandBuffers,
    /// Transfers by kind.
    pub transfers: Vec<TransferRow>,
    /// Warm-up.
    pub warm_up: WarmUp,
    /// Device memory.
    pub memory: Vec<MemoryRow>,
    /// Drift of dispatches against command buffers.
    pub drift: Drift,
    /// Launch latency and queue depth by queue.
    pub latency: Vec<QueueLatency>,
    /// Equal work compared, where the options ask for it.
    pub equal_work: Option<WorkComparison>,
    /// What was not recorded.
    pub losses: Vec<Loss>,
    /// Sentences that every report prints.
    pub notes: Vec<String>,
}

impl Findings {
    /// Runs all analyses.
    pub fn of(trace: &Trace, options: &Options) -> Findings {
        let timeline = Timeline::of(trace);
        let bindings = BindingSets::of(trace);
        let gpu_busy_ns = busy::any_busy_ns(&timeline);
        let work_window = timeline.work_window();
        let kernels = kernels::kernels(&timeline, &bindings, None, gpu_busy_ns);
        let analysed_window =
            work_window.map(|window| window.intersection(options.window.unwrap_or(window)));
        let idle_time = analysed_window.map_or(IdleTime::default(), |window| {
            gaps::idle_time(&timeline, window, options.gap_threshold_ns, options.longest)
        });
        let (bound, evidence) = match analysed_window {
            Some(window) => verdict::verdict(&timeline, window, &idle_time),
            None => verdict::unknown("No GPU work has known times."),
        };
        let tables = &trace.tables;
        let transfers = transfers::transfers(&timeline);
        Findings {
            sampling_mode: trace.manifest.sampling_mode,
            wall_ns: None,
            gpu_busy_ns,
            work_window,
            analysed_window,
            clock_error_ns: None,
            verdict: bound,
            verdict_evidence: evidence,
            dispatch_count: tables.dispatches.len() as u64,
            timed_dispatch_count: kernels
                .iter()
                .map(|kernel| kernel.durations.timed_count)
                .sum(),
            command_buffer_count: tables.command_buffers.len() as u64,
            submission_count: tables.submissions.len() as u64,
            transfer_count: tables.transfers.len() as u64,
            transfer_bytes: transfers
                .iter()
                .fold(0, |sum: u64, row| sum.saturating_add(row.bytes)),
            transfer_unknown_bytes_count: transfers.iter().map(|row| row.unknown_bytes_count).sum(),
            devices: busy::busy(&timeline, analysed_window),
            gaps: idle_time.causes.clone(),
            idle_time,
            kernels,
            labels: Vec::new(),
            command_buffers: command_buffers::command_buffers(&timeline, options.longest),
            transfers,
            warm_up: WarmUp::default(),
            memory: memory_timeline::memory_timeline(&timeline),
            drift: drift::drift(&timeline, options.longest),
            latency: latency::latency(&timeline),
            equal_work: None,
            losses: trace.manifest.losses.clone(),
            notes: trace.manifest.notes.clone(),
        }
    }
}

//! The findings as JSON. Keys are stable: they may be added to, never renamed or taken away.
//!
//! Times are integer nanoseconds, sizes integer bytes. What is not known is `null`; beside the most important ones a
//! key `…_unknown_because` then holds a sentence. What rests on a table in `unread` is `null`.

use crate::page::Report;
use gapscope_analysis::activity::Activity;
use gapscope_analysis::code::{Code, CodeTime};
use gapscope_analysis::command_buffers::CommandBuffers;
use gapscope_analysis::conditions::ConditionNote;
use gapscope_analysis::drift::Drift;
use gapscope_analysis::equal_work::WorkComparison;
use gapscope_analysis::fill::DeviceFill;
use gapscope_analysis::gaps::{Cause, IdleTime};
use gapscope_analysis::instructions::SampledKernel;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::labels::{FoldedLabel, LabelRow};
use gapscope_analysis::latency::QueueLatency;
use gapscope_analysis::limits::KernelLimits;
use gapscope_analysis::memory_timeline::MemoryRow;
use gapscope_analysis::operators::OperatorRow;
use gapscope_analysis::profiled::ProfiledKernel;
use gapscope_analysis::transfers::TransferRow;
use gapscope_analysis::unread::{
    CAUSES, CODE, COMMAND_BUFFERS, CONDITIONS, COUNTERS, KERNELS, LABELS, MEMORY, PROFILED,
    SAMPLED, TRANSFERS, WORK,
};
use gapscope_analysis::verdict::VerdictPart;
use gapscope_analysis::warm_up::WarmUp;
use gapscope_comparison::ranks::RankFindings;
use gapscope_timeline::busy::DeviceBusy;
use gapscope_timeline::counters::CounterRow;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::UnreadTable;
use gapscope_trace::manifest::{Exit, Loss, SamplingMode, Unmeasured};
use gapscope_trace::tables::{self, Dispatches, Submissions, Table, Transfers};
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the keys' meaning.
pub(crate) const VERSION: u32 = 1;

/// Writes the findings; the text ends with a line feed.
pub fn text(report: &Report) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&Json::of(report))?;
    text.push('\n');
    Ok(text)
}

/// The same with the timeline's slices as `activity`.
pub fn text_with_activity(report: &Report) -> Result<String, serde_json::Error> {
    let json = Json {
        activity: report.findings.knows(CAUSES).then_some(report.activity),
        ..Json::of(report)
    };
    let mut text = serde_json::to_string(&json)?;
    text.push('\n');
    Ok(text)
}

/// The same with the ranks that are in the trace as `ranks`.
pub fn text_with_ranks(report: &Report, ranks: &RankFindings) -> Result<String, serde_json::Error> {
    let json = Json {
        ranks: Some(ranks),
        ..Json::of(report)
    };
    let mut text = serde_json::to_string_pretty(&json)?;
    text.push('\n');
    Ok(text)
}

/// What `gapscope report --json` prints of a trace.
///
/// Times are integer nanoseconds on the host's monotonic clock, sizes integer bytes, shares from 0 to 1. What is not known is
/// null; beside the most important figures a key `…_unknown_because` then says why.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Report")]
pub struct Json<'a> {
    /// Version of the keys' meaning. Keys may be added without a new one; none is renamed or taken away.
    report_version: u32,
    /// Version of the gapscope that wrote the trace.
    gapscope_version: &'a str,
    /// Name of the trace.
    trace: &'a str,
    /// The command that was recorded.
    command: &'a [String],
    /// How it ended; null where that is not known.
    exit: Option<Exit>,
    /// The recording ended in an orderly way; else `gapscope recover` completes it.
    complete: bool,
    /// The label that the report is of; null: all of the trace.
    label: Option<&'a str>,
    /// What bounds the speed: `host-bound`, `device-bound`, `transfer-bound`, `sync-bound`, `communication-bound`,
    /// `latency-bound`, `mixed` or `unknown`.
    verdict: &'static str,
    /// The verdict and its main number in one sentence.
    verdict_sentence: &'a str,
    /// Device time that was judged: the window of all devices, once for each, without idle time that the recording itself caused.
    verdict_window_ns: Option<i64>,
    /// The parts of that time, the largest first; they sum to it.
    verdict_evidence: &'a [VerdictPart],
    /// How the GPU was sampled.
    sampling_mode: SamplingMode,
    /// The greatest error of a device time on the host's clock.
    clock_error_ns: Option<i64>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_error_unknown_because: Option<&'static str>,
    /// Start of the recording on the host's monotonic clock.
    start_ns: i64,
    /// Length of the recording.
    wall_ns: Option<i64>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_unknown_because: Option<&'static str>,
    /// Time in which at least one device ran something, over the whole recording.
    gpu_busy_ns: Option<i64>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_busy_unknown_because: Option<&'static str>,
    /// From the start of the first work of any device to the end of the last.
    work_window: Option<Interval>,
    /// The part of it that gaps and verdict are of: without warm-up.
    analysed_window: Option<Interval>,
    /// Warm-up that was found, or why none was.
    warm_up: &'a WarmUp,
    /// Dispatches; like the counts below null where their table cannot be read.
    dispatch_count: Option<u64>,
    /// Dispatches whose times are known.
    timed_dispatch_count: Option<u64>,
    /// Submitted command buffers.
    command_buffer_count: Option<u64>,
    /// Submissions, without host functions and waits that are put on a queue by themselves.
    submission_count: Option<u64>,
    /// Transfers.
    transfer_count: Option<u64>,
    /// Bytes that transfers of known size wrote.
    transfer_bytes: Option<u64>,
    /// Transfers of unknown size.
    transfer_unknown_bytes_count: Option<u64>,
    /// Busy time of each device in the analysed window.
    devices: &'a [DeviceBusy],
    /// Idle time of the devices by cause, the greatest first.
    gaps: Option<Vec<GapJson<'a>>>,
    /// Idle time in detail.
    idle_time: Option<&'a IdleTime>,
    /// Stacks of submitting threads in idle time, the greatest first; absent where no stacks were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<Vec<&'a CodeTime>>,
    /// What else is known of the code behind idle time; absent where no stacks were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    code_details: Option<&'a Code>,
    /// How much of the devices their kernels could use.
    fill: Option<&'a [DeviceFill]>,
    /// Kernels, the greatest total first, untimed ones after by count.
    kernels: Option<Vec<KernelJson<'a>>>,
    /// What the limits of kernels by hardware counters rest on; absent where the trace has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_limits: Option<&'a KernelLimits>,
    /// Launches of CUDA kernels that were profiled one by one (`gapscope record --profile-kernel`); absent where none was.
    #[serde(skip_serializing_if = "is_empty")]
    profiled_kernels: Option<&'a [ProfiledKernel]>,
    /// CUDA kernels whose instructions were sampled (`gapscope record --instructions`), most samples first; absent where none was.
    #[serde(skip_serializing_if = "is_empty")]
    sampled_kernels: Option<&'a [SampledKernel]>,
    /// Labels, parents before their children, siblings by busy time.
    labels: Option<&'a [LabelRow]>,
    /// The same with a model's layers folded into one row (`blocks.*.attn`); empty where there are none.
    folded_labels: Option<&'a [FoldedLabel]>,
    /// Operators of PyTorch, those with the greatest own time first; empty where the recording has not labelled them.
    operators: Option<&'a [OperatorRow]>,
    /// Command buffers.
    command_buffers: Option<&'a CommandBuffers>,
    /// Transfers by kind.
    transfers: Option<&'a [TransferRow]>,
    /// Device memory.
    memory: Option<&'a [MemoryRow]>,
    /// Counters as they were measured; absent where there are none.
    #[serde(skip_serializing_if = "is_empty")]
    counters: Option<&'a [CounterRow]>,
    /// Conditions of machine and devices that may have changed the numbers; absent where there are none.
    #[serde(skip_serializing_if = "is_empty")]
    conditions: Option<&'a [ConditionNote]>,
    /// Conditions that could not be measured; absent where all were.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unmeasured: &'a [Unmeasured],
    /// Launch latency and queue depth by queue.
    launch_latency: Option<&'a [QueueLatency]>,
    /// Drift of dispatches against command buffers.
    drift: Option<&'a Drift>,
    /// Equal work compared, with `--compare-labels`.
    equal_work: Option<&'a WorkComparison>,
    /// Tables that could not be read, or not whole: what rests on them is null.
    unread: &'a [UnreadTable],
    /// What was not recorded.
    #[schemars(with = "Vec<Lost>")]
    losses: &'a [Loss],
    /// Sentences that every report prints.
    notes: Vec<&'a str>,
    /// The timeline in equal slices, with `--slices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<&'a Activity>,
    /// The ranks in the trace, compared, where it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<&'a RankFindings>,
}

/// Idle time of one cause.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Gaps")]
struct GapJson<'a> {
    /// The cause.
    #[schemars(with = "Cause")]
    cause: &'static str,
    /// Gaps of which at least a part has this cause.
    count: u64,
    /// Idle time of this cause.
    total_ns: i64,
    /// Gaps of which it has the largest part: each gap counts once.
    main_count: u64,
    /// Whole length of those gaps.
    main_ns: i64,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'a str>,
}

/// A kernel's row.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "KernelRow")]
struct KernelJson<'a> {
    #[serde(flatten)]
    kernel: &'a Kernel,
    /// Why none of its times is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    times_unknown_because: Option<&'static str>,
}

/// Something that was not recorded.
#[derive(JsonSchema)]
#[schemars(rename = "Loss")]
#[expect(
    dead_code,
    reason = "its schema stands for that of the model's, which hooks share"
)]
struct Lost {
    /// What was not recorded: `dispatch times`, `records`.
    what: String,
    /// How many of it.
    count: u64,
    /// Why.
    reason: String,
}

/// No counters, or notes on conditions, are no key.
fn is_empty<T>(rows: &Option<&[T]>) -> bool {
    rows.is_some_and(<[_]>::is_empty)
}

const NOT_TIMED: &str = "no work has known times; losses say why";

impl<'a> Json<'a> {
    fn of(report: &Report<'a>) -> Json<'a> {
        let findings = report.findings;
        let manifest = report.manifest;
        let rows = |table: &str, count: u64| findings.knows_rows(table).then_some(count);
        let because = |known: bool, why: &'static str| (!known).then_some(why);
        let notes = findings.notes.iter().chain(report.remarks);
        let code = findings.code.as_ref().filter(|_| findings.knows(CODE));
        Json {
            report_version: VERSION,
            gapscope_version: &manifest.gapscope_version,
            trace: report.trace,
            command: &manifest.command,
            exit: manifest.exit,
            complete: manifest.complete,
            label: report.label,
            verdict: findings.verdict.as_str(),
            verdict_sentence: &findings.verdict_evidence.sentence,
            verdict_window_ns: findings.verdict_evidence.window_ns,
            verdict_evidence: &findings.verdict_evidence.parts,
            sampling_mode: findings.sampling_mode,
            clock_error_ns: findings.clock_error_ns,
            clock_error_unknown_because: because(
                findings.clock_error_ns.is_some(),
                "no device clock, or not every device's, could be mapped to the host's with a bound",
            ),
            start_ns: manifest.start_ns,
            wall_ns: findings.wall_ns,
            wall_unknown_because: because(
                findings.wall_ns.is_some(),
                "the recording has no known end; `gapscope recover` completes it",
            ),
            gpu_busy_ns: findings.gpu_busy_ns,
            gpu_busy_unknown_because: because(
                findings.gpu_busy_ns.is_some(),
                match findings.knows(WORK) {
                    true => NOT_TIMED,
                    false => "tables of GPU work cannot be read; unread says which",
                },
            ),
            work_window: findings.work_window,
            analysed_window: findings.analysed_window,
            warm_up: &findings.warm_up,
            dispatch_count: rows(Dispatches::NAME, findings.dispatch_count),
            timed_dispatch_count: rows(Dispatches::NAME, findings.timed_dispatch_count),
            command_buffer_count: rows(tables::CommandBuffers::NAME, findings.command_buffer_count),
            submission_count: rows(Submissions::NAME, findings.submission_count),
            transfer_count: rows(Transfers::NAME, findings.transfer_count),
            transfer_bytes: rows(Transfers::NAME, findings.transfer_bytes),
            transfer_unknown_bytes_count: rows(
                Transfers::NAME,
                findings.transfer_unknown_bytes_count,
            ),
            devices: &findings.devices,
            gaps: findings.knows(CAUSES).then(|| gaps(report)),
            idle_time: (findings.knows(CAUSES)).then_some(&findings.idle_time),
            code: code.map(|code| {
                let mut all: Vec<&CodeTime> = code.causes.iter().flat_map(|c| &c.code).collect();
                all.sort_by_key(|time| std::cmp::Reverse((time.total_ns, time.samples)));
                all
            }),
            code_details: code,
            fill: findings.knows(KERNELS).then_some(&findings.fill),
            kernels: findings.knows(KERNELS).then(|| kernels(report)),
            kernel_limits: findings.kernel_limits.as_ref(),
            profiled_kernels: findings
                .knows(PROFILED)
                .then_some(&findings.profiled_kernels),
            sampled_kernels: findings.knows(SAMPLED).then_some(&findings.sampled_kernels),
            labels: findings.knows(LABELS).then_some(&findings.labels),
            folded_labels: findings.knows(LABELS).then_some(&findings.folded_labels),
            operators: findings.knows(LABELS).then_some(&findings.operators),
            command_buffers: (findings.knows(COMMAND_BUFFERS)).then_some(&findings.command_buffers),
            transfers: findings.knows(TRANSFERS).then_some(&findings.transfers),
            memory: findings.knows(MEMORY).then_some(&findings.memory),
            counters: findings.knows(COUNTERS).then_some(&findings.counters),
            conditions: findings.knows(CONDITIONS).then_some(&findings.conditions),
            unmeasured: &manifest.unmeasured,
            launch_latency: findings.knows(CAUSES).then_some(&findings.latency),
            drift: findings.knows(WORK).then_some(&findings.drift),
            equal_work: findings.equal_work.as_ref(),
            unread: &findings.unread,
            losses: &findings.losses,
            notes: notes.map(String::as_str).collect(),
            activity: None,
            ranks: None,
        }
    }
}

fn gaps<'a>(report: &Report<'a>) -> Vec<GapJson<'a>> {
    let findings = report.findings;
    let advice = |cause| {
        let advice = findings.advice.iter().find(|advice| advice.cause == cause);
        advice.map(|advice| advice.text.as_str())
    };
    let gaps = findings.gaps.iter().map(|gap| GapJson {
        cause: gap.cause.as_str(),
        count: gap.count,
        total_ns: gap.total_ns,
        main_count: gap.main_count,
        main_ns: gap.main_ns,
        advice: advice(gap.cause),
    });
    gaps.collect()
}

fn kernels<'a>(report: &Report<'a>) -> Vec<KernelJson<'a>> {
    let why = match report.findings.sampling_mode {
        SamplingMode::CommandBuffer => "recorded in command-buffer mode",
        SamplingMode::Pass => "passes were timed as a whole",
        _ => NOT_TIMED,
    };
    let kernels = report.findings.kernels.iter().map(|kernel| KernelJson {
        kernel,
        times_unknown_because: (kernel.durations.timed_count == 0).then_some(why),
    });
    kernels.collect()
}

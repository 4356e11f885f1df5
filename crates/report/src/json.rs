//! The findings as JSON. Keys are stable: they may be added to, never renamed or taken away.
//!
//! Times are integer nanoseconds, sizes integer bytes. What is not known is `null`; beside the most important ones a
//! key `…_unknown_because` then holds a sentence. What rests on a table in `unread` is `null`.

use crate::page::Report;
use gapscope_analysis::activity::Activity;
use gapscope_analysis::busy::DeviceBusy;
use gapscope_analysis::command_buffers::CommandBuffers;
use gapscope_analysis::conditions::ConditionNote;
use gapscope_analysis::counters::CounterRow;
use gapscope_analysis::drift::Drift;
use gapscope_analysis::equal_work::WorkComparison;
use gapscope_analysis::fill::DeviceFill;
use gapscope_analysis::gaps::IdleTime;
use gapscope_analysis::intervals::Interval;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::labels::LabelRow;
use gapscope_analysis::latency::QueueLatency;
use gapscope_analysis::memory_timeline::MemoryRow;
use gapscope_analysis::ranks::RankFindings;
use gapscope_analysis::transfers::TransferRow;
use gapscope_analysis::unread::{
    CAUSES, COMMAND_BUFFERS, CONDITIONS, COUNTERS, KERNELS, LABELS, MEMORY, TRANSFERS, WORK,
};
use gapscope_analysis::verdict::Part;
use gapscope_analysis::warm_up::WarmUp;
use gapscope_trace::UnreadTable;
use gapscope_trace::manifest::{Exit, Loss, SamplingMode, Unmeasured};
use gapscope_trace::tables::{self, Dispatches, Submissions, Table, Transfers};
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

#[derive(Serialize)]
struct Json<'a> {
    report_version: u32,
    gapscope_version: &'a str,
    trace: &'a str,
    command: &'a [String],
    exit: Option<Exit>,
    complete: bool,
    label: Option<&'a str>,
    verdict: &'static str,
    verdict_sentence: &'a str,
    verdict_window_ns: Option<i64>,
    verdict_evidence: &'a [Part],
    sampling_mode: SamplingMode,
    clock_error_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_error_unknown_because: Option<&'static str>,
    start_ns: i64,
    wall_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_unknown_because: Option<&'static str>,
    gpu_busy_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_busy_unknown_because: Option<&'static str>,
    work_window: Option<Interval>,
    analysed_window: Option<Interval>,
    warm_up: &'a WarmUp,
    dispatch_count: Option<u64>,
    timed_dispatch_count: Option<u64>,
    command_buffer_count: Option<u64>,
    submission_count: Option<u64>,
    transfer_count: Option<u64>,
    transfer_bytes: Option<u64>,
    transfer_unknown_bytes_count: Option<u64>,
    devices: &'a [DeviceBusy],
    gaps: Option<Vec<GapJson<'a>>>,
    idle_time: Option<&'a IdleTime>,
    fill: Option<&'a [DeviceFill]>,
    kernels: Option<Vec<KernelJson<'a>>>,
    labels: Option<&'a [LabelRow]>,
    command_buffers: Option<&'a CommandBuffers>,
    transfers: Option<&'a [TransferRow]>,
    memory: Option<&'a [MemoryRow]>,
    #[serde(skip_serializing_if = "is_empty")]
    counters: Option<&'a [CounterRow]>,
    #[serde(skip_serializing_if = "is_empty")]
    conditions: Option<&'a [ConditionNote]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    unmeasured: &'a [Unmeasured],
    launch_latency: Option<&'a [QueueLatency]>,
    drift: Option<&'a Drift>,
    equal_work: Option<&'a WorkComparison>,
    unread: &'a [UnreadTable],
    losses: &'a [Loss],
    notes: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<&'a Activity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<&'a RankFindings>,
}

#[derive(Serialize)]
struct GapJson<'a> {
    cause: &'static str,
    count: u64,
    total_ns: i64,
    main_count: u64,
    main_ns: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<&'a str>,
}

#[derive(Serialize)]
struct KernelJson<'a> {
    #[serde(flatten)]
    kernel: &'a Kernel,
    #[serde(skip_serializing_if = "Option::is_none")]
    times_unknown_because: Option<&'static str>,
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
            fill: findings.knows(KERNELS).then_some(&findings.fill),
            kernels: findings.knows(KERNELS).then(|| kernels(report)),
            labels: findings.knows(LABELS).then_some(&findings.labels),
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

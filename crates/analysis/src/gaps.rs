//! Finds the idle time of the devices and queues of a timeline, and splits it by cause.
//!
//! A *gap* of a device is time between two pieces of its work in which it runs nothing; in a gap of a queue another queue may
//! be running. A gap is explained by the work that ends it: when the host started to submit that work and when the call
//! returned, what the submitting thread did before, and what the submission depends on. Each nanosecond of a gap gets exactly
//! one [`Cause`], so the causes sum to the idle time.
//!
//! | module | task |
//! |---|---|
//! | `cause` | the causes and all that is known of each |
//! | `explain` | which part of a gap has which cause |
//! | `host_cause` | the time before the submission |
//! | `at_work` | what other threads did while the submitting thread was late |
//! | `building` | the time before loads of code that is spent on building the code |
//! | `call_causes` | the cause of a call, by facts about the whole program |
//! | `process_start` | the first use of a GPU by each process |
//! | `waits` | what the work after a gap waits for |
//! | `start_up` | how long a device takes to start work that is free to run |
//! | `page_moves` | the submitted work after moves of managed memory, which nothing submits |
//! | `unknown_reason` | why a cause is not known |
//! | `slow_launches` | what holds up launches that take long |
//! | `submit_calls` | what submission calls submit, and which of them are slow |
//! | `certainty` | how much of each cause is certain within the clock's error |
//! | `advice` | what to do about a cause |
//!
//! Where the submitting thread is outside of calls, the calls of another thread of its process may explain the time.
//!
//! *Round trip*: when a waiting call was in progress as the gap began, and the thread then spent at most
//! [`ROUND_TRIP_NS`](gapscope_timeline::thresholds::ROUND_TRIP_NS) outside of calls until it submitted, that time counts as
//! part of the wait. After a longer time the host is late, whatever it waited for.
//!
//! What this cannot know: what a thread does outside of GPU calls (it computes, sleeps, waits for a disk, or for another
//! thread that makes no call); whether it could have submitted earlier; what the device itself does between submission and
//! start; barriers against unrecorded commands inside a command buffer; work of programs that are not in the trace.

mod advice;
mod at_work;
mod building;
mod call_causes;
mod cause;
mod certainty;
pub(crate) mod explain;
mod explained;
mod host_cause;
mod host_totals;
mod idle_time;
mod not_recorded;
mod other_threads;
mod page_moves;
mod pattern;
mod process_start;
mod queues;
mod reserve;
mod slow_launches;
mod start_up;
mod submit_calls;
mod totals;
mod unknown_reason;
mod unrelated_waits;
pub(crate) mod visit;
pub(crate) mod waits;

pub(crate) use advice::{SampledHost, advice, pinned};

pub(crate) use reserve::reserved;

pub use cause::{Cause, CauseFacts, Family, Side};
pub(crate) use idle_time::explained_idle_time;
pub use idle_time::{GapFinder, idle_time};
pub use pattern::{Pattern, Regularity};
pub(crate) use start_up::api_of;
pub(crate) use unknown_reason::unknown_because;
pub use unknown_reason::{UnknownReason, UnknownTotal};
pub use visit::{gap_numbers, idle_by_cause};

use crate::bound::{Bound, VerdictPart};
use building::Built;
use explain::HeldUp;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::ids::{CommandBufferId, ProcessId, QueueId, SubmissionId, ThreadId};
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::HostCallKind;
use schemars::JsonSchema;
use serde::Serialize;
use submit_calls::SubmitCalls;

impl GapPart {
    /// Returns the interval of the part.
    pub fn interval(&self) -> Interval {
        Interval::new(self.start_ns, self.start_ns + self.duration_ns)
    }
}

/// Idle time of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct GapTotal {
    /// The cause.
    pub cause: Cause,
    /// Gaps in which it has a part. A gap with several causes counts for each of them.
    pub count: u64,
    /// Idle time with this cause. Over all causes these sum to the idle time exactly.
    pub total_ns: i64,
    /// Gaps of which it has the largest part: each gap counts once.
    pub main_count: u64,
    /// Whole length of those gaps.
    pub main_ns: i64,
    /// The part of `total_ns` that calls of other threads explain, while the submitting thread was outside of calls.
    pub by_other_threads_ns: i64,
    /// How much of `total_ns` could have another cause within the clock's error. Absent where that is not known.
    pub uncertain_ns: Option<i64>,
}

/// What to do about a cause of idle time, or about the work that bounds the speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Advice {
    /// The cause of idle time; `transfer` or `communication` where such work bounds the speed.
    #[schemars(with = "String")]
    pub cause: AdviceSubject,
    /// What to do about it, without a capital and a full stop.
    pub text: String,
}

/// The subject of advice. JSON has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum AdviceSubject {
    /// A cause of idle time.
    Idle(Cause),
    /// Work, by the name of its part of the verdict's time.
    Work(&'static str),
}

impl PartialEq<Cause> for AdviceSubject {
    fn eq(&self, cause: &Cause) -> bool {
        *self == AdviceSubject::Idle(*cause)
    }
}

/// Idle time of one cause, and what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CauseSummary {
    /// The cause.
    pub cause: Cause,
    /// Gaps of which at least a part has this cause.
    pub count: u64,
    /// Idle time of this cause.
    pub total_ns: i64,
    /// Gaps of which it has the largest part: each gap counts once.
    pub main_count: u64,
    /// Whole length of those gaps.
    pub main_ns: i64,
    /// What to do about it, without a capital and a full stop; empty where nothing helps.
    pub advice: String,
    /// What the cause may have been, likewise; only of the cause `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may_be: Option<String>,
}

impl CauseSummary {
    /// Takes the figures of a cause's total that reports list, and its advice.
    pub(crate) fn new(
        total: &GapTotal,
        advice: String,
        unknown_because: Option<&str>,
    ) -> CauseSummary {
        let is_unknown = total.cause == Cause::Unknown;
        CauseSummary {
            cause: total.cause,
            count: total.count,
            total_ns: total.total_ns,
            main_count: total.main_count,
            main_ns: total.main_ns,
            advice,
            may_be: unknown_because.filter(|_| is_unknown).map(str::to_owned),
        }
    }
}

/// Idle time on one side of the verdict, and how much of it is certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SideRange {
    /// The side.
    pub side: Side,
    /// Idle time with causes on it.
    pub total_ns: i64,
    /// The least that it could be within the clock's error; absent where that is not known.
    pub at_least_ns: Option<i64>,
    /// The most that it could be.
    pub at_most_ns: Option<i64>,
}

/// Idle time of the analysed window: of all devices, and of each queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct IdleTime {
    /// Gaps between work, at least as long as the threshold.
    pub gap_count: u64,
    /// Their sum.
    pub total_ns: i64,
    /// Gaps below the threshold of the options: not in `gap_count`, `total_ns`, nor any cause.
    pub below_threshold_count: u64,
    /// Their sum.
    pub below_threshold_ns: i64,
    /// By cause, the greatest first: gaps of devices. In JSON they are the findings' `gaps`.
    #[serde(skip)]
    pub causes: Vec<GapTotal>,
    /// For each device with timed work.
    pub devices: Vec<DeviceIdle>,
    /// For each queue with timed work: a queue may idle while another runs.
    pub queues: Vec<QueueIdle>,
    /// The longest gaps of devices, the longest first.
    pub longest: Vec<Gap>,
    /// Gaps of devices by length.
    pub histogram: Vec<GapBin>,
    /// What submitting threads did while devices ran nothing and the next work was not yet submitted.
    pub host_calls: Vec<HostTime>,
    /// Calls that compile, allocate or wait in which other threads of the process were while the submitting thread was
    /// outside of calls: several threads at once count each, so that they may sum to more than that time.
    pub other_thread_calls: Vec<HostTime>,
    /// Part of the time of [`Cause::HostLate`] in which it is not known what the submitting thread did: not which thread
    /// that is, or the trace has no host calls of its process, and neither ranges nor samples of the thread.
    pub unknown_host_ns: i64,
    /// The part of it in which it is not known which thread that is. In JSON it is in the advice.
    #[serde(skip)]
    pub(crate) unknown_submitter_ns: i64,
    /// Part of the time of [`Cause::HostLate`] in which ranges or samples alone say what the submitting thread did, as the trace has no
    /// host calls of its process. In JSON it is in the advice.
    #[serde(skip)]
    pub(crate) told_by_code_ns: i64,
    /// What submitting threads mostly did in the time of [`Cause::HostLate`], as the end of a sentence, where samples say, or, of
    /// threads without calls, ranges. In JSON it is in the sentence of the verdict's evidence.
    #[serde(skip)]
    pub(crate) late_host_was: Option<String>,
    /// New code that is built again and again. In JSON it is in the advice.
    #[serde(skip)]
    pub(crate) built: Option<Built>,
    /// What other threads of the process did in stretches of [`Cause::HostLate`] that are longer than a round trip, the longest
    /// first, as far as ranges and calls show it. Times are estimates.
    pub threads_at_work: Vec<ThreadAtWork>,
    /// Part of the time of [`Cause::HostLate`] in which other threads of the process compiled or loaded code: calls that returned
    /// too early or too late to be taken for what held up the submitting thread, which may have waited for them all the same. In
    /// JSON it is in the advice.
    #[serde(skip)]
    pub late_while_compiling_ns: i64,
    /// The time of [`Cause::Unknown`] by why it is not known, the most first. It sums to that time.
    pub unknown_reasons: Vec<UnknownTotal>,
    /// Time of [`Cause::AfterHostWait`] by the call that waited, where that is known. In JSON it is in the advice.
    #[serde(skip)]
    pub(crate) waits: Vec<WaitTime>,
    /// What the submission calls submitted in which devices idled, and how long they took. In JSON it is in the advice.
    #[serde(skip)]
    pub(crate) submit_calls: SubmitCalls,
    /// Part of the time of [`Cause::HostFunction`] of which it is not known when the function ran: all that it may have
    /// taken.
    pub untimed_host_function_ns: i64,
    /// Whole length of the gaps in which the submitting thread was in a wait call, or was held up by another's: with the next work submitted
    /// before the wait, they could be shorter by up to this.
    pub serialised_ns: i64,
    /// How many those are.
    pub serialised_count: u64,
    /// Idle time whose cause could be another one within the clock's error; a sum over causes would count it twice. Absent
    /// when the error is not known.
    pub uncertain_ns: Option<i64>,
    /// For each side of the verdict how much is certain.
    pub sides: Vec<SideRange>,
}

impl IdleTime {
    /// Returns what the host was doing in the time of a cause on its side, as the end of a sentence. Of other calls
    /// of the API it names the function that took the most time, and of a late host what samples show.
    pub fn host_was(&self, cause: Cause) -> Option<String> {
        let doing = cause.facts(Api::Unknown).host_was?;
        if let (Cause::HostLate, Some(was)) = (cause, &self.late_host_was) {
            return Some(was.clone());
        }
        let of_cause = |time: &&HostTime| {
            let known = |call: &HostCallKind| call.as_str() == time.call && !call.is_poll();
            (HostCallKind::ALL.iter().copied().find(known))
                .is_some_and(|call| Cause::while_in(call) == cause)
        };
        // The calls are sorted.
        let most = (self.host_calls.iter())
            .find(|time| cause == Cause::HostCall && of_cause(time))
            .map(|time| format!("in {}", time.function.as_deref().unwrap_or(time.call)));
        Some(most.unwrap_or_else(|| doing.to_owned()))
    }
}

/// Idle time of a device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct DeviceIdle {
    /// Index of the device in the findings.
    pub device: u32,
    /// Idle time.
    pub total_ns: i64,
    /// By cause.
    pub causes: Vec<GapTotal>,
    /// Its part of [`IdleTime::unknown_host_ns`].
    pub unknown_host_ns: i64,
    /// Its part of [`IdleTime::untimed_host_function_ns`].
    pub untimed_host_function_ns: i64,
    /// Part of `total_ns` in which work without known times may have run, in nanoseconds: it is not known whether the device idled.
    pub untimed_work_ns: i64,
    /// Part of `total_ns` without a known cause for which the host may not have been the cause.
    #[serde(skip)]
    pub(crate) not_of_host_ns: i64,
    /// For each side of the verdict how much is certain.
    pub sides: Vec<SideRange>,
    /// What bounds the speed on this device, over the window of all devices.
    pub verdict: Bound,
    /// The same in one sentence.
    pub verdict_sentence: String,
    /// Length of that window.
    pub verdict_window_ns: Option<i64>,
    /// Its parts, the largest first; they sum to `verdict_window_ns`.
    pub verdict_evidence: Vec<VerdictPart>,
    /// Whether its gaps come regularly.
    pub pattern: Pattern,
}

/// Idle time of a queue, between its own first and last work.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct QueueIdle {
    /// Index of the device in the findings.
    pub device: u32,
    /// Id of the queue in the trace.
    pub queue_id: QueueId,
    /// Idle time.
    pub total_ns: i64,
    /// By cause.
    pub causes: Vec<GapTotal>,
}

/// One gap of a device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gap {
    /// Index of the device in the findings.
    pub device: u32,
    /// When it began: the end of the work before.
    pub start_ns: i64,
    /// How long it lasted.
    pub duration_ns: i64,
    /// The cause of the largest part.
    pub cause: Cause,
    /// Its parts in order of time; they sum to `duration_ns`.
    pub parts: Vec<GapPart>,
    /// The work before.
    pub before: WorkName,
    /// The work after.
    pub after: WorkName,
    /// Id of the process that submitted the work after.
    pub process_id: Option<ProcessId>,
    /// The system's id of the thread that did.
    pub thread: Option<ThreadId>,
    /// Its name.
    pub thread_name: Option<String>,
    /// Id of the submission.
    pub submission: Option<SubmissionId>,
    /// When the submission call started.
    #[serde(rename = "submit_begin_ns")]
    pub submit_start_ns: Option<i64>,
    /// What that thread did in the gap before the submission call, the longest first.
    pub host_calls: Vec<HostTime>,
    /// Calls that other threads of the process were in at that time: several threads may sum to more than the gap.
    pub other_threads: Vec<HostTime>,
    /// Id of the queue that the work after waited for.
    pub waited_for_queue: Option<QueueId>,
}

/// A part of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GapPart {
    /// Its cause.
    pub cause: Cause,
    /// When it began.
    pub start_ns: i64,
    /// How long it lasted.
    pub duration_ns: i64,
}

/// What ran before or after a gap.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct WorkName {
    /// The kernel's name, `copy` and the like for a transfer, or `command buffer`.
    pub name: String,
    /// Path of its innermost label, outermost first, joined by ` / `.
    pub label: Option<String>,
    /// Id of the command buffer.
    pub command_buffer: Option<CommandBufferId>,
    /// Id of the queue.
    pub queue_id: QueueId,
}

/// Host time by call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HostTime {
    /// The call, as in the trace, or `outside of GPU calls`.
    pub call: &'static str,
    /// The function that was called, where the trace says (CUDA).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Calls that overlap the gaps; a folded row counts as many as it folds. 0 for `outside of GPU calls`.
    pub count: u64,
    /// Time in it.
    pub total_ns: i64,
}

/// A thread that was at work while the submitting thread of its process was late.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThreadAtWork {
    /// Id of the process.
    pub process_id: ProcessId,
    /// The system's id of the thread.
    pub thread: ThreadId,
    /// Its name, where it is known.
    pub thread_name: Option<String>,
    /// For how long it was at work then, in nanoseconds: an estimate.
    pub total_ns: i64,
    /// The range (a label, an operator or a function) or the call in which it mostly was then.
    pub mostly_in: String,
}

/// Idle time in which a call that waited held up the submission of the next work.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WaitTime {
    held_up: HeldUp,
    time: HostTime,
}

/// Gaps of some range of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GapBin {
    /// Shortest length in the bin.
    pub from_ns: i64,
    /// First length past the bin; absent for the last one.
    pub to_ns: Option<i64>,
    /// Gaps.
    pub count: u64,
    /// Their sum.
    pub total_ns: i64,
}

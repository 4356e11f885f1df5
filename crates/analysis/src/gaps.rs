//! Idle time and its causes.

use serde::Serialize;

/// Why a device ran nothing. Each nanosecond of a gap has exactly one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The host had not yet begun to submit the next work: the submitting thread ran its own code.
    HostLate,
    /// The host had not yet begun to submit: the submitting thread was compiling pipelines or shaders.
    HostCompile,
    /// The host had not yet begun to submit: the submitting thread was allocating, freeing or mapping memory.
    HostAllocate,
    /// The host was inside a submission call.
    SubmitCall,
    /// The host waited for the GPU to finish, and began the next submission only after: a serialisation point.
    AfterHostWait,
    /// The next work was submitted and waited for work on another queue that had not finished.
    OtherQueue,
    /// The next work waited for another queue's work, and that had finished: the hand-over itself.
    QueueHandover,
    /// The next work was submitted and waited for a signal that the host had not given.
    HostSignal,
    /// The next work was submitted and free to start: the time the device took to start it.
    LaunchLatency,
    /// Between two commands of one command buffer: barriers, and commands that are not recorded.
    WithinCommandBuffer,
    /// The trace does not say.
    Unknown,
}

/// Idle time of one cause.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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
}

/// Idle time of the analysed window: of all devices, and of each queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct IdleTime {
    /// Gaps between work, at least as long as the threshold.
    pub gap_count: u64,
    /// Their sum.
    pub total_ns: i64,
    /// Gaps below the threshold of the options: not in `gap_count`, `total_ns`, nor any cause.
    pub below_threshold_count: u64,
    /// Their sum.
    pub below_threshold_ns: i64,
    /// By cause, the greatest first: gaps of devices.
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
    /// Whole length of the gaps in which the submitting thread was in a wait call: with the next work submitted
    /// before the wait, they could be shorter by up to this.
    pub serialised_ns: i64,
    /// How many those are.
    pub serialised_count: u64,
    /// Idle time whose cause could change within the clock's error: for each gap, at most the error for each
    /// boundary between host and device. Absent when the error is not known.
    pub uncertain_ns: Option<i64>,
}

/// Idle time of a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeviceIdle {
    /// Index of the device in the findings.
    pub device: u32,
    /// Idle time.
    pub total_ns: i64,
    /// By cause.
    pub causes: Vec<GapTotal>,
}

/// Idle time of a queue, between its own first and last work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueueIdle {
    /// Index of the device in the findings.
    pub device: u32,
    /// Id of the queue in the trace.
    pub queue_id: u32,
    /// Idle time.
    pub total_ns: i64,
    /// By cause.
    pub causes: Vec<GapTotal>,
}

/// One gap of a device.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    pub process_id: Option<u32>,
    /// The system's id of the thread that did.
    pub thread: Option<u32>,
    /// Its name.
    pub thread_name: Option<String>,
    /// Id of the submission.
    pub submission: Option<u64>,
    /// When the submission call began.
    pub submit_begin_ns: Option<i64>,
    /// What that thread did in the gap before the submission call, the longest first.
    pub host_calls: Vec<HostTime>,
    /// Calls that other threads of the process were in at that time: several threads may sum to more than the gap.
    pub other_threads: Vec<HostTime>,
    /// Id of the queue that the work after waited for.
    pub waited_for_queue: Option<u32>,
}

/// A part of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GapPart {
    /// Its cause.
    pub cause: Cause,
    /// When it began.
    pub start_ns: i64,
    /// How long it lasted.
    pub duration_ns: i64,
}

/// What ran before or after a gap.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct WorkName {
    /// The kernel's name, `copy` and the like for a transfer, or `command buffer`.
    pub name: String,
    /// Path of its innermost label, outermost first, joined by ` / `.
    pub label: Option<String>,
    /// Id of the command buffer.
    pub command_buffer: Option<u64>,
    /// Id of the queue.
    pub queue_id: u32,
}

/// Host time by call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HostTime {
    /// The call, as in the trace, or `outside of GPU calls`.
    pub call: &'static str,
    /// Calls that overlap the gaps; a folded row counts as many as it folds. 0 for `outside of GPU calls`.
    pub count: u64,
    /// Time in it.
    pub total_ns: i64,
}

/// Gaps of some range of lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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

//! The reasons for which idle time has the cause [`Cause::Unknown`](super::Cause::Unknown), and what each may be.

use super::start_up::start_up_ns;
use super::{Cause, IdleTime};
use gapscope_timeline::Timeline;
use gapscope_timeline::quantity::{Nanoseconds, ratio, share_of};
use gapscope_timeline::thresholds::{REASON_SHARE, UNSTATED_ERROR_NS};
use gapscope_timeline::vocabulary::Vocabulary;
use gapscope_trace::manifest::Api;
use schemars::JsonSchema;
use serde::Serialize;

/// Why the cause of idle time is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnknownReason {
    /// The submission of the next work is not in the trace.
    NoSubmission,
    /// Work without known times may have run.
    UntimedWork,
    /// The next work waited for something that is not in the trace, such as a host node of a graph, memory that is
    /// decompressed, or a signal of unknown source.
    UnrecordedWait,
    /// The work was free to run for longer than a device needs to start, order or hand over work.
    LongStart,
    /// The same while a move of managed memory may have run, which was put on another queue.
    PageMove,
    /// It was the first recorded work of its queue, which may have waited for work from before the recording.
    BeforeRecording,
    /// A wait of the host returned before the work that it waited for ended: the times contradict each other.
    Contradiction,
    /// A wait of the host returned shortly before the work ended, and no clock error tells whether the wait was for that work.
    EarlyWait,
}

impl UnknownReason {
    /// The number of reasons.
    pub(super) const COUNT: usize = 8;

    /// All reasons, in the order in which they are declared.
    pub(super) const ALL: [UnknownReason; UnknownReason::COUNT] = [
        UnknownReason::NoSubmission,
        UnknownReason::UntimedWork,
        UnknownReason::UnrecordedWait,
        UnknownReason::LongStart,
        UnknownReason::PageMove,
        UnknownReason::BeforeRecording,
        UnknownReason::Contradiction,
        UnknownReason::EarlyWait,
    ];

    /// Returns true where the host may have been the cause: work that is free to run does not wait for the host.
    pub(super) fn may_be_host(self) -> bool {
        !matches!(
            self,
            UnknownReason::LongStart | UnknownReason::PageMove | UnknownReason::BeforeRecording
        )
    }

    /// Returns what may have been the cause, as a sentence without a capital and a full stop.
    pub fn text(self, api: Api) -> String {
        let cuda = matches!(api, Api::Cuda | Api::Hip);
        match self {
            UnknownReason::NoSubmission => {
                "the call that submitted the next work is not in the trace".to_owned()
            }
            UnknownReason::UntimedWork => {
                "work without known times may have run meanwhile".to_owned()
            }
            UnknownReason::UnrecordedWait => {
                let such = match cuda {
                    true => "a host node of a graph, a decompression of memory, or a signal of unknown source",
                    false => "a semaphore of another program",
                };
                format!("what the next work waited for is not in the trace, such as {such}")
            }
            UnknownReason::LongStart => {
                let processor = match api {
                    Api::Vulkan => ", or, on a software GPU, a processor",
                    _ => "",
                };
                format!(
                    "the next work was free to run, and a device starts within {}: it may have waited for work that is not recorded, another process's time on the device, an event from outside, or a change of the power state{processor}",
                    Nanoseconds(start_up_ns(api))
                )
            }
            UnknownReason::PageMove => format!(
                "the next work was free to run, and a device starts within {}: it may have waited for a move of managed memory on another stream, whose times are not recorded",
                Nanoseconds(start_up_ns(api))
            ),
            UnknownReason::BeforeRecording => format!(
                "the first recorded work of a {} may have waited for work from before the recording",
                if cuda { "stream" } else { "queue" }
            ),
            UnknownReason::Contradiction => {
                "waits returned before the work that they waited for ended, so the times of host and device contradict each other".to_owned()
            }
            UnknownReason::EarlyWait => format!(
                "a wait returned up to {} before the work seems to end, and the trace states no error of its clock, or too small a one: the host may have waited for that work",
                Nanoseconds(UNSTATED_ERROR_NS)
            ),
        }
    }
}

/// Idle time of unknown cause, for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnknownTotal {
    /// Why the cause is not known.
    pub reason: UnknownReason,
    /// Idle time of devices.
    pub total_ns: i64,
}

/// Returns what the causes of the unknown idle time may have been, by the greatest reasons for which they are not known; `None` where no
/// cause is unknown.
pub(crate) fn unknown_because(timeline: &Timeline, idle: &IdleTime) -> Option<String> {
    const LOSSES: &str = "the losses may say why";
    let manifest = &timeline.trace.manifest;
    let api = Vocabulary::new(manifest).words().api;
    let unknown = (idle.causes.iter()).find(|total| total.cause == Cause::Unknown)?;
    let reasons = idle.unknown_reasons.iter();
    let counts = |total: &&UnknownTotal| ratio(total.total_ns, unknown.total_ns) >= REASON_SHARE;
    let reasons: Vec<&UnknownTotal> = reasons.filter(counts).collect();
    let text = |total: &UnknownTotal| total.reason.text(api);
    let mut because = match reasons.as_slice() {
        [] => return Some(LOSSES.to_owned()),
        [only] => text(only),
        several => (several.iter())
            .map(|total| {
                let share = share_of(total.total_ns, unknown.total_ns);
                format!("in {share} of it {}", text(total))
            })
            .collect::<Vec<_>>()
            .join("; "),
    };
    if !manifest.losses.is_empty() {
        because += &format!("; {LOSSES}");
    }
    Some(because)
}

/// Sums of idle time by the reason for which its cause is unknown.
#[derive(Debug, Default)]
pub(super) struct UnknownTimes([i64; UnknownReason::COUNT]);

impl UnknownTimes {
    pub(super) fn add(&mut self, reason: UnknownReason, ns: i64) {
        let sum = &mut self.0[reason as usize];
        *sum = sum.saturating_add(ns);
    }

    pub(super) fn add_all(&mut self, other: &UnknownTimes) {
        for (reason, ns) in UnknownReason::ALL.into_iter().zip(other.0) {
            self.add(reason, ns);
        }
    }

    /// Returns the sum of the reasons for which the host may not have been the cause.
    pub(super) fn not_of_host_ns(&self) -> i64 {
        let all = UnknownReason::ALL.into_iter();
        let not_of_host = all.filter(|reason| !reason.may_be_host());
        not_of_host
            .map(|reason| self.total_ns(reason))
            .fold(0, i64::saturating_add)
    }

    /// Returns the sum of a reason.
    pub(super) fn total_ns(&self, reason: UnknownReason) -> i64 {
        self.0[reason as usize]
    }

    /// Returns the reasons that have time, the greatest first.
    pub(super) fn rows(&self) -> Vec<UnknownTotal> {
        let all = UnknownReason::ALL.into_iter().zip(self.0);
        let mut rows: Vec<UnknownTotal> = all
            .filter(|(_, ns)| *ns > 0)
            .map(|(reason, total_ns)| UnknownTotal { reason, total_ns })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
        rows
    }
}

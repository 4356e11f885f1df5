//! Judges from busy and idle time what bounds the program's speed on the GPU: the verdict, with its evidence.
//!
//! All devices with timed work are judged over one window, from the first work of any in the analysed window to the last.
//! Of the time of each, what passes while the recording itself holds the submitting thread up ([`Cause::Recording`](crate::gaps::Cause::Recording), as while it
//! profiles a kernel) is left out. The rest is split into parts; over the devices they sum to the window times the devices, without that time:
//!
//! | part | time |
//! |---|---|
//! | `compute` | the device computed, whatever else it did |
//! | `communication` | it ran kernels that communicate, and none that compute: exposed communication |
//! | `peers` | likewise, and the kernels waited for another device of the trace to come to the same operation |
//! | `transfer` | it ran transfers and nothing else |
//! | `host` | idle, with a cause on [`Side::Host`]: the host had not submitted, or the queue waited for its function |
//! | `sync` | idle, with a cause on [`Side::Sync`]: host and device, or queues, waited for each other |
//! | `launch` | idle, with a cause on [`Side::Launch`]: the device started or ordered what it had |
//! | `imbalance` | it had no work while another device had: before its own first work and after its last |
//! | `unknown` | idle, and the trace does not say why; it communicated or ran transfers, and work without known times may have run beside; or only command buffers or graphs ran that are timed as a whole, so that the device may have idled inside of them |
//!
//! The verdict is the first of these whose share is reached:
//!
//! | verdict | of the time | has at least |
//! |---|---|---|
//! | `unknown` | `unknown`; or nothing was timed | [`UNKNOWN_SHARE`] |
//! | `host-bound` | `host` | [`IDLE_SHARE`] |
//! | `sync-bound` | `sync` and `peers` | [`IDLE_SHARE`] |
//! | `communication-bound` | `communication` | [`COMMUNICATION_SHARE`] |
//! | `transfer-bound` | `transfer` | [`TRANSFER_SHARE`] |
//! | `latency-bound` | `launch`, and the part of `compute` in which the device was [underfilled](crate::fill) | [`IDLE_SHARE`] |
//! | `device-bound` | `compute` and `transfer` | [`DEVICE_SHARE`] |
//! | `mixed` | none of these | |
//!
//! Overlapped time counts as `compute`, and yet bounds nothing where computing waits for what overlaps. So some verdicts
//! also come from other figures:
//!
//! - The verdict is `communication-bound` or `transfer-bound`, too, where the [critical path](crate::critical_path) runs through
//!   such work for the share above, and computing waited for that work for [`SLACK_SHARE`] of the time and at least twice
//!   as long as faster kernels could win.
//! - The same two are the verdict where such work fills all of the time but [`SLACK_SHARE`], and the kernels
//!   beside could use little of the device ([`crate::fill`]).
//! - Of several devices the joint critical path decides. Where computing on one waits for transfers or communication on another,
//!   that wait is no reason for `sync-bound`. Where devices wait in communication for each other for [`SLACK_SHARE`] of the time, the
//!   whole path is judged by the table above instead of the sums (`joint.rs`). Where one device computes all of the time but [`SLACK_SHARE`], the path runs
//!   through that, and the others wait for it, the verdict is `device-bound`.
//! - Where the clock's error, or times that contradict each other, leave open which side of idle time a verdict rests on,
//!   the verdict is `unknown`; where its share is in doubt only, the sentence says `at least` (`certainty.rs`).
//!
//! What this cannot know: whether the work itself is needed, or well done. A device that is always busy may be running
//! kernels that ought to be one, and time that another version of the program saves shows as idle time here: compare
//! equal work ([`crate::equal_work`]) before believing in a busy device.
//!
//! Order: `times.rs` sums up the parts of each device and of all, `Bound::from_times` decides (`pace.rs` for overlapped work, `joint.rs` for the path through several devices or ranks), `certainty.rs` tries the verdict
//! within the clock's error, and `words.rs` writes the sentences. `long_gap.rs` says where one gap is most of the time, `phases.rs` finds parts of the program whose verdicts differ.

mod certainty;
mod joint;
mod long_gap;
mod pace;
mod phases;
mod times;
mod words;

use crate::code::{Code, HostCode, SummedGaps};
use crate::contradictions::{self, Contradiction};
use crate::critical_path::{self, CriticalPaths};
use crate::fill::{self, DeviceFill};
#[cfg(doc)]
use crate::gaps::Side;
use crate::gaps::waits::Unmeasured;
use crate::gaps::{self, Cause, GapFinder, IdleTime};
use certainty::Sides;
use gapscope_timeline::Timeline;
use gapscope_timeline::busy::{self, DeviceBusy};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::{Percent, ratio};
use gapscope_timeline::thresholds::*;
use gapscope_trace::parallel;
use times::DeviceFindings;
pub(crate) use times::{Times, contradicted_ns};

pub use crate::bound::{Bound, Evidence, VerdictPart};
pub use phases::Phase;
pub(crate) use phases::PhaseSums;

/// The verdict on a window, with the figures that it is made from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Judgement {
    /// The busy time of the devices.
    pub devices: Vec<DeviceBusy>,
    /// The idle time of the devices, with a verdict on each device.
    pub idle_time: IdleTime,
    /// The share of each device that its kernels could use at once.
    pub fill: Vec<DeviceFill>,
    /// The critical paths through transfers and communication that computing waited for.
    pub critical_paths: CriticalPaths,
    /// The device times that contradict host times.
    pub contradictions: Vec<Contradiction>,
    /// The verdict: what bounds the speed.
    pub bound: Bound,
    /// The evidence for the verdict.
    pub evidence: Evidence,
    /// How much of the judged time one gap is, and what the verdict is on the rest, where that gap is most of the time.
    pub long_gap: Option<String>,
    /// The times in which work without known times may have run.
    pub(crate) unmeasured: Unmeasured,
    /// The code behind the idle time; `None` without samples and ranges.
    pub code: Option<Code>,
}

impl Judgement {
    /// Returns true where one device communicates with others that the trace does not have, so that communication may be waiting.
    pub(crate) fn hides_waits_for_ranks(&self) -> bool {
        let communicates = |device: &DeviceBusy| {
            let share = device.analysed.as_ref();
            share.is_some_and(|share| share.parts.communication_ns > 0)
        };
        let communicating = self.devices.iter().filter(|device| communicates(device));
        !self.critical_paths.has_joined_kernels && communicating.count() == 1
    }

    /// Judges `window`. Without a window, the verdict says that nothing was timed. Gaps shorter than
    /// `gap_threshold_ns` are not explained; up to `longest` of the longest gaps and so on are listed. `host_code` tells
    /// what a thread did that was outside of calls.
    pub fn new(
        finder: &GapFinder,
        window: Option<Interval>,
        gap_threshold_ns: i64,
        longest: usize,
        host_code: Option<&HostCode>,
    ) -> Judgement {
        let idle_time = window.map(|window| {
            gaps::explained_idle_time(&finder.explainer, window, gap_threshold_ns, longest)
        });
        let idle_time = idle_time.unwrap_or_default();
        Judgement::of_idle_time(
            finder,
            window,
            idle_time,
            gap_threshold_ns,
            longest,
            host_code,
        )
    }

    /// Judges `window` as [`Judgement::new`] does, where its idle time is known already.
    pub(crate) fn of_idle_time(
        finder: &GapFinder,
        window: Option<Interval>,
        mut idle_time: IdleTime,
        gap_threshold_ns: i64,
        longest: usize,
        host_code: Option<&HostCode>,
    ) -> Judgement {
        let explainer = &finder.explainer;
        let timeline = explainer.timeline;
        let Some(window) = window else {
            let (bound, evidence) = Times::default().verdict();
            return Judgement {
                devices: busy::busy(timeline, None),
                bound,
                evidence,
                ..Judgement::default()
            };
        };
        // With ten million dispatches each takes tenths of a second.
        let unmeasured = explainer.order().unmeasured();
        let gaps = SummedGaps {
            finder,
            window,
            threshold_ns: gap_threshold_ns,
            longest: &idle_time.longest,
        };
        let (code, (devices, fill, critical_paths, contradictions)) = parallel::both(
            || host_code.map(|code| code.code(&gaps)),
            || {
                let devices =
                    busy::busy_beside(timeline, Some(window), |gpu| unmeasured.on_gpu(gpu));
                let fill = fill::fill(timeline, window, &devices, longest);
                let order = explainer.order();
                let paths = critical_path::critical_paths(timeline, order, &devices, window);
                let contradictions = contradictions::contradictions(timeline, explainer.awaited());
                (devices, fill, paths, contradictions)
            },
        );
        let late = code
            .as_ref()
            .and_then(|code| code.of_cause(Cause::HostLate));
        idle_time.late_host_was = late.and_then(|late| late.thread_was(idle_time.told_by_code_ns));
        let findings = DeviceFindings {
            devices: &devices,
            fill: &fill,
            paths: &critical_paths,
            contradictions: &contradictions,
            unmeasured,
        };
        let judged = Times::from_devices(findings, &idle_time);
        let all = Times::sum(&judged, findings, &idle_time);
        let (mut bound, mut evidence) = all.verdict();
        // Times that contradict each other are no ground for a verdict on a part.
        let known = Some(bound).filter(|_| contradictions.is_empty());
        if let Some(sentence) = outside_sentence(timeline, window, unmeasured, known) {
            (bound, evidence.sentence) = (Bound::Unknown, sentence);
        }
        let long_gap = all.long_gap(&idle_time);
        let each: Vec<_> = judged.iter().map(Times::verdict).collect();
        for (device, (bound, evidence)) in idle_time.devices.iter_mut().zip(each) {
            device.verdict = bound;
            device.verdict_sentence = evidence.sentence;
            device.verdict_window_ns = evidence.window_ns;
            device.verdict_evidence = evidence.parts;
        }
        Judgement {
            devices,
            idle_time,
            fill,
            critical_paths,
            contradictions,
            bound,
            evidence,
            long_gap,
            unmeasured: unmeasured.clone(),
            code,
        }
    }
}

/// Returns the sentence on a verdict that leaves most of the program out: before the first work with known times, or after the last, work
/// without known times was submitted for longer than the judged window is. A window that is not of all work is the user's choice, or
/// leaves warm-up out. `rest` is the verdict on the judged window, where that is known.
fn outside_sentence(
    timeline: &Timeline,
    window: Interval,
    unmeasured: &Unmeasured,
    rest: Option<Bound>,
) -> Option<String> {
    let work = timeline.work_window()?;
    let is_edge = [
        window.start_ns == work.start_ns,
        window.end_ns == work.end_ns,
    ];
    let outside = unmeasured
        .submitted_outside(window)
        .into_iter()
        .zip(is_edge);
    let outside = outside.filter_map(|(ns, is_edge)| is_edge.then_some(ns));
    let outside_ns = outside.fold(0, i64::saturating_add);
    let share = ratio(outside_ns, window.length_ns().saturating_add(outside_ns));
    if share < UNKNOWN_SHARE {
        return None;
    }
    let rest = match rest {
        None | Some(Bound::Unknown) => String::new(),
        Some(bound) => format!(" The rest is {bound}."),
    };
    Some(format!(
        "For {} of the time in which the program submitted work, nothing that was measured ran: the work of that time has no known times.{rest}",
        Percent(share)
    ))
}

impl Judgement {
    /// Returns the advice on the causes of idle time, with a reserve where these are not certain.
    pub(crate) fn reserved(&self, advice: Vec<String>) -> Vec<String> {
        let devices = self.idle_time.devices.iter();
        let contradicted = devices.map(|idle| contradicted_ns(idle, &self.contradictions));
        let contradicted_ns = contradicted.fold(0, i64::saturating_add);
        gaps::reserved(advice, &self.idle_time, self.bound, contradicted_ns)
    }
}

impl Bound {
    /// Returns the first verdict of the table above whose share is reached.
    fn from_times(times: &Times) -> Bound {
        Bound::with_sides(times, times.sides())
    }

    /// Returns the same where the idle time is on other sides.
    fn with_sides(times: &Times, [host_ns, sync_ns, launch_ns, unknown_ns]: Sides) -> Bound {
        let reached = |ns: i64, share: f64| times.share(ns) >= share;
        let unmeasured_ns = unknown_ns.saturating_add(times.unmeasured_busy_ns());
        if let Some(path) = &times.path
            && !reached(unmeasured_ns, UNKNOWN_SHARE)
        {
            let sides = [host_ns, sync_ns, launch_ns, unknown_ns];
            return path.bound(times.path_parts(path, sides));
        }
        let latency_ns = launch_ns.saturating_add(times.underfilled_ns());
        let working_ns = (times.busy.compute_ns).saturating_add(times.busy.transfer_ns);
        let communicates = || {
            reached(times.communication_ns(), COMMUNICATION_SHARE)
                || times.pacing_communication().is_some()
                || times.fills(times.nearly_exposed_communication_ns())
        };
        let moves = || {
            reached(times.busy.transfer_ns, TRANSFER_SHARE)
                || times.pacing_transfers().is_some()
                || times.fills(times.nearly_exposed_transfer_ns())
        };
        match () {
            () if times.window_ns == 0 => Bound::Unknown,
            () if reached(unmeasured_ns, UNKNOWN_SHARE) => Bound::Unknown,
            () if reached(host_ns, IDLE_SHARE) => Bound::HostBound,
            () if times.awaits_communication() => Bound::CommunicationBound,
            () if times.awaits_transfers() => Bound::TransferBound,
            () if times.saturated_device().is_some() => Bound::DeviceBound,
            () if reached(sync_ns.saturating_add(times.peers_ns), IDLE_SHARE) => Bound::SyncBound,
            () if communicates() => Bound::CommunicationBound,
            () if moves() => Bound::TransferBound,
            () if reached(latency_ns, IDLE_SHARE) => Bound::LatencyBound,
            () if reached(working_ns, DEVICE_SHARE) => Bound::DeviceBound,
            () => Bound::Mixed,
        }
    }
}

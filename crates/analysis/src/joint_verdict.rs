//! Makes one verdict on several traces, or on several devices of traces, such as the ranks of a program. Each trace
//! has been analysed already: [`DeviceTimes::new`] takes the times of some of its devices, and [`joint_verdict`]
//! judges the sums as if they were of one device.

use crate::bound::{Bound, Evidence, VerdictPart};
use crate::critical_path::CriticalPath;
use crate::fill::DeviceFill;
use crate::findings::Findings;
use crate::gaps::{Cause, GapTotal, SideRange};
use crate::verdict::{Times, contradicted_ns};
use gapscope_timeline::busy::BusyParts;
use gapscope_timeline::quantity::ratio;
use gapscope_trace::manifest::Api;
use std::collections::BTreeMap;

/// Sums of the times of some devices, by the parts of the verdict.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceTimes {
    /// The judged time, once for each device.
    window_ns: i64,
    busy: BusyParts,
    /// The verdict's parts. The parts of busy time are in `busy` too.
    parts: Vec<VerdictPart>,
    /// Idle time by cause, with several rows for a cause of several devices.
    causes: Vec<GapTotal>,
    unknown_host_ns: i64,
    untimed_function_ns: i64,
    /// The idle time in which work without known times may have run.
    untimed_ns: i64,
    /// The idle time of unknown cause for which the host may not have been the cause.
    not_of_host_ns: i64,
    /// How much of each device its kernels could use.
    fill: Vec<DeviceFill>,
    /// The critical paths through transfers and communication that computing waited for.
    paths: Vec<CriticalPath>,
    /// The idle time of each side of each device, as far as it is certain.
    ranges: Vec<SideRange>,
    /// The idle time that may have other causes because host and device times contradict each other.
    contradicted_ns: i64,
    /// The greatest clock error of the devices; `None` where it is not known.
    error_ns: Option<i64>,
    /// The API of the first device.
    api: Option<Api>,
}

impl DeviceTimes {
    /// Returns the times of those devices in the findings for whose index `of` is true.
    pub fn new(findings: &Findings, of: impl Fn(u32) -> bool) -> DeviceTimes {
        let mut times = DeviceTimes::default();
        for device in findings.devices.iter().filter(|device| of(device.index)) {
            times.api = times.api.or(Some(device.api));
            let analysed = device.analysed.unwrap_or_default();
            times.busy = times.busy.plus(analysed.parts);
        }
        let judged = findings.idle_time.devices.iter();
        for idle in judged.filter(|idle| of(idle.device)) {
            let window_ns = idle.verdict_window_ns.unwrap_or(0);
            times.window_ns = times.window_ns.saturating_add(window_ns);
            times.parts.extend(idle.verdict_evidence.iter().cloned());
            times.causes.extend(idle.causes.iter().copied());
            times.unknown_host_ns = times.unknown_host_ns.saturating_add(idle.unknown_host_ns);
            times.untimed_function_ns =
                (times.untimed_function_ns).saturating_add(idle.untimed_host_function_ns);
            times.untimed_ns = times.untimed_ns.saturating_add(idle.untimed_work_ns);
            times.not_of_host_ns = times.not_of_host_ns.saturating_add(idle.not_of_host_ns);
            times.ranges.extend(idle.sides.iter().copied());
            let contradicted_ns = contradicted_ns(idle, &findings.contradictions);
            times.contradicted_ns = times.contradicted_ns.saturating_add(contradicted_ns);
        }
        let paths = (findings.critical_paths.iter()).filter(|path| of(path.device));
        times.paths = paths.cloned().collect();
        times.error_ns = findings.clock_error_ns;
        let fill = findings.fill.iter().filter(|fill| of(fill.device));
        times.fill = fill.cloned().collect();
        times
    }

    /// Returns true where nothing was timed.
    pub fn is_empty(&self) -> bool {
        self.window_ns == 0
    }

    /// Returns the parts of the time as shares of all of it, the largest first. A part that is a sum of several has
    /// no sentence.
    pub fn parts(&self) -> Vec<VerdictPart> {
        let mut sums: Vec<VerdictPart> = Vec::new();
        for part in &self.parts {
            match sums.iter_mut().find(|sum| sum.what == part.what) {
                Some(sum) => {
                    sum.total_ns = sum.total_ns.saturating_add(part.total_ns);
                    sum.sentence.clear();
                }
                None => sums.push(part.clone()),
            }
        }
        for sum in &mut sums {
            sum.share = ratio(sum.total_ns, self.window_ns);
        }
        sums.sort_by_key(|part| std::cmp::Reverse(part.total_ns));
        sums
    }

    /// Returns the time in which the devices computed.
    pub fn compute_ns(&self) -> i64 {
        self.busy.compute_ns
    }

    /// Returns the share of the computing time in which the kernels could use little of the devices.
    pub fn underfilled_share(&self) -> f64 {
        let known = self.fill.iter().filter_map(|fill| fill.underfilled_ns);
        ratio(known.fold(0, i64::saturating_add), self.busy.compute_ns)
    }

    /// Returns the share of the idle time of unknown cause in which work without known times may have run.
    pub fn untimed_share(&self) -> f64 {
        let unknown = self.causes.iter();
        let unknown = unknown.filter(|total| total.cause == Cause::Unknown);
        let unknown_ns = unknown.fold(0i64, |sum, total| sum.saturating_add(total.total_ns));
        ratio(self.untimed_ns, unknown_ns)
    }

    /// Returns the time in which the devices ran something.
    fn busy_ns(&self) -> i64 {
        self.busy.busy_ns()
    }
}

/// Returns the joint verdict on several groups of devices, by the sums of their times. Each group comes with a name,
/// by which the sentence on imbalance calls it.
pub fn joint_verdict(shares: &[(String, &DeviceTimes)]) -> (Bound, Evidence) {
    let sum = |what: &str| {
        let parts = shares.iter().flat_map(|(_, share)| &share.parts);
        let parts = parts.filter(|part| part.what == what);
        parts.fold(0i64, |sum, part| sum.saturating_add(part.total_ns))
    };
    let windows = shares.iter().map(|(_, share)| share.window_ns);
    let busy = shares.iter().map(|(_, share)| share.busy);
    let busy = busy.fold(BusyParts::default(), BusyParts::plus);
    let causes = causes(shares);
    let unknown = shares.iter().map(|(_, share)| share.unknown_host_ns);
    let mut busy_of: Vec<(String, i64)> = (shares.iter())
        .map(|(name, share)| (name.clone(), share.busy_ns()))
        .collect();
    busy_of.sort_by_key(|(_, ns)| *ns);
    let times = Times {
        window_ns: windows.fold(0, i64::saturating_add),
        busy,
        host_ns: sum("host"),
        sync_ns: sum("sync"),
        launch_ns: sum("launch"),
        imbalance_ns: sum("imbalance"),
        unknown_ns: sum("unknown")
            .saturating_sub(busy.whole_ns)
            .saturating_sub(busy.doubtful_ns),
        untimed_ns: (shares.iter()).fold(0, |sum, (_, share)| {
            i64::saturating_add(sum, share.untimed_ns)
        }),
        not_of_host_ns: (shares.iter()).fold(0, |sum, (_, share)| {
            i64::saturating_add(sum, share.not_of_host_ns)
        }),
        causes: &causes,
        unknown_host_ns: unknown.fold(0, i64::saturating_add),
        untimed_function_ns: (shares.iter()).fold(0, |sum, (_, share)| {
            i64::saturating_add(sum, share.untimed_function_ns)
        }),
        host_call: None,
        late_host: None,
        fill: shares.iter().flat_map(|(_, share)| &share.fill).collect(),
        paths: shares.iter().flat_map(|(_, share)| &share.paths).collect(),
        joint: None,
        peers_ns: sum("peers"),
        path: None,
        apart: Vec::new(),
        // The ranks' comparison says what the sums rest on.
        has_hidden_peers: false,
        ranges: (shares.iter())
            .flat_map(|(_, share)| share.ranges.iter().copied())
            .collect(),
        contradicted_ns: (shares.iter()).fold(0, |sum, (_, share)| {
            i64::saturating_add(sum, share.contradicted_ns)
        }),
        error_ns: shares.iter().filter_map(|(_, share)| share.error_ns).max(),
        api: (shares.iter().find_map(|(_, share)| share.api)).unwrap_or(Api::Unknown),
        busy_of,
    };
    times.verdict()
}

/// Returns the idle time of all groups together by cause, the greatest first. Only the cause and the total of a row
/// are sums.
fn causes(shares: &[(String, &DeviceTimes)]) -> Vec<GapTotal> {
    let mut sums: BTreeMap<&'static str, GapTotal> = BTreeMap::new();
    for total in shares.iter().flat_map(|(_, share)| &share.causes) {
        (sums.entry(total.cause.as_str()))
            .and_modify(|sum| sum.total_ns = sum.total_ns.saturating_add(total.total_ns))
            .or_insert(*total);
    }
    let mut sums: Vec<GapTotal> = sums.into_values().collect();
    sums.sort_by_key(|total| std::cmp::Reverse(total.total_ns));
    sums
}

//! Sums up, for the verdict, the busy and idle time of one device or of several by what the time went into.

use crate::bound::Bound;
use crate::contradictions::Contradiction;
use crate::critical_path::{CriticalPath, CriticalPaths, JointPath, PathOfDevice, PathParts};
use crate::fill::DeviceFill;
use crate::gaps::waits::Unmeasured;
use crate::gaps::{Cause, DeviceIdle, GapTotal, IdleTime, Side, SideRange};
use gapscope_timeline::busy::{self, BusyParts, DeviceBusy};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::SLACK_SHARE;
use gapscope_trace::manifest::Api;

/// The time of a device, or of several, by what it went into. The parts sum to `window_ns`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times<'a> {
    /// The judged time, once for each device, without what the recording caused.
    pub(crate) window_ns: i64,
    /// The time in which something ran.
    pub(crate) busy: BusyParts,
    /// The idle time with causes on the host's side; the next two are of the other sides.
    pub(crate) host_ns: i64,
    pub(crate) sync_ns: i64,
    pub(crate) launch_ns: i64,
    /// The time without work before a device's first and after its last, while another had work.
    pub(crate) imbalance_ns: i64,
    /// The idle time that has no known cause. The verdict's part of that name has [`Times::unmeasured_busy_ns`] too.
    pub(crate) unknown_ns: i64,
    /// The part of `unknown_ns` in which work without known times may have run.
    pub(crate) untimed_ns: i64,
    /// The part of `unknown_ns` for which the host may not have been the cause.
    pub(crate) not_of_host_ns: i64,
    pub(crate) causes: &'a [GapTotal],
    /// The part of `host_ns` in which it is not known what the host did.
    pub(crate) unknown_host_ns: i64,
    /// The part of `host_ns` in which a queue waited for functions of the host whose times are not recorded: they took at most
    /// so long.
    pub(crate) untimed_function_ns: i64,
    /// The call in which the host was in the time of [`Cause::HostCall`]; known only for all devices together.
    pub(crate) host_call: Option<String>,
    /// What submitting threads did in the time of [`Cause::HostLate`], where samples say.
    pub(crate) late_host: Option<String>,
    /// How much of each device the kernels filled.
    pub(crate) fill: Vec<&'a DeviceFill>,
    /// The paths through transfers and communication that computing waited for.
    pub(crate) paths: Vec<&'a CriticalPath>,
    /// What the joint path of several devices of one trace says.
    pub(crate) joint: Option<JointTimes<'a>>,
    /// The part of `busy.communication_ns` in which kernels waited for another device of the trace.
    pub(crate) peers_ns: i64,
    /// The whole of that path, where devices waited in communication for each other.
    pub(crate) path: Option<JointPath>,
    /// The verdicts on the devices by themselves, each of which rests on one clock; empty where the trace says of no work that it waited for
    /// another device.
    pub(crate) apart: Vec<Bound>,
    /// True where the trace does not show for how long its communication waited for other devices.
    pub(crate) has_hidden_peers: bool,
    /// The idle time of each side of each device, as far as it is certain.
    pub(crate) ranges: Vec<SideRange>,
    /// The idle time that may have other causes because host and device times contradict each other.
    pub(crate) contradicted_ns: i64,
    /// The greatest clock error of the devices; `None` where it is not known.
    pub(crate) error_ns: Option<i64>,
    /// The API in whose words sentences are.
    pub(crate) api: Api,
    /// The name and busy time of each device, the least first, where there are several devices.
    pub(crate) busy_of: Vec<(String, i64)>,
}

/// The joint critical path of several devices, with what bounds its meaning.
#[derive(Debug, Clone)]
pub(crate) struct JointTimes<'a> {
    /// The path, by the kind of its work.
    pub(crate) paths: &'a [CriticalPath],
    /// The time from the first work of any device to the last.
    pub(crate) window_ns: i64,
    /// The computing time of the device that computed the longest.
    pub(crate) most_compute_ns: i64,
}

/// The findings on devices that their times are made from, beside idle time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceFindings<'a> {
    pub(crate) devices: &'a [DeviceBusy],
    pub(crate) fill: &'a [DeviceFill],
    pub(crate) paths: &'a CriticalPaths,
    pub(crate) contradictions: &'a [Contradiction],
    pub(crate) unmeasured: &'a Unmeasured,
}

impl<'a> Times<'a> {
    /// Returns the times of each device with timed work, over the window of all, in the order of `idle.devices`.
    pub(crate) fn from_devices(findings: DeviceFindings<'a>, idle: &'a IdleTime) -> Vec<Times<'a>> {
        let DeviceFindings {
            devices,
            fill,
            paths,
            contradictions,
            unmeasured,
        } = findings;
        let shares = devices.iter().filter_map(|device| device.analysed);
        let windows = shares.map(|share| share.window);
        let window = windows.filter(|window| !window.is_empty());
        let window = window.reduce(Interval::hull).unwrap_or_default();
        let window_ns = window.length_ns();
        (idle.devices.iter())
            .map(|idle| {
                let device = &devices[idle.device as usize];
                let share = device.analysed.unwrap_or_default();
                let of = |side| of_side(&idle.causes, side);
                // Time with this cause would not exist without the recording.
                let recording_ns = of_cause(&idle.causes, Cause::Recording);
                // Gaps below the threshold of the options have no cause.
                let unexplained_ns = share.idle_ns.saturating_sub(idle.total_ns);
                // Before its first and after its last work a device had none, as far as the times of its work are known.
                let outside_ns = window_ns.saturating_sub(share.window_ns);
                let untimed = unmeasured.on_gpu(idle.device).iter().map(|time| {
                    let time = time.intersection(window);
                    let inside_ns = time.intersection(share.window).length_ns();
                    time.length_ns().saturating_sub(inside_ns)
                });
                let untimed_ns = untimed.fold(0, i64::saturating_add).min(outside_ns);
                Times {
                    window_ns: window_ns.saturating_sub(recording_ns),
                    busy: share.parts,
                    host_ns: of(Side::Host).saturating_sub(recording_ns),
                    sync_ns: of(Side::Sync),
                    launch_ns: of(Side::Launch),
                    imbalance_ns: outside_ns.saturating_sub(untimed_ns),
                    unknown_ns: (of(Side::Unknown).saturating_add(unexplained_ns))
                        .saturating_add(untimed_ns),
                    untimed_ns: idle.untimed_work_ns.saturating_add(untimed_ns),
                    not_of_host_ns: idle.not_of_host_ns,
                    causes: &idle.causes,
                    unknown_host_ns: idle.unknown_host_ns,
                    untimed_function_ns: idle.untimed_host_function_ns,
                    host_call: None,
                    late_host: None,
                    fill: (fill.iter())
                        .filter(|fill| fill.device == idle.device)
                        .collect(),
                    paths: (paths.by_device.iter())
                        .filter(|path| path.device == idle.device)
                        .collect(),
                    joint: None,
                    peers_ns: peers_ns(paths, idle.device),
                    path: None,
                    apart: Vec::new(),
                    has_hidden_peers: share.parts.communication_ns > 0 && !paths.has_joined_kernels,
                    ranges: idle.sides.clone(),
                    contradicted_ns: contradicted_ns(idle, contradictions),
                    error_ns: device.clock_error_ns,
                    api: device.api,
                    busy_of: Vec::new(),
                }
            })
            .collect()
    }

    /// Returns the times of all devices together.
    pub(crate) fn sum(
        each: &[Times<'a>],
        findings: DeviceFindings<'a>,
        idle: &'a IdleTime,
    ) -> Times<'a> {
        let DeviceFindings { devices, paths, .. } = findings;
        let sum = |of: fn(&Times) -> i64| each.iter().map(of).fold(0, i64::saturating_add);
        let api = each.first().map_or(Api::Unknown, |times| times.api);
        let names = busy::names(devices);
        let mut busy_of: Vec<(String, i64)> = (idle.devices.iter())
            .map(|idle| idle.device as usize)
            .map(|at| {
                let share = devices[at].analysed.unwrap_or_default();
                (names[at].clone(), share.busy_ns)
            })
            .collect();
        busy_of.sort_by_key(|(_, ns)| *ns);
        Times {
            window_ns: sum(|times| times.window_ns),
            busy: (each.iter()).fold(BusyParts::default(), |sum, times| sum.plus(times.busy)),
            host_ns: sum(|times| times.host_ns),
            sync_ns: sum(|times| times.sync_ns),
            launch_ns: sum(|times| times.launch_ns),
            imbalance_ns: sum(|times| times.imbalance_ns),
            unknown_ns: sum(|times| times.unknown_ns),
            untimed_ns: sum(|times| times.untimed_ns),
            not_of_host_ns: sum(|times| times.not_of_host_ns),
            causes: &idle.causes,
            unknown_host_ns: idle.unknown_host_ns,
            untimed_function_ns: idle.untimed_host_function_ns,
            host_call: idle.host_was(Cause::HostCall),
            late_host: idle.host_was(Cause::HostLate),
            fill: each.iter().flat_map(|times| times.fill.clone()).collect(),
            paths: each.iter().flat_map(|times| times.paths.clone()).collect(),
            joint: (each.len() > 1).then(|| JointTimes {
                paths: &paths.joint,
                window_ns: each.iter().map(|times| times.window_ns).max().unwrap_or(0),
                most_compute_ns: (each.iter().map(Times::most_compute_ns).max()).unwrap_or(0),
            }),
            peers_ns: sum(|times| times.peers_ns),
            path: joint_path(each, findings, idle),
            apart: match paths.has_waits_between_devices {
                true => each.iter().map(Bound::from_times).collect(),
                false => Vec::new(),
            },
            has_hidden_peers: each.iter().any(|times| times.has_hidden_peers),
            ranges: each.iter().flat_map(|times| times.ranges.clone()).collect(),
            contradicted_ns: sum(|times| times.contradicted_ns),
            error_ns: each.iter().filter_map(|times| times.error_ns).max(),
            api: match each.iter().all(|times| times.api == api) {
                true => api,
                false => Api::Unknown,
            },
            busy_of: if each.len() > 1 { busy_of } else { Vec::new() },
        }
    }

    /// Returns a time as a share of the judged time.
    pub(crate) fn share(&self, ns: i64) -> f64 {
        ratio(ns, self.window_ns)
    }

    /// Returns the part of the computing time in which the kernels could use little of the device, and no work without known times may
    /// have run beside.
    pub(crate) fn underfilled_ns(&self) -> i64 {
        let known = self.fill.iter().filter_map(|fill| fill.underfilled_ns);
        let underfilled_ns = known.fold(0, i64::saturating_add);
        underfilled_ns
            .saturating_sub(self.busy.beside_compute_ns)
            .max(0)
    }

    /// Returns the most that a device may have computed.
    fn most_compute_ns(&self) -> i64 {
        (self.busy.compute_ns).saturating_add(self.untimed_work_ns())
    }

    /// Returns the time in which work without known times may have run, and no other work computed.
    pub(super) fn untimed_work_ns(&self) -> i64 {
        self.untimed_ns.saturating_add(self.busy.doubtful_ns)
    }

    /// Returns the time in which the devices communicated, computed nothing, and did not wait for another device of the trace.
    pub(crate) fn communication_ns(&self) -> i64 {
        self.busy
            .communication_ns
            .saturating_sub(self.peers_ns)
            .max(0)
    }

    /// Returns the time of which the trace does not say what the device did, or why it idled.
    pub(crate) fn unmeasured_ns(&self) -> i64 {
        self.unknown_ns.saturating_add(self.unmeasured_busy_ns())
    }

    /// Returns the busy time of which the trace does not say what the device did.
    pub(crate) fn unmeasured_busy_ns(&self) -> i64 {
        self.busy.whole_ns.saturating_add(self.busy.doubtful_ns)
    }

    /// Returns true where there are several devices.
    pub(crate) fn several(&self) -> bool {
        !self.busy_of.is_empty()
    }

    /// Returns the judged time in which nothing ran.
    pub(crate) fn idle_ns(&self) -> i64 {
        let idle = [
            self.host_ns,
            self.sync_ns,
            self.launch_ns,
            self.imbalance_ns,
            self.unknown_ns,
        ];
        idle.into_iter().fold(0, i64::saturating_add)
    }
}

/// Returns how long kernels of a device that communicate waited for another device.
fn peers_ns(paths: &CriticalPaths, device: u32) -> i64 {
    let mut waits = paths.waited_for_peers_ns.iter();
    waits.find(|(of, _)| *of == device).map_or(0, |(_, ns)| *ns)
}

/// Returns the whole joint path, where devices waited in communication for each other for long enough. The idle time of a device on the
/// path has its sides in the shares that all of its idle time has.
fn joint_path(each: &[Times], findings: DeviceFindings, idle: &IdleTime) -> Option<JointPath> {
    let sum = |of: fn(&Times) -> i64| each.iter().map(of).fold(0, i64::saturating_add);
    if ratio(sum(|times| times.peers_ns), sum(|times| times.window_ns)) < SLACK_SHARE {
        return None;
    }
    let names = busy::names(findings.devices);
    let devices = findings
        .paths
        .joint_parts
        .iter()
        .filter_map(|(device, parts)| {
            let at = idle
                .devices
                .iter()
                .position(|idle| idle.device == *device)?;
            let times = &each[at];
            let on_path_ns = parts.idle_ns();
            let sides = times.sides();
            let all_ns = sides.iter().fold(0i64, |sum, ns| sum.saturating_add(*ns));
            let sides = match all_ns {
                0 => parts.sides,
                _ => sides.map(|ns| (ratio(ns, all_ns) * on_path_ns as f64) as i64),
            };
            Some(PathOfDevice {
                name: names[*device as usize].clone(),
                parts: PathParts { sides, ..*parts },
                underfilled_share: ratio(times.underfilled_ns(), times.busy.compute_ns),
                untimed_share: ratio(times.untimed_ns, times.unknown_ns),
            })
        });
    Some(JointPath {
        of: "devices",
        devices: devices.collect(),
        most_compute_ns: each.iter().map(Times::most_compute_ns).max()?,
        error_ns: 0,
        runs_through_any: false,
    })
}

/// Returns the idle time of a device that may have another cause because host and device times contradict each other:
/// each gap may lie elsewhere by as much as they do in the median, and those beside the times that contradict by as much as
/// these do.
pub(crate) fn contradicted_ns(idle: &DeviceIdle, contradictions: &[Contradiction]) -> i64 {
    let gaps: u64 = idle.causes.iter().map(|total| total.main_count).sum();
    let gaps = i64::try_from(gaps).unwrap_or(i64::MAX);
    let mine = contradictions
        .iter()
        .filter(|row| row.device == idle.device);
    let moved_ns = mine.map(|row| row.median_ns.saturating_mul(gaps).max(row.total_ns));
    moved_ns.max().unwrap_or(0).min(idle.total_ns)
}

/// Returns the idle time that has `cause`.
fn of_cause(causes: &[GapTotal], cause: Cause) -> i64 {
    let total = causes.iter().find(|total| total.cause == cause);
    total.map_or(0, |total| total.total_ns)
}

/// Returns the sum of the idle time of all causes on a side.
pub(crate) fn of_side(causes: &[GapTotal], side: Side) -> i64 {
    (causes.iter())
        .filter(|total| total.cause.side() == side)
        .fold(0i64, |sum, total| sum.saturating_add(total.total_ns))
}

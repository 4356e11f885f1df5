//! Reduces the trace of a rank (a process of a distributed program) to the digest that the comparison of ranks needs.

use super::before;
use super::loading;
use super::nccl::Member;
use super::part::{CollectivePart, Communicator, Message};
use super::parts::{members, parts};
use super::ranges::{HostCall, Ranges};
use super::rank_row::{Idle, RankRow};
use gapscope_analysis::Findings;
use gapscope_analysis::code::{CauseCode, CodeSource, line_of, text};
use gapscope_analysis::conditions::ConditionKind;
use gapscope_analysis::critical_path::Chains;
use gapscope_analysis::gaps::Cause;
use gapscope_analysis::joint_verdict::DeviceTimes;
use gapscope_analysis::unread::KERNELS;
use gapscope_analysis::verdict::Bound;
use gapscope_timeline::collectives::{ProcessDevice, kind_of};
use gapscope_timeline::counters::{self, CounterOwner};
use gapscope_timeline::intervals::{Interval, union_length_ns};
use gapscope_timeline::lost_work::{LostWork, losses_of_work};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{LATE_CAUSE_SHARE, UNCERTAIN_SHARE};
use gapscope_timeline::vocabulary::device_name;
use gapscope_timeline::{Timeline, WorkKind};
use gapscope_trace::Selection;
use gapscope_trace::ids::DeviceId;
use gapscope_trace::manifest::Host;
use gapscope_trace::tables::{Condition, Dispatches, Table as _};
use std::collections::{BTreeMap, BTreeSet};

/// The data that a comparison needs of one rank, so that not all traces have to be in memory at once.
#[derive(Debug, Clone, PartialEq)]
pub struct RankDigest {
    /// The rank's figures for the report.
    pub(super) row: RankRow,
    /// True if the number of the rank is known, and not only its place among the devices of its trace.
    pub(super) numbered: bool,
    /// The number of ranks that the program or NCCL claims.
    pub(super) world_size: Option<u32>,
    pub(super) host: Host,
    /// The times of the rank's devices by the parts of the verdict.
    pub(super) times: DeviceTimes,
    /// The start of the recording.
    pub(super) start_ns: i64,
    /// The difference between the wall clock and the host's clock, in nanoseconds; `None` where it is unknown.
    pub(super) offset_ns: Option<i64>,
    /// The error of the devices' times against the host's clock; `None` where it is unknown.
    pub(super) clock_error_ns: Option<i64>,
    /// The rank's place in each communicator (a group of ranks that take part in collectives together).
    pub(super) members: BTreeMap<Communicator, Member>,
    /// True if the recording lacks some of the GPU work.
    pub(super) has_lost_work: bool,
    /// True if calls of NCCL with payloads are in the trace.
    pub(super) has_payloads: bool,
    /// The number of runs and the sum of their times, for each kernel that is no collective's and has times.
    pub(super) kernels: BTreeMap<String, (u64, i64)>,
    /// The clock of the rank's multiprocessors, in hertz, over the time for which it is known.
    pub(super) clock: Vec<(Interval, f64)>,
    /// The conditions that slowed the rank's devices or its machine down.
    pub(super) slowdowns: Vec<Slowdown>,
    /// The label of most of the time in which the host loaded data, by its labels.
    pub(super) loading_label: Option<String>,
    /// The idle time in which the host loaded data, by its sampled stacks, with the stack of most of it.
    pub(super) loading_code: Option<(i64, String)>,
    /// The code of most of the idle time of a cause, where one stack has half of it.
    pub(super) idle_code: Vec<IdleLine>,
    /// What led to each of the parts on the device, in their order, and to the end. Empty where the device ran parts of several ranks.
    pub(super) chains: Chains,
    /// The rank's parts in collectives on the device (kernels), in order of time.
    pub(super) device: Vec<CollectivePart>,
    /// The rank's parts in collectives on the host (calls).
    pub(super) called: Vec<CollectivePart>,
}

/// A condition that slowed a device or the machine down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slowdown {
    pub(super) kind: ConditionKind,
    pub(super) held_ns: i64,
}

/// The code of most of the idle time of a cause.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct IdleLine {
    pub(super) cause: Cause,
    pub(super) text: String,
}

impl RankDigest {
    /// Returns the mean clock of the rank's multiprocessors in a stretch, or over all of its time without one; `None` where it is
    /// not known.
    pub(super) fn clock_hertz(&self, stretch: Option<Interval>) -> Option<f64> {
        let mut sum = (0.0, 0.0);
        for (interval, hertz) in &self.clock {
            let inside = stretch.map_or(*interval, |stretch| interval.intersection(stretch));
            let ns = inside.length_ns() as f64;
            sum = (sum.0 + ns * hertz, sum.1 + ns);
        }
        (sum.1 > 0.0 && sum.0 > 0.0).then(|| sum.0 / sum.1)
    }

    /// Returns the columns of a trace that the findings and [`RankDigest::from_timeline`] read.
    pub fn selection() -> Selection {
        Findings::selection_with(&[
            "scope",
            "thread",
            "command_buffer",
            "start_ns",
            "duration_ns",
            "domain",
            "payload",
        ])
    }

    /// Returns the digests of the ranks of a trace with these findings: of one rank, or of each device of each
    /// process that ran collectives. A rank whose number the manifest lacks gets the number `rank`.
    pub fn from_timeline(timeline: &Timeline, findings: &Findings, rank: u32) -> Vec<RankDigest> {
        let ranges = Ranges::new(timeline.trace);
        let mut parts = parts(timeline, &ranges);
        before::fill(timeline, &mut parts);
        if parts.len() > 1 {
            let of_device = |(at, (device, parts))| {
                let rank = rank.saturating_add(at as u32);
                of_device(timeline, findings, &ranges, device, parts, rank)
            };
            return parts.into_iter().enumerate().map(of_device).collect();
        }
        let gpu = parts
            .keys()
            .next()
            .and_then(|(_, device)| gpu_of(findings, *device));
        let process = parts.keys().next().map(|(process, _)| *process);
        let process = process.or_else(|| ranges.calls.first().map(|call| call.process));
        let device = parts.into_values().next().unwrap_or_default();
        let known = timeline.trace.manifest.rank;
        let row = RankRow {
            rank: known.map_or(rank, |r| r.rank),
            local_rank: known.and_then(|r| r.local_rank),
            devices: findings.devices.iter().map(|d| d.name.clone()).collect(),
            device_ids: (findings.devices.iter())
                .flat_map(|d| d.device_ids.iter().copied())
                .collect(),
            verdict: findings.verdict,
            verdict_sentence: findings.verdict_evidence.sentence.clone(),
            verdict_evidence: findings.verdict_evidence.parts.clone(),
            gpu_busy_ns: findings.gpu_busy_ns,
            dispatch_count: findings.dispatch_count.known().copied(),
            idle: idle(findings, |_| true),
            ..RankRow::default()
        };
        let digest = RankDigest {
            numbered: true,
            times: DeviceTimes::new(findings, |_| true),
            world_size: known.map(|r| r.world_size),
            clock_error_ns: findings.clock_error_ns,
            clock: (0..timeline.gpus.len())
                .flat_map(|gpu| clock(timeline, gpu))
                .collect(),
            slowdowns: slowdowns(findings, |_| true),
            called: called(&ranges, |_| true),
            chains: gpu.map_or_else(Chains::default, |gpu| {
                chains(timeline, findings, gpu, device.len())
            }),
            kernels: kernels(findings),
            members: process.map_or_else(BTreeMap::new, |id| members(&ranges, id, false)),
            ..RankDigest::new(timeline, findings, row, &ranges, device)
        };
        vec![digest]
    }

    /// Returns a digest with what all digests of a trace share; `device` are the parts on the device.
    fn new(
        timeline: &Timeline,
        findings: &Findings,
        row: RankRow,
        ranges: &Ranges,
        device: Vec<CollectivePart>,
    ) -> RankDigest {
        let manifest = &timeline.trace.manifest;
        let sorted = device.iter().map(|part| part.interval);
        let collective_ns = row.gpu_busy_ns.map(|_| union_length_ns(sorted));
        RankDigest {
            row: RankRow {
                wall_ns: findings.wall_ns,
                unread: findings.unread.clone(),
                collective_ns,
                machine: manifest.host.boot_id.clone(),
                collective_count: findings.knows(KERNELS).then_some(device.len() as u64),
                ..row
            },
            numbered: false,
            world_size: None,
            host: manifest.host.clone(),
            times: DeviceTimes::default(),
            start_ns: manifest.start_ns,
            offset_ns: (manifest.start_unix_ns).map(|ns| ns.saturating_sub(manifest.start_ns)),
            clock_error_ns: None,
            members: BTreeMap::new(),
            has_lost_work: losses_of_work(manifest).any(|(_, lost)| is_of_work(lost)),
            has_payloads: (ranges.calls.iter()).any(|call| call.call.bytes.is_some()),
            kernels: BTreeMap::new(),
            clock: Vec::new(),
            slowdowns: Vec::new(),
            loading_label: loading::longest_label(timeline.trace),
            loading_code: loading::sampled(findings),
            idle_code: idle_code(findings),
            device,
            chains: Chains::default(),
            called: Vec::new(),
        }
    }

    /// Returns true where the trace has no collectives of the rank, although the rank called some, is of a communicator, or lost work.
    pub(super) fn lacks_collectives(&self) -> bool {
        let took_part = !self.called.is_empty() || !self.members.is_empty();
        self.device.is_empty() && (took_part || self.has_lost_work || self.times.is_empty())
    }

    #[cfg(test)]
    pub(super) fn for_tests(row: RankRow) -> RankDigest {
        let trace = gapscope_trace::Trace::default();
        let timeline = Timeline::new(&trace);
        let ranges = Ranges::new(&trace);
        let empty = RankDigest::new(
            &timeline,
            &Findings::default(),
            RankRow::default(),
            &ranges,
            Vec::new(),
        );
        RankDigest { row, ..empty }
    }
}

/// Returns true for losses of work or of its times, without which a kernel is in no collective.
fn is_of_work(lost: LostWork) -> bool {
    use LostWork::{Details, FileParts, Pieces};
    matches!(lost, Pieces | Details | FileParts)
}

/// Returns the clock of a GPU's multiprocessors over the time for which it is known.
fn clock(timeline: &Timeline, gpu: usize) -> Vec<(Interval, f64)> {
    let manifest = &timeline.trace.manifest;
    let window = Interval::new(manifest.start_ns, manifest.end_ns);
    let counters = counters::recorded(timeline);
    let clock = counters::find(&counters, CounterOwner::Gpu(gpu), Condition::SmClock);
    clock
        .into_iter()
        .flat_map(|clock| clock.values_in(window))
        .collect()
}

/// Returns the conditions that slowed down the machine, or the devices for whose index `of` is true.
fn slowdowns(findings: &Findings, of: impl Fn(u32) -> bool) -> Vec<Slowdown> {
    let notes = findings.conditions.iter();
    notes
        .filter(|note| note.device.is_none_or(&of))
        .map(|note| Slowdown {
            kind: note.kind,
            held_ns: note.held_ns,
        })
        .collect()
}

/// Returns the code of most of the idle time of each cause, where one stack has half of it.
fn idle_code(findings: &Findings) -> Vec<IdleLine> {
    let causes = findings.code.iter().flat_map(|code| &code.causes);
    let line = |code: &CauseCode| {
        let first = code.code.first().filter(|first| !first.frames.is_empty())?;
        // That a thread was inside of a label or an operator is no reason.
        let is_code = code.source == CodeSource::Samples || line_of(&first.frames).is_some();
        let enough = first.total_ns as f64 >= LATE_CAUSE_SHARE * code.total_ns as f64;
        (enough && is_code).then(|| IdleLine {
            cause: code.cause,
            text: text(&first.frames),
        })
    };
    causes.filter_map(line).collect()
}

/// Returns the kernels that are no collectives', with their runs and times.
fn kernels(findings: &Findings) -> BTreeMap<String, (u64, i64)> {
    let timed = findings.kernels.iter().filter_map(|kernel| {
        let name = kernel.full_name.as_ref().unwrap_or(&kernel.name);
        let total_ns = kernel
            .durations
            .total_ns
            .filter(|_| kind_of(name).is_none())?;
        Some((name.clone(), (kernel.durations.timed_count, total_ns)))
    });
    match findings.knows(KERNELS) {
        true => timed.collect(),
        false => BTreeMap::new(),
    }
}

/// Returns the digest of one device where several ran collectives.
fn of_device(
    timeline: &Timeline,
    findings: &Findings,
    ranges: &Ranges,
    (process, device): ProcessDevice,
    parts: Vec<CollectivePart>,
    rank: u32,
) -> RankDigest {
    let manifest = &timeline.trace.manifest;
    let mut devices = manifest.devices.iter();
    // NCCL says it of a process, and not of one of its several devices.
    let alone = devices.clone().filter(|d| d.process == process).count() == 1;
    let members = members(ranges, process, !alone);
    let world_size = members.values().filter_map(|member| member.size).max();
    let of_all = members.values().filter(|member| member.size == world_size);
    let numbers: BTreeSet<Option<u32>> = of_all.map(|member| member.rank).collect();
    let number = numbers.first().copied().flatten();
    let number = number.filter(|_| numbers.len() == 1);
    let gpu = gpu_of(findings, device);
    let found = gpu.and_then(|gpu| findings.devices.get(gpu));
    let judged = (findings.idle_time.devices.iter()).find(|d| Some(d.device as usize) == gpu);
    let works = gpu.and_then(|gpu| Some(&timeline.gpus.get(gpu)?.works));
    let times = DeviceTimes::new(findings, |index| Some(index as usize) == gpu);
    let row = RankRow {
        rank: number.unwrap_or(rank),
        devices: (devices.find(|d| d.id == device)).map_or_else(Vec::new, |d| vec![device_name(d)]),
        device_ids: vec![device],
        verdict: judged.map_or(Bound::Unknown, |device| device.verdict),
        verdict_sentence: judged.map_or_else(String::new, |device| device.verdict_sentence.clone()),
        verdict_evidence: times.parts(),
        gpu_busy_ns: found.and_then(|d| d.busy_ns),
        dispatch_count: (findings.knows_rows(Dispatches::NAME)).then(|| {
            let works = works.into_iter().flatten();
            let dispatches = works.filter(|w| w.kind() == WorkKind::Dispatch);
            dispatches.count() as u64
        }),
        idle: idle(findings, |index| Some(index as usize) == gpu),
        ..RankRow::default()
    };
    RankDigest {
        numbered: number.is_some(),
        times,
        world_size,
        clock_error_ns: found.and_then(|d| d.clock_error_ns),
        clock: gpu.map_or_else(Vec::new, |gpu| clock(timeline, gpu)),
        slowdowns: slowdowns(findings, |index| Some(index as usize) == gpu),
        called: called(ranges, |call| alone && call.process == process),
        chains: gpu.map_or_else(Chains::default, |gpu| {
            chains(timeline, findings, gpu, parts.len())
        }),
        members,
        ..RankDigest::new(timeline, findings, row, ranges, parts)
    }
}

/// Returns the index of the GPU that a device's id is of.
fn gpu_of(findings: &Findings, device: DeviceId) -> Option<usize> {
    let mut devices = findings.devices.iter();
    let of_device = devices.find(|d| d.device_ids.contains(&device));
    of_device.map(|device| device.index as usize)
}

/// Returns what led to each of so many parts in collectives that a GPU ran; nothing where it ran those of other ranks, too.
fn chains(timeline: &Timeline, findings: &Findings, gpu: usize, parts: usize) -> Chains {
    let names = &timeline.trace.tables.kernels.name;
    let collective: Vec<bool> = names.iter().map(|name| kind_of(name).is_some()).collect();
    let window = findings.analysed_window.unwrap_or_default();
    let chains = Chains::new(timeline, gpu, window, |work| {
        work.kind() == WorkKind::Dispatch
            && timeline
                .kernel_row(work.row())
                .is_some_and(|row| collective[row])
    });
    match chains.to_collectives.len() == parts {
        true => chains,
        false => Chains::default(),
    }
}

/// Returns the idle time of the devices for whose index `of` is true.
fn idle(findings: &Findings, of: impl Fn(u32) -> bool) -> Option<Idle> {
    let shares = findings.devices.iter().filter(|d| of(d.index));
    let windows = shares.filter_map(|d| d.analysed);
    let mut window_ns = windows.fold(0i64, |sum, share| sum.saturating_add(share.window_ns));
    let mut causes = BTreeMap::new();
    let (mut total_ns, mut untimed_work_ns) = (0i64, 0i64);
    for device in findings.idle_time.devices.iter().filter(|d| of(d.device)) {
        total_ns = total_ns.saturating_add(device.total_ns);
        untimed_work_ns = untimed_work_ns.saturating_add(device.untimed_work_ns);
        for cause in &device.causes {
            if cause.cause == Cause::Recording {
                // No verdict counts this time.
                total_ns = total_ns.saturating_sub(cause.total_ns);
                window_ns = window_ns.saturating_sub(cause.total_ns);
                continue;
            }
            let sum = causes.entry(cause.cause).or_insert(0i64);
            *sum = sum.saturating_add(cause.total_ns);
        }
    }
    let main = causes.into_iter().max_by_key(|(_, ns)| *ns);
    // Of such time nobody knows whether the devices idled.
    let is_measured = ratio(untimed_work_ns, total_ns) < UNCERTAIN_SHARE;
    (window_ns > 0 && is_measured).then(|| Idle {
        window_ns,
        total_ns,
        cause: main.map(|(cause, _)| cause),
        cause_ns: main.map(|(_, ns)| ns),
    })
}

/// Returns calls on the host as parts.
fn called(ranges: &Ranges, of: impl Fn(&HostCall) -> bool) -> Vec<CollectivePart> {
    let calls = ranges.calls.iter().filter(|call| of(call));
    let part = |host: &HostCall| CollectivePart {
        interval: host.interval,
        kind: host.call.kind,
        communicator: host.call.communicator.map(Communicator::Number),
        // Only the kernels of a group's calls have figures.
        bytes: None,
        messages: (host.call.peer.iter())
            .map(|(peer, sends)| Message {
                peer: *peer,
                sends: *sends,
                bytes: None,
            })
            .collect(),
        before: None,
        queue: None,
        operation: host.call.operation,
    };
    calls.map(part).collect()
}

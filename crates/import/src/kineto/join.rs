//! Joins the work of devices with the calls that launched it: takes all calls and all work of a file, and gives each
//! piece of work its process and its call.
//!
//! A correlation (the number that the profiler gives a call and its work) counts inside of one process. An event of a
//! device does not name its process of the host. Where several processes have calls, as in the merged files of ranks,
//! the device's events belong to the process whose name in the file has the same prefix (`[TP00] `), or else to the
//! process with calls before most of the work. Work of several processes under one number of a device belongs to calls of its kind in their
//! order, as far as that is told ([`super::join_shared`]); without a call it is of the process of the other work of its stream. Else its process
//! is unknown. Where a process uses a correlation again, work belongs to the nearest call before it.

use crate::profile::{ApiCall, Correlation, DeviceWork};
use gapscope_model::SubmissionKind;
use gapscope_timeline_builder::Function;
use gapscope_trace::ids::{ProcessId, QueueId};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

/// How far apart the numbers are that the calls with one correlation get. Correlations have 32 bits.
const NEXT_USE: u64 = 1 << 33;

/// The maximum number of calls with one correlation that are looked at to find the process of a device's events.
const MAX_CANDIDATES: usize = 64;

/// A device is shared where at least one of so many pieces of work that another process may have launched cannot be the first one's.
const LEAST_SHARED: u64 = 20;

/// The events of one device in the file, which are of one process as far as the file is not merged.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WorkSource {
    /// The process as the events of the device name it, which is mostly the device's number.
    pub(super) pid: Box<[u8]>,
    pub(super) device: Option<u32>,
}

/// A piece of work with its number in the list of sources.
#[derive(Debug, Clone, Copy)]
pub(super) struct CollectedWork {
    pub(super) source: u32,
    pub(super) correlation: Option<Correlation>,
    pub(super) work: DeviceWork,
}

/// The process and the call of a piece of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    pub(super) process: ProcessId,
    /// The index of the call; `None` where the file does not have it.
    pub(super) call: Option<u32>,
}

/// The calls of a file by their correlations.
#[derive(Debug, Default)]
pub(super) struct Launches {
    /// The first call with each correlation. A call of a function that launches work is preferred to another one.
    pub(super) first: FxHashMap<(ProcessId, Correlation), u32>,
    /// The calls of correlations that a process uses several times, in order of time.
    pub(super) again: FxHashMap<(ProcessId, Correlation), Vec<u32>>,
    /// The processes that have calls, in order of their first calls.
    pub(super) processes: Vec<ProcessId>,
}

impl Launches {
    /// Indexes calls, which are in order of time. Calls that use a correlation of their process again get another
    /// one, by which they stay apart.
    pub(super) fn new(calls: &mut [(ProcessId, ApiCall)], functions: &[Function]) -> Launches {
        let mut launches = Launches::default();
        let mut renamed: Vec<(u32, Correlation)> = Vec::new();
        let is_launch = |call: &ApiCall| {
            let class = functions[call.function.0 as usize].class;
            class.submission_kind().is_some()
        };
        for (index, (process, call)) in (0u32..).zip(calls.iter()) {
            if launches.processes.last() != Some(process) && !launches.processes.contains(process) {
                launches.processes.push(*process);
            }
            let Some(correlation) = call.correlation else {
                continue;
            };
            let key = (*process, correlation);
            let mut first = match launches.first.entry(key) {
                Entry::Vacant(entry) => {
                    entry.insert(index);
                    continue;
                }
                Entry::Occupied(entry) => entry,
            };
            let (_, before) = &calls[*first.get() as usize];
            if !is_launch(call) {
                continue;
            }
            if !is_launch(before) {
                first.insert(index);
                continue;
            }
            let uses = launches.again.get(&key).map_or(1, Vec::len) as u64;
            let latest = launches.again.get(&key).and_then(|list| list.last());
            let (_, latest) = &calls[latest.copied().unwrap_or(*first.get()) as usize];
            let rename = |use_number: u64| {
                Correlation(
                    correlation
                        .0
                        .wrapping_add(use_number.wrapping_mul(NEXT_USE)),
                )
            };
            // The runtime's call and the driver's call inside of it are one launch.
            if call.thread == latest.thread && call.span.start_ns < latest.span.end_ns() {
                if uses > 1 {
                    renamed.push((index, rename(uses - 1)));
                }
                continue;
            }
            let list = launches
                .again
                .entry(key)
                .or_insert_with(|| vec![*first.get()]);
            list.push(index);
            renamed.push((index, rename(uses)));
        }
        for (index, correlation) in renamed {
            calls[index as usize].1.correlation = Some(correlation);
        }
        launches
    }

    /// Returns the call of a process that work with a correlation and a start belongs to: the only one, or the latest
    /// that started before the work. Without such a call it is the first one.
    pub(super) fn call(
        &self,
        process: ProcessId,
        correlation: Correlation,
        start: Option<i64>,
        calls: &Calls,
    ) -> Option<u32> {
        let key = (process, correlation);
        let list = match self.again.is_empty() {
            true => None,
            false => self.again.get(&key),
        };
        match (list, start) {
            (Some(list), Some(start_ns)) => {
                let before = list.partition_point(|call| calls.start_ns(*call) <= start_ns);
                list.get(before.saturating_sub(1)).copied()
            }
            _ => self.first.get(&key).copied(),
        }
    }

    /// Returns the indices of a process's calls with a correlation, in order of time.
    pub(super) fn uses(&self, process: ProcessId, correlation: Correlation) -> &[u32] {
        let key = (process, correlation);
        let first = self.first.get(&key).map(std::slice::from_ref);
        let again = self.again.get(&key).map(Vec::as_slice);
        again.or(first).unwrap_or_default()
    }

    /// Returns the process and the call of each piece of work, and the number of pieces whose correlation does not say which call is theirs.
    /// Work of which nothing tells the process is given to the process `unknown`.
    pub(super) fn join(
        &self,
        works: &[CollectedWork],
        sources: &SourceProcesses,
        calls: &[(ProcessId, ApiCall)],
        functions: &[Function],
        unknown: ProcessId,
    ) -> (Vec<Joined>, Collisions) {
        let calls = Calls(calls);
        let shared = self.join_shared(works, sources, &calls, functions);
        let mut collisions = Collisions {
            in_process: shared.in_process,
            of_processes: shared.ambiguous,
            of_nobody: 0,
        };
        let mut joined = Vec::with_capacity(works.len());
        // The work of which the file has no call, which may be told by other work of its stream.
        let mut open: Vec<usize> = Vec::new();
        for (at, collected) in (0u32..).zip(works) {
            let start_ns = collected.work.span.map(|span| span.start_ns);
            joined.push(match sources.of_source[collected.source as usize] {
                SourceProcess::Process(process) => {
                    let key = collected
                        .correlation
                        .map(|correlation| (process, correlation));
                    let call = key.and_then(|(process, correlation)| {
                        self.call(process, correlation, start_ns, &calls)
                    });
                    let is_used_again = !self.again.is_empty()
                        && key.is_some_and(|key| self.again.contains_key(&key));
                    collisions.in_process += u64::from(is_used_again && call.is_some());
                    Joined { process, call }
                }
                SourceProcess::Any => {
                    let found = shared.joined.get(&at);
                    match found {
                        None => open.push(at as usize),
                        Some(None) => collisions.of_nobody += 1,
                        Some(Some(_)) => {}
                    }
                    found.copied().flatten().unwrap_or(Joined {
                        process: unknown,
                        call: None,
                    })
                }
            });
        }
        give_by_stream(works, &mut joined, &open, unknown);
        (joined, collisions)
    }
}

/// Gives work without a call to the process that all other work of its stream is of, or else all other work of its device.
fn give_by_stream(
    works: &[CollectedWork],
    joined: &mut [Joined],
    open: &[usize],
    unknown: ProcessId,
) {
    if open.is_empty() {
        return;
    }
    let stream = |work: &CollectedWork| (work.source, Some(work.work.queue));
    let device = |work: &CollectedWork| (work.source, None);
    let mut owners: FxHashMap<(u32, Option<QueueId>), ProcessId> = FxHashMap::default();
    for (work, joined) in works.iter().zip(joined.iter()) {
        if joined.call.is_some() {
            for place in [stream(work), device(work)] {
                let owner = owners.entry(place).or_insert(joined.process);
                if *owner != joined.process {
                    *owner = unknown;
                }
            }
        }
    }
    for at in open {
        let owner = |place| owners.get(&place).copied();
        let found = owner(stream(&works[*at])).or_else(|| owner(device(&works[*at])));
        joined[*at].process = found.unwrap_or(unknown);
    }
}

/// Pieces of work whose correlation does not say which call is theirs.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Collisions {
    /// Those whose correlation several calls of their process have.
    pub(super) in_process: u64,
    /// Those whose correlation calls of several processes have, before the work of all of them.
    pub(super) of_processes: u64,
    /// Those whose correlation calls of several processes have, while the work of some of these calls is missing.
    pub(super) of_nobody: u64,
}

/// The calls of a file.
pub(super) struct Calls<'a>(pub(super) &'a [(ProcessId, ApiCall)]);

impl Calls<'_> {
    /// Returns the kind of work that a call launches; `None` for a call that launches none.
    pub(super) fn launches(&self, call: u32, functions: &[Function]) -> Option<SubmissionKind> {
        let (_, call) = &self.0[call as usize];
        functions[call.function.0 as usize].class.submission_kind()
    }

    pub(super) fn start_ns(&self, call: u32) -> i64 {
        self.0[call as usize].1.span.start_ns
    }
}

/// The process that the events of a device belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SourceProcess {
    Process(ProcessId),
    /// Several processes use the device.
    Any,
}

/// The processes that the events of the devices belong to.
#[derive(Debug)]
pub(super) struct SourceProcesses {
    of_source: Vec<SourceProcess>,
    /// The process of work that no call launched.
    main: ProcessId,
    /// Whether devices and processes were matched by the order of their numbers, because times do not tell them apart.
    pub(super) by_order: bool,
}

/// A device whose process is not told by a name.
struct OpenDevice {
    source: u32,
    device: Option<u32>,
    /// The processes that have calls before all of its work, in the order of their numbers.
    candidates: Vec<ProcessId>,
}

/// What the calls of a process say of the work of a source.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    /// Pieces of work with a call of the process before them.
    possible: u64,
    /// Pieces of work that have the correlation of a call of the process.
    correlated: u64,
}

impl SourceProcesses {
    /// Finds the processes. `pids` has each process as the file names it.
    pub(super) fn new(
        launches: &Launches,
        works: &[CollectedWork],
        sources: &[WorkSource],
        pids: &[Box<[u8]>],
        calls: &[(ProcessId, ApiCall)],
        main: ProcessId,
    ) -> SourceProcesses {
        let mut result = SourceProcesses {
            of_source: vec![SourceProcess::Process(main); sources.len()],
            main,
            by_order: false,
        };
        let mut processes = launches.processes.clone();
        if let [_] | [] = processes.as_slice() {
            if let [only] = processes.as_slice() {
                result.of_source.fill(SourceProcess::Process(*only));
            }
            return result;
        }
        let number = |process: &ProcessId| super::number::whole(&pids[process.0 as usize]);
        processes.sort_by_key(|process| (number(process), *process));
        let calls = Calls(calls);
        let mut evidence: FxHashMap<(u32, ProcessId), Evidence> = FxHashMap::default();
        let mut totals = vec![0u64; sources.len()];
        // The pieces of work with each correlation, outside of graphs, which launch many.
        let mut uses: FxHashMap<(u32, Correlation), usize> = FxHashMap::default();
        for collected in works {
            let Some((correlation, span)) = collected.correlation.zip(collected.work.span) else {
                continue;
            };
            totals[collected.source as usize] += 1;
            if !collected.work.of_graph {
                *uses.entry((collected.source, correlation)).or_default() += 1;
            }
            for process in processes.iter().take(MAX_CANDIDATES) {
                if let Some(call) =
                    launches.call(*process, correlation, Some(span.start_ns), &calls)
                {
                    let found = evidence.entry((collected.source, *process)).or_default();
                    found.correlated += 1;
                    found.possible += u64::from(calls.start_ns(call) <= span.start_ns);
                }
            }
        }
        // Where a device has more work of a correlation than any one process has calls with it, several share the device's number.
        let mut shared = vec![0u64; sources.len()];
        for ((source, correlation), count) in uses.into_iter().filter(|(_, count)| *count > 1) {
            let calls = processes.iter().take(MAX_CANDIDATES);
            let calls = calls.map(|process| launches.uses(*process, correlation).len());
            let (most, all) =
                calls.fold((0, 0), |(most, all), calls| (calls.max(most), all + calls));
            if (most + 1..=all).contains(&count) {
                shared[source as usize] += (count - most) as u64;
            }
        }
        let mut open: Vec<OpenDevice> = Vec::new();
        for (index, source) in (0u32..).zip(sources) {
            let prefix = rank_prefix(&source.pid);
            let with_prefix = |process: &&ProcessId| {
                prefix.is_some() && rank_prefix(&pids[process.0 as usize]) == prefix
            };
            if let Some(process) = processes.iter().find(with_prefix) {
                result.of_source[index as usize] = SourceProcess::Process(*process);
                continue;
            }
            let of = |process: &ProcessId| {
                let found = evidence.get(&(index, *process));
                found.copied().unwrap_or_default().possible
            };
            let most = processes.iter().map(of).max().unwrap_or(0);
            let best: Vec<ProcessId> = (processes.iter().copied())
                .filter(|process| of(process) == most)
                .collect();
            let others = processes.iter().filter(|process| !best.contains(process));
            let next = others.map(of).max().unwrap_or(0);
            let is_shared = next > 0 && shared[index as usize] * LEAST_SHARED >= next;
            result.of_source[index as usize] = match best.as_slice() {
                _ if most < totals[index as usize] || is_shared => SourceProcess::Any,
                [process] => SourceProcess::Process(*process),
                _ => SourceProcess::Any,
            };
            if most == totals[index as usize] && most > 0 {
                open.push(OpenDevice {
                    source: index,
                    device: source.device,
                    candidates: best,
                });
            }
        }
        // Where each process has a device of its own, a device of which only one process is left is that process's, whoever else has calls
        // before its work: a late rank has calls before its own work alone, and each rank has calls before that of a late one.
        if open.len() == processes.len() {
            result.give_each_its_own(open);
        }
        result
    }

    /// Gives devices to processes one to one, as far as that can be told: as many devices as processes that come into question are
    /// theirs. Devices of which none is told from another are given in the order of their numbers: ranks use devices in that order, and
    /// their processes start in that order.
    fn give_each_its_own(&mut self, mut open: Vec<OpenDevice>) {
        open.sort_by_key(|one| one.device);
        loop {
            let whose = open.iter().find_map(|one| {
                let alike = open
                    .iter()
                    .filter(|other| other.candidates == one.candidates);
                (alike.count() == one.candidates.len()).then(|| one.candidates.clone())
            });
            let Some(whose) = whose.filter(|whose| !whose.is_empty()) else {
                return;
            };
            self.by_order |= whose.len() > 1;
            let mut given = whose.iter();
            open.retain_mut(|one| {
                if one.candidates != whose {
                    one.candidates.retain(|process| !whose.contains(process));
                    return true;
                }
                if let Some(process) = given.next() {
                    self.of_source[one.source as usize] = SourceProcess::Process(*process);
                }
                false
            });
        }
    }

    /// Returns true where several processes may have launched the work of a source.
    pub(super) fn is_shared(&self, source: u32) -> bool {
        self.of_source[source as usize] == SourceProcess::Any
    }

    /// Returns the process of the events of a source.
    pub(super) fn process(&self, source: u32) -> ProcessId {
        match self.of_source[source as usize] {
            SourceProcess::Process(process) => process,
            SourceProcess::Any => self.main,
        }
    }
}

/// Returns the prefix by which a merged file tells the processes of ranks apart, such as `[TP00]` of `[TP00] 1000`.
pub(super) fn rank_prefix(pid: &[u8]) -> Option<&[u8]> {
    let end = memchr::memchr(b']', pid)?;
    (pid.first() == Some(&b'[')).then(|| &pid[..=end])
}

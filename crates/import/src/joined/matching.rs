//! Matches a file of PyTorch's profiler with the export of Nsight Systems that is of the same run.
//!
//! The tracks of the file and the launches of the exports go in. Out comes the export whose launches lie inside of the
//! file's operators, with the offset of the clocks and the places of processes and threads, or the reason why none does.

use crate::Error;
use crate::kineto::joined::{Track, Tracks};
use crate::nsys::ExportLaunches;
use crate::offset::{
    Drift, Fit, Launch, MAX_OFFSET_NS, MIN_SHARE, NO_LAUNCHES, ThreadPair, fit, fit_drifting,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::ops::Range;

/// How far apart two profilers may time the start of the same call.
const SAME_CALL_NS: i64 = 20_000;
/// The smallest share of a file's own launches that must be calls of the same functions in the export: a profiler may lose a
/// third of its calls where its buffers are full. The sentence on the match says how many are not there.
const MIN_OWN_SHARE: f64 = 0.6;
/// The maximum numbers of threads of a file, and of each process of an export, that are compared with each other where
/// their ids differ. Programs launch from a handful of threads.
const MAX_FILE_THREADS: usize = 16;
const MAX_PROCESS_THREADS: usize = 64;

/// An export, of which the launches are known.
#[derive(Debug, Clone)]
pub(super) struct Export {
    pub name: String,
    /// The rank that the user names.
    pub rank: Option<u32>,
    pub launches: ExportLaunches,
}

/// The ids of a process and a thread of an export.
type ThreadIds = (u32, u32);

/// How a file matches an export.
#[derive(Debug, Clone)]
pub(super) struct Match {
    pub fit: Fit,
    /// What is added to the file's times, with the offset of the clocks, and what their drift adds.
    pub shift_ns: i64,
    pub drift: Drift,
    /// The pids of the file's processes in the export.
    pub processes: FxHashMap<Box<[u8]>, u32>,
    /// The places of threads that have other ids in the file.
    pub threads: FxHashMap<Box<[u8]>, ThreadIds>,
    pub own_launches: u64,
    pub own_launches_matched: u64,
    /// The times of the file's operators on the threads that launch.
    windows: Vec<(ThreadIds, Range<i64>)>,
}

impl Match {
    /// Returns true if another file of the same export has operators on one of the threads at the same time.
    pub(super) fn repeats(&self, other: &Match) -> bool {
        self.windows.iter().any(|(place, own)| {
            let mut others = other.windows.iter();
            others.any(|(other, window)| {
                other == place && own.start < window.end && window.start < own.end
            })
        })
    }
}

/// Returns the index of the export that a file matches. `rank` is the rank that the user names for the file.
///
/// # Errors
/// The file matches no export, or several.
pub(super) fn best_export(
    file: &str,
    tracks: &Tracks,
    rank: Option<u32>,
    exports: &[Export],
) -> Result<(usize, Match), Error> {
    let refuse = |reason: String| Err(Error::NotJoined { reason });
    let rank = rank.or(tracks.rank.map(|rank| rank.rank));
    let is_of_rank = |export: &Export| match (rank, export.rank) {
        (Some(own), Some(other)) => own == other,
        _ => true,
    };
    let candidates = exports.iter().enumerate();
    let candidates: Vec<_> = candidates
        .filter(|(_, export)| is_of_rank(export))
        .collect();
    let (mut matches, mut reasons) = (Vec::new(), Vec::new());
    for (index, export) in &candidates {
        let comparison = Comparison {
            tracks,
            export,
            file,
        };
        match comparison.matched() {
            Ok(matched) => matches.push((*index, matched)),
            Err(reason) => reasons.push(format!(
                "{file} and {} are not joined: {reason}",
                export.name
            )),
        }
    }
    match (matches.len(), reasons.as_slice()) {
        (1, _) => Ok(matches.remove(0)),
        (0, []) => refuse(format!(
            "no export of Nsight Systems is of the rank of {file}"
        )),
        (0, [reason]) => refuse(reason.clone()),
        (0, [reason, others @ ..]) => refuse(format!(
            "{reason}; nor does it fit the other exports ({})",
            others.len()
        )),
        _ => {
            let names = matches
                .iter()
                .map(|(index, _)| exports[*index].name.as_str());
            refuse(format!(
                "{file} fits several exports ({}): name the rank of each file with --as rank=N",
                names.collect::<Vec<_>>().join(", ")
            ))
        }
    }
}

/// A file and an export that may be of one run.
struct Comparison<'a> {
    tracks: &'a Tracks,
    export: &'a Export,
    file: &'a str,
}

/// A thread of the file, with the segments on the clock of the export.
struct Placed<'a> {
    track: &'a Track,
    segments: Vec<Range<i64>>,
}

/// Threads of the file, each with the thread of the export that it is.
type Pairs<'p, 'a> = Vec<(&'p Placed<'a>, ThreadIds)>;

impl<'a> Placed<'a> {
    fn pair(&'a self, launches: &'a [Launch]) -> ThreadPair<'a> {
        ThreadPair {
            segments: &self.segments,
            launches,
        }
    }

    /// Returns the process as the file writes it.
    fn process(&self) -> &'a [u8] {
        let key = &self.track.key;
        let end = memchr::memchr(0, key).unwrap_or(key.len());
        &key[..end]
    }
}

impl<'a> Comparison<'a> {
    /// Returns the match, or why the file is not of the export's run.
    fn matched(&self) -> Result<Match, String> {
        let shift_ns = self.shift_ns()?;
        let placed: Vec<Placed> = (self.tracks.tracks.iter())
            .filter(|track| !track.segments.is_empty())
            .map(|track| {
                let later = |ns: i64| ns.saturating_add(shift_ns);
                let segments = track.segments.iter();
                Placed {
                    track,
                    segments: segments
                        .map(|range| later(range.start)..later(range.end))
                        .collect(),
                }
            })
            .collect();
        self.refuse_other_times(&placed)?;
        let by_id: Vec<(&Placed, ThreadIds)> = (placed.iter())
            .map(|placed| (placed, (placed.track.pid, placed.track.tid)))
            .filter(|(_, place)| self.threads().contains_key(place))
            .collect();
        let (pairs, fit) = match by_id.is_empty() {
            true => self.by_launches(&placed)?,
            false => {
                let fit = self.fit(&by_id)?;
                (by_id, fit)
            }
        };
        self.complete(&placed, pairs, fit, shift_ns)
    }

    fn threads(&self) -> &'a std::collections::BTreeMap<ThreadIds, Vec<Launch>> {
        &self.export.launches.threads
    }

    /// Returns what puts the file's times on the clock of the export, as both files say it.
    fn shift_ns(&self) -> Result<i64, String> {
        let Some(zero_ns) = self.export.launches.zero_unix_ns else {
            return Err(format!(
                "{} does not say when its session began (table TARGET_INFO_SESSION_START_TIME), so that its times cannot be put beside those of another file: export the report with a newer nsys",
                self.export.name
            ));
        };
        let Some(base_ns) = self.tracks.zero_unix_ns else {
            return Err(format!(
                "{} does not say from when its times count (baseTimeNanoseconds), so that they cannot be put beside those of another file: record it with a newer PyTorch",
                self.file
            ));
        };
        let shift_ns = base_ns.checked_sub(zero_ns);
        shift_ns.ok_or_else(|| "their clocks are impossibly far apart".to_owned())
    }

    /// Refuses files whose times do not overlap.
    fn refuse_other_times(&self, placed: &[Placed]) -> Result<(), String> {
        let segments = placed.iter().flat_map(|placed| &placed.segments);
        let Some(own) = hull(segments.cloned()) else {
            return Err(format!(
                "{} has no operators (events of the category cpu_op): record them with ProfilerActivity.CPU",
                self.file
            ));
        };
        let launches = self.threads().values().flatten();
        let launches = launches.map(|launch| launch.span.start_ns..launch.span.end_ns());
        let Some(other) = hull(launches) else {
            return Err(format!(
                "{} has no launches of GPU work: record with `nsys profile --trace=cuda,nvtx`",
                self.export.name
            ));
        };
        let seconds = |ns: i64| ns as f64 / 1e9;
        let after_ns = own.start.saturating_sub(other.end);
        let before_ns = other.start.saturating_sub(own.end);
        if after_ns > MAX_OFFSET_NS {
            return Err(format!(
                "they are of different times: {} begins {:.3} s after the last launch of {}",
                self.file,
                seconds(after_ns),
                self.export.name
            ));
        }
        if before_ns > MAX_OFFSET_NS {
            return Err(format!(
                "they are of different times: {} ends {:.3} s before the first launch of {}",
                self.file,
                seconds(before_ns),
                self.export.name
            ));
        }
        Ok(())
    }

    /// Returns how well launches and operators of these threads fit, or why that shows nothing.
    fn fit(&self, pairs: &[(&Placed, ThreadIds)]) -> Result<Fit, String> {
        let threads = self.threads();
        let pairs: Vec<ThreadPair> = (pairs.iter())
            .filter_map(|(placed, place)| Some(placed.pair(threads.get(place)?)))
            .collect();
        let Some(fit) = fit_drifting(&pairs) else {
            return Err(NO_LAUNCHES.to_owned());
        };
        match fit.doubt() {
            Some(doubt) => Err(doubt),
            None => Ok(fit),
        }
    }

    /// Matches threads by their launches, where no thread of the file has the ids of one in the export, as in a container.
    /// All are of one process.
    fn by_launches<'p>(&self, placed: &'p [Placed<'a>]) -> Result<(Pairs<'p, 'a>, Fit), String> {
        let mut largest: Vec<&Placed> = placed.iter().collect();
        largest.sort_by_key(|placed| Reverse(placed.segments.len()));
        let process = largest.first().map(|placed| placed.process());
        largest.retain(|placed| Some(placed.process()) == process);
        largest.truncate(MAX_FILE_THREADS);
        let pids: BTreeSet<u32> = self.threads().keys().map(|(pid, _)| *pid).collect();
        let mut matches = Vec::new();
        for pid in pids {
            let pairs = self.threads_of(pid, &largest);
            if let Ok(fit) = self.fit(&pairs)
                && self.is_of_most(pid, &pairs, &fit)
            {
                matches.push((pairs, fit));
            }
        }
        match matches.len() {
            1 => Ok(matches.remove(0)),
            0 => Err(format!(
                "no thread of {} launches GPU work in {}, and its operators fit the launches of no other process",
                self.file, self.export.name
            )),
            count => Err(format!(
                "no thread of {} launches GPU work in {}, and its operators fit the launches of {count} processes: choose one with --pid",
                self.file, self.export.name
            )),
        }
    }

    /// Returns for the threads of the file those of a process into whose launches their operators fit best, each once.
    fn threads_of<'p>(&self, pid: u32, largest: &[&'p Placed<'a>]) -> Pairs<'p, 'a> {
        let threads = self.threads().range((pid, 0)..=(pid, u32::MAX));
        let mut threads: Vec<(&ThreadIds, &Vec<Launch>)> = threads.collect();
        threads.sort_by_key(|(_, launches)| Reverse(launches.len()));
        threads.truncate(MAX_PROCESS_THREADS);
        let mut fits: Vec<(Fit, usize, ThreadIds)> = Vec::new();
        for (index, placed) in largest.iter().enumerate() {
            let of_thread = threads.iter().filter_map(|(place, launches)| {
                let fit = fit(&[placed.pair(launches)])?;
                (fit.share() >= MIN_SHARE).then_some((fit, index, **place))
            });
            fits.extend(of_thread);
        }
        // The sharpest first: a thread that waits for another one has the launches of that one inside of it, too, at many
        // offsets.
        fits.sort_by_key(|(fit, index, _)| (fit.error_ns, *index));
        let (mut used, mut taken) = (FxHashSet::default(), FxHashSet::default());
        let mut pairs = Vec::new();
        for (_, index, place) in fits {
            if !used.contains(&index) && taken.insert(place) {
                used.insert(index);
                pairs.push((largest[index], place));
            }
        }
        pairs
    }

    /// Returns whether most launches of a process in the time of the file are on the threads that were matched and inside of
    /// operators.
    fn is_of_most(&self, pid: u32, pairs: &[(&Placed, ThreadIds)], fit: &Fit) -> bool {
        let segments = pairs.iter().flat_map(|(placed, _)| &placed.segments);
        let Some(window) = hull(segments.cloned()) else {
            return false;
        };
        let threads = self.threads().range((pid, 0)..=(pid, u32::MAX));
        let others = threads.filter(|(place, _)| pairs.iter().all(|(_, own)| own != *place));
        let others = others.flat_map(|(_, launches)| launches);
        let others = others.filter(|launch| window.contains(&launch.span.start_ns));
        let all = fit.launches + others.count() as u64;
        fit.inside as f64 >= MIN_SHARE * all as f64
    }

    /// Completes the match of threads, or returns why the file's own launches contradict it.
    fn complete(
        &self,
        placed: &[Placed],
        pairs: Vec<(&Placed, ThreadIds)>,
        fit: Fit,
        shift_ns: i64,
    ) -> Result<Match, String> {
        let mut result = Match {
            fit,
            shift_ns: shift_ns.saturating_add(fit.offset_ns),
            drift: fit.drift.shifted(shift_ns.saturating_neg()),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            own_launches: 0,
            own_launches_matched: 0,
            windows: Vec::new(),
        };
        // Threads that launch nothing belong to the processes of those that do.
        let pids: FxHashSet<u32> = self.threads().keys().map(|(pid, _)| *pid).collect();
        for placed in placed
            .iter()
            .filter(|placed| pids.contains(&placed.track.pid))
        {
            let process = placed.process().into();
            result.processes.insert(process, placed.track.pid);
        }
        for (placed, place) in pairs {
            let track = placed.track;
            result.processes.insert(placed.process().into(), place.0);
            if (track.pid, track.tid) != place {
                result.threads.insert(track.key.clone(), place);
            }
            if let Some(window) = hull(placed.segments.iter().cloned()) {
                result.windows.push((place, window));
            }
            let launches = &self.threads()[&place];
            let place = |ns: i64| {
                let drift_ns = result.drift.at(ns);
                ns.saturating_add(result.shift_ns).saturating_add(drift_ns)
            };
            let (all, matched) = same_calls(&track.launches, launches, place);
            result.own_launches += all;
            result.own_launches_matched += matched;
        }
        let (all, matched) = (result.own_launches, result.own_launches_matched);
        if (matched as f64) < MIN_OWN_SHARE * all as f64 {
            return Err(format!(
                "only {matched} of the {all} launches that {} has itself are calls of the same function and thread in {}",
                self.file, self.export.name
            ));
        }
        Ok(result)
    }
}

/// Returns the time from the first start to the last end; `None` without ranges.
fn hull(ranges: impl Iterator<Item = Range<i64>>) -> Option<Range<i64>> {
    ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
}

/// Counts the launches of a file in the time of the export's launches of the same thread, and those of them that are
/// calls of the same function there, in the same order. Both are in order of time. `place` puts the file's times on the
/// clock of the export.
fn same_calls(own: &[Launch], launches: &[Launch], place: impl Fn(i64) -> i64) -> (u64, u64) {
    let (Some(first), Some(last)) = (launches.first(), launches.last()) else {
        return (0, 0);
    };
    let (mut all, mut matched) = (0, 0);
    let mut next = 0;
    for launch in own {
        let at_ns = place(launch.span.start_ns);
        let is_near = |ns: i64| ns.abs_diff(at_ns) <= SAME_CALL_NS as u64;
        let time = first.span.start_ns.saturating_sub(SAME_CALL_NS)
            ..=last.span.start_ns.saturating_add(SAME_CALL_NS);
        if !time.contains(&at_ns) {
            continue;
        }
        all += 1;
        let before = |other: &Launch| other.span.start_ns < at_ns.saturating_sub(SAME_CALL_NS);
        next += launches[next..].partition_point(before);
        let near = launches[next..]
            .iter()
            .take_while(|other| is_near(other.span.start_ns));
        let mut near = near.enumerate();
        if let Some((offset, _)) = near.find(|(_, other)| other.function == launch.function) {
            matched += 1;
            next += offset + 1;
        }
    }
    (all, matched)
}

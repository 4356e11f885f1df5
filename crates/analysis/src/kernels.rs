//! Breaks device time down by kernel: counts, durations and busy time of the dispatches of each kernel.
//!
//! A row is for one name and one code ([`KernelNames`](gapscope_timeline::vocabulary::KernelNames)). Durations are of single
//! dispatches, from the device's timestamp before a dispatch to the one after it: where dispatches overlap, a duration includes time shared with others, so `total_ns` may exceed
//! `busy_ns`, which is a union. In `dispatch-serialised` mode nothing overlaps, and a duration is that of the kernel
//! run alone, with the cost of draining the device around it: an upper bound.
//!
//! What this cannot know: why a kernel takes its time, beyond the shape of its launches ([`launches`](crate::launches)), where
//! there are no hardware counters ([`limits`](crate::limits)); durations in `command-buffer` mode, in which only counts are
//! known.

use crate::kernel_limit::{
    BytesEvidence, KernelCounters, KernelLimit, KernelPhase, LimitingUnit, NoPeakShare,
};
use crate::launches::{Launches, shapes};
use gapscope_timeline::bound_bytes::BindingSets;
use gapscope_timeline::collectives;
use gapscope_timeline::durations::{Durations, GroupedDurations};
use gapscope_timeline::intervals::{Busy, Interval};
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::SHORTEST_KERNEL_NS;
use gapscope_timeline::{Timeline, Work, WorkKind};
use gapscope_trace::tables::{NameSource, Table};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// All dispatches of the kernels with one name and one code, over the whole recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Kernel {
    /// The kernel's name as people read it, which no other row has.
    pub name: String,
    /// Its whole name in the code, where `name` is a shorter one.
    pub full_name: Option<String>,
    /// The source of the name.
    #[schemars(with = "String")]
    pub name_source: NameSource,
    /// How many kernels of this row differ in code, entry point or specialisation.
    pub variants: u32,
    /// How many different codes are in this row: more than 1 only where so many share a name that they have no rows of their own.
    pub codes: u32,
    /// Its codes, as far as the trace names them.
    pub sources: Vec<KernelSource>,
    /// Dispatches, with or without known times.
    pub count: u64,
    /// Dispatches of unknown duration, which are in no duration below.
    pub untimed_count: u64,
    /// Durations of the dispatches.
    #[serde(flatten)]
    pub durations: Durations,
    /// Time in which at least one of them ran.
    pub busy_ns: Option<i64>,
    /// `busy_ns` over the busy time of all devices. Kernels that ran at the same time sum to more than 1.
    pub busy_share: Option<f64>,
    /// Duration of the first timed dispatch. Far above the median, it is a sign of warm-up.
    pub first_ns: Option<i64>,
    /// When that dispatch began.
    pub first_start_ns: Option<i64>,
    /// Bytes of the buffer ranges bound for reading, summed over dispatches: an upper bound on the distinct bytes
    /// read through bindings. Absent when no bindings are known.
    pub bound_read_bytes: Option<u64>,
    /// Bytes of the buffer ranges bound for writing, likewise.
    pub bound_written_bytes: Option<u64>,
    /// Dispatches with known bindings, to which these bytes belong.
    pub bound_count: u64,
    /// Bytes that its dispatches with known bindings and times must move at least between memory and device: an estimate. Each byte
    /// that a dispatch reads counts once, and each that it writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_at_least: Option<u64>,
    /// `code` where the code touches these bytes in every case; `bound-ranges` where they are those of the bound ranges, which the
    /// kernel moves only if it touches all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_evidence: Option<BytesEvidence>,
    /// `bytes_at_least` a second of the time in which those dispatches ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<u64>,
    /// `bytes_per_s` over the bandwidth that the device was measured to have for this share of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_of_peak: Option<f64>,
    /// Why that share is unknown although the bytes are known.
    #[serde(
        rename = "share_of_peak_unknown_because",
        skip_serializing_if = "Option::is_none"
    )]
    pub no_peak_share: Option<NoPeakShare>,
    /// Its limit, as far as hardware counters and the shape of its launches tell. Absent where they show no limit or are not
    /// known.
    pub limit: Option<KernelLimit>,
    /// The unit that is nearest to its limit, where counters tell.
    pub limited_by: Option<LimitingUnit>,
    /// Its share of the limit by counters: achieved over possible.
    pub reached: Option<f64>,
    /// How far `reached` may be off.
    pub reached_error: Option<f64>,
    /// The greatest share of its time that reaching the limit could save: 0 to 1. Absent without `limit`, and for short kernels.
    pub distance: Option<f64>,
    /// The same as a time in this recording, for dispatches that ran alone.
    pub winnable_ns: Option<i64>,
    /// The parts of its time that have different limits, the longest first; empty where its samples are alike.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<KernelPhase>,
    /// Hardware counters while it ran; absent where the trace has none.
    pub counters: Option<KernelCounters>,
    /// The shape of its launches; absent where the size of the GPU is unknown.
    pub launches: Option<Launches>,
    /// The part of `busy_ns` of dispatches that started in the window which the verdict is of.
    #[serde(skip)]
    pub judged_busy_ns: Option<i64>,
    /// Why none of its times is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_unknown_because: Option<&'static str>,
}

impl Kernel {
    /// Returns true for a kernel that communicates, by its name.
    pub(crate) fn communicates(&self) -> bool {
        let name = self.full_name.as_ref().unwrap_or(&self.name);
        collectives::kind_of(name).is_some()
    }

    /// Returns the part of [`Kernel::winnable_ns`] in the window that the verdict is of, as the kernel's time is shared out.
    pub(crate) fn judged_winnable_ns(&self) -> Option<i64> {
        let judged = ratio(self.judged_busy_ns?, self.busy_ns?);
        Some((self.winnable_ns? as f64 * judged) as i64)
    }

    /// Sets the limit by the shape of the launches. It is left as it is where the shape shows none. `shortest_ns` is
    /// the shortest duration of any kernel.
    fn set_shape_limit(&mut self, launches: Option<Launches>, shortest_ns: i64) {
        self.launches = launches;
        let times = &self.durations;
        let limit = (launches.zip(times.total_ns).zip(times.mean_ns)).and_then(
            |((launches, total_ns), mean_ns)| launches.limit(total_ns, mean_ns, shortest_ns),
        );
        let Some((limit, winnable_ns)) = limit else {
            return;
        };
        self.limit = Some(limit);
        self.winnable_ns = winnable_ns;
        self.distance = winnable_ns
            .zip(launches)
            .map(|(ns, launches)| ratio(ns, launches.known_ns));
    }
}

/// The code of a kernel.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelSource {
    /// Its hash. The trace has the code in `sources/HASH.spv`, `.ptx` or another extension.
    pub hash: Arc<str>,
    /// The file of its source, where the code names it.
    pub file: Option<Arc<str>>,
    /// The hash of that file, where the trace has it too.
    pub file_hash: Option<Arc<str>>,
}

/// The name of the row of dispatches whose kernel is not in the trace.
const UNKNOWN: &str = "unknown kernel";

/// Sets how long each kernel was busy in `judged`, the window that the verdict is of. The kernels are those of the whole recording.
pub(crate) fn add_judged(timeline: &Timeline, judged: Option<Interval>, kernels: &mut [Kernel]) {
    if judged.is_none() || judged == timeline.work_window() {
        for kernel in kernels {
            kernel.judged_busy_ns = kernel.busy_ns;
        }
        return;
    }
    let names = &timeline.kernel_names;
    let mut busy = vec![Busy::default(); names.all().len()];
    timeline.each_work(|work| {
        let is_judged = work.kind() == WorkKind::Dispatch
            && Interval::counts(judged, Some(work.interval.start_ns));
        let row = is_judged.then(|| timeline.kernel_row(work.row())).flatten();
        if let Some(kernel) = row.and_then(|row| names.index_of_row(row)) {
            busy[kernel].add(work.interval);
        }
    });
    let names = names.all().iter().map(|named| named.name.as_str());
    let busy: HashMap<&str, i64> = names.zip(busy.iter().map(|busy| busy.length_ns)).collect();
    // A kernel whose times are not known was busy for an unknown time in the window, too.
    for kernel in kernels.iter_mut().filter(|kernel| kernel.busy_ns.is_some()) {
        kernel.judged_busy_ns = busy.get(kernel.name.as_str()).copied();
    }
}

/// Returns the kernels of the whole recording, or of the dispatches that start in `window`. Shares are relative to `busy_ns`, the
/// busy time of all devices.
pub fn kernels(
    timeline: &Timeline,
    bindings: &BindingSets,
    window: Option<Interval>,
    busy_ns: Option<i64>,
) -> Vec<Kernel> {
    let table = &timeline.trace.tables.kernels;

    // The last row is for dispatches whose kernel is not in the trace.
    let names = &timeline.kernel_names;
    let mut kernels: Vec<Kernel> = (names.all().iter())
        .map(|named| Kernel {
            name: named.name.clone(),
            full_name: named.full_name.clone(),
            name_source: named.name_source,
            codes: named.codes,
            ..Kernel::default()
        })
        .collect();
    let mut variants: Vec<HashSet<[Option<&str>; 3]>> = vec![HashSet::new(); kernels.len()];
    for row in 0..table.len() {
        if let Some(kernel) = names.index_of_row(row) {
            let sources = &mut kernels[kernel].sources;
            let source = table.source[row].as_ref().map(|hash| KernelSource {
                hash: Arc::clone(hash),
                file: table.source_file[row].clone(),
                file_hash: table.source_file_hash[row].clone(),
            });
            sources.extend(source.filter(|source| !sources.contains(source)));
            variants[kernel].insert([
                table.source[row].as_deref(),
                table.entry_point[row].as_deref(),
                table.specialisation[row].as_deref(),
            ]);
        }
    }
    for (kernel, variants) in kernels.iter_mut().zip(variants) {
        kernel.variants = variants.len() as u32;
    }
    let unknown = kernels.len();
    kernels.push(Kernel {
        name: UNKNOWN.to_owned(),
        ..Kernel::default()
    });
    let dispatches = &timeline.dispatches;
    let group_of_row: Vec<u32> = (0..table.len())
        .map(|row| names.index_of_row(row).unwrap_or(unknown) as u32)
        .collect();
    let group = |row: usize| {
        let kernel = timeline.kernel_row(row);
        kernel.map_or(unknown, |row| group_of_row[row] as usize)
    };
    let timed = |work: &Work| {
        work.kind() == WorkKind::Dispatch && Interval::counts(window, Some(work.interval.start_ns))
    };
    let mut count = |row: usize| {
        let kernel = &mut kernels[group(row)];
        kernel.count += 1;
        if let Some(bytes) = bindings.bytes(dispatches.binding_set(row)) {
            let read = kernel.bound_read_bytes.get_or_insert(0);
            *read = read.saturating_add(bytes.read_bytes);
            let written = kernel.bound_written_bytes.get_or_insert(0);
            *written = written.saturating_add(bytes.written_bytes);
            kernel.bound_count += 1;
        }
    };
    let untimed = || {
        let untimed = dispatches.untimed.iter();
        untimed.filter(|untimed| Interval::counts(window, untimed.start_ns))
    };
    match window {
        None => (0..dispatches.count()).for_each(&mut count),
        Some(_) => {
            let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
            let rows = works.filter(|work| timed(work)).map(|work| work.row());
            rows.chain(untimed().map(|untimed| untimed.row as usize))
                .for_each(&mut count);
        }
    }
    for untimed in untimed().filter(|untimed| untimed.duration_ns.is_none()) {
        kernels[group(untimed.row as usize)].untimed_count += 1;
    }
    // The durations of these dispatches are known, although their times are not.
    let lasted = || {
        untimed().filter_map(|untimed| Some((group(untimed.row as usize), untimed.duration_ns?)))
    };

    let timed_counts =
        (kernels.iter()).map(|kernel| (kernel.count - kernel.untimed_count) as usize);
    let longest_ns = lasted().map(|(_, duration_ns)| duration_ns).max();
    let longest_ns = longest_ns.unwrap_or(0).max(timeline.longest_ns());
    let mut durations = GroupedDurations::new(timed_counts, longest_ns);
    lasted().for_each(|(group, duration_ns)| durations.push(group, duration_ns));
    let mut busy = vec![Busy::default(); kernels.len()];
    timeline.each_work(|work| {
        if !timed(work) {
            return;
        }
        let group = group(work.row());
        durations.push(group, work.interval.length_ns());
        busy[group].add(work.interval);
        let kernel = &mut kernels[group];
        kernel.first_start_ns.get_or_insert(work.interval.start_ns);
        kernel.first_ns.get_or_insert(work.interval.length_ns());
    });
    (0..kernels.len()).for_each(|group| durations.announce(group..group + 1));
    if durations.needs_again() {
        lasted().for_each(|(group, duration_ns)| durations.push_again(group, duration_ns));
        let works = timeline.gpus.iter().flat_map(|gpu| &gpu.works);
        works
            .filter(|work| timed(work))
            .for_each(|work| durations.push_again(group(work.row()), work.interval.length_ns()));
    }
    for (group, (kernel, busy)) in kernels.iter_mut().zip(busy).enumerate() {
        kernel.durations = durations.statistics(group..group + 1);
        if kernel.first_ns.is_some() {
            kernel.busy_ns = Some(busy.length_ns);
            kernel.busy_share = busy_ns.map(|busy_ns| ratio(busy.length_ns, busy_ns));
        }
    }
    let shortest_ns = kernels
        .iter()
        .filter_map(|kernel| kernel.durations.min_ns.filter(|min_ns| *min_ns > 0))
        .fold(SHORTEST_KERNEL_NS, i64::min);
    let group = |row: usize| group_of_row[row] as usize;
    let shapes = shapes(timeline, window, shortest_ns, group, kernels.len());
    for (kernel, launches) in kernels.iter_mut().zip(shapes) {
        kernel.set_shape_limit(launches, shortest_ns);
    }
    kernels.retain(|kernel| kernel.count > 0);
    kernels.sort_by(|a, b| {
        let key = |k: &Kernel| Reverse((k.durations.total_ns, k.count));
        key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
    });
    kernels
}

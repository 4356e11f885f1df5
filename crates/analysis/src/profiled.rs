//! Describes the launches of kernels that the recorder profiled one by one, from the hardware counters read for each.
//!
//! The bound of a kernel follows from the shares of the greatest throughput that its units and memory reached, by the same
//! thresholds as in Nsight Compute ([`PROFILE_LOW`], [`PROFILE_CLOSE`]). Achieved occupancy is measured, the theoretical one computed from the launch
//! (see `occupancy.rs`). Shares of stalls are of the time of all warps between two instructions that one of them issues.
//!
//! What this cannot know: how the kernel behaves beside others and with other data. It ran alone and repeatedly, with caches
//! filled by the run before.
//!
//! Input is the table `kernel_metrics`, a row of which is one metric of one profiled launch. A pass is one run of the
//! kernel for the measurement of some of the metrics.

use crate::occupancy::Occupancy;
use gapscope_timeline::Timeline;
use gapscope_timeline::quantity::{Nanoseconds, Percent, count_of};
use gapscope_timeline::thresholds::{PROFILE_CLOSE, PROFILE_LOW};
use gapscope_trace::ids::{KernelId, SubmissionId};
use gapscope_trace::kernel_profile::{GRID, Metric, PROFILING_CALL, Stall, metric_name as name};
use gapscope_trace::lookup::IdIndex;
use gapscope_trace::manifest::DeviceProperties;
use gapscope_trace::tables::{KernelMetrics, MetricSection, MetricUnit, Table};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A launch of a kernel that was profiled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct ProfiledKernel {
    /// Its number among the profiled launches of the trace, from 1.
    pub profile: u32,
    /// The kernel's name, as that of its row in `kernels`.
    pub kernel: String,
    /// Its whole name in the code, where `kernel` is a shorter one.
    pub full_name: Option<String>,
    /// Id of the submission that launched it; absent where the record of the dispatch is missing.
    #[schemars(with = "Option<u64>")]
    pub submission: Option<SubmissionId>,
    /// How often the kernel ran for the measurements.
    pub passes: u32,
    /// Its duration, in the pass that measured it.
    pub duration_ns: Option<f64>,
    /// Its bound.
    pub bound: ProfileBound,
    /// The same in one sentence, with its figures.
    pub sentence: String,
    /// Throughput of the multiprocessors' units, over the greatest possible: 0 to 1. Absent, as the shares below, where it was
    /// not measured.
    pub compute: Option<f64>,
    /// Throughput of caches and device memory.
    pub memory: Option<f64>,
    /// Throughput of device memory alone.
    pub dram: Option<f64>,
    /// Throughput of the L2 cache alone.
    pub l2: Option<f64>,
    /// Throughput of the L1 caches and shared memory alone.
    pub l1: Option<f64>,
    /// Bytes read from device memory.
    pub dram_read_bytes: Option<u64>,
    /// Bytes written to device memory.
    pub dram_written_bytes: Option<u64>,
    /// Bytes requested from the L2 cache.
    pub l2_bytes: Option<u64>,
    /// Bytes requested from the L1 caches.
    pub l1_bytes: Option<u64>,
    /// The share of the sectors requested from the L2 cache that were in it: 0 to 1.
    pub l2_hit_rate: Option<f64>,
    /// The same share for the L1 caches.
    pub l1_hit_rate: Option<f64>,
    /// Warps on a multiprocessor with work, over those that it can hold: 0 to 1.
    pub achieved_occupancy: Option<f64>,
    /// The greatest occupancy that the shape of the launch allows.
    pub theoretical_occupancy: Option<f64>,
    /// The resource that allows no more: `groups`, `threads`, `registers`, `shared-memory`.
    pub occupancy_limited_by: Option<&'static str>,
    /// Workgroups of the launch.
    pub groups: Option<u64>,
    /// Multiprocessors of the GPU.
    pub multiprocessors: Option<u32>,
    /// Workgroups over those that the GPU can hold at once.
    pub waves: Option<f64>,
    /// The reasons for which its warps stalled, the greatest first.
    pub stalls: Vec<StallShare>,
    /// All measured metrics.
    pub metrics: Vec<MetricValue>,
}

/// The bound of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileBound {
    /// Caches or device memory.
    Memory,
    /// The units of the multiprocessors.
    Compute,
    /// Both to about the same degree.
    Both,
    /// Neither is near its limit, so that the kernel waits.
    Latency,
    /// Throughputs were not measured.
    #[default]
    Unknown,
}

/// A reason for which warps stalled.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StallShare {
    /// The reason, as in the name of its metric.
    pub reason: &'static str,
    /// Warps that it stalled, for each issued instruction.
    pub warps: f64,
    /// The share of the warps that all reasons stalled: 0 to 1.
    pub share: f64,
    /// What the warps waited for.
    pub meaning: &'static str,
    /// The advice on it; absent where it is no fault.
    pub advice: Option<&'static str>,
}

/// A metric with its value.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MetricValue {
    /// Its name, as of Nsight Compute.
    pub metric: Arc<str>,
    /// The section that it belongs to.
    #[schemars(with = "String")]
    pub section: MetricSection,
    /// Its value.
    pub value: f64,
    /// The unit of the value.
    #[schemars(with = "String")]
    pub unit: MetricUnit,
    /// Its meaning; absent for metrics of other versions.
    pub meaning: Option<&'static str>,
}

/// Returns all launches that were profiled.
pub fn profiled_kernels(timeline: &Timeline) -> Vec<ProfiledKernel> {
    let tables = &timeline.trace.tables;
    let table = &tables.kernel_metrics;
    if table.is_empty() {
        return Vec::new();
    }
    let mut rows: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for row in 0..table.len() {
        rows.entry(table.profile[row]).or_default().push(row);
    }
    let kernels = IdIndex::<KernelId>::new(&tables.kernels.id);
    let submissions = IdIndex::<SubmissionId>::new(&tables.submissions.id);
    let manifest = &timeline.trace.manifest;
    let limits = |submission: Option<SubmissionId>| -> Option<&DeviceProperties> {
        let id = tables.submissions.queue[submissions.get(submission?)?];
        let queue = manifest.queues.iter().find(|queue| queue.id == id)?;
        let mut devices = manifest.devices.iter();
        let device = devices.find(|device| device.id == queue.device)?;
        device.limits.as_ref()
    };
    (rows.into_iter())
        .map(|(profile, rows)| {
            let mut profiled = from_rows(table, &rows);
            profiled.profile = profile;
            let first = rows[0];
            let kernel = kernels.get(table.kernel[first]);
            profiled.kernel = kernel.map_or_else(
                || gapscope_trace::kernel_names::UNKNOWN.to_owned(),
                |row| timeline.kernel_names.name(row).to_owned(),
            );
            let full_name = kernel.and_then(|row| timeline.kernel_names.full_name(row));
            profiled.full_name = full_name.map(str::to_owned);
            let limits = limits(profiled.submission);
            let multiprocessors = limits.and_then(|limits| limits.multiprocessors);
            profiled.multiprocessors = multiprocessors.filter(|count| *count > 0);
            let occupancy = kernel.zip(limits);
            let occupancy = occupancy
                .and_then(|(row, limits)| Occupancy::from_row(&tables.kernels, row, limits));
            profiled.theoretical_occupancy = occupancy.map(|occupancy| occupancy.share);
            profiled.occupancy_limited_by = occupancy.map(|occupancy| occupancy.limited_by);
            profiled.waves = (profiled.groups.zip(profiled.multiprocessors).zip(occupancy)).map(
                |((groups, multiprocessors), occupancy)| {
                    groups as f64 / (f64::from(multiprocessors) * f64::from(occupancy.groups))
                },
            );
            profiled.sentence = profiled.sentence();
            profiled
        })
        .collect()
}

/// Returns a sentence for every report on how long the profiled launches held the program up, or `None` where they
/// did not.
pub(crate) fn note(timeline: &Timeline) -> Option<String> {
    let (all_ns, longest_ns) = held_up_ns(timeline)?;
    Some(format!(
        "Profiling kernels held the program up for {}, once for {}: idle time of which is that of the cause `recording`, and no part of the verdict.",
        Nanoseconds(all_ns),
        Nanoseconds(longest_ns)
    ))
}

/// Returns the time in which threads were held up: the sum and the longest stretch.
fn held_up_ns(timeline: &Timeline) -> Option<(i64, i64)> {
    let calls = &timeline.trace.tables.host_calls;
    let profiling = (0..calls.len())
        .filter(|row| calls.function[*row].as_deref() == Some(PROFILING_CALL))
        .map(|row| calls.duration_ns[row]);
    let sum = profiling.clone().reduce(i64::saturating_add)?;
    Some((sum, profiling.max().unwrap_or(sum)))
}

/// Reads the metrics in some rows of the table.
fn from_rows(table: &KernelMetrics, rows: &[usize]) -> ProfiledKernel {
    let value = |wanted: &str| {
        let row = rows.iter().find(|row| &*table.metric[**row] == wanted)?;
        Some(table.value[*row]).filter(|value| value.is_finite())
    };
    let share = |wanted| value(wanted).map(|percent| percent / 100.0);
    let bytes = |wanted| value(wanted).map(|bytes| bytes.max(0.0).round() as u64);
    let mut profiled = ProfiledKernel {
        submission: table.submission.at(rows[0]),
        passes: table.passes[rows[0]],
        duration_ns: value(name::DURATION),
        compute: share(name::COMPUTE),
        memory: share(name::MEMORY),
        dram: share(name::DRAM_THROUGHPUT),
        l2: share(name::L2_THROUGHPUT),
        l1: share(name::L1_THROUGHPUT),
        dram_read_bytes: bytes(name::DRAM_READ),
        dram_written_bytes: bytes(name::DRAM_WRITTEN),
        l2_bytes: bytes(name::L2_BYTES),
        l1_bytes: bytes(name::L1_BYTES),
        groups: bytes(GRID.name).filter(|groups| *groups > 0),
        l2_hit_rate: share(name::L2_HIT_RATE),
        l1_hit_rate: share(name::L1_HIT_RATE),
        achieved_occupancy: share(name::WARPS_ACTIVE),
        stalls: stalls(value),
        metrics: (rows.iter())
            .map(|row| MetricValue {
                metric: Arc::clone(&table.metric[*row]),
                section: table.section[*row],
                value: table.value[*row],
                unit: table.unit[*row],
                meaning: Metric::by_name(&table.metric[*row]).map(|metric| metric.meaning),
            })
            .collect(),
        ..ProfiledKernel::default()
    };
    profiled.bound = ProfileBound::new(profiled.compute, profiled.memory);
    profiled
}

/// Returns the shares of the reasons for stalls, the greatest first. `value` returns the value of a metric.
fn stalls(value: impl Fn(&str) -> Option<f64>) -> Vec<StallShare> {
    let known = Stall::ALL.iter().filter_map(|stall| {
        let warps = value(stall.metric()).filter(|warps| *warps > 0.0)?;
        Some((*stall, warps))
    });
    let all: f64 = known.clone().map(|(_, warps)| warps).sum();
    // The values of a damaged trace may sum to infinity.
    let known = known.filter(|_| all.is_finite());
    let mut stalls: Vec<StallShare> = known
        .map(|(stall, warps)| StallShare {
            reason: stall.as_str(),
            warps,
            share: warps / all,
            meaning: stall.meaning(),
            advice: stall.advice(),
        })
        .collect();
    stalls.sort_by(|a, b| b.warps.total_cmp(&a.warps));
    stalls
}

impl ProfileBound {
    /// Decides by the shares that units and memory reached: latency where both are below `PROFILE_LOW`, both where
    /// they differ by less than `PROFILE_CLOSE`, otherwise the greater.
    fn new(compute: Option<f64>, memory: Option<f64>) -> ProfileBound {
        let (Some(compute), Some(memory)) = (compute, memory) else {
            return ProfileBound::Unknown;
        };
        match () {
            () if compute < PROFILE_LOW && memory < PROFILE_LOW => ProfileBound::Latency,
            () if (compute - memory).abs() < PROFILE_CLOSE => ProfileBound::Both,
            () if memory > compute => ProfileBound::Memory,
            () => ProfileBound::Compute,
        }
    }
}

impl ProfiledKernel {
    /// Returns the part of memory that is busiest.
    fn busiest_memory(&self) -> Option<&'static str> {
        let parts = [
            ("device memory", self.dram),
            ("the L2 cache", self.l2),
            ("L1 and shared memory", self.l1),
        ];
        let known = parts
            .into_iter()
            .filter_map(|(part, share)| Some((part, share?)));
        Some(known.max_by(|a, b| a.1.total_cmp(&b.1))?.0)
    }

    /// Returns the bound with its figures in one sentence.
    fn sentence(&self) -> String {
        let (Some(compute), Some(memory)) = (self.compute, self.memory) else {
            return "What bounds it is unknown: its throughput was not measured.".to_owned();
        };
        let (compute, memory) = (Percent(compute), Percent(memory));
        let busiest = self.busiest_memory();
        let busiest = busiest.map_or(String::new(), |part| format!(", most of all {part}"));
        match self.bound {
            ProfileBound::Memory => format!(
                "Memory bounds it: it reached {memory} of the greatest throughput{busiest}, and {compute} of that of the units."
            ),
            ProfileBound::Compute => format!(
                "The multiprocessors' units bound it: it reached {compute} of their greatest throughput, and {memory} of that of memory."
            ),
            ProfileBound::Both => format!(
                "Units and memory bound it together: {compute} and {memory} of their greatest throughput{busiest}."
            ),
            ProfileBound::Latency | ProfileBound::Unknown => match self.too_small() {
                Some(why) => format!(
                    "Too small to fill the GPU: {why}. It reached {compute} of the units' greatest throughput and {memory} of that of memory."
                ),
                None => format!(
                    "Latency bounds it: it reached {compute} of the units' greatest throughput and {memory} of that of memory, so that neither is its limit."
                ),
            },
        }
    }

    /// Returns why the launch leaves much of the GPU idle, as the end of a sentence: it has fewer workgroups than
    /// there are multiprocessors, or than the GPU can hold at once. `None` where it has not.
    fn too_small(&self) -> Option<String> {
        let (groups, multiprocessors) = self.groups.zip(self.multiprocessors)?;
        if groups < u64::from(multiprocessors) {
            return Some(format!(
                "it has {} for {multiprocessors} multiprocessors",
                count_of(groups, "workgroup", "workgroups")
            ));
        }
        let waves = self.waves.filter(|waves| *waves < 1.0)?;
        Some(format!(
            "its {} are {} of those that the GPU can hold at once",
            count_of(groups, "workgroup", "workgroups"),
            Percent(waves)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_trace::tables::KernelMetric;

    fn profiled(values: &[(&str, f64)]) -> ProfiledKernel {
        let mut table = KernelMetrics::default();
        for (metric, value) in values {
            table.push(KernelMetric {
                metric: Arc::from(*metric),
                value: *value,
                unit: MetricUnit::from_metric(metric),
                passes: 20,
                ..KernelMetric::default()
            });
        }
        let mut found = from_rows(&table, &(0..table.len()).collect::<Vec<_>>());
        found.multiprocessors = Some(132);
        found.sentence = found.sentence();
        found
    }

    #[test]
    fn a_launch_that_cannot_fill_the_gpu_is_told_so() {
        let small = |groups| {
            let throughputs = [(name::COMPUTE, 0.1), (name::MEMORY, 3.0)];
            profiled(&[&throughputs[..], &[(GRID.name, groups)]].concat()).sentence
        };
        assert!(small(2.0).starts_with("Too small to fill the GPU: it has 2 workgroups for 132"));
        assert!(small(200.0).starts_with("Latency bounds it"));
    }

    #[test]
    fn what_bounds_a_kernel_follows_from_its_throughputs() {
        for (compute, memory, bound) in [
            (20.0, 91.0, ProfileBound::Memory),
            (92.0, 40.0, ProfileBound::Compute),
            (85.0, 80.0, ProfileBound::Both),
            (59.0, 30.0, ProfileBound::Latency),
            (10.0, 61.0, ProfileBound::Memory),
        ] {
            let found = profiled(&[(name::COMPUTE, compute), (name::MEMORY, memory)]);
            assert_eq!(found.bound, bound, "{compute} {memory}");
        }
        let unknown = profiled(&[(name::COMPUTE, 92.0)]);
        assert_eq!(unknown.bound, ProfileBound::Unknown);
        let sentence = &unknown.sentence;
        assert!(sentence.contains("not measured"), "{sentence}");
        assert_eq!(unknown.memory, None);
    }

    #[test]
    fn the_busiest_memory_is_named_and_stalls_are_shares_of_all() {
        let found = profiled(&[
            (name::COMPUTE, 20.0),
            (name::MEMORY, 91.0),
            (name::L2_THROUGHPUT, 40.0),
            (name::DRAM_THROUGHPUT, 91.0),
            (name::DRAM_READ, 1024.0),
            (Stall::LongScoreboard.metric(), 6.0),
            (Stall::Selected.metric(), 1.0),
            (Stall::Wait.metric(), 3.0),
            (Stall::Barrier.metric(), f64::NAN),
        ]);
        assert!(found.sentence.contains("most of all device memory"));
        assert_eq!(found.dram_read_bytes, Some(1024));
        let shares: Vec<_> = found.stalls.iter().map(|s| (s.reason, s.share)).collect();
        assert_eq!(
            shares,
            [("long_scoreboard", 0.6), ("wait", 0.3), ("selected", 0.1)]
        );
        assert_eq!(found.stalls[2].advice, None);
    }
}

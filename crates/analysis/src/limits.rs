//! What limits each kernel, and how far it is from that limit: from hardware counters, beside the shape of its launches.
//!
//! A *share of a limit* is what a kernel has of what a unit of the GPU can do at most: device memory by its bandwidth as
//! measured ([`Ceiling`]), pipes, instruction issue and L2 cache by the counter itself, which is a percentage of the unit's
//! greatest rate at the clock that it had. The nearest limit is the greatest of them: it is the one that a faster kernel of the
//! same work would meet first, and reaching it saves at most `1 - share` of the time.
//!
//! The rules, the first that holds:
//! 1. *short*: hardly longer than the shortest kernel ([`launches`](crate::launches)).
//! 2. *memory*, *compute*: the nearest limit is reached to [`NEAR_LIMIT_SHARE`] or more.
//! 3. *too small*, *tail*: by the shape of its launches.
//! 4. *idle*: near no limit, and multiprocessors were active for less than that share of the time.
//! 5. *latency*: near no limit though they were active.
//!
//! *Idle* needs to know the share of memory (no pipe can work more than the multiprocessors do), *latency* tensor and FMA pipe too.
//!
//! What this cannot know: what the pipes compute. Which number type the tensor pipe works on is not counted, so there is no
//! FLOP rate. Nor who used the GPU: counters are of the whole device, with what other programs did on it.

mod attribution;
mod ceilings;
mod judge;
mod shares;
mod stretches;

pub use ceilings::{Ceiling, CeilingSource};
pub use shares::{LimitingUnit, ShareOfLimit};

use crate::counters::Counter;
use crate::intervals::Interval;
use crate::kernels::Kernel;
use crate::quantity;
use crate::timeline::Timeline;
use attribution::Attribution;
use gapscope_trace::tables::CounterUnit;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// What limits a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum KernelLimit {
    /// It takes hardly longer than the shortest kernel.
    Short,
    /// Bandwidth of the device's memory or of its L2 cache.
    Memory,
    /// A pipe of the multiprocessors, or the rate at which they execute instructions.
    Compute,
    /// It has fewer workgroups than the GPU has multiprocessors.
    TooSmall,
    /// The last of its few waves leaves much of the GPU unused.
    Tail,
    /// Multiprocessors have nothing to run for much of its time, for another reason.
    Idle,
    /// Near no limit of a unit though the multiprocessors are occupied: its warps wait for memory or for each other.
    Latency,
}

impl KernelLimit {
    /// Its text in JSON and SQL.
    pub const fn as_str(self) -> &'static str {
        match self {
            KernelLimit::TooSmall => "too-small",
            other => other.name(),
        }
    }

    /// What it is called.
    pub const fn name(self) -> &'static str {
        match self {
            KernelLimit::Short => "short",
            KernelLimit::Memory => "memory",
            KernelLimit::Compute => "compute",
            KernelLimit::TooSmall => "too small",
            KernelLimit::Tail => "tail",
            KernelLimit::Idle => "idle",
            KernelLimit::Latency => "latency",
        }
    }
}

/// Hardware counters while a kernel ran: of samples in which it ran and nothing else did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelCounters {
    /// Time in which at least one of its dispatches ran, summed over the GPUs.
    pub ran_ns: i64,
    /// Part of it in which nothing else ran on its GPU.
    pub alone_ns: i64,
    /// Part of that which whole samples cover, of the counter with the most.
    pub covered_ns: i64,
    /// `covered_ns` of `ran_ns`: 0 to 1.
    pub covered_share: f64,
    /// Samples of that counter.
    pub sample_count: u64,
    /// The counters; empty where too little of the kernel's time is covered.
    pub means: Vec<KernelCounter>,
    /// What it has of the limit of each unit, the greatest first.
    pub shares: Vec<ShareOfLimit>,
    /// Read from device memory in all its time, an estimate: mean rate times `ran_ns`.
    pub dram_read_bytes: Option<Estimate>,
    /// Written to device memory, likewise.
    pub dram_written_bytes: Option<Estimate>,
    /// Why there is no figure of it, or no limit.
    pub unknown_because: Option<String>,
}

/// A counter while a kernel ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelCounter {
    /// The name of the counter.
    pub name: &'static str,
    /// The unit of its values.
    #[schemars(with = "String")]
    pub unit: CounterUnit,
    /// Mean over the time of the samples.
    pub mean: f64,
    /// Standard error of the mean, as if the samples were independent.
    pub standard_error: f64,
    /// `standard_error`, and what the mean of all the kernel's time may differ by if what is not covered lies between `min` and
    /// `max`.
    pub error: f64,
    /// The least sample.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Samples.
    pub sample_count: u64,
    /// The share of the kernel's time that they cover.
    pub covered_share: f64,
}

/// A figure and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Estimate {
    /// The figure.
    pub value: u64,
    /// How far it may be off: as `error` of a counter.
    pub error: u64,
}

/// What the limits of kernels rest on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelLimits {
    /// How long a sample is: median of all.
    pub sample_ns: i64,
    /// Samples of the counter with the most, over all GPUs.
    pub sample_count: u64,
    /// Time of all kernels that whole samples cover.
    pub covered_ns: i64,
    /// Time of all kernels, summed up.
    pub ran_ns: i64,
    /// `covered_ns` of `ran_ns`.
    pub covered_share: f64,
    /// What memory is measured against, by GPU that was sampled.
    pub ceilings: Vec<Ceiling>,
    /// All of it in sentences.
    pub sentences: Vec<String>,
}

/// Adds counters and what they say of limits to `kernels`, which are of the dispatches that start in `window`; `recorded` are the
/// counters of the trace. `None` where it has no hardware counters whose samples have a duration.
pub fn limit(
    timeline: &Timeline,
    recorded: &[Counter],
    window: Option<Interval>,
    kernels: &mut [Kernel],
) -> Option<KernelLimits> {
    let attribution = Attribution::of(timeline, recorded, window)?;
    let ceilings = ceilings::ceilings(timeline, &attribution.sampled);
    let names = timeline.kernel_names.all();
    // A name is one row's alone.
    let numbers = (names.iter().zip(0..)).map(|(named, number)| (named.name.as_str(), number));
    let numbers: HashMap<&str, usize> = numbers.collect();
    let mut communicates = vec![false; names.len()];
    for (row, yes) in timeline.communicates.iter().enumerate() {
        if let (true, Some(number)) = (*yes, timeline.kernel_names.of_row(row)) {
            communicates[number] = true;
        }
    }
    for kernel in kernels {
        if let Some(number) = numbers.get(kernel.name.as_str()) {
            kernel.judge(&attribution, &ceilings, *number, communicates[*number]);
        }
    }
    Some(KernelLimits::of(&attribution, ceilings))
}

impl KernelLimits {
    fn of(attribution: &Attribution, ceilings: Vec<Ceiling>) -> KernelLimits {
        let ran = attribution.kernels.iter();
        let ran_ns = ran.map(|kernel| kernel.ran_ns).fold(0, i64::saturating_add);
        let covered_ns = (0..attribution.kernels.len())
            .map(|kernel| attribution.most_covered(kernel).0)
            .fold(0, i64::saturating_add);
        let covered_share = quantity::ratio(covered_ns, ran_ns).min(1.0);
        let mut sentences = vec![format!(
            "Hardware counters: {} of {}. Those that lie in one kernel's dispatches, with nothing beside them, cover {} of the kernels' time; ± is the standard error, and what they do not cover.",
            quantity::of(attribution.sample_count, "sample", "samples"),
            quantity::duration(attribution.sample_ns),
            quantity::share(covered_share),
        )];
        sentences.extend(ceilings.iter().map(|one| one.sentence(ceilings.len() > 1)));
        KernelLimits {
            sample_ns: attribution.sample_ns,
            sample_count: attribution.sample_count,
            covered_ns,
            ran_ns,
            covered_share,
            ceilings,
            sentences,
        }
    }
}

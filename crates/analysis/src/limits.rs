//! Finds what limits each kernel and how far the kernel is from that limit, by hardware counters and the shape of its launches.
//!
//! A *share of a limit* is what a kernel uses of what a unit of the GPU can do at most. For device memory it is relative to the
//! measured bandwidth ([`Ceiling`]). For pipes, instruction issue and L2 cache it is the counter itself, which is a percentage of
//! the unit's greatest rate at the clock that it had. The nearest limit is the greatest share: a faster kernel of the same work
//! would meet it first, and reaching it saves at most `1 - share` of the time.
//!
//! Each sample has a nearest limit of its own, and what could be saved is added up sample by sample. Where samples differ by
//! much, the kernel has phases, each with its limit. The first of these rules that holds decides, on a kernel or on a phase of it:
//! 1. *short*: the kernel takes hardly longer than the shortest kernel ([`launches`](crate::launches)).
//! 2. *memory*, *compute*, *link*: the nearest limit is reached to [`NEAR_LIMIT_SHARE`] or more.
//! 3. *too small*, *tail*: the shape of its launches limits it.
//! 4. *idle*: it is near no limit, and multiprocessors were active for less than that share of the time.
//! 5. *latency*: it is near no limit although they were active.
//!
//! A kernel that is near no limit that is known, and moves much over a link of which it is not known what it can do, has an
//! unknown limit. *Idle* requires that the share of memory is known (no pipe can work more than the multiprocessors do), *latency* also those of
//! the tensor and FMA pipes.
//!
//! What this cannot know: what the pipes compute. The number type that the tensor pipe works on is not counted, so there is no
//! FLOP rate. Nor can it know who used the GPU: counters are of the whole device, including the work of other programs.
//!
//! Order: `stretches.rs` finds when each kernel ran alone, `attribution.rs` assigns the samples of counters to
//! kernels by that, `ceilings.rs` finds the best throughput of memory and PCIe, `reading.rs` and `shares.rs` compute
//! shares, `phases.rs` goes through the samples, and `judge.rs` decides.

mod attribution;
mod ceilings;
mod judge;
mod phases;
mod reading;
mod shares;
mod stretches;

pub use crate::kernel_limit::{
    BytesEvidence, Estimate, KernelCounter, KernelCounters, KernelLimit, KernelPhase, LimitingUnit,
    NoPeakShare, ShareOfLimit,
};
pub(crate) use ceilings::ceilings;
pub use ceilings::{Ceiling, CeilingSource};

use crate::kernels::Kernel;
use attribution::Attribution;
use gapscope_timeline::Timeline;
use gapscope_timeline::counters::Counter;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::quantity;
#[cfg(doc)]
use gapscope_timeline::thresholds::NEAR_LIMIT_SHARE;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::HashMap;

/// The data that the limits of kernels rest on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct KernelLimits {
    /// Median length of the samples.
    pub sample_ns: i64,
    /// Samples of the counter with the most, over all GPUs.
    pub sample_count: u64,
    /// Time of all kernels that whole samples cover.
    pub covered_ns: i64,
    /// Time of all kernels, summed up.
    pub ran_ns: i64,
    /// `covered_ns` of `ran_ns`.
    pub covered_share: f64,
    /// The best memory throughput of each GPU that was sampled.
    pub ceilings: Vec<Ceiling>,
    /// The same in sentences.
    pub sentences: Vec<String>,
}

/// Adds counters, and the limits that they tell, to `kernels`, which are of the dispatches that start in `window`. `recorded`
/// are the counters of the trace. Returns `None` where it has no hardware counters whose samples have a duration.
pub fn limit(
    timeline: &Timeline,
    recorded: &[Counter],
    window: Option<Interval>,
    kernels: &mut [Kernel],
) -> Option<KernelLimits> {
    let attribution = Attribution::new(timeline, recorded, window)?;
    let ceilings = ceilings(timeline, attribution.sampled.iter().map(|of| of.gpu));
    let names = timeline.kernel_names.all();
    // No two rows have the same name.
    let numbers = (names.iter().zip(0..)).map(|(named, number)| (named.name.as_str(), number));
    let numbers: HashMap<&str, usize> = numbers.collect();
    let mut communicates = vec![false; names.len()];
    for (row, yes) in timeline.communicates.iter().enumerate() {
        if let (true, Some(number)) = (*yes, timeline.kernel_names.index_of_row(row)) {
            communicates[number] = true;
        }
    }
    let mut required = vec![phases::Required::default(); names.len()];
    for kernel in &mut *kernels {
        if let Some(number) = numbers.get(kernel.name.as_str()) {
            kernel.add_counters(&attribution, &ceilings, *number);
            let shares = kernel.counters.iter().flat_map(|counters| &counters.shares);
            let units: Vec<LimitingUnit> = shares.map(|share| share.unit).collect();
            required[*number] = phases::required(&attribution, &units, *number);
        }
    }
    let phases = phases::phases(&attribution, &ceilings, &required);
    for kernel in kernels {
        if let Some(number) = numbers.get(kernel.name.as_str()) {
            let communicates = communicates[*number];
            kernel.judge(
                &attribution,
                &ceilings,
                *number,
                &phases[*number],
                communicates,
            );
        }
    }
    Some(KernelLimits::new(&attribution, ceilings))
}

impl KernelLimits {
    /// Sums up how much of the kernels' time has samples, and says it in sentences.
    fn new(attribution: &Attribution, ceilings: Vec<Ceiling>) -> KernelLimits {
        let ran = attribution.kernels.iter();
        let ran_ns = ran.map(|kernel| kernel.ran_ns).fold(0, i64::saturating_add);
        let covered_ns = (0..attribution.kernels.len())
            .map(|kernel| attribution.most_covered(kernel).0)
            .fold(0, i64::saturating_add);
        let covered_share = quantity::ratio(covered_ns, ran_ns).min(1.0);
        let mut sentences = vec![format!(
            "Hardware counters: {} of {}. Those that lie in one kernel's dispatches, with nothing beside them, cover {} of the kernels' time; ± is the standard error, and what they do not cover.",
            quantity::count_of(attribution.sample_count, "sample", "samples"),
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

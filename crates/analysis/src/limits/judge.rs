//! Decides on the limit of one kernel from its shares of the limits of the GPU's units. Input are a kernel with the
//! limit that the shape of its launches gave, and its samples; the result is written into the kernel.
use super::attribution::Attribution;
use super::ceilings::Ceiling;
use super::shares::shares;
use crate::kernel_limit::{
    Estimate, KernelCounter, KernelCounters, KernelLimit, LimitingUnit, ShareOfLimit,
};
use crate::kernels::Kernel;
use gapscope_timeline::quantity::{self, ratio};
use gapscope_timeline::thresholds::{KERNEL_COVERED_SHARE, KERNEL_SAMPLES, NEAR_LIMIT_SHARE};
use gapscope_trace::tables::HardwareCounter;

/// A limit of a kernel that the counters tell.
#[derive(Debug, Clone, Copy, PartialEq)]
struct CounterLimit {
    limit: KernelLimit,
    /// The unit nearest to its limit; `None` where the multiprocessors idled.
    unit: Option<LimitingUnit>,
    /// The share of the limit that is reached.
    share: f64,
    /// How far the share may be off.
    error: f64,
}

impl CounterLimit {
    /// Makes a limit of the unit with the greatest share.
    fn from_share(limit: KernelLimit, nearest: ShareOfLimit) -> CounterLimit {
        CounterLimit {
            limit,
            unit: Some(nearest.unit),
            share: nearest.share,
            error: nearest.error,
        }
    }
}

/// Returns the limit that the counters tell, or else the reason why no limit is known. There is no reason where the shape of the
/// launches tells the limit.
fn limit(
    kernel: &Kernel,
    counters: &KernelCounters,
    communicates: bool,
) -> Result<CounterLimit, Option<String>> {
    if kernel.limit == Some(KernelLimit::Short) {
        return Err(None);
    }
    let by_shape = kernel.limit.is_some();
    let unknown = |because: String| Err((!by_shape).then_some(because));
    if communicates {
        return unknown(
            "It communicates: what limits it is another device, or the way to it.".into(),
        );
    }
    if counters.means.is_empty() {
        return unknown(uncovered(counters));
    }
    let nearest = counters.shares.first().copied();
    if let Some(nearest) = nearest.filter(|nearest| nearest.share >= NEAR_LIMIT_SHARE) {
        let limit = match nearest.unit.is_memory() {
            true => KernelLimit::Memory,
            false => KernelLimit::Compute,
        };
        return Ok(CounterLimit::from_share(limit, nearest));
    }
    if by_shape {
        return Err(None);
    }
    let lacks = |unit: &LimitingUnit| counters.shares.iter().all(|share| share.unit != *unit);
    if lacks(&LimitingUnit::Dram) {
        return unknown(
            "Near no limit that is known; what it has of the memory's bandwidth is not.".into(),
        );
    }
    let Some(active) = counters.mean_of(HardwareCounter::SmActive) else {
        return unknown(
            "Near no limit that is known; how active its multiprocessors were is not.".into(),
        );
    };
    // No pipe can work more than the multiprocessors do.
    if active.mean / 100.0 < NEAR_LIMIT_SHARE {
        return Ok(CounterLimit {
            limit: KernelLimit::Idle,
            unit: None,
            share: active.mean / 100.0,
            error: active.error / 100.0,
        });
    }
    let pipes = [LimitingUnit::Tensor, LimitingUnit::Fma];
    let absent = pipes.into_iter().filter(lacks).map(LimitingUnit::name);
    let absent: Vec<&str> = absent.collect();
    match (nearest, absent.is_empty()) {
        (Some(nearest), true) => Ok(CounterLimit::from_share(KernelLimit::Latency, nearest)),
        _ => unknown(format!(
            "Near no limit that is known; not sampled: {} (`gapscope record --counters=wide`).",
            absent.join(", ")
        )),
    }
}

impl Kernel {
    /// Adds the counters of the kernel with this number, and its limit where they tell it.
    pub(super) fn judge(
        &mut self,
        attribution: &Attribution,
        ceilings: &[Ceiling],
        number: usize,
        communicates: bool,
    ) {
        let ran = attribution.kernels[number];
        let (covered_ns, sample_count) = attribution.most_covered(number);
        let mut counters = KernelCounters {
            ran_ns: ran.ran_ns,
            alone_ns: ran.alone_ns,
            covered_ns,
            covered_share: ratio(covered_ns, ran.ran_ns).min(1.0),
            sample_count,
            means: means(attribution, number),
            shares: shares(attribution, ceilings, number),
            dram_read_bytes: bytes(attribution, number, HardwareCounter::DramRead),
            dram_written_bytes: bytes(attribution, number, HardwareCounter::DramWritten),
            unknown_because: None,
        };
        match limit(self, &counters, communicates) {
            Ok(limit) => self.set_limit(limit, ran.alone_ns),
            Err(because) => counters.unknown_because = because,
        }
        self.counters = Some(counters);
    }

    /// Replaces the kernel's limit. What could be saved is the rest of the time in which it ran alone.
    fn set_limit(&mut self, found: CounterLimit, alone_ns: i64) {
        let distance = (1.0 - found.share).clamp(0.0, 1.0);
        self.limit = Some(found.limit);
        self.limited_by = found.unit;
        self.reached = Some(found.share);
        self.reached_error = Some(found.error);
        self.distance = Some(distance);
        self.winnable_ns = Some((distance * alone_ns as f64).round() as i64);
    }
}

/// Says why there are no means: too few samples, or too little time covered.
fn uncovered(counters: &KernelCounters) -> String {
    let share = quantity::share(counters.covered_share);
    match counters.sample_count {
        0 => "No sample lies in its dispatches alone.".to_owned(),
        count if count < KERNEL_SAMPLES => format!(
            "Only {} in its dispatches alone ({KERNEL_SAMPLES} are needed).",
            quantity::count_of(count, "sample lies", "samples lie")
        ),
        _ => format!(
            "Samples in its dispatches alone cover {share} of its time ({} are needed).",
            quantity::share(KERNEL_COVERED_SHARE)
        ),
    }
}

/// Returns the mean of each counter with enough samples of the kernel.
fn means(attribution: &Attribution, number: usize) -> Vec<KernelCounter> {
    let ran_ns = attribution.kernels[number].ran_ns;
    let counters = HardwareCounter::ALL.iter();
    let mean = |counter: &HardwareCounter| {
        let samples = attribution.samples(number, *counter)?;
        Some(KernelCounter {
            name: counter.as_str(),
            unit: counter.unit(),
            mean: samples.mean(),
            standard_error: samples.standard_error(),
            error: samples.error(ran_ns),
            min: samples.min,
            max: samples.max,
            sample_count: samples.count,
            covered_share: ratio(samples.covered_ns, ran_ns).min(1.0),
        })
    };
    counters.filter_map(mean).collect()
}

/// Estimates the bytes that a kernel moved in all its time, from the mean of a rate in bytes per second.
fn bytes(attribution: &Attribution, number: usize, counter: HardwareCounter) -> Option<Estimate> {
    let samples = attribution.samples(number, counter)?;
    let ran_ns = attribution.kernels[number].ran_ns;
    let seconds = ran_ns as f64 / 1e9;
    Some(Estimate {
        value: (samples.mean() * seconds).max(0.0) as u64,
        error: (samples.error(ran_ns) * seconds).max(0.0) as u64,
    })
}

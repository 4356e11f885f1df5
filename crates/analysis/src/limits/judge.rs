//! The limit of one kernel.

use super::attribution::Attribution;
use super::ceilings::Ceiling;
use super::shares::{LimitingUnit, ShareOfLimit, shares};
use super::{Estimate, KernelCounter, KernelCounters, KernelLimit};
use crate::kernels::Kernel;
use crate::quantity::{self, ratio};
use crate::thresholds::{KERNEL_COVERED_SHARE, KERNEL_SAMPLES, NEAR_LIMIT_SHARE};
use gapscope_trace::tables::HardwareCounter;

/// A limit, the unit that it is of and what the kernel has of it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Found {
    limit: KernelLimit,
    by: Option<LimitingUnit>,
    share: f64,
    error: f64,
}

impl Found {
    fn by(limit: KernelLimit, nearest: ShareOfLimit) -> Found {
        Found {
            limit,
            by: Some(nearest.unit),
            share: nearest.share,
            error: nearest.error,
        }
    }
}

/// The limit by the counters; `Err` where they say none that is not known by the shape of the launches: with the reason where
/// nothing is known.
fn limit(
    kernel: &Kernel,
    counters: &KernelCounters,
    communicates: bool,
) -> Result<Found, Option<String>> {
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
        return Ok(Found::by(limit, nearest));
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
    let Some(active) = counters.of(HardwareCounter::SmActive) else {
        return unknown(
            "Near no limit that is known; how active its multiprocessors were is not.".into(),
        );
    };
    // No pipe can work more than the multiprocessors do.
    if active.mean / 100.0 < NEAR_LIMIT_SHARE {
        return Ok(Found {
            limit: KernelLimit::Idle,
            by: None,
            share: active.mean / 100.0,
            error: active.error / 100.0,
        });
    }
    let pipes = [LimitingUnit::Tensor, LimitingUnit::Fma];
    let absent = pipes.into_iter().filter(lacks).map(LimitingUnit::name);
    let absent: Vec<&str> = absent.collect();
    match (nearest, absent.is_empty()) {
        (Some(nearest), true) => Ok(Found::by(KernelLimit::Latency, nearest)),
        _ => unknown(format!(
            "Near no limit that is known; not sampled: {} (`gapscope record --counters=wide`).",
            absent.join(", ")
        )),
    }
}

impl KernelCounters {
    /// A counter, where it is known.
    pub fn of(&self, counter: HardwareCounter) -> Option<&KernelCounter> {
        let mut means = self.means.iter();
        means.find(|mean| mean.name == counter.as_str())
    }
}

impl Kernel {
    /// Adds the counters of the kernel with this number, and its limit where they say it.
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
            Ok(found) => self.take(found, ran.alone_ns),
            Err(because) => counters.unknown_because = because,
        }
        self.counters = Some(counters);
    }

    fn take(&mut self, found: Found, alone_ns: i64) {
        let distance = (1.0 - found.share).clamp(0.0, 1.0);
        self.limit = Some(found.limit);
        self.limited_by = found.by;
        self.reached = Some(found.share);
        self.reached_error = Some(found.error);
        self.distance = Some(distance);
        self.winnable_ns = Some((distance * alone_ns as f64).round() as i64);
    }
}

fn uncovered(counters: &KernelCounters) -> String {
    let share = quantity::share(counters.covered_share);
    match counters.sample_count {
        0 => "No sample lies in its dispatches alone.".to_owned(),
        count if count < KERNEL_SAMPLES => format!(
            "Only {} in its dispatches alone ({KERNEL_SAMPLES} are needed).",
            quantity::of(count, "sample lies", "samples lie")
        ),
        _ => format!(
            "Samples in its dispatches alone cover {share} of its time ({} are needed).",
            quantity::share(KERNEL_COVERED_SHARE)
        ),
    }
}

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

fn bytes(attribution: &Attribution, number: usize, counter: HardwareCounter) -> Option<Estimate> {
    let samples = attribution.samples(number, counter)?;
    let ran_ns = attribution.kernels[number].ran_ns;
    let seconds = ran_ns as f64 / 1e9;
    Some(Estimate {
        value: (samples.mean() * seconds).max(0.0) as u64,
        error: (samples.error(ran_ns) * seconds).max(0.0) as u64,
    })
}

//! Splits the samples of each kernel into phases, in which the units of the GPU work alike, and adds up sample by sample
//! how near the kernel is to its nearest limit. Input are the samples of all counters of a GPU with the kernels that they
//! belong to; the result are the phases of each kernel, the longest first.
//!
//! A mean over all samples hides a kernel that is at one unit's limit for half of its time and at another's for the
//! rest: on average it seems to be near neither.

use super::attribution::{Attribution, SampleSums, SampledGpu};
use super::ceilings::Ceiling;
use super::reading::{LinkRate, Reading};
use crate::kernel_limit::LimitingUnit;
use gapscope_timeline::counters::Counter;
use gapscope_timeline::quantity::ratio;
use gapscope_timeline::thresholds::{
    KERNEL_COVERED_SHARE, KERNEL_SAMPLES, NEAR_LIMIT_SHARE, PHASE_DIFFERENCE_SHARE, PHASE_SHARE,
};
use gapscope_trace::tables::HardwareCounter;

/// The number of units.
const UNITS: usize = LimitingUnit::ALL.len();

/// The units whose share is known of a kernel, in the order of [`LimitingUnit::ALL`], and last whether it is known how
/// active its multiprocessors were. Samples that lack one of them do not count.
pub(super) type Required = [bool; UNITS + 1];

/// The samples of a kernel in which its units worked alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Phase {
    /// The share of the nearest limit in each sample; where multiprocessors idled, the share of the time in which they
    /// were active.
    pub(super) reached: SampleSums,
    /// The mean share of each unit's limit, and of the time in which multiprocessors were active, times the time.
    areas: [f64; UNITS + 1],
    /// The shares that are known.
    required: Required,
    /// The rate of a link of unknown bandwidth, times the time.
    link: Option<LinkRate>,
    /// What the samples show.
    state: State,
}

/// What a sample shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A unit is near its limit.
    Near(usize),
    /// No unit is, and a link of unknown bandwidth carries much.
    Link(LimitingUnit),
    /// No unit is, and multiprocessors were active.
    Active,
    /// No unit is, and multiprocessors idled.
    Idle,
}

/// The phases of a kernel.
#[derive(Debug, Clone, Default)]
pub(super) struct Phases {
    /// The phases, the longest first.
    pub(super) all: Vec<Phase>,
}

/// Finds the phases of all kernels. `required` is given by the number of the kernel.
pub(super) fn phases(
    attribution: &Attribution,
    ceilings: &[Ceiling],
    required: &[Required],
) -> Vec<Phases> {
    let mut kernels = vec![Phases::default(); required.len()];
    for (gpu, ceiling) in attribution.sampled.iter().zip(ceilings) {
        each_reading(gpu, |kernel, reading, ns, covered_ns| {
            if let (Some(phases), Some(required)) = (kernels.get_mut(kernel), required.get(kernel))
            {
                phases.add(reading, Some(ceiling), required, ns, covered_ns);
            }
        });
    }
    for (kernel, ran) in kernels.iter_mut().zip(&attribution.kernels) {
        let total = kernel.total();
        let covered = ratio(total.covered_ns, ran.ran_ns);
        if total.count < KERNEL_SAMPLES || covered < KERNEL_COVERED_SHARE {
            kernel.all.clear();
        }
        kernel.merge();
    }
    kernels
}

/// Calls `take` with the kernel, the values of all counters, the length and the covered time of each sample that
/// belongs to a kernel. A counter has no value where it was not sampled at the same time as the counter with the most
/// samples.
fn each_reading(gpu: &SampledGpu, mut take: impl FnMut(usize, &Reading, i64, i64)) {
    let mut places = vec![0; gpu.counters.len()];
    let owners = gpu.owners.kernels.iter().zip(&gpu.owners.covered_ns);
    for (sample, (kernel, covered_ns)) in gpu.longest.samples.iter().zip(owners) {
        let (kernel, Some(ns)) = (*kernel as usize, sample.duration_ns) else {
            continue;
        };
        if *covered_ns == 0 {
            continue;
        }
        let mut reading = Reading::default();
        for ((hardware, counter), place) in gpu.counters.iter().zip(&mut places) {
            if let Some(value) = value_at(counter, place, sample.start_ns, ns) {
                reading.set(*hardware, value);
            }
        }
        take(kernel, &reading, ns, *covered_ns);
    }
}

/// Returns the value of a counter's sample with this time. Samples before `place` are earlier, and are skipped.
fn value_at(counter: &Counter, place: &mut usize, start_ns: i64, ns: i64) -> Option<f64> {
    let samples = &counter.samples;
    while samples
        .get(*place)
        .is_some_and(|sample| sample.start_ns < start_ns)
    {
        *place += 1;
    }
    let sample = samples.get(*place)?;
    (sample.start_ns == start_ns && sample.duration_ns == Some(ns)).then_some(sample.value)
}

impl Phases {
    /// Adds a sample to the phase of its state.
    fn add(
        &mut self,
        reading: &Reading,
        ceiling: Option<&Ceiling>,
        required: &Required,
        sample_ns: i64,
        covered_ns: i64,
    ) {
        let mut shares = [0.0; UNITS + 1];
        let units = LimitingUnit::ALL
            .iter()
            .map(|unit| reading.share(*unit, ceiling));
        let each = units.chain([reading.active()]).zip(required);
        for ((share, is_required), place) in each.zip(&mut shares) {
            match (share, is_required) {
                (Some(share), true) => *place = share,
                (None, true) => return,
                (_, false) => {}
            }
        }
        let active = required[UNITS].then_some(shares[UNITS]);
        let units = shares[..UNITS].iter().copied().enumerate();
        let Some((unit, nearest)) = units.max_by(|a, b| a.1.total_cmp(&b.1)) else {
            return;
        };
        let link = reading.unbounded_link(ceiling);
        let (state, reached) = match (link, active) {
            _ if nearest >= NEAR_LIMIT_SHARE => (State::Near(unit), nearest),
            (Some(link), _) => (State::Link(link.unit), nearest),
            // No pipe can work more than the multiprocessors do.
            (None, Some(active)) if active < NEAR_LIMIT_SHARE => (State::Idle, active),
            (None, _) => (State::Active, nearest),
        };
        let index = (self.all.iter()).position(|phase| phase.state == state);
        let index = index.unwrap_or_else(|| {
            self.all.push(Phase {
                reached: SampleSums::default(),
                areas: [0.0; UNITS + 1],
                required: *required,
                link: None,
                state,
            });
            self.all.len() - 1
        });
        let phase = &mut self.all[index];
        let ns = sample_ns as f64;
        phase.reached.add(reached, sample_ns, covered_ns);
        (phase.areas.iter_mut().zip(shares)).for_each(|(area, share)| *area += share * ns);
        phase.add_link(link.map(|link| link.times(ns)));
    }

    /// Returns the sums over all samples.
    pub(super) fn total(&self) -> SampleSums {
        let mut total = SampleSums::default();
        self.all
            .iter()
            .for_each(|phase| total.merge(&phase.reached));
        total
    }

    /// Joins phases that differ little, and those that are too short to be told with what is most like them.
    fn merge(&mut self) {
        let total_ns = self.total().ns;
        self.all
            .sort_by(|a, b| b.reached.ns.total_cmp(&a.reached.ns));
        let mut merged: Vec<Phase> = Vec::new();
        for phase in self.all.drain(..) {
            let is_short = phase.reached.ns < PHASE_SHARE * total_ns;
            let differences = merged.iter().map(|other| other.difference(&phase));
            let nearest = differences.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
            match nearest {
                Some((index, difference)) if is_short || difference < PHASE_DIFFERENCE_SHARE => {
                    merged[index].merge(&phase);
                }
                _ => merged.push(phase),
            }
        }
        merged.sort_by(|a, b| b.reached.ns.total_cmp(&a.reached.ns));
        self.all = merged;
    }
}

impl Phase {
    /// Returns the mean share of the limit of each unit, where it is known, in the order of [`LimitingUnit::ALL`].
    pub(super) fn shares(&self) -> impl Iterator<Item = Option<f64>> {
        let units = 0..UNITS;
        units.map(|unit| self.required[unit].then(|| self.mean(unit)))
    }

    /// Returns the mean share of the time in which multiprocessors were active, where it is known.
    pub(super) fn active(&self) -> Option<f64> {
        self.required[UNITS].then(|| self.mean(UNITS))
    }

    fn mean(&self, place: usize) -> f64 {
        self.areas[place] / self.reached.ns
    }

    /// Returns the mean rate of the link of unknown bandwidth that carries much.
    pub(super) fn link(&self) -> Option<LinkRate> {
        self.link.map(|link| link.times(1.0 / self.reached.ns))
    }

    /// Returns the greatest difference between the shares of two phases.
    fn difference(&self, other: &Phase) -> f64 {
        let is_link = |phase: &Phase| matches!(phase.state, State::Link(_));
        if is_link(self) != is_link(other) {
            return 1.0;
        }
        (0..=UNITS)
            .map(|place| (self.mean(place) - other.mean(place)).abs())
            .fold(0.0, f64::max)
    }

    fn merge(&mut self, other: &Phase) {
        self.reached.merge(&other.reached);
        (self.areas.iter_mut().zip(other.areas)).for_each(|(area, more)| *area += more);
        self.add_link(other.link);
    }

    /// Adds the rate of a link times a time.
    fn add_link(&mut self, link: Option<LinkRate>) {
        match (&mut self.link, link) {
            (Some(sum), Some(link)) => sum.bytes_per_s += link.bytes_per_s,
            (sum @ None, link) => *sum = link,
            _ => {}
        }
    }
}

impl LinkRate {
    /// Returns the rate times a factor.
    fn times(self, factor: f64) -> LinkRate {
        LinkRate {
            bytes_per_s: self.bytes_per_s * factor,
            ..self
        }
    }
}

/// Returns which units and counters are known of a kernel.
pub(super) fn required(
    attribution: &Attribution,
    shares: &[LimitingUnit],
    kernel: usize,
) -> Required {
    let mut required = [false; UNITS + 1];
    for (place, unit) in required.iter_mut().zip(LimitingUnit::ALL) {
        *place = shares.contains(&unit);
    }
    required[UNITS] = attribution
        .samples(kernel, HardwareCounter::SmActive)
        .is_some();
    required
}

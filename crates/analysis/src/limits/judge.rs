//! Decides on the limit of one kernel from its shares of the limits of the GPU's units. Input are a kernel with the
//! limit that the shape of its launches gave, and its samples; the result is written into the kernel.
use super::attribution::Attribution;
use super::ceilings::Ceiling;
use super::phases::{Phase, Phases};
use super::reading::{LinkRate, Reading};
use super::shares::shares;
use crate::kernel_limit::{
    Estimate, KernelCounter, KernelCounters, KernelLimit, KernelPhase, LimitingUnit, ShareOfLimit,
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

/// What the counters of a kernel, or of a phase, show on average.
struct Activity {
    /// The shares of the limits of units, the greatest first.
    shares: Vec<ShareOfLimit>,
    /// The share of the time in which multiprocessors were active, and how far it may be off.
    active: Option<(f64, f64)>,
    /// The rate of a link that carries much, where it is not known what the link can do.
    link: Option<LinkRate>,
}

impl Activity {
    /// Returns the nearest limit where it is near enough to be what limits the kernel.
    fn near(&self) -> Option<CounterLimit> {
        let nearest = (self.shares.first()).filter(|of| of.share >= NEAR_LIMIT_SHARE)?;
        Some(CounterLimit::from_share(nearest.unit.limit(), *nearest))
    }

    /// Returns the limit, or else the reason why none is known.
    fn limit(&self) -> Result<CounterLimit, String> {
        if let Some(near) = self.near() {
            return Ok(near);
        }
        if let Some(link) = self.link {
            return Err(unbounded(link));
        }
        let lacks = |unit: &LimitingUnit| self.shares.iter().all(|share| share.unit != *unit);
        if lacks(&LimitingUnit::Dram) {
            return Err(
                "Near no limit that is known; what it has of the memory's bandwidth is not.".into(),
            );
        }
        let Some((active, error)) = self.active else {
            return Err(
                "Near no limit that is known; how active its multiprocessors were is not.".into(),
            );
        };
        // No pipe can work more than the multiprocessors do.
        if active < NEAR_LIMIT_SHARE {
            return Ok(CounterLimit {
                limit: KernelLimit::Idle,
                unit: None,
                share: active,
                error,
            });
        }
        let pipes = [LimitingUnit::Tensor, LimitingUnit::Fma];
        let absent = pipes.into_iter().filter(lacks).map(LimitingUnit::name);
        let absent: Vec<&str> = absent.collect();
        match (self.shares.first(), absent.is_empty()) {
            (Some(nearest), true) => Ok(CounterLimit::from_share(KernelLimit::Latency, *nearest)),
            _ => Err(format!(
                "Near no limit that is known; not sampled: {} (`gapscope record --counters=wide`).",
                absent.join(", ")
            )),
        }
    }
}

/// Says that a kernel may wait for a link, of which it is not known what it can do.
fn unbounded(link: LinkRate) -> String {
    let rate = quantity::rate(link.bytes_per_s as u64, 1_000_000_000).unwrap_or_default();
    let (way, other) = match link.counter {
        HardwareCounter::PcieRead => ("reads", "from the host or another device"),
        HardwareCounter::PcieWritten => ("writes", "to the host or another device"),
        HardwareCounter::NvlinkReceived => ("receives", "from another device"),
        _ => ("sends", "to another device"),
    };
    format!(
        "It {way} {rate} over {} {other}, and is near no limit that is known; how much the link can carry is not known: `gapscope bench device` measures it.",
        link.unit.name()
    )
}

impl Kernel {
    /// Adds the counters of the kernel with this number.
    pub(super) fn add_counters(
        &mut self,
        attribution: &Attribution,
        ceilings: &[Ceiling],
        number: usize,
    ) {
        let ran = attribution.kernels[number];
        let (covered_ns, sample_count) = attribution.most_covered(number);
        self.counters = Some(KernelCounters {
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
        });
    }

    /// Sets the limit that the counters of the kernel tell, or the reason why they tell none. There is no reason where
    /// the shape of the launches tells the limit.
    pub(super) fn judge(
        &mut self,
        attribution: &Attribution,
        ceilings: &[Ceiling],
        number: usize,
        phases: &Phases,
        communicates: bool,
    ) {
        let Some(counters) = &self.counters else {
            return;
        };
        let by_shape = self.limit;
        let because = match () {
            () if by_shape == Some(KernelLimit::Short) => return,
            () if communicates => {
                "It communicates: what limits it is another device, or the way to it.".to_owned()
            }
            () if counters.means.is_empty() => uncovered(counters),
            () => match self.limit_of_phases(attribution, ceilings, number, phases) {
                Ok(()) => return,
                Err(because) => because,
            },
        };
        if let (None, Some(counters)) = (by_shape, &mut self.counters) {
            counters.unknown_because = Some(because);
        }
    }

    /// Sets the limit and the phases of a kernel with counters.
    fn limit_of_phases(
        &mut self,
        attribution: &Attribution,
        ceilings: &[Ceiling],
        number: usize,
        phases: &Phases,
    ) -> Result<(), String> {
        let Some(counters) = &self.counters else {
            return Ok(());
        };
        let (alone_ns, ran_ns) = (counters.alone_ns, counters.ran_ns);
        let by_shape = self.limit;
        if phases.all.len() > 1 {
            let near = phases
                .all
                .iter()
                .filter(|phase| phase.activity().near().is_some());
            let near_ns: f64 = near.map(|phase| phase.reached.ns).sum();
            return match by_shape.is_some() && near_ns < 0.5 * phases.total().ns {
                true => Ok(()),
                false => self.limit_of_many(phases, alone_ns, ran_ns),
            };
        }
        let active = counters.mean_of(HardwareCounter::SmActive);
        let activity = Activity {
            shares: counters.shares.clone(),
            active: active.map(|active| (active.mean / 100.0, active.error / 100.0)),
            link: link(attribution, ceilings, number),
        };
        let mut limit = match activity.near() {
            Some(near) => near,
            None if by_shape.is_some() => return Ok(()),
            None => activity.limit()?,
        };
        if let Some(phase) = phases.all.first() {
            limit.share = phase.reached.mean();
            limit.error = phase.reached.error(ran_ns);
        }
        self.set_limit(limit, alone_ns);
        Ok(())
    }

    /// Sets the limits of the phases of a kernel, and that of the longest as the kernel's. What could be saved is the
    /// sum over the phases.
    fn limit_of_many(&mut self, phases: &Phases, alone_ns: i64, ran_ns: i64) -> Result<(), String> {
        let by_shape = self.limit;
        let total = phases.total();
        let mut told: Vec<KernelPhase> = Vec::new();
        for phase in &phases.all {
            let activity = phase.activity();
            let limit = match (activity.near(), by_shape) {
                (None, Some(limit)) => Ok((limit, None)),
                _ => activity.limit().map(|limit| (limit.limit, limit.unit)),
            };
            let (time_share, reached) = (phase.reached.ns / total.ns, phase.reached.mean());
            let winnable = (1.0 - reached).clamp(0.0, 1.0) * time_share * alone_ns as f64;
            let phase = KernelPhase {
                limit: limit.as_ref().ok().map(|(limit, _)| *limit),
                limited_by: limit.as_ref().ok().and_then(|(_, unit)| *unit),
                time_share,
                reached: limit.is_ok().then_some(reached),
                winnable_ns: Some(winnable.round() as i64),
                unknown_because: limit.err(),
            };
            match told.iter_mut().find(|other| other.is_alike(&phase)) {
                Some(other) => other.merge(&phase),
                None => told.push(phase),
            }
        }
        told.sort_by(|a, b| {
            let order = b.time_share.total_cmp(&a.time_share);
            order.then_with(|| b.limit.is_some().cmp(&a.limit.is_some()))
        });
        let Some(longest) = told.first() else {
            return Ok(());
        };
        let result = match &longest.unknown_because {
            Some(because) => Err(format!(
                "For {} of its time: {because}",
                quantity::share(longest.time_share)
            )),
            None => Ok(()),
        };
        if let (Ok(()), Some(limit)) = (&result, longest.limit) {
            let saved = told.iter().filter_map(|phase| phase.winnable_ns);
            let winnable_ns = saved.fold(0, i64::saturating_add);
            self.limit = Some(limit);
            self.limited_by = longest.limited_by;
            self.reached = Some(total.mean());
            self.reached_error = Some(total.error(ran_ns));
            self.distance = Some(ratio(winnable_ns, alone_ns));
            self.winnable_ns = Some(winnable_ns);
        }
        if told.len() > 1 {
            self.phases = told;
        }
        result
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

impl KernelPhase {
    /// Returns whether both phases have the same limit, or none is known of either for the same reason.
    fn is_alike(&self, other: &KernelPhase) -> bool {
        (self.limit, self.limited_by) == (other.limit, other.limited_by)
            && self.unknown_because == other.unknown_because
    }

    /// Adds a phase that has the same limit.
    fn merge(&mut self, other: &KernelPhase) {
        let time_share = self.time_share + other.time_share;
        self.reached = self.reached.zip(other.reached).map(|(reached, more)| {
            (reached * self.time_share + more * other.time_share) / time_share
        });
        self.winnable_ns = (self.winnable_ns.zip(other.winnable_ns)).map(|(a, b)| a + b);
        self.time_share = time_share;
    }
}

impl Phase {
    /// Returns what the samples of the phase show on average.
    fn activity(&self) -> Activity {
        let units = LimitingUnit::ALL.into_iter().zip(self.shares());
        let share = |(unit, share): (LimitingUnit, Option<f64>)| {
            Some(ShareOfLimit {
                unit,
                share: share?,
                error: 0.0,
            })
        };
        let mut shares: Vec<ShareOfLimit> = units.filter_map(share).collect();
        shares.sort_by(|a, b| b.share.total_cmp(&a.share));
        Activity {
            shares,
            active: self.active().map(|active| (active, 0.0)),
            link: self.link(),
        }
    }
}

/// Returns the mean rate of a link that carries much in a kernel's samples, and of which it is not known what it can do.
fn link(attribution: &Attribution, ceilings: &[Ceiling], number: usize) -> Option<LinkRate> {
    let gpus = attribution.sampled.iter().zip(ceilings);
    let rates = gpus.filter_map(|(gpu, ceiling)| {
        let mut reading = Reading::default();
        for counter in HardwareCounter::ALL {
            let mut each = attribution.by_gpu(number, *counter);
            let samples = each.find(|(of, samples)| *of == gpu.gpu && samples.count > 0);
            if let Some((_, samples)) = samples {
                reading.set(*counter, samples.mean());
            }
        }
        reading.unbounded_link(Some(ceiling))
    });
    rates.max_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s))
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

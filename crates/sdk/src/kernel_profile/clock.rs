//! From a device's ticks to the host's time.

use serde::Serialize;

/// Samples that are kept; past them every other inner one is dropped.
const MOST_PAIRS: usize = 256;

/// Both clocks at one moment.
///
/// ```
/// use gapscope_sdk::kernel_profile::{ClockPair, Profile};
///
/// let profile = Profile::new();
/// profile.add_clock_pair(ClockPair { cpu_ns: 1_000_000, gpu_ticks: 24, error_ns: Some(700) });
/// profile.add_clock_pair(ClockPair { cpu_ns: 2_000_000, gpu_ticks: 48, error_ns: Some(400) });
/// assert_eq!(profile.convert(36).unwrap().error_ns, Some(700));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockPair {
    /// The host, in nanoseconds.
    pub cpu_ns: u64,
    /// The device, in its own ticks.
    pub gpu_ticks: u64,
    /// The two readings lie at most so far apart, in nanoseconds, where that is known.
    pub error_ns: Option<u64>,
}

/// A time of the device on the host's clock.
///
/// ```
/// # use gapscope_sdk::kernel_profile::{ClockPair, Clock, HostTime};
/// # let mut clock = Clock::default();
/// # clock.add(ClockPair { cpu_ns: 0, gpu_ticks: 0, error_ns: Some(5) });
/// # clock.add(ClockPair { cpu_ns: 1_000, gpu_ticks: 100, error_ns: Some(5) });
/// let HostTime { ns, error_ns, extrapolated } = clock.convert(200).unwrap();
/// assert_eq!((ns, error_ns, extrapolated), (2_000, Some(15), true), "the error grows outside of the samples");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HostTime {
    /// Nanoseconds.
    pub ns: u64,
    /// It is wrong by no more, in nanoseconds; `None`: the samples do not say.
    pub error_ns: Option<u64>,
    /// It lies before the first sample or after the last, so that it rests on the clocks' rate staying as it was.
    pub extrapolated: bool,
}

/// Why a tick has no time.
///
/// ```
/// use gapscope_sdk::kernel_profile::{Clock, NoTime};
///
/// assert_eq!(Clock::default().convert(7), Err(NoTime::NoSamples));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTime {
    /// There is no sample.
    #[error("no clock sample has been taken")]
    NoSamples,
    /// There is one sample and the ticks' length is not known.
    #[error("one clock sample says nothing about the clock's rate: take a second")]
    OneSample,
    /// It lies before the host's clock began, or past what 64 bits hold.
    #[error("the tick lies outside the host's clock")]
    OutOfRange,
}

/// Maps device ticks to host nanoseconds by samples of both clocks: linear from sample to sample, in integers.
///
/// The error bound of a time is that of the samples around it (the greater of the two), and where there are three
/// samples or more also how far an inner sample lies from the line through its neighbours. Outside of the samples it
/// grows with the distance by the uncertainty of the rate.
///
/// ```
/// use gapscope_sdk::kernel_profile::{Clock, ClockPair};
///
/// let mut clock = Clock::default();
/// // 24 MHz ticks, clocks that do not start together.
/// clock.add(ClockPair { cpu_ns: 5_000_000_000, gpu_ticks: 1_000, error_ns: Some(500) });
/// clock.add(ClockPair { cpu_ns: 6_000_000_000, gpu_ticks: 24_001_000, error_ns: Some(300) });
/// let time = clock.convert(12_001_000).unwrap();
/// assert_eq!((time.ns, time.error_ns), (5_500_000_000, Some(500)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Clock {
    /// In the order of both clocks.
    pairs: Vec<ClockPair>,
    nanoseconds_per_tick: Option<f64>,
    refused: u64,
    /// How far an inner sample lay from the line through its neighbours, at most; also one that has been dropped.
    bend_ns: u64,
}

impl Clock {
    /// Adds a sample. One that contradicts the others, a later tick at an earlier time, is refused and counted; one
    /// at a tick that is known replaces it when its error is no greater.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{Clock, ClockPair};
    /// # let mut clock = Clock::default();
    /// clock.add(ClockPair { cpu_ns: 1_000, gpu_ticks: 10, error_ns: None });
    /// clock.add(ClockPair { cpu_ns: 900, gpu_ticks: 20, error_ns: None });
    /// assert_eq!((clock.pairs().len(), clock.refused()), (1, 1));
    /// ```
    pub fn add(&mut self, pair: ClockPair) {
        let at = self
            .pairs
            .partition_point(|known| known.gpu_ticks < pair.gpu_ticks);
        if let Some(known) = self.pairs.get_mut(at)
            && known.gpu_ticks == pair.gpu_ticks
        {
            let less = |new: Option<u64>, old: Option<u64>| match (new, old) {
                (Some(new), Some(old)) => new <= old,
                (new, None) => new.is_some(),
                (None, Some(_)) => false,
            };
            if known.cpu_ns != pair.cpu_ns && less(pair.error_ns, known.error_ns) {
                *known = pair;
                self.look_for_bends(at);
            }
            return;
        }
        let before = at.checked_sub(1).and_then(|before| self.pairs.get(before));
        let after = self.pairs.get(at);
        if before.is_some_and(|b| b.cpu_ns >= pair.cpu_ns)
            || after.is_some_and(|a| a.cpu_ns <= pair.cpu_ns)
        {
            self.refused += 1;
            return;
        }
        self.pairs.insert(at, pair);
        self.look_for_bends(at);
        if self.pairs.len() > MOST_PAIRS {
            let last = self.pairs.len() - 1;
            let mut index = 0;
            self.pairs.retain(|_| {
                index += 1;
                index == last + 1 || index % 2 == 1
            });
            for at in 0..self.pairs.len() {
                self.look_for_bends(at);
            }
        }
    }

    /// Looks at the sample at `at` and its neighbours.
    fn look_for_bends(&mut self, at: usize) {
        let around = at.saturating_sub(2)..(at + 3).min(self.pairs.len());
        let bend = self.pairs[around].windows(3).map(bend_ns).max();
        self.bend_ns = self.bend_ns.max(bend.unwrap_or(0));
    }

    /// The length of a tick as the driver says it: one sample is enough then.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{Clock, ClockPair};
    /// # let mut clock = Clock::default();
    /// clock.set_nanoseconds_per_tick(2.0);
    /// clock.add(ClockPair { cpu_ns: 1_000, gpu_ticks: 10, error_ns: None });
    /// assert_eq!(clock.convert(20).unwrap().ns, 1_020);
    /// ```
    pub fn set_nanoseconds_per_tick(&mut self, nanoseconds: f64) {
        let possible = nanoseconds.is_finite() && nanoseconds > 0.0;
        self.nanoseconds_per_tick = possible.then_some(nanoseconds);
    }

    /// The samples, in order.
    ///
    /// ```
    /// assert!(gapscope_sdk::kernel_profile::Clock::default().pairs().is_empty());
    /// ```
    pub fn pairs(&self) -> &[ClockPair] {
        &self.pairs
    }

    /// Samples that contradicted the others.
    ///
    /// ```
    /// assert_eq!(gapscope_sdk::kernel_profile::Clock::default().refused(), 0);
    /// ```
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The length of a tick: by the first and the last sample, else as the driver says it.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{Clock, ClockPair};
    /// # let mut clock = Clock::default();
    /// clock.add(ClockPair { cpu_ns: 0, gpu_ticks: 0, error_ns: None });
    /// clock.add(ClockPair { cpu_ns: 1_250, gpu_ticks: 30, error_ns: None });
    /// assert_eq!(clock.nanoseconds_per_tick(), Some(1_250.0 / 30.0));
    /// ```
    pub fn nanoseconds_per_tick(&self) -> Option<f64> {
        match (self.pairs.first(), self.pairs.last()) {
            (Some(first), Some(last)) if self.pairs.len() > 1 => {
                let ticks = last.gpu_ticks - first.gpu_ticks;
                Some((last.cpu_ns - first.cpu_ns) as f64 / ticks as f64)
            }
            _ => self.nanoseconds_per_tick,
        }
    }

    /// The greatest error of a time between the samples, in nanoseconds; `None`: not known.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{Clock, ClockPair};
    /// # let mut clock = Clock::default();
    /// clock.add(ClockPair { cpu_ns: 0, gpu_ticks: 0, error_ns: Some(400) });
    /// clock.add(ClockPair { cpu_ns: 1_250, gpu_ticks: 30, error_ns: Some(900) });
    /// assert_eq!(clock.error_ns(), Some(900));
    /// ```
    pub fn error_ns(&self) -> Option<u64> {
        let said = self.pairs.iter().map(|pair| pair.error_ns);
        let said = said.reduce(|a, b| Some(a?.max(b?))).flatten();
        self.bound(said)
    }

    /// The host's time of a tick.
    ///
    /// # Errors
    /// Why it is not known.
    ///
    /// ```
    /// # use gapscope_sdk::kernel_profile::{Clock, ClockPair};
    /// # let mut clock = Clock::default();
    /// clock.add(ClockPair { cpu_ns: 1_000, gpu_ticks: 10, error_ns: None });
    /// clock.add(ClockPair { cpu_ns: 2_000, gpu_ticks: 20, error_ns: None });
    /// assert_eq!(clock.convert(15).unwrap().ns, 1_500);
    /// ```
    pub fn convert(&self, ticks: u64) -> Result<HostTime, NoTime> {
        let [first, rest @ ..] = self.pairs.as_slice() else {
            return Err(NoTime::NoSamples);
        };
        let Some(last) = rest.last() else {
            return self.convert_by_one(*first, ticks);
        };
        let extrapolated = !(first.gpu_ticks..=last.gpu_ticks).contains(&ticks);
        // The segment, or the whole recording's rate outside of it.
        let (a, b) = if extrapolated {
            (*first, *last)
        } else {
            let upper = self.pairs.partition_point(|p| p.gpu_ticks < ticks);
            let upper = upper.clamp(1, self.pairs.len() - 1);
            (self.pairs[upper - 1], self.pairs[upper])
        };
        let (ticks_between, ns_between) = (
            i128::from(b.gpu_ticks - a.gpu_ticks),
            i128::from(b.cpu_ns - a.cpu_ns),
        );
        // From the nearer end, so that nothing rests on the farther one.
        let from = if ticks >= b.gpu_ticks { b } else { a };
        let distance = i128::from(ticks) - i128::from(from.gpu_ticks);
        let product = distance * ns_between;
        let ns = i128::from(from.cpu_ns) + rounded(product, ticks_between);
        let ns = u64::try_from(ns).map_err(|_| NoTime::OutOfRange)?;
        let mut error_ns = self.bound(a.error_ns.zip(b.error_ns).map(|(a, b)| a.max(b)));
        if extrapolated {
            error_ns = error_ns.map(|error| {
                let slope = 2 * i128::from(error) * distance.abs() / ticks_between;
                error.saturating_add(u64::try_from(slope).unwrap_or(u64::MAX))
            });
        }
        Ok(HostTime {
            ns,
            error_ns,
            extrapolated,
        })
    }

    fn convert_by_one(&self, pair: ClockPair, ticks: u64) -> Result<HostTime, NoTime> {
        let length = self.nanoseconds_per_tick.ok_or(NoTime::OneSample)?;
        // Only the distance is in floating point: it is small where the tick is near the sample.
        let distance = i128::from(ticks) - i128::from(pair.gpu_ticks);
        let ns = i128::from(pair.cpu_ns) + (distance as f64 * length).round() as i128;
        Ok(HostTime {
            ns: u64::try_from(ns).map_err(|_| NoTime::OutOfRange)?,
            // How far the clocks have drifted since is not known.
            error_ns: (distance == 0).then_some(pair.error_ns).flatten(),
            extrapolated: true,
        })
    }

    /// A bound of the samples' own errors, made no smaller than what the samples show. Three of them show something
    /// even where their own errors are not known.
    fn bound(&self, said: Option<u64>) -> Option<u64> {
        match said {
            Some(error) => Some(error.max(self.bend_ns)),
            None => (self.pairs.len() > 2).then_some(self.bend_ns),
        }
    }
}

/// How far the second of three samples lies from the line through the others.
fn bend_ns(three: &[ClockPair]) -> u64 {
    let [a, b, c] = three else { return 0 };
    let ticks = i128::from(c.gpu_ticks - a.gpu_ticks);
    let distance = i128::from(b.gpu_ticks - a.gpu_ticks);
    let line = i128::from(a.cpu_ns) + rounded(distance * i128::from(c.cpu_ns - a.cpu_ns), ticks);
    u64::try_from((i128::from(b.cpu_ns) - line).abs()).unwrap_or(u64::MAX)
}

/// A quotient rounded to the nearest; `divisor` is positive.
fn rounded(dividend: i128, divisor: i128) -> i128 {
    let half = divisor / 2;
    if dividend >= 0 {
        (dividend + half) / divisor
    } else {
        (dividend - half) / divisor
    }
}

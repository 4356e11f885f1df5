//! Maps any device tick to host time, with an error bound, by pairs of readings of both clocks, which are its samples
//! ([`PairedClock`]). The SDK and replays use it.

use super::{Line, Point};
use serde::Serialize;

/// The most samples that are kept; beyond them, every other inner one is dropped.
const MAX_PAIRS: usize = 256;

/// The readings of both clocks at one moment.
///
/// ```
/// use gapscope_model::clock::{ClockPair, PairedClock};
///
/// let mut clock = PairedClock::default();
/// clock.add(ClockPair::new(1_000_000, 24).with_error_ns(700));
/// clock.add(ClockPair::new(2_000_000, 48).with_error_ns(400));
/// assert_eq!(clock.convert(36).unwrap().error_ns, Some(700));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClockPair {
    /// The host's clock, in nanoseconds.
    pub cpu_ns: u64,
    /// The device's clock, in ticks.
    pub gpu_ticks: u64,
    /// Greatest distance between the two readings, in nanoseconds, where it is known.
    pub error_ns: Option<u64>,
}

/// A device time on the host's clock.
///
/// ```
/// # use gapscope_model::clock::{ClockPair, PairedClock, HostTime};
/// # let mut clock = PairedClock::default();
/// # clock.add(ClockPair::new(0, 0).with_error_ns(5));
/// # clock.add(ClockPair::new(1_000, 100).with_error_ns(5));
/// let HostTime { ns, error_ns, extrapolated, .. } = clock.convert(200).unwrap();
/// assert_eq!((ns, error_ns, extrapolated), (2_000, Some(15), true), "the error grows outside of the samples");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct HostTime {
    /// Nanoseconds.
    pub ns: u64,
    /// Greatest error, in nanoseconds; `None` where the samples do not determine it.
    pub error_ns: Option<u64>,
    /// True before the first sample, after the last, and with one sample alone: the time assumes a constant rate.
    pub extrapolated: bool,
}

/// Why a tick has no time.
///
/// ```
/// use gapscope_model::clock::{PairedClock, NoTime};
///
/// assert_eq!(PairedClock::default().convert(7), Err(NoTime::NoSamples));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoTime {
    /// There are no samples.
    #[error("no clock sample has been taken")]
    NoSamples,
    /// There is one sample, and the length of a tick is unknown.
    #[error("one clock sample says nothing about the clock's rate: take a second")]
    OneSample,
    /// The tick lies before the host's clock began, or beyond 64 bits.
    #[error("the tick lies outside the host's clock")]
    OutOfRange,
}

impl ClockPair {
    /// Makes a sample whose error is not known.
    pub const fn new(cpu_ns: u64, gpu_ticks: u64) -> ClockPair {
        ClockPair {
            cpu_ns,
            gpu_ticks,
            error_ns: None,
        }
    }

    /// Sets the greatest distance between the two readings.
    #[must_use]
    pub const fn with_error_ns(self, error_ns: u64) -> ClockPair {
        ClockPair {
            error_ns: Some(error_ns),
            ..self
        }
    }

    fn point(&self) -> Point {
        Point {
            ticks: self.gpu_ticks.into(),
            host_ns: self.cpu_ns.into(),
        }
    }
}

/// Maps device ticks to host nanoseconds by samples of both clocks: linear from sample to sample, in integers.
///
/// The error bound of a time is the greater one of the samples around it. With three samples or more, it also covers
/// how far inner samples lie from the line through their neighbours. Outside of the samples, it grows with the
/// distance by the uncertainty of the rate.
///
/// ```
/// use gapscope_model::clock::{PairedClock, ClockPair};
///
/// let mut clock = PairedClock::default();
/// // 24 MHz ticks, clocks that do not start together.
/// clock.add(ClockPair::new(5_000_000_000, 1_000).with_error_ns(500));
/// clock.add(ClockPair::new(6_000_000_000, 24_001_000).with_error_ns(300));
/// let time = clock.convert(12_001_000).unwrap();
/// assert_eq!((time.ns, time.error_ns), (5_500_000_000, Some(500)));
/// ```
#[derive(Debug, Clone, Default)]
pub struct PairedClock {
    /// Sorted by both clocks.
    pairs: Vec<ClockPair>,
    /// The length of a tick according to the driver.
    nanoseconds_per_tick: Option<f64>,
    /// The number of samples that contradicted others.
    refused: u64,
    /// Greatest distance of an inner sample, dropped ones included, from the line through its neighbours.
    bend_ns: u64,
}

impl PairedClock {
    /// Adds a sample. A sample with a later tick at an earlier time contradicts the others: it is refused and
    /// counted. A sample at a known tick replaces the old one if its error is known and no greater.
    ///
    /// ```
    /// # use gapscope_model::clock::{PairedClock, ClockPair};
    /// # let mut clock = PairedClock::default();
    /// clock.add(ClockPair::new(1_000, 10));
    /// clock.add(ClockPair::new(900, 20));
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
                self.update_bend(at);
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
        self.update_bend(at);
        if self.pairs.len() > MAX_PAIRS {
            let last = self.pairs.len() - 1;
            let mut index = 0;
            self.pairs.retain(|_| {
                index += 1;
                index == last + 1 || index % 2 == 1
            });
            for at in 0..self.pairs.len() {
                self.update_bend(at);
            }
        }
    }

    /// Updates the bend from the sample at `at` and its neighbours.
    fn update_bend(&mut self, at: usize) {
        let around = at.saturating_sub(2)..(at + 3).min(self.pairs.len());
        let bend = self.pairs[around].windows(3).map(bend_ns).max();
        self.bend_ns = self.bend_ns.max(bend.unwrap_or(0));
    }

    /// Sets the length of a tick according to the driver: then one sample is enough.
    ///
    /// ```
    /// # use gapscope_model::clock::{PairedClock, ClockPair};
    /// # let mut clock = PairedClock::default();
    /// clock.set_nanoseconds_per_tick(2.0);
    /// clock.add(ClockPair::new(1_000, 10));
    /// assert_eq!(clock.convert(20).unwrap().ns, 1_020);
    /// ```
    pub fn set_nanoseconds_per_tick(&mut self, nanoseconds: f64) {
        let possible = nanoseconds.is_finite() && nanoseconds > 0.0;
        self.nanoseconds_per_tick = possible.then_some(nanoseconds);
    }

    /// Returns the samples, in order.
    ///
    /// ```
    /// assert!(gapscope_model::clock::PairedClock::default().pairs().is_empty());
    /// ```
    pub fn pairs(&self) -> &[ClockPair] {
        &self.pairs
    }

    /// Returns the number of samples that contradicted the others.
    ///
    /// ```
    /// assert_eq!(gapscope_model::clock::PairedClock::default().refused(), 0);
    /// ```
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the length of a tick: by the first and the last sample, else according to the driver.
    ///
    /// ```
    /// # use gapscope_model::clock::{PairedClock, ClockPair};
    /// # let mut clock = PairedClock::default();
    /// clock.add(ClockPair::new(0, 0));
    /// clock.add(ClockPair::new(1_250, 30));
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

    /// Returns the greatest error of a time between the samples, in nanoseconds; `None` when unknown.
    ///
    /// ```
    /// # use gapscope_model::clock::{PairedClock, ClockPair};
    /// # let mut clock = PairedClock::default();
    /// clock.add(ClockPair::new(0, 0).with_error_ns(400));
    /// clock.add(ClockPair::new(1_250, 30).with_error_ns(900));
    /// assert_eq!(clock.error_ns(), Some(900));
    /// ```
    pub fn error_ns(&self) -> Option<u64> {
        let said = self.pairs.iter().map(|pair| pair.error_ns);
        let said = said.reduce(|a, b| Some(a?.max(b?))).flatten();
        self.bound(said)
    }

    /// Returns the host's time of a tick.
    ///
    /// # Errors
    /// The time is unknown.
    ///
    /// ```
    /// # use gapscope_model::clock::{PairedClock, ClockPair};
    /// # let mut clock = PairedClock::default();
    /// clock.add(ClockPair::new(1_000, 10));
    /// clock.add(ClockPair::new(2_000, 20));
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
        // The surrounding samples, or the outermost ones for extrapolation.
        let (a, b) = if extrapolated {
            (*first, *last)
        } else {
            let upper = self.pairs.partition_point(|p| p.gpu_ticks < ticks);
            let upper = upper.clamp(1, self.pairs.len() - 1);
            (self.pairs[upper - 1], self.pairs[upper])
        };
        let line = Line {
            from: a.point(),
            to: b.point(),
        };
        let ns = u64::try_from(line.host_ns(ticks.into())).map_err(|_| NoTime::OutOfRange)?;
        let mut error_ns = self.bound(a.error_ns.zip(b.error_ns).map(|(a, b)| a.max(b)));
        if extrapolated {
            let near = if ticks >= b.gpu_ticks { b } else { a };
            let distance = ticks.abs_diff(near.gpu_ticks);
            error_ns = error_ns.map(|error| {
                let slope = 2 * i128::from(error) * i128::from(distance) / line.ticks();
                error.saturating_add(u64::try_from(slope).unwrap_or(u64::MAX))
            });
        }
        Ok(HostTime {
            ns,
            error_ns,
            extrapolated,
        })
    }

    /// Returns the time of a tick by one sample and the driver's length of a tick.
    fn convert_by_one(&self, pair: ClockPair, ticks: u64) -> Result<HostTime, NoTime> {
        let length = self.nanoseconds_per_tick.ok_or(NoTime::OneSample)?;
        // Only the distance is in floating point: it is small where the tick is near the sample.
        let distance = i128::from(ticks) - i128::from(pair.gpu_ticks);
        let ns = i128::from(pair.cpu_ns) + (distance as f64 * length).round() as i128;
        Ok(HostTime {
            ns: u64::try_from(ns).map_err(|_| NoTime::OutOfRange)?,
            // Nothing shows how far the clocks have drifted since.
            error_ns: (distance == 0).then_some(pair.error_ns).flatten(),
            extrapolated: true,
        })
    }

    /// Raises the samples' own error bound `said` to what they show of the bend. Three samples show something even
    /// where their own errors are unknown.
    fn bound(&self, said: Option<u64>) -> Option<u64> {
        match said {
            Some(error) => Some(error.max(self.bend_ns)),
            None => (self.pairs.len() > 2).then_some(self.bend_ns),
        }
    }
}

/// Returns the distance of the second of three samples from the line through the others.
fn bend_ns(three: &[ClockPair]) -> u64 {
    let [a, b, c] = three else { return 0 };
    let line = Line {
        from: a.point(),
        to: c.point(),
    };
    line.deviation_ns(b.point())
}

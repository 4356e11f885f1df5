//! Maps device ticks to host time by samples in which the driver reads both clocks together: linear between samples.
//! A piece is the line between two samples. [`Calibrated::add`] takes samples as they are read, and
//! [`Calibrated::host_ns`] maps times meanwhile.

use super::{Fit, Line, Point, RATE_TOLERANCE, Rate, Ticks, within_decades};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Samples kept for mapping. Rows wait for the next sample only, so older pieces are not needed.
const MAX_SAMPLES: usize = 4096;

/// The least length of a piece as a multiple of the errors at its ends, which makes its slope right to a thousandth.
const MIN_PIECE_LENGTH: i64 = 1000;

/// The length of time within which the farthest sample from the outermost one is looked for; times outside the
/// samples take their rate from these two.
const BASELINE_NS: i64 = 10_000_000_000;

/// The greatest relative deviation from the rate of a piece at which a clock counts as continuing.
const RATE_STEADINESS: f64 = 2.0 / MIN_PIECE_LENGTH as f64;

/// The least difference between expected and read times that counts as a restart of a clock.
const MIN_LEAP_NS: i64 = 10_000_000;

/// Maps device ticks to host time by linear pieces between samples.
#[derive(Debug, Serialize, Deserialize)]
pub struct Calibrated {
    /// The driver's rate of the clock.
    nominal: Rate,
    /// The last samples, by time.
    samples: VecDeque<Sample>,
    /// The first sample of all, which may no longer be among `samples`.
    first: Option<Sample>,
    /// The number of samples that have been taken.
    used: u32,
    /// The greatest error of pieces that times were mapped with and that are no longer kept.
    dropped_error_ns: i64,
    /// Greatest error of a time that was mapped outside the samples.
    outside_error_ns: i64,
    /// True once times have been mapped: earlier samples must then stay.
    mapped: bool,
    /// Index of the first sample of the piece that was used last.
    #[serde(skip)]
    cursor: usize,
}

/// A reading of both clocks at one moment, with its error and the rate of the piece that begins there.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Sample {
    ticks: i64,
    host_ns: i64,
    error_ns: i64,
    rate: Rate,
    /// True once times between this sample and the next were mapped.
    used: bool,
}

impl Sample {
    fn point(&self) -> Point {
        Point {
            ticks: self.ticks.into(),
            host_ns: self.host_ns.into(),
        }
    }
}

impl Calibrated {
    /// Creates a map of a clock of `rate` nanoseconds per tick according to its driver.
    pub fn new(rate: f64) -> Calibrated {
        Calibrated {
            nominal: Rate::from_f64(rate),
            samples: VecDeque::new(),
            first: None,
            used: 0,
            dropped_error_ns: 0,
            outside_error_ns: 0,
            mapped: false,
            cursor: 0,
        }
    }

    /// Adds a sample, unless it lies too near the last one for a piece, or before it. A single sample that nothing
    /// was mapped by is replaced by a near one with a smaller error. Returns false when the device's clock went back.
    pub fn add(&mut self, ticks: Ticks, host_ns: i64, error_ns: i64) -> bool {
        let sample = Sample {
            ticks: ticks.0,
            host_ns,
            error_ns,
            rate: self.nominal,
            used: false,
        };
        let Some(last) = self.samples.back().copied() else {
            self.first = Some(sample);
            self.samples.push_back(sample);
            self.used = 1;
            return true;
        };
        let (length_ns, length) = (host_ns - last.host_ns, ticks.0 - last.ticks);
        if length_ns < 0 {
            // Several threads take samples, which may be written out of order.
            return true;
        }
        if length < 0 {
            return false;
        }
        if length_ns < MIN_PIECE_LENGTH.saturating_mul((last.error_ns + error_ns).max(1))
            || length == 0
        {
            if self.samples.len() == 1 && !self.mapped && error_ns < last.error_ns {
                self.samples[0] = sample;
                self.first = Some(sample);
            }
            return true;
        }
        if let Some(last) = self.samples.back_mut() {
            last.rate = Rate::from_ratio(length_ns, length);
        }
        self.samples.push_back(sample);
        self.used += 1;
        if self.samples.len() > MAX_SAMPLES {
            if self.samples[0].used {
                self.dropped_error_ns = self.dropped_error_ns.max(self.piece_error_ns(0));
            }
            self.samples.pop_front();
            self.cursor = self.cursor.saturating_sub(1);
        }
        true
    }

    /// Returns true when the device's clock did not continue from the samples, as after the machine slept: it
    /// restarted, or ran on while the host's clock stood still. The reading that shows it is not added.
    pub fn has_leapt(&self, ticks: Ticks, host_ns: i64, error_ns: i64) -> bool {
        let (Some(last), Some(expected)) = (self.samples.back(), self.ticks_at(host_ns)) else {
            return false;
        };
        let length_ns = host_ns.saturating_sub(last.host_ns);
        // The driver's nominal rate alone is not precise enough.
        if length_ns < 0 || self.samples.len() < 2 && ticks.0 >= last.ticks {
            return false;
        }
        let off_ns = self.nominal.ns(ticks.0.saturating_sub(expected.0));
        let allowed_ns = MIN_LEAP_NS
            .saturating_add(last.error_ns.saturating_add(error_ns))
            .saturating_add((length_ns as f64 * RATE_STEADINESS) as i64);
        off_ns.saturating_abs() > allowed_ns
    }

    /// Continues from a single sample, because earlier samples say nothing about later times. Its ticks are counted
    /// on from the earlier ones.
    pub fn anchor(&mut self, ticks: Ticks, host_ns: i64, error_ns: i64) {
        if let Some(fit) = self.fit() {
            self.dropped_error_ns = self.dropped_error_ns.max(fit.error_ns.unwrap_or(0));
        }
        let used = self.used + 1;
        self.samples.clear();
        self.cursor = 0;
        let first = self.first;
        self.add(ticks, host_ns, error_ns);
        (self.first, self.used) = (first.or(self.first), used);
    }

    /// Returns the approximate ticks at a host time; `None` without a sample.
    pub fn ticks_at(&self, host_ns: i64) -> Option<Ticks> {
        let after = self.samples.partition_point(|s| s.host_ns <= host_ns);
        let sample = self.samples.get(after.saturating_sub(1))?;
        let ns = host_ns.saturating_sub(sample.host_ns);
        let ticks = within_decades((ns as f64 / sample.rate.as_f64()) as i64);
        Some(Ticks(sample.ticks.saturating_add(ticks)))
    }

    /// Returns how many nanoseconds a host time lies outside the samples: 0 inside, the greatest number without
    /// samples.
    pub fn distance_ns(&self, host_ns: i64) -> i64 {
        match (self.samples.front(), self.samples.back()) {
            (Some(first), Some(last)) => (first.host_ns.saturating_sub(host_ns))
                .max(host_ns.saturating_sub(last.host_ns))
                .max(0),
            _ => i64::MAX,
        }
    }

    /// Returns true when a sample lies at or after `ticks`, and another one was taken.
    pub fn covers(&self, ticks: Ticks) -> bool {
        self.samples.len() > 1 && self.samples.back().is_some_and(|s| s.ticks >= ticks.0)
    }

    /// Returns the host's time of `ticks`, and counts its error in the fit; `None` without a sample.
    #[inline]
    pub fn host_ns(&mut self, ticks: Ticks) -> Option<i64> {
        self.mapped = true;
        let cursor = self.cursor;
        if let (Some(from), Some(to)) = (self.samples.get(cursor), self.samples.get(cursor + 1))
            && from.used
            && from.ticks <= ticks.0
            && ticks.0 <= to.ticks
        {
            return Some(from.host_ns + from.rate.ns(ticks.0 - from.ticks));
        }
        self.seek(ticks)
    }

    /// Maps ticks by another piece than the last one, or outside the samples.
    fn seek(&mut self, ticks: Ticks) -> Option<i64> {
        let after = self.samples.partition_point(|s| s.ticks <= ticks.0);
        if after > 0 && after < self.samples.len() {
            self.cursor = after - 1;
            let from = &mut self.samples[self.cursor];
            from.used = true;
            return Some(from.host_ns + from.rate.ns(ticks.0 - from.ticks));
        }
        let (host_ns, error_ns) = self.outside(ticks)?;
        self.outside_error_ns = self.outside_error_ns.max(error_ns);
        Some(host_ns)
    }

    /// Returns an estimate of the host time of `ticks`, without counting its error.
    pub fn estimate_ns(&self, ticks: Ticks) -> Option<i64> {
        let after = self.samples.partition_point(|s| s.ticks <= ticks.0);
        let from = self.samples.get(after.saturating_sub(1))?;
        Some(
            from.host_ns
                .saturating_add(from.rate.ns(ticks.0.saturating_sub(from.ticks))),
        )
    }

    /// Returns the host time of `ticks` before the first or after the last sample, and its error.
    fn outside(&self, ticks: Ticks) -> Option<(i64, i64)> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let behind = ticks.0 >= last.ticks;
        let anchor = if behind { last } else { first };
        let far = self.samples.iter().filter(|s| {
            s.ticks != anchor.ticks && (s.host_ns - anchor.host_ns).abs() <= BASELINE_NS
        });
        let far = if behind {
            far.min_by_key(|s| s.ticks)
        } else {
            far.max_by_key(|s| s.ticks)
        };
        let (rate, uncertainty) = match far.or_else(|| self.neighbour(behind)) {
            Some(far) => {
                let (from, to) = if behind { (far, anchor) } else { (anchor, far) };
                let length_ns = to.host_ns - from.host_ns;
                let rate = Rate::from_ratio(length_ns, to.ticks - from.ticks);
                // The deviation of the rate from the nominal one is the scale on which it may still change.
                let drift = (rate.as_f64() / self.nominal.as_f64() - 1.0).abs();
                let reading = (from.error_ns + to.error_ns) as f64 / length_ns.max(1) as f64;
                (rate, reading + drift)
            }
            None => (self.nominal, RATE_TOLERANCE),
        };
        let ns = rate.ns(ticks.0.saturating_sub(anchor.ticks));
        let growth = (ns.unsigned_abs() as f64 * uncertainty).ceil() as i64;
        let error = anchor.error_ns.saturating_add(growth).saturating_add(1);
        Some((anchor.host_ns.saturating_add(ns), error))
    }

    /// Returns the sample next to the last one (`behind`) or the first one.
    fn neighbour(&self, behind: bool) -> Option<&Sample> {
        let count = self.samples.len();
        if count < 2 {
            return None;
        }
        self.samples.get(if behind { count - 2 } else { 1 })
    }

    /// Returns the error of times between samples `index` and `index + 1`: that of the samples, and how far the true
    /// map may bend away from the line between them.
    fn piece_error_ns(&self, index: usize) -> i64 {
        let (from, to) = (self.samples[index], self.samples[index + 1]);
        let reading = from.error_ns.max(to.error_ns);
        let bend = [index, index + 1]
            .into_iter()
            .filter_map(|interior| self.bend_ns(interior, index))
            .max()
            .unwrap_or_else(|| {
                // Without neighbours, all drift of the piece may lie in a part of it.
                let nominal_ns = self.nominal.ns(to.ticks - from.ticks);
                (to.host_ns - from.host_ns - nominal_ns).abs() + from.error_ns + to.error_ns
            });
        reading.saturating_add(bend).saturating_add(1)
    }

    /// Estimates the bend of a piece beside sample `interior` from that sample's deviation from the line between its
    /// neighbours; `None` without two neighbours at comparable distances.
    fn bend_ns(&self, interior: usize, piece: usize) -> Option<i64> {
        let before = self.samples.get(interior.checked_sub(1)?)?;
        let (at, after) = (self.samples.get(interior)?, self.samples.get(interior + 1)?);
        let (left, right) = (at.host_ns - before.host_ns, after.host_ns - at.host_ns);
        if left > 4 * right || right > 4 * left {
            return None;
        }
        let line = Line {
            from: before.point(),
            to: after.point(),
        };
        let off = i64::try_from(line.deviation_ns(at.point())).unwrap_or(i64::MAX);
        let reading = at.error_ns + before.error_ns.max(after.error_ns);
        let deviation = off.saturating_add(reading);
        // With a bounded second derivative M the deviation is at most M left right / 2, and a piece of length h
        // bends by at most M h h / 8.
        let length = if piece == interior { right } else { left } as f64;
        Some(
            (deviation as f64 * length * length / (4.0 * left as f64 * right as f64)).ceil() as i64,
        )
    }

    /// Returns the quality of the map; `None` without a sample.
    pub fn fit(&self) -> Option<Fit> {
        let (first, last) = (self.first?, self.samples.back()?);
        let count = self.samples.len();
        let used = (0..count.saturating_sub(1)).filter(|piece| self.samples[*piece].used);
        let error_ns = used
            .map(|piece| self.piece_error_ns(piece))
            .fold(self.dropped_error_ns, i64::max)
            .max(self.outside_error_ns)
            .max(first.error_ns);
        let host = (last.host_ns - first.host_ns) as f64;
        let device = (last.ticks - first.ticks) as f64 * self.nominal.as_f64();
        Some(Fit {
            error_ns: Some(error_ns),
            samples: self.used,
            drift_ppm: (count >= 2 && host > 0.0).then(|| (device / host - 1.0) * 1e6),
        })
    }
}

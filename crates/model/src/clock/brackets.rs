//! Maps device ticks to host time where the two clocks cannot be read at once: the host times between which each
//! command buffer ran (its bracket) bound the offset between the clocks.
//!
//! A command buffer starts no earlier than its submission, and ends no later than it is seen to have finished. Both
//! bound the offset between the clocks at one moment and, as the rate deviates by at most a known tolerance, near
//! that moment. The map goes through the middle of the feasible offsets at knots, and straight between them; half the
//! width of the feasible interval is its error.

use super::{Fit, RATE_TOLERANCE, Rate, Ticks, within_decades};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Distance between knots (points between which the map is straight), and length of the windows of time whose
/// tightest bounds are kept.
const KNOT_NS: i64 = 20_000_000;

/// The most windows to either side whose bounds are considered; farther ones add nothing to nearer ones.
const HORIZON_WINDOWS: i64 = 1000;

/// The relative change that a fitted rate may still undergo.
const RATE_WANDER: f64 = 20e-6;

/// The least distance between bounds that determine the rate.
const FIT_NS: i64 = 1_000_000_000;

/// The most earlier windows that the rate is fitted against.
const MAX_REFERENCES: usize = 16;

/// Bounds of the offset between two clocks, and the map through them.
#[derive(Debug, Serialize, Deserialize)]
pub struct Brackets {
    /// The driver's rate of the device's clock.
    rate: Rate,
    /// The windows by number, which is device time divided by [`KNOT_NS`]. `references` are the first that were
    /// completed, and `knots` the offsets that are fixed at their starts.
    windows: BTreeMap<i64, Window>,
    references: Vec<Window>,
    knots: BTreeMap<i64, Offset>,
    /// Bounds of the offset's relative change, if it is constant.
    change: RateRange,
    /// The number of command buffers.
    used: u32,
    /// The greatest error of a time that was mapped.
    error_ns: i64,
    /// Whether bounds ever contradicted each other: the error is then unknown.
    contradicted: bool,
}

/// The tightest bounds of a window; `None` on a side without bounds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Window {
    lower: Option<Bound>,
    upper: Option<Bound>,
}

/// A bound of the offset.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Bound {
    /// Time of the bound in nanoseconds of the device's clock at its nominal rate.
    at: i64,
    offset_ns: i64,
}

/// The least and the greatest offset between the clocks that no bound contradicts.
#[derive(Debug, Clone, Copy)]
struct FeasibleOffsets {
    lower_ns: i64,
    upper_ns: i64,
}

/// The least and the greatest relative change of the offset that no bound contradicts.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct RateRange {
    least: f64,
    most: f64,
}

/// The offset from the device's clock to the host's at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offset {
    /// Host time less device time, in nanoseconds.
    pub offset_ns: i64,
    /// Greatest error of the offset, in nanoseconds.
    pub error_ns: i64,
}

impl FeasibleOffsets {
    /// Returns the offset that the map goes through.
    fn middle_ns(self) -> i64 {
        self.lower_ns.midpoint(self.upper_ns)
    }

    /// Returns the middle of the feasible offsets, with half their width as error.
    fn offset(self) -> Offset {
        Offset {
            offset_ns: self.middle_ns(),
            error_ns: (self.upper_ns - self.lower_ns).abs() / 2 + 1,
        }
    }
}

impl Brackets {
    /// Creates a map without bounds, for a clock of `rate` nanoseconds per tick according to its driver.
    pub fn new(rate: f64) -> Brackets {
        Brackets {
            rate: Rate::from_f64(rate),
            windows: BTreeMap::new(),
            references: Vec::new(),
            knots: BTreeMap::new(),
            change: RateRange {
                least: -RATE_TOLERANCE,
                most: RATE_TOLERANCE,
            },
            used: 0,
            error_ns: 0,
            contradicted: false,
        }
    }

    /// Adds a command buffer that ran from `start` to `end` on the device, after its submission and before it was
    /// seen to have finished. An end in a newer window completes the newest before it, which then bounds the rate.
    pub fn add(&mut self, start: Ticks, end: Ticks, submitted_ns: i64, seen_ns: i64) {
        let (start, end) = (self.rate.ns(start.0), self.rate.ns(end.0));
        let lower = submitted_ns.saturating_sub(start);
        let upper = seen_ns.saturating_sub(end);
        let newest = self.windows.last_key_value().map(|(index, _)| *index);
        let window = self.windows.entry(start.div_euclid(KNOT_NS)).or_default();
        if window.lower.is_none_or(|bound| lower > bound.offset_ns) {
            window.lower = Some(Bound {
                at: start,
                offset_ns: lower,
            });
        }
        let index = end.div_euclid(KNOT_NS);
        let window = self.windows.entry(index).or_default();
        if window.upper.is_none_or(|bound| upper < bound.offset_ns) {
            window.upper = Some(Bound {
                at: end,
                offset_ns: upper,
            });
        }
        self.used += 1;
        if let Some(newest) = newest.filter(|newest| index > *newest) {
            self.narrow_rate(newest);
            self.prune(index);
        }
    }

    /// Narrows the bounds of the rate with the bounds of a completed window, by its slopes to windows at least
    /// [`FIT_NS`] before it.
    fn narrow_rate(&mut self, index: i64) {
        let Some(window) = self.windows.get(&index).copied() else {
            return;
        };
        if self.references.len() < MAX_REFERENCES {
            self.references.push(window);
        }
        let slope = |from: Option<Bound>, to: Option<Bound>| {
            let (from, to) = from.zip(to)?;
            let length = to.at - from.at;
            (length >= FIT_NS).then(|| (to.offset_ns - from.offset_ns) as f64 / length as f64)
        };
        for reference in &self.references {
            if let Some(least) = slope(reference.upper, window.lower) {
                self.change.least = self.change.least.max(least);
            }
            if let Some(most) = slope(reference.lower, window.upper) {
                self.change.most = self.change.most.min(most);
            }
        }
    }

    /// Drops windows and knots beyond the horizon once there are twice as many windows.
    fn prune(&mut self, newest: i64) {
        if self.windows.len() as i64 > 2 * HORIZON_WINDOWS {
            self.windows = self.windows.split_off(&(newest - HORIZON_WINDOWS));
            self.knots = self.knots.split_off(&(newest - HORIZON_WINDOWS));
        }
    }

    /// Returns the relative change of the offset, and its error: 0 and the tolerance of any clock until it is known
    /// better.
    fn drift(&self) -> (f64, f64) {
        let RateRange { least, most } = self.change;
        let tolerance = (most - least) / 2.0 + RATE_WANDER;
        // A rate that is not constant shows as a contradiction, and then nothing was learnt.
        if least <= most && tolerance < RATE_TOLERANCE {
            ((least + most) / 2.0, tolerance)
        } else {
            (0.0, RATE_TOLERANCE)
        }
    }

    /// Returns the feasible offsets at a moment of the nominal device clock; `None` without bounds on both sides.
    /// Bounds widen with their distance.
    fn feasible(&self, at: i64) -> Option<FeasibleOffsets> {
        let (drift, tolerance) = self.drift();
        let moved = |bound: Bound, widening: f64| {
            let distance = (at - bound.at) as f64;
            let widened = (drift * distance + widening * distance.abs()).round();
            within_decades(bound.offset_ns.saturating_add(widened as i64))
        };
        let index = at.div_euclid(KNOT_NS);
        let (mut lower, mut upper) = (None, None);
        let near = self
            .windows
            .range(index - HORIZON_WINDOWS..=index + HORIZON_WINDOWS);
        for window in near.map(|(_, w)| w) {
            lower = lower.max(window.lower.map(|b| moved(b, -tolerance)));
            let bound = window.upper.map(|b| moved(b, tolerance));
            upper = match (upper, bound) {
                (Some(a), Some(b)) => Some(std::cmp::min::<i64>(a, b)),
                (a, b) => a.or(b),
            };
        }
        Some(FeasibleOffsets {
            lower_ns: lower?,
            upper_ns: upper?,
        })
    }

    /// Returns the feasible offsets at the start of the newest window.
    fn newest(&self) -> Option<FeasibleOffsets> {
        let (index, _) = self.windows.last_key_value()?;
        self.feasible(*index * KNOT_NS)
    }

    /// Returns the least and the greatest feasible ticks at a host time, by the newest bounds; `None` without bounds.
    pub fn ticks_at(&self, host_ns: i64) -> Option<(Ticks, Ticks)> {
        let newest = self.newest()?;
        let ticks = |offset: i64| {
            Ticks((host_ns.saturating_sub(offset) as f64 / self.rate.as_f64()) as i64)
        };
        Some((ticks(newest.upper_ns), ticks(newest.lower_ns)))
    }

    /// Returns true when there are bounds behind the window after that of `ticks`.
    pub fn settled(&self, ticks: Ticks) -> bool {
        let index = self.rate.ns(ticks.0).div_euclid(KNOT_NS);
        self.windows
            .last_key_value()
            .is_some_and(|(newest, _)| *newest > index + 1)
    }

    /// Returns the host time of `ticks`, and counts its error in the fit; `None` without bounds on both sides.
    pub fn host_ns(&mut self, ticks: Ticks) -> Option<i64> {
        let at = self.rate.ns(ticks.0);
        let index = at.div_euclid(KNOT_NS);
        let from = self.knot(index)?;
        let to = self.knot(index + 1)?;
        let part = i128::from(at.rem_euclid(KNOT_NS)) * i128::from(to.offset_ns - from.offset_ns);
        let offset = from.offset_ns + (part / i128::from(KNOT_NS)) as i64;
        // Between knots the rate limits how far the true offset strays from the line.
        let (_, tolerance) = self.drift();
        let stray = (tolerance * KNOT_NS as f64 / 2.0).ceil() as i64;
        self.error_ns = self
            .error_ns
            .max(from.error_ns.max(to.error_ns) + stray + 1);
        Some(at.saturating_add(offset))
    }

    /// Returns an estimate of the host time of `ticks`, without counting its error.
    pub fn estimate_ns(&self, ticks: Ticks) -> Option<i64> {
        let offset_ns = self.newest()?.middle_ns();
        Some(self.rate.ns(ticks.0).saturating_add(offset_ns))
    }

    /// Returns the offset at `ticks` by the bounds so far, without fixing it; `None` where there are no bounds, or
    /// they contradict each other.
    pub fn offset(&self, ticks: Ticks) -> Option<Offset> {
        let feasible = self.feasible(self.rate.ns(ticks.0))?;
        (feasible.lower_ns <= feasible.upper_ns).then(|| feasible.offset())
    }

    /// Returns the offset at a knot, which is fixed on first use.
    fn knot(&mut self, index: i64) -> Option<Offset> {
        if let Some(knot) = self.knots.get(&index) {
            return Some(*knot);
        }
        let feasible = self.feasible(index * KNOT_NS)?;
        self.contradicted |= feasible.lower_ns > feasible.upper_ns;
        let knot = feasible.offset();
        self.knots.insert(index, knot);
        Some(knot)
    }

    /// Returns the quality of the map; `None` without bounds.
    pub fn fit(&self) -> Option<Fit> {
        let RateRange { least, most } = self.change;
        let fitted = least <= most && (most - least) / 2.0 < RATE_TOLERANCE / 2.0;
        (self.used > 0).then(|| Fit {
            error_ns: (!self.contradicted).then_some(self.error_ns),
            samples: self.used,
            // A growing offset means that the device's clock is slow.
            drift_ppm: fitted.then_some(-(least + most) / 2.0 * 1e6),
        })
    }
}

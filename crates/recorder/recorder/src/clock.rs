//! Maps a device's clock to the host's: raw ticks (times as the device wrote them) and samples of both clocks go
//! in; nanoseconds of the host's monotonic clock come out, with an error bound.
//!
//! Raw ticks have as many bits as the queue says, and they wrap. They are *unwrapped* to [`Ticks`] with the host
//! times that enclose a command buffer. Ticks become host times through samples of both clocks ([`Calibrated`]) or,
//! where the driver gives none, through bounds ([`Brackets`]).

mod causal;
#[cfg(test)]
mod tests;

pub use causal::Causal;
pub use gapscope_model::clock::Ticks;
use gapscope_model::clock::{Brackets, Calibrated, Fit, RATE_TOLERANCE, within_decades};
use gapscope_spool::event::ClockSource;
use gapscope_trace::manifest::{self, ClockMethod};
use serde::{Deserialize, Serialize};

/// The longest time by which a device time may lie outside the host times that enclose it; beyond, it counts as
/// wrong.
const CONTRADICTION_NS: i64 = 10_000_000;

/// The reason why a raw time cannot be placed on the device's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unplaced {
    /// There are no samples to map the time with.
    NoSamples,
    /// The clock wrapped more often than the host times around it can tell.
    Ambiguous,
    /// The time lies outside the host times that enclose it.
    Contradiction,
}

/// The map of one device's clock.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeviceClock {
    /// Nanoseconds per tick, as the driver says.
    rate: f64,
    /// The valid bits of samples and timestamps, which are not known before the first queue.
    bits: Option<u32>,
    /// The raw reading at `Ticks(0)`.
    epoch: Option<u64>,
    /// The samples that came before the bits were known.
    early: Vec<RawSample>,
    method: Method,
}

/// A reading of both clocks at one moment, before it is known how the device's clock wraps.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct RawSample {
    /// The raw ticks of the device.
    raw: u64,
    host_ns: i64,
    /// The greatest distance between the two readings, in nanoseconds.
    error_ns: u32,
}

/// The way in which ticks are mapped.
#[derive(Debug, Serialize, Deserialize)]
enum Method {
    Calibrated(Calibrated),
    Brackets(Brackets),
    /// Device times come on the host's clock; [`Causal`] bounds their error.
    Host(Causal),
}

impl DeviceClock {
    /// Creates a clock with `rate` nanoseconds a tick.
    pub fn new(source: ClockSource, rate: f64) -> DeviceClock {
        // A driver may report a senseless rate.
        let rate = if (1e-6..1e9).contains(&rate) {
            rate
        } else {
            1.0
        };
        DeviceClock {
            rate,
            bits: None,
            epoch: None,
            early: Vec::new(),
            method: match source {
                ClockSource::Calibrated => Method::Calibrated(Calibrated::new(rate)),
                ClockSource::Brackets => Method::Brackets(Brackets::new(rate)),
                ClockSource::Host => Method::Host(Causal::default()),
            },
        }
    }

    /// Sets the number of valid bits in a queue's timestamps, once, and adds the samples that waited for it; 0 is
    /// ignored.
    pub fn queue_bits(&mut self, bits: u32) {
        if bits == 0 || self.bits.is_some() {
            return;
        }
        self.bits = Some(bits.min(64));
        for early in std::mem::take(&mut self.early) {
            self.sample(early.raw, early.host_ns, early.error_ns);
        }
    }

    /// Adds a reading of both clocks at one moment; only calibrated clocks use it. Returns false when the device's
    /// clock has not gone on from where it was: after a leap it is mapped anew from there.
    pub fn sample(&mut self, raw: u64, host_ns: i64, error_ns: u32) -> bool {
        let host_ns = within_decades(host_ns);
        let Method::Calibrated(samples) = &mut self.method else {
            return true;
        };
        let Some(bits) = self.bits else {
            /// More samples come before a queue is used only if the program never uses one.
            const MAX_EARLY_SAMPLES: usize = 1 << 12;
            if self.early.len() < MAX_EARLY_SAMPLES {
                self.early.push(RawSample {
                    raw,
                    host_ns,
                    error_ns,
                });
            }
            return true;
        };
        let epoch = *self.epoch.get_or_insert(raw);
        let error_ns = i64::from(error_ns);
        let expected = samples.ticks_at(host_ns).unwrap_or(Ticks(0));
        let ticks = nearest(raw.wrapping_sub(epoch), bits, expected);
        if samples.has_leapt(ticks, host_ns, error_ns) {
            // Readings from before the leap are now outside the host times around them, so they are not placed.
            self.epoch = Some(raw.wrapping_sub(expected.0 as u64));
            samples.anchor(expected, host_ns, error_ns);
            return false;
        }
        samples.add(ticks, host_ns, error_ns)
    }

    /// Adds the host times inside which a command buffer ran on the device. They are of use only without samples.
    pub fn bracket(&mut self, start: Ticks, end: Ticks, submitted_ns: i64, seen_ns: i64) {
        if let Method::Brackets(brackets) = &mut self.method {
            let [start, end] = [start, end].map(|t| Ticks(within_decades(t.0)));
            brackets.add(
                start,
                end,
                within_decades(submitted_ns),
                within_decades(seen_ns),
            );
        }
    }

    /// Places the raw reading of a queue with `queue_bits` valid bits, which was made between two host times, and
    /// returns its unwrapped ticks.
    ///
    /// # Errors
    /// The reading cannot be placed.
    pub fn unwrap(
        &mut self,
        raw: u64,
        queue_bits: u32,
        earliest_ns: i64,
        latest_ns: i64,
    ) -> Result<Ticks, Unplaced> {
        let bits = self.bits.unwrap_or(64).min(queue_bits).max(1);
        let (earliest_ns, latest_ns) = (within_decades(earliest_ns), within_decades(latest_ns));
        let epoch = match (self.epoch, &self.method) {
            (Some(epoch), _) => epoch,
            (None, Method::Brackets(_)) => {
                self.epoch = Some(raw);
                return Ok(Ticks(0));
            }
            (None, Method::Calibrated(_) | Method::Host(_)) => return Err(Unplaced::NoSamples),
        };
        let range = match &self.method {
            Method::Calibrated(samples) => samples
                .ticks_at(earliest_ns)
                .zip(samples.ticks_at(latest_ns))
                .map(|(from, to)| (from, to, samples.distance_ns(earliest_ns))),
            Method::Brackets(brackets) => brackets
                .ticks_at(earliest_ns)
                .zip(brackets.ticks_at(latest_ns))
                .map(|((from, _), (_, to))| (from, to, 0)),
            Method::Host(_) => None,
        };
        let Some((from, to, distance_ns)) = range else {
            return Err(Unplaced::NoSamples);
        };
        let slack_ns =
            CONTRADICTION_NS.saturating_add((distance_ns as f64 * RATE_TOLERANCE) as i64);
        let slack = ((slack_ns as f64 / self.rate) as i64).saturating_add(1);
        let offset = raw.wrapping_sub(epoch);
        if bits >= 64 {
            let ticks = Ticks(within_decades(offset as i64));
            let inside =
                ticks.0 >= from.0.saturating_sub(slack) && ticks.0 <= to.0.saturating_add(slack);
            return if inside {
                Ok(ticks)
            } else {
                Err(Unplaced::Contradiction)
            };
        }
        // The clock wraps after a period: a reading has places a period apart, of which exactly one must be in the
        // range.
        let period = 1i64 << bits.min(62);
        let slack = slack.min(period / 8);
        let lowest = from.0.saturating_sub(slack);
        let highest = to.0.saturating_add(slack);
        let behind = (offset.wrapping_sub(lowest as u64) & (period as u64 - 1)) as i64;
        let ticks = lowest.saturating_add(behind);
        if ticks > highest {
            Err(Unplaced::Contradiction)
        } else if ticks.saturating_add(period) <= highest {
            Err(Unplaced::Ambiguous)
        } else {
            Ok(Ticks(ticks))
        }
    }

    /// Returns true when nothing that comes later changes where `ticks` lies.
    pub fn settled(&self, ticks: Ticks) -> bool {
        let ticks = Ticks(within_decades(ticks.0));
        match &self.method {
            Method::Calibrated(samples) => samples.covers(ticks),
            Method::Brackets(brackets) => brackets.settled(ticks),
            Method::Host(_) => true,
        }
    }

    /// Returns the host time of `ticks`; `None` when there is nothing to map it with.
    #[inline]
    pub fn host_ns(&mut self, ticks: Ticks) -> Option<i64> {
        let ticks = Ticks(within_decades(ticks.0));
        match &mut self.method {
            Method::Calibrated(samples) => samples.host_ns(ticks),
            Method::Brackets(brackets) => brackets.host_ns(ticks),
            Method::Host(_) => None,
        }
    }

    /// Returns an estimate of the host time of `ticks`, without settling it.
    pub fn estimate_ns(&self, ticks: Ticks) -> Option<i64> {
        let ticks = Ticks(within_decades(ticks.0));
        match &self.method {
            Method::Calibrated(samples) => samples.estimate_ns(ticks),
            Method::Brackets(brackets) => brackets.estimate_ns(ticks),
            Method::Host(_) => None,
        }
    }

    /// Returns the bound by cause and effect, where device times come on the host's clock.
    pub fn causal(&mut self) -> Option<&mut Causal> {
        match &mut self.method {
            Method::Host(causal) => Some(causal),
            _ => None,
        }
    }

    /// Converts nanoseconds to ticks by the driver's rate.
    pub fn ticks_of_ns(&self, ns: i64) -> i64 {
        (ns as f64 / self.rate) as i64
    }

    /// Returns the manifest's description of the map.
    pub fn summary(&self) -> manifest::Clock {
        let mapped = |method, fit: Fit| manifest::Clock {
            method,
            error_ns: fit.error_ns,
            samples: fit.samples,
            drift_ppm: fit.drift_ppm,
            nanoseconds_per_tick: self.rate,
        };
        let clock = match &self.method {
            Method::Calibrated(samples) => {
                (samples.fit()).map(|fit| mapped(ClockMethod::Calibrated, fit))
            }
            Method::Brackets(brackets) => {
                (brackets.fit()).map(|fit| mapped(ClockMethod::Brackets, fit))
            }
            Method::Host(causal) => Some(causal.summary()),
        };
        manifest::Clock {
            nanoseconds_per_tick: self.rate,
            ..clock.unwrap_or_default()
        }
    }
}

/// Returns the value congruent to `offset` modulo 2^bits that lies nearest to `expected`.
fn nearest(offset: u64, bits: u32, expected: Ticks) -> Ticks {
    let ahead = offset.wrapping_sub(expected.0 as u64);
    let shift = 64 - bits.clamp(1, 64);
    Ticks(within_decades(
        expected.0.wrapping_add(((ahead << shift) as i64) >> shift),
    ))
}

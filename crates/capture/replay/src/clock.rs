//! The device's clock: how long its ticks are, and where they are on the host's.

use ash::vk;
use gapscope_model::clock::{Brackets, ClockPair, PairedClock, Ticks};

use crate::gpu::Gpu;
use crate::session::Observed;

/// Nanoseconds of the host's monotonic clock.
pub fn host_now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The clock of a queue's timestamps.
#[derive(Debug)]
pub struct DeviceClock {
    period_ns: f64,
    /// The valid bits of a timestamp.
    mask: u64,
    /// The first tick that was seen; others are counted from it.
    first: Option<u64>,
    map: Map,
}

#[derive(Debug)]
enum Map {
    /// The device reads both clocks at once.
    Paired(PairedClock),
    /// What ran did so between its submission and its seen end.
    Bracketed(Brackets),
}

/// How well times are mapped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fit {
    pub calibrated: bool,
    pub error_ns: Option<i64>,
    pub samples: u32,
    pub drift_ppm: Option<f64>,
}

impl DeviceClock {
    /// The clock of a device, with a first sample where it gives any.
    pub fn of(gpu: &Gpu) -> DeviceClock {
        let period_ns = f64::from(gpu.properties.limits.timestamp_period);
        let mut paired = PairedClock::default();
        paired.set_nanoseconds_per_tick(period_ns);
        let bits = gpu.timestamp_bits.min(64);
        let mut clock = DeviceClock {
            period_ns,
            mask: u64::MAX.checked_shr(64 - bits).unwrap_or(0),
            first: None,
            map: Map::Bracketed(Brackets::new(period_ns)),
        };
        if let Some(pair) = sample(gpu) {
            clock.first = Some(pair.gpu_ticks);
            clock.map = Map::Paired(paired);
            clock.add(pair);
        }
        clock
    }

    /// How long it was from one tick to another, in nanoseconds.
    pub fn between_ns(&self, (from, to): (u64, u64)) -> u64 {
        let ticks = to.wrapping_sub(from) & self.mask;
        // An end before its start is one that is not known.
        if ticks > self.mask / 2 {
            return 0;
        }
        (ticks as f64 * self.period_ns).round() as u64
    }

    /// Takes note of what a run says of the clock.
    pub fn learn(&mut self, gpu: &Gpu, observed: &Observed) {
        let Some((start, end)) = observed.pair(observed.whole) else {
            return;
        };
        if let Map::Paired(_) = self.map {
            if let Some(pair) = sample(gpu) {
                self.add(pair);
            }
            return;
        }
        self.first.get_or_insert(start);
        let (start, end) = (Ticks(self.unwrapped(start)), Ticks(self.unwrapped(end)));
        if let Map::Bracketed(brackets) = &mut self.map {
            brackets.add(
                start,
                end,
                signed(observed.called_ns),
                signed(observed.seen_ns),
            );
        }
    }

    /// The host's time of a tick, in nanoseconds; none: not known.
    pub fn host_ns(&mut self, ticks: u64) -> Option<i64> {
        let unwrapped = self.unwrapped(ticks);
        match &mut self.map {
            Map::Paired(clock) => {
                let ticks = u64::try_from(unwrapped.checked_add(BASE)?).ok()?;
                i64::try_from(clock.convert(ticks).ok()?.ns).ok()
            }
            Map::Bracketed(brackets) => {
                let offset = brackets.offset(Ticks(unwrapped))?;
                let device_ns = (unwrapped as f64 * self.period_ns).round() as i64;
                Some(device_ns.saturating_add(offset.offset_ns))
            }
        }
    }

    /// How well times are mapped, of those that were seen.
    pub fn fit(&mut self, ticks: Option<u64>) -> Fit {
        let unwrapped = ticks.map(|ticks| self.unwrapped(ticks));
        match &mut self.map {
            Map::Paired(clock) => Fit {
                calibrated: true,
                error_ns: clock.error_ns().map(signed),
                samples: clock.pairs().len() as u32,
                drift_ppm: None,
            },
            Map::Bracketed(brackets) => Fit {
                calibrated: false,
                error_ns: unwrapped
                    .and_then(|ticks| brackets.offset(Ticks(ticks)))
                    .map(|offset| offset.error_ns),
                samples: 0,
                drift_ppm: None,
            },
        }
    }

    fn add(&mut self, pair: ClockPair) {
        let unwrapped = self.unwrapped(pair.gpu_ticks).checked_add(BASE);
        if let (Map::Paired(clock), Some(Ok(gpu_ticks))) =
            (&mut self.map, unwrapped.map(u64::try_from))
        {
            clock.add(ClockPair { gpu_ticks, ..pair });
        }
    }

    /// Ticks since the first, however the counter wraps.
    fn unwrapped(&self, ticks: u64) -> i64 {
        let since = ticks.wrapping_sub(self.first.unwrap_or(ticks)) & self.mask;
        if since > self.mask / 2 {
            // It lies before the first.
            return -((self.mask - since) as i64) - 1;
        }
        since as i64
    }
}

/// Ticks before the first have a place, too.
const BASE: i64 = 1 << 40;

/// Both clocks at once, where the device can read them.
fn sample(gpu: &Gpu) -> Option<ClockPair> {
    let functions = gpu.calibrated.as_ref()?;
    let of = |domain| vk::CalibratedTimestampInfoEXT::default().time_domain(domain);
    let domains = [
        of(vk::TimeDomainEXT::DEVICE),
        of(vk::TimeDomainEXT::CLOCK_MONOTONIC),
    ];
    // SAFETY: the device has the extension and both domains.
    let (both, deviation) = unsafe { functions.get_calibrated_timestamps(&domains) }.ok()?;
    Some(ClockPair {
        cpu_ns: *both.get(1)?,
        gpu_ticks: *both.first()?,
        error_ns: Some(deviation),
    })
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

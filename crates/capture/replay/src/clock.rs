//! Converts timestamps of a device, which are ticks of its clock, to nanoseconds and to the host's monotonic clock. A
//! map between the clocks gets better with each run ([`DeviceClock::learn`]).

use ash::vk;
use gapscope_model::clock::{Brackets, ClockPair, PairedClock, Ticks};

use crate::gpu::Gpu;

/// Returns the time of the host's monotonic clock in nanoseconds.
pub fn host_now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The clock of a queue's timestamps.
#[derive(Debug)]
pub struct DeviceClock {
    /// Nanoseconds of a tick.
    period_ns: f64,
    /// The valid bits of a timestamp.
    mask: u64,
    /// The first tick that was seen, from which other ticks are counted.
    first: Option<u64>,
    map: ClockMap,
}

/// The map from ticks to the host's clock, by the way in which the clocks were compared.
#[derive(Debug)]
enum ClockMap {
    /// Samples of both clocks at once, where the device can read them.
    Paired(PairedClock),
    /// Bounds from runs, whose work lies between their submission and the moment when the host sees its end.
    Bracketed(Brackets),
}

/// The quality of the map from ticks to the host's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClockFit {
    /// Whether the device can read both clocks at once.
    pub calibrated: bool,
    /// The greatest error of a host time; `None` if it is not known.
    pub error_ns: Option<i64>,
    /// Number of samples of both clocks; 0 without such.
    pub samples: u32,
}

impl DeviceClock {
    /// Makes the clock of a device, with a first sample if the device can read both clocks.
    pub fn new(gpu: &Gpu) -> DeviceClock {
        let period_ns = f64::from(gpu.properties.limits.timestamp_period);
        let mut paired = PairedClock::default();
        paired.set_nanoseconds_per_tick(period_ns);
        let bits = gpu.timestamp_bits.min(64);
        let mut clock = DeviceClock {
            period_ns,
            mask: u64::MAX.checked_shr(64 - bits).unwrap_or(0),
            first: None,
            map: ClockMap::Bracketed(Brackets::new(period_ns)),
        };
        if let Some(pair) = sample(gpu) {
            clock.first = Some(pair.gpu_ticks);
            clock.map = ClockMap::Paired(paired);
            clock.add(pair);
        }
        clock
    }

    /// Returns the nanoseconds from a tick `from` to a later tick `to`; 0 if `to` seems earlier.
    pub fn between_ns(&self, (from, to): (u64, u64)) -> u64 {
        let ticks = to.wrapping_sub(from) & self.mask;
        // If the end seems to be before the start, the duration is not known.
        if ticks > self.mask / 2 {
            return 0;
        }
        (ticks as f64 * self.period_ns).round() as u64
    }

    /// Improves the map by a run: takes the ticks of its start and end, and the host times of its submission and of
    /// the moment when the host saw its end.
    pub fn learn(&mut self, gpu: &Gpu, (start, end): (u64, u64), host_ns: (u64, u64)) {
        if let ClockMap::Paired(_) = self.map {
            if let Some(pair) = sample(gpu) {
                self.add(pair);
            }
            return;
        }
        self.first.get_or_insert(start);
        let (start, end) = (Ticks(self.unwrapped(start)), Ticks(self.unwrapped(end)));
        if let ClockMap::Bracketed(brackets) = &mut self.map {
            brackets.add(start, end, signed(host_ns.0), signed(host_ns.1));
        }
    }

    /// Returns the host time of a tick in nanoseconds; `None` if it is not known.
    pub fn host_ns(&mut self, ticks: u64) -> Option<i64> {
        let unwrapped = self.unwrapped(ticks);
        match &mut self.map {
            ClockMap::Paired(clock) => {
                let ticks = u64::try_from(unwrapped.checked_add(BASE)?).ok()?;
                i64::try_from(clock.convert(ticks).ok()?.ns).ok()
            }
            ClockMap::Bracketed(brackets) => {
                let offset = brackets.offset(Ticks(unwrapped))?;
                let device_ns = (unwrapped as f64 * self.period_ns).round() as i64;
                Some(device_ns.saturating_add(offset.offset_ns))
            }
        }
    }

    /// Returns the quality of the map, at `ticks` if it depends on the time.
    pub fn fit(&mut self, ticks: Option<u64>) -> ClockFit {
        let unwrapped = ticks.map(|ticks| self.unwrapped(ticks));
        match &mut self.map {
            ClockMap::Paired(clock) => ClockFit {
                calibrated: true,
                error_ns: clock.error_ns().map(signed),
                samples: clock.pairs().len() as u32,
            },
            ClockMap::Bracketed(brackets) => ClockFit {
                calibrated: false,
                error_ns: unwrapped
                    .and_then(|ticks| brackets.offset(Ticks(ticks)))
                    .map(|offset| offset.error_ns),
                samples: 0,
            },
        }
    }

    /// Adds a sample of both clocks, if the map is made of such.
    fn add(&mut self, pair: ClockPair) {
        let unwrapped = self.unwrapped(pair.gpu_ticks).checked_add(BASE);
        if let (ClockMap::Paired(clock), Some(Ok(gpu_ticks))) =
            (&mut self.map, unwrapped.map(u64::try_from))
        {
            let mut pair = pair;
            pair.gpu_ticks = gpu_ticks;
            clock.add(pair);
        }
    }

    /// Returns the ticks since the first one, with wraps of the counter undone.
    fn unwrapped(&self, ticks: u64) -> i64 {
        let since = ticks.wrapping_sub(self.first.unwrap_or(ticks)) & self.mask;
        if since > self.mask / 2 {
            // The tick lies before the first.
            return -((self.mask - since) as i64) - 1;
        }
        since as i64
    }
}

/// An offset that keeps ticks before the first one positive.
const BASE: i64 = 1 << 40;

/// Reads both clocks at once; returns `None` if the device cannot.
fn sample(gpu: &Gpu) -> Option<ClockPair> {
    let functions = gpu.calibrated.as_ref()?;
    let of = |domain| vk::CalibratedTimestampInfoEXT::default().time_domain(domain);
    let domains = [
        of(vk::TimeDomainEXT::DEVICE),
        of(vk::TimeDomainEXT::CLOCK_MONOTONIC),
    ];
    // SAFETY: the device has the extension and both domains.
    let (both, deviation) = unsafe { functions.get_calibrated_timestamps(&domains) }.ok()?;
    Some(ClockPair::new(*both.get(1)?, *both.first()?).with_error_ns(deviation))
}

/// Converts nanoseconds; those beyond the greatest signed number become that number.
pub fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

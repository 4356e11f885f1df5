//! Reads the device's and the host's clock at one moment and writes the pair as a clock sample, by which the
//! session converts device times.

use crate::api::functions::DeviceFunctions;
use crate::recorder::Recorder;
use ash::vk;
use gapscope_spool::event::CommonEvent;
use gapscope_spool::{HostClock, ids, monotonic_ns, to_session_ns};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The least time between samples.
const MIN_SAMPLE_INTERVAL_NS: i64 = 20_000_000;

/// The clock of a device, and the host clock that it is compared with.
pub struct Clock {
    recorder: &'static Recorder,
    functions: &'static DeviceFunctions,
    device: ids::Device,
    /// The host clock that the driver reads together with the device's; `None` if it reads none.
    domain: Option<vk::TimeDomainEXT>,
    /// When the last sample was taken.
    last_ns: AtomicI64,
}

impl Clock {
    pub fn new(
        recorder: &'static Recorder,
        functions: &'static DeviceFunctions,
        device: ids::Device,
        domain: Option<vk::TimeDomainEXT>,
    ) -> Clock {
        Clock {
            recorder,
            functions,
            device,
            domain,
            last_ns: AtomicI64::new(i64::MIN / 2),
        }
    }

    /// Returns whether the driver reads both clocks at one moment.
    pub fn is_calibrated(&self) -> bool {
        self.domain.is_some()
    }

    /// Writes a sample when the last one is old enough; none where the driver does not read both clocks.
    pub fn sample_if_due(&self) {
        if self.domain.is_some()
            && monotonic_ns() - self.last_ns.load(Relaxed) >= MIN_SAMPLE_INTERVAL_NS
        {
            self.sample();
        }
    }

    /// Reads both clocks and writes a sample; nothing where the driver cannot or fails.
    pub fn sample(&self) {
        let (Some(host), Some(get)) = (self.domain, self.functions.get_calibrated_timestamps)
        else {
            return;
        };
        let wanted = [vk::TimeDomainEXT::DEVICE, host]
            .map(|domain| vk::CalibratedTimestampInfoEXT::default().time_domain(domain));
        let mut readings = [0; 2];
        let mut deviation = 0u64;
        // SAFETY: two domains that the driver offers, and room for two readings.
        let result = unsafe {
            get(
                self.functions.device,
                2,
                wanted.as_ptr(),
                readings.as_mut_ptr(),
                &mut deviation,
            )
        };
        if result != vk::Result::SUCCESS {
            return;
        }
        let (host_ns, error_ns) = match host {
            vk::TimeDomainEXT::CLOCK_MONOTONIC_RAW => {
                let (offset, error) = raw_to_monotonic();
                (readings[1] as i64 + offset, deviation.saturating_add(error))
            }
            _ => (to_session_ns(readings[1] as i64), deviation),
        };
        self.last_ns.store(monotonic_ns(), Relaxed);
        self.recorder.write(&CommonEvent::ClockSample {
            device: self.device,
            ticks: readings[0],
            host_ns,
            error_ns: u32::try_from(error_ns).unwrap_or(u32::MAX),
        });
    }
}

/// Returns the offset from CLOCK_MONOTONIC_RAW to CLOCK_MONOTONIC now, with its error bound: the best of several
/// readings of one clock between two of the other.
fn raw_to_monotonic() -> (i64, u64) {
    let raw = || HostClock::MonotonicRaw.now_ns();
    (0..5)
        .map(|_| {
            let (before, between, after) = (monotonic_ns(), raw(), monotonic_ns());
            (
                before + (after - before) / 2 - between,
                (after - before) as u64 / 2 + 1,
            )
        })
        .min_by_key(|(_, error)| *error)
        .unwrap_or((0, u64::MAX))
}

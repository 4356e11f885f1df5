//! Samples of the device's and the host's clock at one moment.

use crate::device::Device;
use crate::instance::Instance;
use crate::loader::GetInstanceProcAddr;
use ash::vk;
use gapscope_spool::event::CommonEvent;
use gapscope_spool::{HostClock, monotonic_ns};
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The least time between samples.
const INTERVAL_NS: i64 = 20_000_000;

/// How the clocks of a device are read.
pub struct Clock {
    /// The host clock that the driver reads together with the device's; `None`: it cannot.
    domain: Option<vk::TimeDomainEXT>,
    last_ns: AtomicI64,
}

impl Clock {
    /// # Safety
    /// `physical` belongs to `instance`.
    pub unsafe fn new(
        instance: &Instance,
        physical: vk::PhysicalDevice,
        enabled: bool,
        get: GetInstanceProcAddr,
    ) -> Clock {
        let domain = if enabled {
            // SAFETY: as the caller promises.
            unsafe { host_domain(instance, physical, get) }
        } else {
            None
        };
        Clock {
            domain,
            last_ns: AtomicI64::new(i64::MIN / 2),
        }
    }

    pub fn is_calibrated(&self) -> bool {
        self.domain.is_some()
    }

    /// Writes a sample when the last one is old enough.
    pub fn sample_if_due(&self, device: &Device) {
        if self.domain.is_some() && monotonic_ns() - self.last_ns.load(Relaxed) >= INTERVAL_NS {
            self.sample(device);
        }
    }

    /// Writes a sample.
    pub fn sample(&self, device: &Device) {
        let (Some(host), Some(get)) = (self.domain, device.next.get_calibrated_timestamps) else {
            return;
        };
        let wanted = [vk::TimeDomainEXT::DEVICE, host]
            .map(|domain| vk::CalibratedTimestampInfoEXT::default().time_domain(domain));
        let mut readings = [0; 2];
        let mut deviation = 0u64;
        // SAFETY: two domains that the driver offers, and room for two readings.
        let result = unsafe {
            get(
                device.handle,
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
            _ => (readings[1] as i64, deviation),
        };
        self.last_ns.store(monotonic_ns(), Relaxed);
        device.recorder.write(&CommonEvent::ClockSample {
            device: device.id,
            ticks: readings[0],
            host_ns,
            error_ns: u32::try_from(error_ns).unwrap_or(u32::MAX),
        });
    }
}

/// What to add to CLOCK_MONOTONIC_RAW now to get CLOCK_MONOTONIC, and how wrong that may be: the best of some reads
/// of one clock between two of the other.
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

/// The best host clock among the domains that the driver offers.
unsafe fn host_domain(
    instance: &Instance,
    physical: vk::PhysicalDevice,
    get: GetInstanceProcAddr,
) -> Option<vk::TimeDomainEXT> {
    // By the extension that the device has: a layer below that wraps handles lets functions through that it does not
    // know, and the driver then gets the wrapped handle.
    let extensions = [
        (
            c"VK_EXT_calibrated_timestamps",
            c"vkGetPhysicalDeviceCalibrateableTimeDomainsEXT",
        ),
        (
            c"VK_KHR_calibrated_timestamps",
            c"vkGetPhysicalDeviceCalibrateableTimeDomainsKHR",
        ),
    ];
    // SAFETY: a function of that name has that type; the two-call idiom.
    unsafe {
        let (_, name) = extensions
            .into_iter()
            .find(|(extension, _)| instance.has_extension(physical, extension))?;
        let function = get(instance.handle, name.as_ptr())?;
        let domains = std::mem::transmute::<
            unsafe extern "system" fn(),
            vk::PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsKHR,
        >(function);
        let mut count = 0;
        if domains(physical, &mut count, std::ptr::null_mut()) != vk::Result::SUCCESS {
            return None;
        }
        let mut offered = vec![vk::TimeDomainEXT::default(); count as usize];
        let _ = domains(physical, &mut count, offered.as_mut_ptr());
        offered.truncate(count as usize);
        let has = |domain: &vk::TimeDomainEXT| offered.contains(domain);
        if !has(&vk::TimeDomainEXT::DEVICE) {
            return None;
        }
        [
            vk::TimeDomainEXT::CLOCK_MONOTONIC,
            vk::TimeDomainEXT::CLOCK_MONOTONIC_RAW,
        ]
        .into_iter()
        .find(has)
    }
}

//! Simulates calibrated timestamps: reads the simulated clock of the device and the host's clocks at one moment.

use ash::vk;

use crate::clock::{device_ticks, monotonic_ns, monotonic_raw_ns};
use crate::config::{Calibrated, config};
use crate::device::Device;
use crate::{chain, misuse, object};

fn domains() -> &'static [vk::TimeDomainKHR] {
    const ALL: &[vk::TimeDomainKHR] = &[
        vk::TimeDomainKHR::DEVICE,
        vk::TimeDomainKHR::CLOCK_MONOTONIC,
        vk::TimeDomainKHR::CLOCK_MONOTONIC_RAW,
    ];
    const RAW_ONLY: &[vk::TimeDomainKHR] = &[
        vk::TimeDomainKHR::DEVICE,
        vk::TimeDomainKHR::CLOCK_MONOTONIC_RAW,
    ];
    match config().calibrated {
        Calibrated::No => &[],
        Calibrated::RawOnly => RAW_ONLY,
        Calibrated::Yes => ALL,
    }
}

pub unsafe extern "system" fn get_domains(
    _: vk::PhysicalDevice,
    count: *mut u32,
    out: *mut vk::TimeDomainKHR,
) -> vk::Result {
    chain::enumerate(domains(), count, out)
}

pub unsafe extern "system" fn get_timestamps(
    device: vk::Device,
    count: u32,
    infos: *const vk::CalibratedTimestampInfoKHR<'_>,
    out: *mut u64,
    max_deviation: *mut u64,
) -> vk::Result {
    const CALL: &str = "vkGetCalibratedTimestamps";
    if object::get::<Device>(CALL, device).is_none() {
        return vk::Result::ERROR_UNKNOWN;
    }
    let before = monotonic_ns();
    let raw = monotonic_raw_ns();
    let after = monotonic_ns();
    let now = before.midpoint(after);
    for (index, info) in chain::slice(infos, count).iter().enumerate() {
        if !domains().contains(&info.time_domain) {
            misuse::report(CALL, format_args!("{:?} is not offered", info.time_domain));
        }
        *out.add(index) = match info.time_domain {
            vk::TimeDomainKHR::DEVICE => device_ticks(config(), now, config().timestamp_bits),
            vk::TimeDomainKHR::CLOCK_MONOTONIC_RAW => raw,
            _ => now,
        };
    }
    *max_deviation = (after - before).max(config().timestamp_period.ceil() as u64);
    vk::Result::SUCCESS
}

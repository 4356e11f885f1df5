use ash::vk;

use crate::child;
use crate::gpu::Gpu;

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn a_narrow_coarse_clock_wraps() {
    const BITS: u32 = 36;
    const PERIOD_NS: f64 = 52.08;
    const DISPATCH_NS: f64 = 2.4e9;
    let variables = [
        ("FAKE_VK_TIMESTAMP_BITS", "36"),
        ("FAKE_VK_TIMESTAMP_PERIOD", "52.08"),
        ("FAKE_VK_DISPATCH_NS", "2400000000"),
    ];
    let scenario = || {
        // The clock wraps during the dispatch, if the set-up takes less than 2 s.
        let wrap_ns = ((1u64 << BITS) as f64 * PERIOD_NS) as u64;
        let offset = wrap_ns as i64 - (clock_ns(libc::CLOCK_MONOTONIC) + 2_000_000_000) as i64;
        // SAFETY: this process runs this one test, and the driver, which reads it, is not loaded yet.
        unsafe { std::env::set_var("FAKE_VK_CLOCK_OFFSET_NS", offset.to_string()) };
        let gpu = Gpu::new();
        let (kernel, queries) = (gpu.kernel(), gpu.timestamps(2));
        gpu.execute(0, |buffer| unsafe {
            let bottom = vk::PipelineStageFlags::BOTTOM_OF_PIPE;
            gpu.device.cmd_reset_query_pool(buffer, queries, 0, 2);
            gpu.device
                .cmd_bind_pipeline(buffer, vk::PipelineBindPoint::COMPUTE, kernel.pipeline);
            gpu.device.cmd_write_timestamp(buffer, bottom, queries, 0);
            gpu.device.cmd_dispatch(buffer, 1, 1, 1);
            gpu.device.cmd_write_timestamp(buffer, bottom, queries, 1);
        });
        let ticks = gpu.results(queries, 2);
        assert!(ticks[1] < ticks[0], "{ticks:?}");
        let elapsed = ticks[1].wrapping_sub(ticks[0]) & ((1 << BITS) - 1);
        let error_ns = elapsed as f64 * gpu.period_ns - DISPATCH_NS;
        assert!(error_ns.abs() <= 2.0 * PERIOD_NS, "{error_ns}");
        unsafe { gpu.device.destroy_query_pool(queries, None) };
        gpu.destroy_kernel(kernel);
        gpu.destroy();
    };
    if let Some(outcome) = child::run("clocks::a_narrow_coarse_clock_wraps", &variables, scenario) {
        outcome.assert_clean();
    }
}

/// Returns the offered domains, and the device's and the raw clock's times in one sample.
fn domains_and_sample() -> (Vec<vk::TimeDomainKHR>, [u64; 2]) {
    let gpu = Gpu::new();
    let host = ash::ext::calibrated_timestamps::Instance::new(&gpu.entry, &gpu.instance);
    let device = ash::ext::calibrated_timestamps::Device::new(&gpu.instance, &gpu.device);
    let infos = [
        vk::TimeDomainKHR::DEVICE,
        vk::TimeDomainKHR::CLOCK_MONOTONIC_RAW,
    ]
    .map(|domain| vk::CalibratedTimestampInfoKHR::default().time_domain(domain));
    let (domains, (times, _)) = unsafe {
        (
            host.get_physical_device_calibrateable_time_domains(gpu.physical_device)
                .expect("domains"),
            device
                .get_calibrated_timestamps(&infos)
                .expect("timestamps"),
        )
    };
    gpu.destroy();
    (domains, [times[0], times[1]])
}

#[test]
fn the_raw_clock_may_be_the_only_one_of_the_host() {
    let variables = [
        ("FAKE_VK_CALIBRATED", "raw"),
        ("FAKE_VK_CLOCK_DRIFT_PPM", "1000000"),
        ("FAKE_VK_TIMESTAMP_PERIOD", "2"),
    ];
    let scenario = || {
        let before = clock_ns(libc::CLOCK_MONOTONIC);
        let (domains, [device, raw]) = domains_and_sample();
        let after = clock_ns(libc::CLOCK_MONOTONIC);
        assert_eq!(
            domains,
            [
                vk::TimeDomainKHR::DEVICE,
                vk::TimeDomainKHR::CLOCK_MONOTONIC_RAW
            ]
        );
        // The clock is twice as fast and in ticks of two nanoseconds.
        assert!((before..=after).contains(&device), "{device}");
        assert!(raw <= clock_ns(libc::CLOCK_MONOTONIC_RAW));
    };
    let test = "clocks::the_raw_clock_may_be_the_only_one_of_the_host";
    if let Some(outcome) = child::run(test, &variables, scenario) {
        outcome.assert_clean();
    }
}

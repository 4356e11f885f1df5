//! Tests that timestamps wrap as their valid bits say, and that calibrated timestamps read the configured clocks.

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

/// The clock wraps during the dispatch, if the set-up takes less time than it is allowed. A busy machine is given more.
#[test]
fn a_narrow_coarse_clock_wraps() {
    const BITS: u32 = 36;
    const PERIOD_NS: f64 = 52.08;
    const SET_UP: &str = "FAKE_VK_TEST_SET_UP_NS";
    const TOO_LATE: &str = "the set-up took too long";
    let scenario = || {
        let variable = |name| {
            std::env::var(name)
                .expect("it is set")
                .parse::<u64>()
                .expect("a number")
        };
        let dispatch_ns = variable("FAKE_VK_DISPATCH_NS") as f64;
        let wraps_at_ns = clock_ns(libc::CLOCK_MONOTONIC) + variable(SET_UP);
        let offset = ((1u64 << BITS) as f64 * PERIOD_NS) as i64 - wraps_at_ns as i64;
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
        // Past the wrap the ticks start from 0.
        match ticks[0] < 1 << (BITS - 1) {
            true => println!("{TOO_LATE}"),
            false => assert!(ticks[1] < ticks[0], "{ticks:?}"),
        }
        let elapsed = ticks[1].wrapping_sub(ticks[0]) & ((1 << BITS) - 1);
        let error_ns = elapsed as f64 * gpu.period_ns - dispatch_ns;
        assert!(error_ns.abs() <= 2.0 * PERIOD_NS, "{error_ns}");
        unsafe { gpu.device.destroy_query_pool(queries, None) };
        gpu.destroy_kernel(kernel);
        gpu.destroy();
    };
    for set_up_ns in [2u64, 8, 32, 128].map(|seconds| seconds * 1_000_000_000) {
        let (set_up, dispatch) = (set_up_ns.to_string(), (set_up_ns + 400_000_000).to_string());
        let variables = [
            ("FAKE_VK_TIMESTAMP_BITS", "36"),
            ("FAKE_VK_TIMESTAMP_PERIOD", "52.08"),
            ("FAKE_VK_DISPATCH_NS", dispatch.as_str()),
            (SET_UP, set_up.as_str()),
        ];
        let Some(outcome) = child::outcome(&variables, scenario) else {
            return;
        };
        outcome.assert_clean();
        if !outcome.output.contains(TOO_LATE) {
            return;
        }
    }
    panic!("{TOO_LATE}");
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
    child::run(&variables, scenario, |outcome| outcome.assert_clean());
}

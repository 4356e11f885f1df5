//! Tests that dispatches take the configured time, one after the other or with an overlap.

use ash::vk;

use crate::child;
use crate::gpu::Gpu;

const TOP: vk::PipelineStageFlags = vk::PipelineStageFlags::TOP_OF_PIPE;
const BOTTOM: vk::PipelineStageFlags = vk::PipelineStageFlags::BOTTOM_OF_PIPE;

/// Returns the ticks around each of two dispatches: top, bottom, top, bottom.
fn two_dispatches(barrier_between: bool) -> Vec<u64> {
    let gpu = Gpu::new();
    let (kernel, queries) = (gpu.kernel(), gpu.timestamps(4));
    gpu.execute(1, |buffer| unsafe {
        let device = &gpu.device;
        device.cmd_reset_query_pool(buffer, queries, 0, 4);
        device.cmd_bind_pipeline(buffer, vk::PipelineBindPoint::COMPUTE, kernel.pipeline);
        for index in [0, 2] {
            device.cmd_write_timestamp(buffer, TOP, queries, index);
            device.cmd_dispatch(buffer, 2, 3, 4);
            device.cmd_write_timestamp(buffer, BOTTOM, queries, index + 1);
            if barrier_between {
                let compute = vk::PipelineStageFlags::COMPUTE_SHADER;
                let flags = vk::DependencyFlags::empty();
                device.cmd_pipeline_barrier(buffer, compute, compute, flags, &[], &[], &[]);
            }
        }
    });
    let ticks = gpu.results(queries, 4);
    unsafe { gpu.device.destroy_query_pool(queries, None) };
    gpu.destroy_kernel(kernel);
    gpu.destroy();
    ticks
}

#[test]
fn a_dispatch_takes_what_its_groups_cost() {
    let variables = [
        ("FAKE_VK_DISPATCH_NS", "100000"),
        ("FAKE_VK_GROUP_NS", "1000"),
    ];
    let scenario = || {
        let ticks = two_dispatches(false);
        assert_eq!(
            [ticks[1] - ticks[0], ticks[3] - ticks[2]],
            [124_000, 124_000]
        );
        assert_eq!(ticks[1], ticks[2]);
    };
    child::run(&variables, scenario, |outcome| {
        outcome.assert_clean();
        let submission = outcome.of_kind("submission")[0];
        assert_eq!(
            submission.number("start_ns"),
            submission.number("submitted_ns") + 5_000
        );
        assert_eq!(
            submission.number("end_ns") - submission.number("start_ns"),
            248_000
        );
        let dispatches: Vec<_> = outcome
            .of_kind("dispatch")
            .iter()
            .map(|line| line.times())
            .collect();
        assert_eq!(dispatches[0].0, submission.number("start_ns"));
        assert_eq!(dispatches[0].1, dispatches[1].0);
    });
}

#[test]
fn dispatches_overlap_by_half_without_a_barrier() {
    let variables = [("FAKE_VK_OVERLAP", "1"), ("FAKE_VK_DISPATCH_NS", "100000")];
    let scenario = || {
        let ticks = two_dispatches(false);
        assert_eq!(ticks[1] - ticks[0], 100_000);
        assert_eq!(ticks[2] - ticks[0], 50_000);
        assert_eq!(ticks[3] - ticks[0], 150_000);
    };
    child::run(&variables, scenario, |outcome| outcome.assert_clean());
}

#[test]
fn a_barrier_ends_the_overlap() {
    let variables = [("FAKE_VK_OVERLAP", "1"), ("FAKE_VK_DISPATCH_NS", "100000")];
    let scenario = || {
        let ticks = two_dispatches(true);
        assert_eq!(ticks[2] - ticks[0], 100_000);
        assert_eq!(ticks[3] - ticks[0], 200_000);
    };
    child::run(&variables, scenario, |outcome| outcome.assert_clean());
}

#[test]
fn a_null_driver_takes_no_time() {
    let scenario = || {
        let ticks = two_dispatches(false);
        assert_eq!(ticks[3] - ticks[0], 0);
    };
    child::run(&[("FAKE_VK_NULL", "1")], scenario, |outcome| {
        outcome.assert_clean()
    });
}

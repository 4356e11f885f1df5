//! What limits kernels by the shape of their launches.

use crate::program::{US, findings_of};
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::limits::KernelLimit;

/// A GPU of 100 multiprocessors, of which each holds 8 workgroups of `gemm`: 800 in all.
const DEVICE: &str = "device id=1 api=cuda limits.multiprocessors=100 limits.compute_capability=9.0 limits.threads_per_multiprocessor=2048 \
    limits.registers_per_multiprocessor=65536 limits.shared_bytes_per_multiprocessor=233472
queue id=1 device=1
queue id=2 device=1
kernel id=1 name=gemm local_x=256 local_y=1 local_z=1 registers=32 static_shared_bytes=0 dynamic_shared_bytes=0
kernel id=2 name=ncclDevKernel_AllReduce local_x=256 local_y=1 local_z=1 registers=32 static_shared_bytes=0 dynamic_shared_bytes=0
kernel id=3 name=norm
";

/// Workgroups, and when it ran.
fn dispatch(kernel: u32, groups: u32, [from, to]: [i64; 2]) -> String {
    format!(
        "dispatch queue=1 kernel={kernel} groups_x={groups} groups_y=1 groups_z=1 start_ns={from}us duration_ns={}us\n",
        to - from
    )
}

fn kernels(device: &str, rows: &str) -> Vec<Kernel> {
    findings_of(&format!("{device}{rows}")).kernels.into_value()
}

fn limit(rows: &str) -> (Option<KernelLimit>, Option<i64>) {
    let kernel = &kernels(DEVICE, rows)[0];
    (kernel.limit, kernel.winnable_ns.map(|ns| ns / US))
}

#[test]
fn multiprocessors_without_workgroups_are_what_a_small_kernel_could_win() {
    // The first 5 µs are what any kernel takes.
    let found = kernels(DEVICE, &dispatch(1, 10, [0, 1005]));
    assert_eq!(found[0].limit, Some(KernelLimit::TooSmall));
    assert_eq!(found[0].winnable_ns, Some(900 * US));
    assert_eq!(found[0].distance, Some(900.0 / 1005.0));
    let launches = found[0].launches.unwrap();
    assert_eq!(launches.multiprocessors, 100);
    assert_eq!(launches.mean_multiprocessors, 10.0);
    assert_eq!(launches.occupancy, Some(1.0));
    assert_eq!(launches.occupancy_limited_by, Some("threads"));
    assert_eq!(launches.waves, Some(10.0 / 800.0));
    // The same GPU through an interface that tells less of it.
    let both = format!(
        "device id=2 api=vulkan uuid=aa limits.multiprocessors=100\n{}",
        DEVICE.replace("api=cuda", "api=cuda uuid=aa")
    );
    let found = kernels(&both, &dispatch(1, 10, [0, 1005]));
    assert_eq!(found[0].launches, Some(launches));
    // One for each multiprocessor, and all are at work.
    assert_eq!(limit(&dispatch(1, 100, [0, 1005])), (None, None));
    // Under a tenth.
    assert_eq!(limit(&dispatch(1, 91, [0, 1005])), (None, None));
}

#[test]
fn a_last_wave_that_is_not_full_leaves_the_rest_unused() {
    // 900 of 800 at once: a second wave of 100.
    let tail = (Some(KernelLimit::Tail), Some(700));
    // The last has a hundred waves.
    for (groups, expected) in [(900, tail), (1600, (None, None)), (80_100, (None, None))] {
        assert_eq!(limit(&dispatch(1, groups, [0, 1605])), expected);
    }
}

#[test]
fn a_kernel_as_short_as_the_shortest_is_limited_by_nothing_else() {
    let short = dispatch(1, 1, [0, 3]) + &dispatch(1, 1, [10, 17]);
    // 5 µs on average, where the shortest took 3.
    assert_eq!(limit(&short), (Some(KernelLimit::Short), None));
    let longer = dispatch(1, 1, [0, 3]) + &dispatch(1, 1, [10, 23]);
    assert_eq!(limit(&longer), (Some(KernelLimit::TooSmall), Some(9)));
}

#[test]
fn what_runs_beside_other_work_wins_nothing() {
    let beside = dispatch(3, 4000, [100, 2000]).replace("queue=1", "queue=2");
    let found = kernels(DEVICE, &(dispatch(1, 10, [0, 1005]) + &beside));
    let gemm = found.iter().find(|kernel| kernel.name == "gemm").unwrap();
    assert_eq!(gemm.limit, None);
    assert_eq!(gemm.launches.unwrap().too_small_ns, 0);
}

#[test]
fn what_is_not_known_is_no_limit() {
    let small = dispatch(1, 10, [0, 1005]);
    let unsized_device = DEVICE.replace("limits.multiprocessors=100 ", "");
    assert_eq!(kernels(&unsized_device, &small)[0].launches, None);
    // It communicates: few workgroups are its purpose.
    let found = kernels(DEVICE, &dispatch(2, 10, [0, 1005]));
    assert_eq!(found[0].launches, None);
    // No registers, no waves; that it is small is known all the same.
    let found = kernels(DEVICE, &dispatch(3, 10, [0, 1005]));
    assert_eq!(found[0].limit, Some(KernelLimit::TooSmall));
    let launches = found[0].launches.unwrap();
    assert_eq!(launches.occupancy, None);
    assert_eq!(launches.waves, None);
    assert_eq!(launches.tail_ns, 0);
    // Most of the time is of dispatches whose workgroups are not known.
    let indirect = "dispatch queue=1 kernel=1 start_ns=2000us duration_ns=2000us\n";
    assert_eq!(limit(&(small + indirect)), (None, None));
}

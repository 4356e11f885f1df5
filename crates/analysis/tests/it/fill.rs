//! How much of a device the kernels fill.

use crate::program::{US, assert_says, findings_of};
use crate::verdict::cuda;
use gapscope_analysis::Findings;
use gapscope_analysis::fill::DeviceFill;
use gapscope_analysis::verdict::Bound;

/// A kernel with so many workgroups, from one microsecond to another.
fn kernel(id: u32, groups: &str, [from, to]: [i64; 2]) -> String {
    format!(
        "dispatch submission=1 queue=1 kernel={id} {groups} start_ns={from}us duration_ns={}us\n",
        to - from
    )
}

fn groups(count: u32) -> String {
    format!("groups_x={count} groups_y=1 groups_z=1")
}

/// 100 microseconds of kernels, the first `share` of them with so many workgroups, and the rest with many.
fn small_first(count: u32, share: i64) -> Findings {
    cuda(&(kernel(1, &groups(count), [0, share]) + &kernel(1, &groups(500), [share, 100])))
}

fn underfilled_us(findings: &Findings) -> Option<i64> {
    findings.fill[0].underfilled_ns.map(|ns| ns / US)
}

#[test]
fn kernels_below_a_quarter_of_the_multiprocessors_underfill_the_device() {
    assert_eq!(underfilled_us(&small_first(24, 100)), Some(100));
    assert_eq!(underfilled_us(&small_first(25, 100)), Some(0));
}

#[test]
fn a_device_that_is_underfilled_for_half_of_the_time_is_latency_bound() {
    let findings = small_first(2, 50);
    assert_eq!(findings.verdict, Bound::LatencyBound);
    let sentence = &findings.verdict_evidence.sentence;
    assert_says(sentence, "50.0 %");
    assert_says(sentence, "too little work at once");
    let computed = &findings.verdict_evidence.parts[0].sentence;
    assert!(
        computed.contains("for 50.0 % of that its kernels filled less than a quarter of it: 2.0 of 100 multiprocessors on average"),
        "{computed}"
    );
    assert_eq!(small_first(2, 49).verdict, Bound::DeviceBound);
    assert_eq!(small_first(25, 100).verdict, Bound::DeviceBound);
}

#[test]
fn starting_work_and_underfilling_the_device_are_both_latency() {
    let with_gap = |small: i64| {
        let rows = kernel(1, &groups(1), [0, small]) + &kernel(1, &groups(500), [small + 25, 100]);
        cuda(&rows).verdict
    };
    assert_eq!(with_gap(25), Bound::LatencyBound);
    assert_eq!(with_gap(24), Bound::DeviceBound);
}

#[test]
fn kernels_that_run_at_once_fill_the_device_together() {
    let rows = [
        kernel(1, &groups(20), [0, 100]),
        kernel(1, &groups(5), [40, 60]),
        kernel(1, &groups(4), [60, 80]),
    ];
    let findings = cuda(&rows.concat());
    // Once, though two ran.
    let kernel = &findings.fill[0].kernels[0];
    assert_eq!(kernel.underfilled_ns, 80 * US);
    assert_eq!(underfilled_us(&findings), Some(80));
    let DeviceFill {
        known_ns,
        computing_ns,
        mean_multiprocessors,
        underfilled_mean_multiprocessors,
        ..
    } = findings.fill[0];
    assert_eq!((known_ns, computing_ns), (Some(100 * US), 100 * US));
    assert_eq!(
        mean_multiprocessors,
        Some(20.0 + (5.0 * 20.0 + 4.0 * 20.0) / 100.0)
    );
    assert_eq!(
        underfilled_mean_multiprocessors,
        Some(20.0 + 4.0 * 20.0 / 80.0)
    );
}

#[test]
fn beside_communication_and_copies_nothing_is_underfilled() {
    let communication = cuda(&kernel(2, &groups(2), [0, 100]));
    assert_eq!(underfilled_us(&communication), Some(0));
    assert_eq!(communication.fill[0].computing_ns, 0);
    let rows = [
        kernel(1, &groups(1), [0, 100]),
        kernel(2, &groups(1), [20, 50]),
        "transfer submission=1 queue=2 kind=host-to-device bytes=1 start_ns=60us duration_ns=10us"
            .to_owned(),
    ];
    assert_eq!(underfilled_us(&cuda(&rows.concat())), Some(60));
}

#[test]
fn what_is_not_known_is_unknown() {
    // An indirect dispatch, and one that runs beside it.
    let rows = kernel(1, "groups_x=1", [0, 60]) + &kernel(1, &groups(1), [30, 100]);
    let findings = cuda(&rows);
    assert_eq!(findings.fill[0].known_ns, Some(40 * US));
    assert_eq!(underfilled_us(&findings), Some(40));
    // A device of unknown size.
    let trace = "device id=1 api=cuda\nqueue id=1 device=1
        dispatch queue=1 kernel=1 groups_x=1 groups_y=1 groups_z=1 start_ns=0us duration_ns=100us";
    let findings = findings_of(trace);
    let fill = &findings.fill[0];
    assert_eq!(fill.multiprocessors, None);
    assert_eq!(fill.known_ns, None);
    assert_eq!(fill.underfilled_ns, None);
    assert_eq!(fill.computing_ns, 100 * US);
    assert_eq!(findings.verdict, Bound::DeviceBound);
    let sentence = &findings.verdict_evidence.parts[0].sentence;
    assert!(sentence.contains("is unknown"), "{sentence}");
}

#[test]
fn on_vulkan_what_is_unknown_is_said_where_the_driver_tells_the_size() {
    let computed = |limits: &str| {
        let trace = format!(
            "device id=1 api=vulkan {limits}\nqueue id=1 device=1
             dispatch queue=1 kernel=1 start_ns=0us duration_ns=60us
             dispatch queue=1 kernel=1 {} start_ns=60us duration_ns=40us",
            groups(500)
        );
        let findings = findings_of(&trace);
        findings.verdict_evidence.parts[0].sentence.clone()
    };
    let sized = computed("limits.multiprocessors=100");
    assert!(sized.contains("is unknown for 60.0 % of that"), "{sized}");
    let unsized_device = computed("");
    assert!(!unsized_device.contains("unknown"), "{unsized_device}");
}

#[test]
fn the_kernels_that_leave_it_idle_are_named_with_what_limits_them() {
    let rows = "
        kernel id=3 process=1 name=decode local_x=256 local_y=1 local_z=1 registers=128 static_shared_bytes=0 dynamic_shared_bytes=0
        device id=2 process=1 uuid=bb
        ".to_owned()
        + &[
            kernel(3, &groups(1), [0, 10]),
            kernel(3, &groups(2), [10, 20]),
            kernel(3, &groups(9), [20, 80]),
            kernel(1, &groups(3), [80, 90]),
            kernel(1, &groups(300), [90, 100]),
        ]
        .concat();
    let fill = &cuda(&rows).fill[0];
    let kernels: Vec<_> = (fill.kernels.iter())
        .map(|k| {
            (
                k.name.as_str(),
                k.count,
                k.groups_p50,
                k.underfilled_ns / US,
            )
        })
        .collect();
    // The launch of 300 workgroups is none of those that left the GPU idle.
    assert_eq!(kernels, [("decode", 3, 2, 80), ("gemm", 1, 3, 10)]);
    assert_eq!(fill.kernels[0].fill, 0.02);
    assert_eq!(fill.kernels[0].limited_by, None, "the limits are not known");
}

#[test]
fn they_have_the_names_that_people_read_and_the_workgroups_of_the_small_launches() {
    let whole = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char *, 3ul>>(int, at::native::CUDAFunctor_add<float>, std::array<char *, 3ul>)";
    let mut rows = format!("kernel id=3 process=1 name=\"{whole}\" full_name=\"{whole}\"\n");
    rows += &kernel(3, &groups(4), [0, 30]);
    for at in 3..10 {
        rows += &kernel(3, &groups(256), [10 * at, 10 * at + 10]);
    }
    let findings = cuda(&rows);
    let filled = &findings.fill[0].kernels[0];
    assert_eq!((filled.count, filled.groups_p50), (1, 4));
    assert_eq!(filled.underfilled_ns, 30 * US);
    assert_eq!(filled.name, findings.kernels[0].name);
    assert!(!filled.name.contains("void at::native"), "{}", filled.name);
}

#[test]
fn what_a_multiprocessor_can_hold_is_the_least_of_its_limits() {
    let held = |kernel: &str| {
        let trace = format!(
            "device id=1 api=cuda limits.multiprocessors=100 limits.compute_capability=9.0 limits.groups_per_multiprocessor=32 limits.threads_per_multiprocessor=2048
             device id=2
             queue id=1 device=1
             kernel id=1 name=k local_y=1 local_z=1 {kernel}
             dispatch queue=1 kernel=1 groups_x=1 groups_y=1 groups_z=1 start_ns=0us duration_ns=100us"
        )
        .replace("\n             device id=2", " limits.registers_per_multiprocessor=65536 limits.shared_bytes_per_multiprocessor=233472");
        let findings = findings_of(&trace);
        let kernel = &findings.fill[0].kernels[0];
        kernel.groups_per_multiprocessor.zip(kernel.limited_by)
    };
    let none = "static_shared_bytes=0 dynamic_shared_bytes=0";
    let some = "static_shared_bytes=1024 dynamic_shared_bytes=99328";
    for (threads, registers, shared, groups, by) in [
        (32, 16, none, 32, "groups"),
        (1024, 16, none, 2, "threads"),
        (256, 128, none, 2, "registers"),
        (128, 16, some, 2, "shared-memory"),
    ] {
        let kernel = format!("local_x={threads} registers={registers} {shared}");
        assert_eq!(held(&kernel), Some((groups, by)), "{kernel}");
    }
    assert_eq!(held(&format!("local_x=256 {none}")), None);
}

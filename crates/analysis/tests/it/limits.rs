//! What limits kernels by hardware counters.

use crate::program::{assert_says, findings_of};
use gapscope_analysis::Findings;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::limits::{CeilingSource, KernelLimit, LimitingUnit};

/// A GPU with 4 TB/s by the data sheet, measured as 2, 2.5 and 3 TB/s.
const MEASURED: &str = "device id=1 api=cuda limits.memory_bytes_per_s=4000000000000 \
    limits.measured.write_bytes_per_s=2000000000000 limits.measured.copy_bytes_per_s=2500000000000 \
    limits.measured.read_bytes_per_s=3000000000000 limits.measured.driver=1\n";
const SHEET: &str = "device id=1 api=cuda limits.memory_bytes_per_s=4000000000000\n";
const REST: &str = "queue id=1 device=1\nkernel id=1 name=first\nkernel id=2 name=second\n
counter id=1 name=\"SMs active\" unit=percent device=1 source=test\n
counter id=2 name=\"tensor pipe active\" unit=percent device=1 source=test\n
counter id=3 name=\"FMA pipe active\" unit=percent device=1 source=test\n
counter id=4 name=\"DRAM read\" unit=bytes/s device=1 source=test\n
counter id=5 name=\"DRAM written\" unit=bytes/s device=1 source=test\n
";
/// SMs active, tensor, FMA in percent, DRAM read and written in GB/s.
type Values = [f64; 5];

/// Ten dispatches of each kernel, 1 ms each in turn, with samples of 100 µs: all of them lie in one of the kernels.
fn trace(device: &str, values: [Values; 2]) -> String {
    let mut text = format!("{device}{REST}");
    for at in 0..20 {
        let kernel = at % 2;
        text += &format!(
            "dispatch queue=1 kernel={} start_ns={at}ms duration_ns=1ms\n",
            kernel + 1
        );
        for sample in 0..10 {
            samples(&mut text, at * 1000 + sample * 100, values[kernel]);
        }
    }
    text
}

fn samples(text: &mut String, start_us: usize, values: Values) {
    for (counter, value) in values.into_iter().enumerate() {
        let value = if counter < 3 { value } else { value * 1e9 };
        *text += &format!(
            "counter_value counter={} start_ns={start_us}us duration_ns=100us value={value}\n",
            counter + 1
        );
    }
}

fn kernel<'a>(findings: &'a Findings, name: &str) -> &'a Kernel {
    let mut kernels = findings.kernels.iter();
    kernels.find(|kernel| kernel.name == name).unwrap()
}

#[test]
fn memory_is_measured_against_what_the_device_was_measured_to_do() {
    // Half read: 2 of 2.5 TB/s. Only read: 2.4 of 3.
    let memory = [
        [95.0, 0.0, 5.0, 1000.0, 1000.0],
        [95.0, 0.0, 5.0, 2400.0, 0.0],
    ];
    let found = findings_of(&trace(MEASURED, memory));
    let first = kernel(&found, "first");
    assert_eq!(first.limit, Some(KernelLimit::Memory));
    assert_eq!(first.limited_by, Some(LimitingUnit::Dram));
    assert_eq!(first.reached, Some(0.8));
    assert!((first.distance.unwrap() - 0.2).abs() < 1e-9);
    let close = |found: i64, told: i64| assert!((found - told).abs() <= 1, "{found}");
    close(first.winnable_ns.unwrap(), 2_000_000);
    assert_eq!(kernel(&found, "second").reached, Some(0.8));
    let counters = first.counters.as_ref().unwrap();
    assert_eq!(counters.covered_ns, 10_000_000);
    assert_eq!(counters.ran_ns, 10_000_000);
    assert_eq!(counters.sample_count, 100);
    // 10 ms of 1 TB/s.
    assert_eq!(counters.dram_read_bytes.unwrap().value, 10_000_000_000);
    let said = found.kernel_limits.unwrap();
    assert_eq!(said.ceilings[0].source, CeilingSource::Measured);
    assert_says(&said.sentences[1], "measured one");
}

#[test]
fn without_a_measured_limit_it_is_the_data_sheets_and_said_to_be() {
    let values = [
        [95.0, 0.0, 5.0, 2000.0, 1000.0],
        [95.0, 0.0, 5.0, 1000.0, 1000.0],
    ];
    let found = findings_of(&trace(SHEET, values));
    assert_eq!(kernel(&found, "first").reached, Some(0.75));
    let said = found.kernel_limits.as_ref().unwrap();
    assert!(said.sentences[1].contains("by the data sheet"));
    assert!(said.sentences[1].contains("gapscope bench device"));
    // 50 % of it, and near nothing else.
    assert_eq!(kernel(&found, "second").limit, Some(KernelLimit::Latency));
    // The same GPU through an interface that tells its size alone.
    let both = format!(
        "device id=2 api=vulkan uuid=aa limits.multiprocessors=100\n{}",
        SHEET.replace("api=cuda", "api=cuda uuid=aa")
    );
    let both = findings_of(&trace(&both, values));
    assert_eq!(kernel(&both, "first").reached, Some(0.75));
    // Neither: a part of a device has a part of its bandwidth.
    let part = findings_of(&trace(
        &SHEET.replace("\n", " limits.partition=true\n"),
        values,
    ));
    let first = kernel(&part, "first");
    assert_eq!((first.limit, first.winnable_ns), (None, None));
    let because = first.counters.as_ref().unwrap().unknown_because.as_ref();
    assert_eq!(
        because.unwrap(),
        "Near no limit that is known; what it has of the memory's bandwidth is not."
    );
}

#[test]
fn pipes_bound_and_idle_multiprocessors_do() {
    let values = [
        [99.0, 90.0, 10.0, 1000.0, 0.0],
        [40.0, 20.0, 10.0, 100.0, 0.0],
    ];
    let found = findings_of(&trace(MEASURED, values));
    let first = kernel(&found, "first");
    assert_eq!(first.limit, Some(KernelLimit::Compute));
    assert_eq!(first.limited_by, Some(LimitingUnit::Tensor));
    assert_eq!(first.reached, Some(0.9));
    let second = kernel(&found, "second");
    assert_eq!(second.limit, Some(KernelLimit::Idle));
    assert_eq!(second.winnable_ns, Some(6_000_000));
}

#[test]
fn what_no_sample_covers_is_unknown_with_its_reason() {
    let values = [[99.0, 90.0, 10.0, 1000.0, 0.0]; 2];
    // A third kernel that only runs across samples, and one with fewer than are needed.
    let mut text = trace(MEASURED, values) + "kernel id=3 name=third\nkernel id=4 name=fourth\n";
    for at in 0..10 {
        text += &format!(
            "dispatch queue=1 kernel=3 start_ns={}us duration_ns=90us\n",
            21_050 + at * 200
        );
        samples(&mut text, 21_000 + at * 200, values[0]);
        samples(&mut text, 21_100 + at * 200, values[0]);
    }
    text += "dispatch queue=1 kernel=4 start_ns=24ms duration_ns=400us\n";
    (0..4).for_each(|at| samples(&mut text, 24_000 + at * 100, values[0]));
    let found = findings_of(&text);
    let third = kernel(&found, "third");
    assert_eq!((third.limit, third.reached), (None, None));
    let counters = third.counters.as_ref().unwrap();
    assert!(counters.means.is_empty() && counters.shares.is_empty());
    assert_eq!((counters.covered_ns, counters.dram_read_bytes), (0, None));
    let because = |name: &str| {
        let counters = kernel(&found, name).counters.clone().unwrap();
        counters.unknown_because.unwrap()
    };
    assert_eq!(because("third"), "No sample lies in its dispatches alone.");
    assert_eq!(
        because("fourth"),
        "Only 4 samples lie in its dispatches alone (5 are needed)."
    );
}

#[test]
fn counters_that_mean_something_else_are_not_used() {
    let values = [[99.0, 90.0, 10.0, 1000.0, 0.0]; 2];
    let text = trace(MEASURED, values);
    // Values without a time, another unit, another device.
    for other in [
        text.replace("duration_ns=100us", ""),
        text.replace("unit=percent", "unit=count")
            .replace("unit=bytes/s", "unit=bytes"),
        text.replace("device=1 source", "device=2 source"),
    ] {
        let found = findings_of(&other);
        assert_eq!(found.kernel_limits, None);
        assert_eq!(kernel(&found, "first").counters, None);
    }
}

#[test]
fn without_the_pipes_that_were_not_sampled_no_latency_is_claimed() {
    let values = [[99.0, 20.0, 10.0, 1000.0, 0.0]; 2];
    let found = findings_of(&trace(MEASURED, values));
    assert_eq!(kernel(&found, "first").limit, Some(KernelLimit::Latency));
    assert_eq!(kernel(&found, "first").limited_by, Some(LimitingUnit::Dram));
    let text = trace(MEASURED, values).replace("FMA pipe active", "something else");
    let found = findings_of(&text);
    let first = kernel(&found, "first");
    assert_eq!(first.limit, None);
    let because = first.counters.as_ref().unwrap().unknown_because.as_ref();
    assert_eq!(
        because.unwrap(),
        "Near no limit that is known; not sampled: FMA (`gapscope record --counters=wide`)."
    );
}

#[test]
fn a_kernel_that_communicates_is_not_judged_by_its_own_gpu() {
    let values = [[99.0, 90.0, 10.0, 1000.0, 0.0]; 2];
    let text = trace(MEASURED, values)
        .replace("name=first", "name=ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    let found = findings_of(&text);
    let mut kernels = found.kernels.iter();
    let nccl = kernels.find(|kernel| kernel.name != "second").unwrap();
    assert_eq!(nccl.limit, None);
    let counters = nccl.counters.as_ref().unwrap();
    let because = counters.unknown_because.as_ref().unwrap();
    assert!(because.starts_with("It communicates"), "{because}");
    assert!(!counters.means.is_empty());
}

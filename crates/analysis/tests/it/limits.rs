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

/// One kernel of 24 dispatches of 1 ms, whose samples have the values of each phase in turn for `run` samples. Values are in the
/// order of [`Values`], then PCIe read and NVLink received in GB/s.
fn phased(device: &str, run: usize, phases: &[[f64; 7]]) -> Findings {
    let mut text = format!("{device}{REST}");
    text += "counter id=6 name=\"PCIe read\" unit=bytes/s device=1 source=test\n\
             counter id=7 name=\"NVLink received\" unit=bytes/s device=1 source=test\n";
    for at in 0..24 {
        text += &format!("dispatch queue=1 kernel=1 start_ns={at}ms duration_ns=1ms\n");
    }
    for sample in 0..240 {
        let values = phases[sample / run % phases.len()];
        for (counter, value) in values.into_iter().enumerate() {
            let value = if counter < 3 { value } else { value * 1e9 };
            text += &format!(
                "counter_value counter={} start_ns={}us duration_ns=100us value={value}\n",
                counter + 1,
                sample * 100
            );
        }
    }
    findings_of(&text)
}

/// Limit, unit, microseconds that could be saved, and for each phase its limit, unit and per cent of the time.
fn told(found: &Findings) -> String {
    let kernel = kernel(found, "first");
    let name = |limit: Option<KernelLimit>, unit: Option<LimitingUnit>| {
        let unit = unit.map_or(String::new(), |unit| format!(":{}", unit.as_str()));
        limit.map_or("unknown", KernelLimit::as_str).to_owned() + &unit
    };
    let mut text = name(kernel.limit, kernel.limited_by);
    if let Some(ns) = kernel.winnable_ns {
        text += &format!(" {}", (ns + 500) / 1000);
    }
    for phase in &kernel.phases {
        let limit = name(phase.limit, phase.limited_by);
        text += &format!(", {limit} {:.0} %", phase.time_share * 100.0);
    }
    text
}

#[test]
fn each_sample_counts_for_its_own_nearest_limit() {
    const DRAM: [f64; 7] = [99.0, 5.0, 5.0, 2700.0, 0.0, 0.0, 0.0];
    const TENSOR: [f64; 7] = [99.0, 85.0, 5.0, 150.0, 0.0, 0.0, 0.0];
    const WAITS: [f64; 7] = [99.0, 5.0, 5.0, 300.0, 0.0, 0.0, 0.0];
    const IDLE: [f64; 7] = [20.0, 5.0, 5.0, 300.0, 0.0, 0.0, 0.0];
    // Steady work that scatters around the line of 60 %, and around two limits that are both near.
    const ABOVE: [f64; 7] = [99.0, 5.0, 5.0, 1860.0, 0.0, 0.0, 0.0];
    const BELOW: [f64; 7] = [99.0, 5.0, 5.0, 1740.0, 0.0, 0.0, 0.0];
    const BOTH: [f64; 7] = [99.0, 85.0, 5.0, 2400.0, 0.0, 0.0, 0.0];
    const SAME: [f64; 7] = [99.0, 80.0, 5.0, 2550.0, 0.0, 0.0, 0.0];
    let cases: [(&str, &[[f64; 7]], &str); 9] = [
        (
            "half and half",
            &[DRAM, TENSOR],
            "memory:dram 3000, memory:dram 50 %, compute:tensor 50 %",
        ),
        ("memory alone", &[DRAM], "memory:dram 2400"),
        (
            "tensor cores, then waits",
            &[TENSOR, TENSOR, WAITS],
            "compute:tensor 9600, compute:tensor 67 %, latency:dram 33 %",
        ),
        (
            "a limit, then idle",
            &[DRAM, IDLE, DRAM, DRAM],
            "memory:dram 6600, memory:dram 75 %, idle 25 %",
        ),
        (
            "three phases",
            &[DRAM, TENSOR, IDLE, DRAM],
            "memory:dram 6900, memory:dram 50 %, compute:tensor 25 %, idle 25 %",
        ),
        ("around the line", &[ABOVE, BELOW], "memory:dram 9600"),
        (
            "below the line",
            &[BELOW, BELOW, BELOW, ABOVE],
            "latency:dram 9840",
        ),
        ("near two limits", &[BOTH, SAME], "memory:dram 3600"),
        ("waits", &[WAITS], "latency:dram 21600"),
    ];
    let device = MEASURED;
    for (name, phases, expected) in cases {
        // A phase lasts for one sample, as in a loop, or for a dispatch.
        for run in [1, 10] {
            assert_eq!(
                told(&phased(device, run, phases)),
                expected,
                "{name}, {run}"
            );
        }
    }
    let found = phased(device, 10, &[DRAM, TENSOR]);
    let first = kernel(&found, "first");
    assert!((first.reached.unwrap() - 0.875).abs() < 1e-9);
    assert!((first.phases[1].reached.unwrap() - 0.85).abs() < 1e-9);
    let saved: i64 = first
        .phases
        .iter()
        .filter_map(|phase| phase.winnable_ns)
        .sum();
    assert_eq!(Some(saved), first.winnable_ns);
}

#[test]
fn a_phase_of_a_few_samples_counts_and_is_not_told() {
    const DRAM: [f64; 7] = [99.0, 5.0, 5.0, 2700.0, 0.0, 0.0, 0.0];
    const TENSOR: [f64; 7] = [99.0, 100.0, 5.0, 150.0, 0.0, 0.0, 0.0];
    let mut phases = [DRAM; 20];
    phases[7] = TENSOR;
    // 19 of 20 samples save a tenth, the other saves nothing.
    assert_eq!(told(&phased(MEASURED, 1, &phases)), "memory:dram 2280");
}

#[test]
fn a_kernel_that_waits_for_a_link_is_not_limited_by_latency() {
    const HOST: [f64; 7] = [99.0, 0.0, 5.0, 100.0, 50.0, 25.0, 0.0];
    const PEER: [f64; 7] = [99.0, 0.0, 5.0, 100.0, 50.0, 0.0, 440.0];
    const IDLE_HOST: [f64; 7] = [20.0, 0.0, 5.0, 100.0, 50.0, 25.0, 0.0];
    const DRAM: [f64; 7] = [99.0, 5.0, 5.0, 2700.0, 0.0, 2.0, 0.0];
    const POLLS: [f64; 7] = [99.0, 5.0, 5.0, 300.0, 0.0, 0.2, 0.0];
    let link = MEASURED.replace('\n', " limits.measured.host_read_bytes_per_s=27000000000\n");
    let fast = MEASURED.replace('\n', " limits.measured.host_read_bytes_per_s=55000000000\n");
    let nvlinked = |bytes: u64| {
        let limit = format!(" limits.measured.nvlink_received_bytes_per_s={bytes}\n");
        MEASURED.replace('\n', &limit)
    };
    let (near, far) = (nvlinked(450_000_000_000), nvlinked(900_000_000_000));
    let pcie = "It reads 23.3 GiB/s over PCIe from the host or another device, and is near no limit that is known; how much the link can carry is not known: `gapscope bench device` measures it.";
    let nvlink = "It receives 410 GiB/s over NVLink from another device, and is near no limit that is known; how much the link can carry is not known: `gapscope bench device` measures it.";
    type Case<'a> = (&'a str, &'a [[f64; 7]], &'a str, Option<&'a str>);
    let cases: [Case; 11] = [
        (MEASURED, &[HOST], "unknown", Some(pcie)),
        (MEASURED, &[IDLE_HOST], "unknown", Some(pcie)),
        (MEASURED, &[PEER], "unknown", Some(nvlink)),
        (&link, &[HOST], "link:pcie 1778", None),
        // The kernel does not use half of what the link can carry.
        (&fast, &[HOST], "latency:pcie 13091", None),
        (&near, &[PEER], "link:nvlink 533", None),
        (&far, &[PEER], "latency:nvlink 12267", None),
        (MEASURED, &[DRAM], "memory:dram 2400", None),
        (MEASURED, &[POLLS], "latency:dram 21600", None),
        (
            MEASURED,
            &[DRAM, DRAM, HOST],
            "memory:dram 9150, memory:dram 67 %, unknown 33 %",
            None,
        ),
        (
            &link,
            &[DRAM, DRAM, HOST],
            "memory:dram 2193, memory:dram 67 %, link:pcie 33 %",
            None,
        ),
    ];
    for (device, phases, expected, because) in cases {
        let found = phased(device, 10, phases);
        assert_eq!(told(&found), expected, "{phases:?}");
        let counters = kernel(&found, "first").counters.as_ref().unwrap();
        assert_eq!(counters.unknown_because.as_deref(), because, "{phases:?}");
    }
    let found = phased(MEASURED, 10, &[DRAM, DRAM, HOST]);
    let phases = &kernel(&found, "first").phases;
    assert_eq!(phases[1].unknown_because.as_deref(), Some(pcie));
}

#[test]
fn counters_that_were_sampled_at_different_times_are_judged_by_their_means() {
    let values = [[99.0, 5.0, 5.0, 2700.0, 0.0]; 2];
    let text = trace(MEASURED, values);
    // The counters of memory are sampled 50 µs later.
    let late = |line: &str| match line.split_once("counter_value counter=4 start_ns=") {
        Some((_, rest)) => {
            let (at, rest) = rest.split_once("us").unwrap();
            let at: usize = at.parse().unwrap();
            format!("counter_value counter=4 start_ns={}us{rest}\n", at + 50)
        }
        None => format!("{line}\n"),
    };
    let text: String = text.lines().map(late).collect();
    let found = findings_of(&text);
    let first = kernel(&found, "first");
    assert_eq!(first.limit, Some(KernelLimit::Memory));
    assert!((first.reached.unwrap() - 0.9).abs() < 1e-9);
    assert!(first.phases.is_empty());
}

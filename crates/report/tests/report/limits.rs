//! Tests limits of kernels by hardware counters.

use super::{assert_says, read, terminal, words};
use gapscope_analysis::{Findings, Options};
use gapscope_report::explanation::Explanation;
use gapscope_timeline::Timeline;
use gapscope_trace::Trace;

/// Kernels of 1 ms in turn, with samples of 100 µs in them, and one that ran once: SMs active, tensor, FMA in percent, DRAM read and
/// written in GB/s.
fn trace(limits: &str) -> Trace {
    let kernels: [(&str, [i64; 5]); 4] = [
        ("gemm", [98, 90, 5, 500, 125]),
        ("copy", [95, 0, 10, 1000, 1000]),
        ("walk", [90, 0, 20, 250, 250]),
        ("scatter", [40, 0, 5, 250, 0]),
    ];
    let counters = [
        "SMs active",
        "tensor pipe active",
        "FMA pipe active",
        "DRAM read",
        "DRAM written",
    ];
    let mut text = format!(
        "manifest sampling_mode=dispatch start_ns=0 end_ns=50ms\ndevice id=1 api=cuda name=H200 {limits}\nqueue id=1 device=1\nkernel id=9 name=rare\n"
    );
    for (at, counter) in counters.iter().enumerate() {
        let unit = if at < 3 { "percent" } else { "bytes/s" };
        text += &format!("counter id={at} name=\"{counter}\" unit={unit} device=1 source=test\n");
    }
    for (at, (name, _)) in kernels.iter().enumerate() {
        text += &format!("kernel id={at} name={name}\n");
    }
    for at in 0..40 {
        let kernel = at % kernels.len();
        text += &format!("dispatch queue=1 kernel={kernel} start_ns={at}ms duration_ns=1ms\n");
        for part in 0..10 {
            for (counter, value) in kernels[kernel].1.iter().enumerate() {
                let zeros = if counter < 3 { "" } else { "000000000" };
                text += &format!(
                    "counter_value counter={counter} start_ns={}us duration_ns=100us value={value}{zeros}\n",
                    at * 1000 + part * 100
                );
            }
        }
    }
    text += "dispatch queue=1 kernel=9 start_ns=41ms duration_ns=1ms\n";
    read(&text)
}

const MEASURED: &str = "limits.measured.copy_bytes_per_s=2500000000000";

/// Returns the section with single spaces between words.
fn section(page: &str) -> String {
    let section = page.split("Limits of kernels").nth(1).unwrap();
    let section = section.split("\n\n").next().unwrap();
    words(section)
}

#[test]
fn each_kernel_has_its_limit_and_how_far_it_is_from_it() {
    let page = terminal(&trace(MEASURED));
    let said = section(&page);
    let order = [
        "walk ≤ 8.00 ms latency 20 % ± 0 20 %",
        "scatter ≤ 6.00 ms idle 40 % ± 0 10 %",
        "copy ≤ 2.00 ms memory 80 % ± 0 80 %",
        "gemm ≤ 1.00 ms compute: tensor 90 % ± 0 25 % 90 %",
        "Limit unknown: rare. No sample lies in its dispatches alone.",
        "Hardware counters: 400 samples of 100 µs.",
        "cover 97.6 % of the kernels' time",
        "The limit of memory is the measured one: 2.27 TiB/s copying.",
    ];
    let places = order.map(|text| said.find(text).unwrap_or_else(|| panic!("{text}: {page}")));
    assert!(places.is_sorted(), "{page}");
}

#[test]
fn a_limit_by_the_data_sheet_is_said_to_be() {
    let sheet = section(&terminal(&trace("limits.memory_bytes_per_s=4000000000000")));
    let reason = "3.64 TiB/s by the data sheet, which no kernel reaches: `gapscope bench device` measures it.";
    assert_says(&sheet, reason);
    // The kernel reaches half of the data sheet's bandwidth, and is near no other limit.
    assert_says(&sheet, "copy ≤ 5.00 ms latency 50 %");
    let none = section(&terminal(&trace("")));
    let advice = "The limit of memory is unknown: `gapscope bench device` measures it.";
    assert_says(&none, advice);
    let unknown = "Limit unknown: copy. Near no limit that is known; what it has of the memory's bandwidth is not.";
    assert_says(&none, unknown);
}

#[test]
fn the_explanation_says_what_limits_a_kernel() {
    let trace = trace(MEASURED);
    let timeline = Timeline::new(&trace);
    let findings = Findings::from_timeline(&timeline, &Options::default());
    let claims = Explanation::new("t", &timeline, &findings, &[]).claims;
    let text = |name: &str| {
        let begin = format!("The kernel {name} ");
        let claim = claims.iter().find(|claim| claim.text.starts_with(&begin));
        claim.unwrap().text.as_str()
    };
    let memory =
        "Memory limits it: DRAM is at 80 % ± 0 of its limit; 2.00 ms could be saved at most.";
    assert_says(text("copy"), memory);
    let arithmetic =
        "Arithmetic limits it: tensor is at 90 % ± 0 of its limit; 1.00 ms could be saved at most.";
    assert_says(text("gemm"), arithmetic);
    let mut figures = claims.iter().flat_map(|claim| &claim.figures);
    let figure = figures.find(|figure| figure.name == "winnable_ns").unwrap();
    assert!(figure.report.as_ref().unwrap().starts_with("/kernels/"));
}

#[test]
fn a_kernel_with_phases_has_them_in_the_table_and_in_the_explanation() {
    // Every second launch of the matrix product copies.
    let text = trace(MEASURED);
    let timeline = Timeline::new(&text);
    let findings = Findings::from_timeline(&timeline, &Options::default());
    assert!(
        findings
            .kernels
            .iter()
            .all(|kernel| kernel.phases.is_empty())
    );
    let mut trace = text.clone();
    trace
        .tables
        .dispatches
        .kernel
        .iter_mut()
        .for_each(|kernel| {
            if kernel.0 == 1 {
                kernel.0 = 0;
            }
        });
    let page = words(&terminal(&trace));
    assert_says(&page, "gemm ≤ 3.00 ms compute: tensor (50 %) 85 %");
    let told = "Phases, by the part of a kernel's time: gemm: compute: tensor for 50 % (90 % reached), memory for 50 % (80 % reached).";
    assert_says(&page, told);
    let timeline = Timeline::new(&trace);
    let findings = Findings::from_timeline(&timeline, &Options::default());
    let claims = Explanation::new("t", &timeline, &findings, &[]).claims;
    let claim = claims
        .iter()
        .find(|claim| claim.text.starts_with("The kernel gemm "));
    let phases = "It has phases: for 50 % of its time arithmetic limits it: tensor is at 90 % of its limit; for 50 % of its time memory limits it: DRAM is at 80 % of its limit; 3.00 ms could be saved at most.";
    assert_says(&claim.unwrap().text, phases);
}

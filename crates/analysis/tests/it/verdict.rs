//! The verdict at its limits.

use crate::program::{Program, US, assert_says, findings_of};
use gapscope_analysis::Findings;
use gapscope_analysis::verdict::{Bound, VerdictPart};

/// A CUDA program: kernel 1 computes, kernel 2 communicates. The device has 100 multiprocessors.
pub fn cuda(rows: &str) -> Findings {
    findings_of(&format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda
         thread process=1 thread=7 name=main
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0 limits.multiprocessors=100
         queue id=1 device=1\nqueue id=2 device=1
         kernel id=1 process=1 name=gemm
         kernel id=2 process=1 name=ncclDevKernel_AllReduce_Sum_f32_RING_LL
         submission id=1 process=1 queue=1 thread=7 start_ns=-20us duration_ns=10us kind=kernel function=cuLaunchKernel
         {rows}"
    ))
}

/// A row of work that was submitted before all else, from one microsecond to another.
fn work(what: &str, [from, to]: [i64; 2]) -> String {
    let times = format!("start_ns={from}us duration_ns={}us", to - from);
    match what {
        "copy" => format!("transfer submission=1 queue=2 kind=host-to-device bytes=1 {times}\n"),
        "lost" => format!("dispatch queue=1 kernel=1 {times}\n"),
        kernel => {
            format!(
                "dispatch submission=1 queue=1 kernel={kernel} groups_x=200 groups_y=1 groups_z=1 {times}\n"
            )
        }
    }
}

/// 100 microseconds whose first `share` are of `what`, and the rest of `rest`; `-`: the device starts its work.
fn split(what: &str, share: i64, rest: &str) -> Bound {
    let mut rows = String::new();
    for (what, span) in [(what, [0, share]), (rest, [share, 100])] {
        if what != "-" {
            rows += &work(what, span);
        }
    }
    // The window has both ends.
    rows += &work("1", [0, 0]);
    rows += &work("1", [100, 100]);
    cuda(&rows).verdict
}

fn part<'a>(findings: &'a Findings, what: &str) -> Option<&'a VerdictPart> {
    let mut parts = findings.verdict_evidence.parts.iter();
    parts.find(|part| part.what == what)
}

/// Microseconds of a part.
fn time(findings: &Findings, what: &str) -> i64 {
    part(findings, what).map_or(0, |part| part.total_ns / US)
}

/// 100 pieces of work, each followed by host code that makes the device wait.
fn program(busy: i64, late: i64) -> Findings {
    let mut p = Program::new();
    let period = busy + late;
    for turn in 0..100 {
        let t = turn * period;
        p.dispatch(1, [t, t], t, busy);
    }
    // Ends the window with the last gap.
    p.dispatch(1, [100 * period, 100 * period], 100 * period, 0);
    p.findings()
}

#[test]
fn host_and_device_bound_begin_at_their_shares() {
    assert_eq!(program(50, 50).verdict, Bound::HostBound);
    assert_eq!(program(51, 49).verdict, Bound::Mixed);
    assert_eq!(program(74, 26).verdict, Bound::Mixed);
    assert_eq!(program(75, 25).verdict, Bound::DeviceBound);
}

#[test]
fn latency_communication_and_transfers_begin_at_their_shares() {
    assert_eq!(split("-", 50, "1"), Bound::LatencyBound);
    assert_eq!(split("-", 49, "1"), Bound::Mixed);
    assert_eq!(split("-", 26, "1"), Bound::Mixed);
    assert_eq!(split("-", 25, "1"), Bound::DeviceBound);
    assert_eq!(split("2", 50, "1"), Bound::CommunicationBound);
    assert_eq!(split("2", 49, "1"), Bound::Mixed);
    assert_eq!(split("2", 25, "1"), Bound::DeviceBound);
    assert_eq!(split("2", 26, "1"), Bound::Mixed);
    assert_eq!(split("copy", 50, "1"), Bound::TransferBound);
    assert_eq!(split("copy", 49, "1"), Bound::DeviceBound);
    // Communication is not the device's own work, and starting it neither.
    assert_eq!(split("2", 49, "-"), Bound::LatencyBound);
    assert_eq!(split("2", 51, "-"), Bound::CommunicationBound);
}

#[test]
fn sync_bound_begins_at_its_share() {
    let with_signal = |late: i64| {
        let signal = 20 + late;
        let rows = work("1", [0, 20])
            + &format!(
                "submission id=2 process=1 queue=1 thread=7 start_ns=-5us duration_ns=1us kind=kernel
                 dependency submission=2 host_signal_ns={signal}us
                 dispatch submission=2 queue=1 kernel=1 start_ns={signal}us duration_ns={}us\n",
                80 - late
            );
        cuda(&rows).verdict
    };
    assert_eq!(with_signal(50), Bound::SyncBound);
    assert_eq!(with_signal(49), Bound::Mixed);
}

#[test]
fn from_half_unexplained_on_there_is_no_verdict() {
    let lost_after = |busy: i64| cuda(&(work("1", [0, busy]) + &work("lost", [100, 100])));
    assert_eq!(lost_after(50).verdict, Bound::Unknown);
    let findings = lost_after(51);
    assert_eq!(findings.verdict, Bound::Mixed);
    assert_eq!(time(&findings, "unknown"), 49);
    let mut p = Program::new();
    p.dispatch(1, [0, 0], 0, 40);
    p.line("dispatch command_buffer=99 queue=1 kernel=1 start_ns=90us duration_ns=10us");
    assert_eq!(p.findings().verdict, Bound::Unknown);
}

#[test]
fn the_parts_sum_to_the_window() {
    let evidence = program(30, 70).verdict_evidence;
    assert_eq!(evidence.window_ns, Some(10_000 * US));
    let sum: i64 = evidence.parts.iter().map(|part| part.total_ns).sum();
    assert_eq!(sum, 10_000 * US);
    assert_eq!(evidence.parts[0].what, "host");
    assert_says(&evidence.sentence, "70.0 %");
}

#[test]
fn a_device_that_waits_for_a_launch_of_a_graph_is_not_device_bound() {
    // The call takes 590 us while the device idles, and the work 400.
    let findings = cuda(
        "dispatch submission=1 queue=1 kernel=1 start_ns=0us duration_ns=10us
         submission id=2 process=1 queue=1 thread=7 start_ns=10us duration_ns=590us command_buffers=1 kind=graph function=cudaGraphLaunch
         command_buffer id=1 process=1 queue=1 submission=2 dispatches=1 start_ns=600us duration_ns=400us timing=measured
         dispatch command_buffer=1 queue=1 kernel=1 start_ns=600us duration_ns=400us",
    );
    assert_ne!(findings.verdict, Bound::DeviceBound);
    assert_eq!(time(&findings, "compute"), 410);
    assert_eq!(time(&findings, "launch") + time(&findings, "host"), 590);
}

#[test]
fn a_device_that_waits_for_a_host_node_of_a_graph_is_not_device_bound() {
    let findings = cuda(
        "submission id=2 process=1 queue=1 thread=7 start_ns=-10us duration_ns=5us command_buffers=1 kind=graph function=cudaGraphLaunch
         command_buffer id=1 process=1 queue=1 submission=2 dispatches=2 start_ns=0us duration_ns=9900us timing=measured
         dispatch command_buffer=1 queue=1 kernel=1 start_ns=0us duration_ns=1000us
         dispatch command_buffer=1 position=2 queue=1 kernel=1 start_ns=8900us duration_ns=1000us",
    );
    assert_ne!(findings.verdict, Bound::DeviceBound);
    assert_eq!(time(&findings, "compute"), 2_000);
}

#[test]
fn only_the_causes_that_occur_are_named_in_the_words_of_the_api() {
    let latency = cuda(&(work("1", [0, 40]) + &work("1", [100, 110])));
    let sentence = &part(&latency, "launch").unwrap().sentence;
    assert!(
        sentence.ends_with("with work submitted: launch latency."),
        "{sentence}"
    );
    let within = cuda(
        "submission id=2 process=1 queue=1 thread=7 start_ns=-10us duration_ns=5us command_buffers=1 kind=graph
         command_buffer id=1 process=1 queue=1 submission=2 dispatches=2 start_ns=0us duration_ns=100us timing=measured
         dispatch command_buffer=1 queue=1 kernel=1 start_ns=0us duration_ns=10us
         dispatch command_buffer=1 position=1 queue=1 kernel=1 start_ns=90us duration_ns=10us",
    );
    let sentence = &part(&within, "launch").unwrap().sentence;
    assert!(sentence.contains("within a graph"), "{sentence}");
    assert!(!sentence.contains("latency"), "{sentence}");
}

#[test]
fn a_rank_that_waits_in_a_collective_is_not_computing() {
    // 19 % GEMM, 79 % AllReduce, of which 4 % overlap with computing.
    let findings = cuda(
        &[
            work("1", [0, 19]),
            work("2", [15, 98]),
            work("1", [100, 100]),
        ]
        .concat(),
    );
    assert_eq!(findings.verdict, Bound::CommunicationBound);
    assert_eq!(time(&findings, "compute"), 19);
    assert_eq!(time(&findings, "communication"), 79);
    let share = findings.devices[0].analysed.unwrap();
    assert_eq!(share.communication_only_ns, Some(79 * US));
    assert_eq!(share.communication_overlapped_ns, Some(4 * US));
    let sentence = &findings.verdict_evidence.sentence;
    assert_says(sentence, "79.0 %");
    assert_says(sentence, "4.0 %");
    let json = serde_json::to_value(&findings).unwrap();
    assert_eq!(json["verdict"], "communication-bound");
    let share = &json["devices"][0]["analysed"];
    assert_eq!(share["communication_only_ns"], 79 * US);
}

#[test]
fn copies_beside_communication_do_not_hide_it() {
    let findings = cuda(
        &[
            work("2", [0, 60]),
            work("copy", [50, 90]),
            work("1", [90, 100]),
        ]
        .concat(),
    );
    assert_eq!(time(&findings, "communication"), 60);
    assert_eq!(time(&findings, "transfer"), 30);
    assert_eq!(findings.devices[0].transfer_only_ns, Some(30 * US));
    assert_eq!(findings.verdict, Bound::CommunicationBound);
}

#[test]
fn whether_a_graph_that_is_timed_as_a_whole_communicates_is_unknown() {
    const GRAPH: &str = "submission id=2 process=1 queue=1 thread=7 start_ns=-5us duration_ns=1us command_buffers=1 kind=graph
         opaque_work submission=2 queue=1 kind=graph start_ns=20us duration_ns=80us\n";
    let graph = cuda(&(work("1", [0, 20]) + GRAPH));
    let share = graph.devices[0].analysed.unwrap();
    assert_eq!(share.communication_only_ns, None);
    assert_eq!(share.communication_overlapped_ns, None);
    assert_eq!(share.transfer_only_ns, None);
    assert_eq!((time(&graph, "compute"), time(&graph, "unknown")), (20, 80));
    let sentence = &part(&graph, "unknown").unwrap().sentence;
    assert_says(sentence, "graphs ran that are timed as a whole");
    // What is certain is said even so.
    let both = cuda(&(work("2", [100, 300]) + GRAPH));
    assert_eq!(both.verdict, Bound::CommunicationBound);
    assert_eq!(
        both.devices[0].analysed.unwrap().communication_only_ns,
        None
    );
}

/// Two devices; the rows name the queues 1 and 2, one on each.
fn two_devices(rows: &str) -> Findings {
    findings_of(&format!(
        "manifest sampling_mode=dispatch
         device id=1 process=1 api=cuda name=H200 uuid=aa clock.error_ns=0
         device id=2 process=1 api=cuda name=H200 uuid=bb clock.error_ns=0
         queue id=1 device=1\nqueue id=2 device=2
         kernel id=1 process=1 name=gemm
         submission id=1 process=1 queue=1 thread=7 start_ns=-20us duration_ns=10us kind=kernel
         submission id=2 process=1 queue=2 thread=7 start_ns=-20us duration_ns=10us kind=kernel
         {rows}"
    ))
}

#[test]
fn devices_are_judged_over_one_window() {
    let findings = two_devices(
        "dispatch submission=1 queue=1 kernel=1 start_ns=0us duration_ns=100000us
         dispatch submission=2 queue=2 kernel=1 start_ns=0us duration_ns=10000us",
    );
    assert_eq!(findings.verdict, Bound::Mixed);
    assert_eq!(findings.verdict_evidence.window_ns, Some(200_000 * US));
    assert_eq!(time(&findings, "compute"), 110_000);
    assert_eq!(time(&findings, "imbalance"), 90_000);
    let sentence = &part(&findings, "imbalance").unwrap().sentence;
    assert!(
        sentence.ends_with("GPU 1 was busy for 10.0 ms, GPU 0 for 100 ms."),
        "{sentence}"
    );
    // Each on its own, over the same window.
    let [first, second] = findings.idle_time.devices.as_slice() else {
        panic!("two devices")
    };
    assert_eq!(first.verdict, Bound::DeviceBound);
    assert_eq!(second.verdict, Bound::Mixed);
    assert_eq!(second.verdict_window_ns, Some(100_000 * US));
    let parts: Vec<_> = (second.verdict_evidence.iter())
        .map(|part| (part.what, part.total_ns / US))
        .collect();
    assert_eq!(parts, [("imbalance", 90_000), ("compute", 10_000)]);
    let idled = "had no work while another had for 90.0 %";
    assert_says(&second.verdict_sentence, idled);
    let own = findings.devices[1].analysed.unwrap();
    assert_eq!(own.window_ns, 10_000 * US, "its own window");
}

#[test]
fn imbalance_is_told_before_the_first_work_too_and_gaps_are_gaps() {
    let findings = two_devices(
        "dispatch submission=1 queue=1 kernel=1 start_ns=0us duration_ns=100us
         dispatch submission=2 queue=2 kernel=1 start_ns=30us duration_ns=10us
         dispatch submission=2 queue=2 kernel=1 start_ns=60us duration_ns=10us",
    );
    assert_eq!(time(&findings, "imbalance"), 60);
    assert_eq!(time(&findings, "launch"), 20);
    let sum: i64 = (findings.verdict_evidence.parts.iter())
        .map(|part| part.total_ns)
        .sum();
    assert_eq!(sum, 200 * US);
}

#[test]
fn one_device_has_no_imbalance_and_its_own_verdict_is_that_of_all() {
    let findings = program(60, 40);
    assert_eq!(time(&findings, "imbalance"), 0);
    let device = &findings.idle_time.devices[0];
    assert_eq!(device.verdict, findings.verdict);
    assert_eq!(device.verdict_evidence, findings.verdict_evidence.parts);
    assert_eq!(device.verdict_sentence, findings.verdict_evidence.sentence);
}

#[test]
fn nothing_timed_is_unknown_and_says_so() {
    let mut p = Program::new();
    p.line("submission id=1 queue=1 start_ns=0 duration_ns=1000 command_buffers=1");
    p.line("command_buffer id=1 queue=1 submission=1 dispatches=1 timing=no-timestamps");
    p.line("dispatch command_buffer=1 queue=1 kernel=1");
    let findings = p.findings();
    assert_eq!(findings.verdict, Bound::Unknown);
    assert!(findings.verdict_evidence.sentence.contains("known times"));
    assert_eq!(findings.gpu_busy_ns, None);
    assert_eq!(findings.dispatch_count, 1);
    assert_eq!(findings.kernels[0].durations.total_ns, None);
    let json = serde_json::to_value(&findings).unwrap();
    assert_eq!(json["kernels"][0]["total_ns"], serde_json::Value::Null);
    assert_eq!(json["gpu_busy_ns"], serde_json::Value::Null);
    assert_eq!(json["verdict"], "unknown");
}

#[test]
fn an_empty_trace_has_findings() {
    let findings = Program::from_text("").findings();
    assert_eq!(findings.verdict, Bound::Unknown);
    assert_eq!(findings.wall_ns, None);
    assert_eq!(findings.devices.len(), 0);
}

#[test]
fn communication_that_is_hidden_is_told() {
    let findings = cuda(&(work("1", [0, 100]) + &work("2", [20, 50])));
    assert_eq!(findings.verdict, Bound::DeviceBound);
    assert_eq!(time(&findings, "communication"), 0);
    let sentence = &part(&findings, "compute").unwrap().sentence;
    assert_says(sentence, "all communication, 30.0 µs, overlapped");
}

//! Gaps of CUDA programs: work that calls launch by themselves, graphs, streams that wait for events.

use crate::program::{US, causes, findings};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_analysis::verdict::Bound;
use gapscope_trace::Trace;
use gapscope_trace::ids::{QueueId, SubmissionId, ThreadId};

/// A kernel from 0 to 100 us, launched by thread 7, then what `rest` says.
fn after_a_kernel(rest: &str) -> Findings {
    findings(&trace(&format!(
        "submission id=1 process=1 queue=1 thread=7 start_ns=-20us duration_ns=10us kind=kernel function=cudaLaunchKernel
         dispatch submission=1 queue=1 kernel=1 start_ns=0us duration_ns=100us
         {rest}"
    )))
}

fn trace(rows: &str) -> Trace {
    Trace::from_text(&format!(
        "manifest sampling_mode=dispatch
         process id=1 pid=10 hook=cuda
         thread process=1 thread=7 name=main
         device id=1 process=1 api=cuda name=GPU uuid=aa clock.error_ns=0
         queue id=1 device=1
         queue id=2 device=1
         kernel id=1 process=1 name=work
         {rows}"
    ))
    .unwrap()
}

fn gaps_after_a_kernel(rest: &str) -> Vec<(Cause, i64)> {
    causes(&after_a_kernel(rest).gaps)
}

#[test]
fn a_kernel_without_a_command_buffer_is_explained_by_its_own_launch() {
    let findings = after_a_kernel(
        "submission id=2 process=1 queue=1 thread=7 start_ns=150us duration_ns=20us kind=kernel function=cudaLaunchKernel
         dispatch submission=2 queue=1 kernel=1 start_ns=200us duration_ns=10us",
    );
    assert_eq!(
        causes(&findings.gaps),
        [(HostLate, 50), (LaunchLatency, 30), (SubmitCall, 20)]
    );
    assert_eq!(findings.command_buffer_count, 0, "no graph was launched");
    assert_eq!(findings.dispatch_count, 2);
    let gap = &findings.idle_time.longest[0];
    assert_eq!(gap.submission, Some(SubmissionId(2)));
    assert_eq!(gap.thread, Some(ThreadId(7)));
    assert_eq!(findings.latency[0].submission_count, 2);
}

#[test]
fn the_call_that_held_the_host_is_named() {
    let findings = after_a_kernel(
        "host_call process=1 thread=7 call=allocate-memory function=cudaMalloc start_ns=110us duration_ns=30us
         host_call process=1 thread=7 call=load-module function=cuModuleLoadData start_ns=140us duration_ns=20us
         submission id=2 process=1 queue=1 thread=7 start_ns=180us duration_ns=10us kind=kernel function=cuLaunchKernel
         dispatch submission=2 queue=1 kernel=1 start_ns=190us duration_ns=10us",
    );
    assert_eq!(
        causes(&findings.gaps),
        [
            (HostLate, 30),
            (HostAllocate, 30),
            (HostCompile, 20),
            (SubmitCall, 10)
        ]
    );
    let calls: Vec<_> = findings
        .idle_time
        .host_calls
        .iter()
        .map(|c| (c.call, c.function.as_deref(), c.total_ns / US))
        .collect();
    assert_eq!(
        calls,
        [
            ("allocate-memory", Some("cudaMalloc"), 30),
            ("outside of GPU calls", None, 30),
            ("load-module", Some("cuModuleLoadData"), 20),
        ]
    );
}

#[test]
fn waits_of_cuda_serialise_as_those_of_vulkan_do() {
    for wait in [
        "call=wait-queue-idle function=cudaStreamSynchronize",
        "call=wait-event function=cudaEventSynchronize",
        "call=copy-and-wait function=cudaMemcpy",
    ] {
        let gaps = gaps_after_a_kernel(&format!(
            "host_call process=1 thread=7 {wait} start_ns=0us duration_ns=130us
             submission id=2 process=1 queue=1 thread=7 start_ns=180us duration_ns=10us
             dispatch submission=2 queue=1 kernel=1 start_ns=200us duration_ns=10us"
        ));
        assert_eq!(
            gaps,
            [(AfterHostWait, 80), (SubmitCall, 10), (LaunchLatency, 10)],
            "{wait}"
        );
    }
}

#[test]
fn a_graph_launch_has_its_call_and_its_start() {
    let findings = after_a_kernel(
        "submission id=2 process=1 queue=1 thread=7 start_ns=150us duration_ns=20us command_buffers=1 kind=graph function=cudaGraphLaunch
         command_buffer id=1 process=1 queue=1 submission=2 dispatches=2 start_ns=200us duration_ns=50us timing=measured
         dispatch command_buffer=1 queue=1 kernel=1 start_ns=200us duration_ns=10us
         dispatch command_buffer=1 position=1 queue=1 kernel=1 start_ns=240us duration_ns=10us",
    );
    assert_eq!(
        causes(&findings.gaps),
        [
            (HostLate, 50),
            (GraphLaunch, 30),
            (WithinCommandBuffer, 30),
            (SubmitCall, 20)
        ]
    );
    assert_eq!(findings.command_buffer_count, 1);
}

#[test]
fn code_that_is_loaded_inside_a_launch_and_the_recordings_own_time_are_distinguished() {
    let gaps = gaps_after_a_kernel(
        "submission id=2 process=1 queue=1 thread=7 start_ns=100us duration_ns=90us kind=kernel function=cudaLaunchKernel
         host_call process=1 thread=7 call=load-module start_ns=110us duration_ns=50us
         host_call process=1 thread=7 call=recording start_ns=160us duration_ns=20us
         dispatch submission=2 queue=1 kernel=1 start_ns=200us duration_ns=10us",
    );
    assert_eq!(
        gaps,
        [
            (HostCompile, 50),
            (SubmitCall, 20),
            (Recording, 20),
            (LaunchLatency, 10)
        ]
    );
}

#[test]
fn time_that_profiling_a_kernel_took_is_no_part_of_the_verdict() {
    let profiled = |took_us: u32| {
        let after_us = 100 + took_us;
        let findings = after_a_kernel(&format!(
            "submission id=2 process=1 queue=1 thread=7 start_ns=120us kind=kernel function=cuLaunchKernel
             host_call process=1 thread=7 call=recording start_ns=100us duration_ns={took_us}us function=\"profiling of a kernel\"
             dispatch submission=2 queue=1 kernel=1 start_ns=130us duration_ns=10us
             kernel_metric profile=1 kernel=1 submission=2 section=speed-of-light metric=gpu__time_duration.sum value=9000 unit=ns passes=20
             submission id=3 process=1 queue=1 thread=7 start_ns={after_us}us duration_ns=5us kind=kernel function=cuLaunchKernel
             dispatch submission=3 queue=1 kernel=1 start_ns={}us duration_ns=100us",
            after_us + 10
        ));
        let profiles = &findings.profiled_kernels;
        assert_eq!((profiles.len(), profiles[0].duration_ns), (1, Some(9000.0)));
        assert_eq!(profiles[0].submission.map(|id| id.0), Some(2));
        let said = findings
            .notes
            .iter()
            .any(|note| note.contains("held the program up"));
        assert!(said, "{:?}", findings.notes);
        let recording = causes(&findings.gaps)
            .into_iter()
            .find(|(c, _)| *c == Recording);
        (
            findings.verdict,
            findings.verdict_evidence.window_ns,
            recording,
        )
    };
    let (bound, window_ns, recording) = profiled(500);
    assert!(recording.is_some_and(|(_, us)| us > 400), "{recording:?}");
    let (longer, longer_ns, _) = profiled(2_000_000);
    assert_eq!((bound, window_ns), (longer, longer_ns));
}

#[test]
fn a_stream_that_waits_for_an_event_waits_for_the_other_streams_work() {
    // The device idles between the copy and the kernel that waits for it; the stream of the kernel idles during it.
    let findings = after_a_kernel(
        "submission id=2 process=1 queue=2 thread=7 start_ns=20us duration_ns=10us kind=transfer function=cudaMemcpyAsync
         transfer submission=2 queue=2 kind=host-to-device bytes=100 start_ns=90us duration_ns=60us
         submission id=3 process=1 queue=1 thread=7 start_ns=40us duration_ns=10us kind=kernel function=cudaLaunchKernel
         dependency submission=3 waits_for=2
         dispatch submission=3 queue=1 kernel=1 start_ns=160us duration_ns=10us",
    );
    assert_eq!(causes(&findings.gaps), [(QueueHandover, 10)]);
    let stream = &findings.idle_time.queues[0];
    assert_eq!(
        causes(&stream.causes),
        [(OtherQueue, 50), (QueueHandover, 10)]
    );
    assert_eq!(
        findings.idle_time.longest[0].waited_for_queue,
        Some(QueueId(2))
    );
}

#[test]
fn work_whose_call_was_lost_leaves_the_gap_unknown() {
    let gaps = gaps_after_a_kernel("dispatch queue=1 kernel=1 start_ns=200us duration_ns=10us");
    assert_eq!(gaps, [(Unknown, 100)]);
}

#[test]
fn copies_alone_are_transfer_bound() {
    let findings = findings(&trace(
        "submission id=1 process=1 queue=1 thread=7 start_ns=0us duration_ns=5us kind=transfer function=cudaMemcpyAsync
         submission id=2 process=1 queue=1 thread=7 start_ns=5us duration_ns=4us kind=kernel function=cudaLaunchKernel
         transfer submission=1 queue=1 kind=host-to-device bytes=1000000 start_ns=10us duration_ns=80us
         dispatch submission=2 queue=1 kernel=1 start_ns=90us duration_ns=10us",
    ));
    assert_eq!(findings.verdict, Bound::TransferBound);
}

#[test]
fn in_command_buffer_mode_what_is_in_no_graph_keeps_its_times() {
    let mut trace = trace(
        "submission id=1 process=1 queue=1 thread=7 start_ns=0us duration_ns=5us kind=kernel function=cudaLaunchKernel
         dispatch submission=1 queue=1 kernel=1 start_ns=10us duration_ns=80us
         submission id=2 process=1 queue=1 thread=7 start_ns=5us duration_ns=4us command_buffers=1 kind=graph function=cudaGraphLaunch
         command_buffer id=1 process=1 queue=1 submission=2 start_ns=100us duration_ns=50us timing=measured
         opaque_work command_buffer=1 queue=1 kind=graph start_ns=100us duration_ns=50us",
    );
    trace.manifest.sampling_mode = gapscope_trace::manifest::SamplingMode::CommandBuffer;
    let findings = findings(&trace);
    assert_eq!(findings.gpu_busy_ns, Some(130 * US));
    assert_eq!(findings.kernels[0].durations.total_ns, Some(80 * US));
}

#[test]
fn calls_of_a_vulkan_process_do_not_hide_the_launches_of_a_cuda_one() {
    let gaps = gaps_after_a_kernel(
        "process id=2 pid=11
         host_call process=2 thread=9 call=submit start_ns=0us duration_ns=5us
         submission id=2 process=1 queue=2 thread=7 start_ns=110us duration_ns=20us kind=kernel function=cudaLaunchKernel
         submission id=3 process=1 queue=1 thread=7 start_ns=150us duration_ns=20us kind=kernel function=cudaLaunchKernel
         dispatch submission=3 queue=1 kernel=1 start_ns=200us duration_ns=10us
         dispatch submission=2 queue=2 kernel=1 start_ns=205us duration_ns=5us",
    );
    // From 110 to 130 us the thread was launching something else.
    assert_eq!(
        gaps,
        [(SubmitCall, 40), (HostLate, 30), (LaunchLatency, 30)]
    );
}

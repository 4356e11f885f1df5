//! Tests that launches are joined with the work that they caused on the device.

use super::*;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::{CommandBufferId, KernelId, ProcessId, QueueId, SubmissionId};
use gapscope_trace::tables::SubmissionKind;
use std::sync::Arc;

#[test]
fn a_launch_and_its_kernel_find_each_other_whichever_comes_first() {
    let mut cuda = Cuda::new();
    cuda.batch(&[call(LAUNCH, 1, 1000, 1005), kernel(3, 2, 1030, 1040)]);
    cuda.batch(&[kernel(1, 1, 1010, 1020), call(LAUNCH, 2, 1006, 1011)]);
    cuda.end(2000);
    let (manifest, tables) = cuda.finish();
    let d = &tables.dispatches;
    assert_eq!(d.command_buffer, [None, None]);
    assert_eq!(d.submission, [Some(SubmissionId(0)), Some(SubmissionId(1))]);
    assert_eq!(d.start_ns, [Some(1010), Some(1030)]);
    assert_eq!(d.duration_ns, [Some(10), Some(10)]);
    assert_eq!(d.groups_x, [Some(8), Some(8)]);
    let s = &tables.submissions;
    assert_eq!(
        (s.start_ns.as_slice(), s.duration_ns.as_slice()),
        ([1000, 1006].as_slice(), [5, 5].as_slice())
    );
    assert_eq!(s.function[0].as_deref(), Some("cudaLaunchKernel"));
    assert_eq!(s.kind, [SubmissionKind::Kernel; 2]);
    assert_eq!(
        s.command_buffers,
        [0, 0],
        "a launch is not a command buffer"
    );
    assert!(tables.command_buffers.is_empty() && tables.host_calls.is_empty());
    assert_eq!(manifest.losses, []);
}

#[test]
fn kernels_are_named_and_have_a_row_for_each_size() {
    let mut cuda = Cuda::new();
    for (at, launch) in [1, 2, 3, 4].into_iter().enumerate() {
        let (correlation, begin) = (at as u32 + 1, 1000 + at as i64 * 100);
        cuda.batch(&[
            call(LAUNCH, correlation, begin, begin + 5),
            kernel(launch, correlation, begin + 10, begin + 20),
        ]);
    }
    let (_, tables) = cuda.finish();
    let k = &tables.kernels;
    assert_eq!(
        k.name,
        ["vecAdd", "triton_poi_fused_0", "triton_poi_fused_0"].map(Arc::from)
    );
    assert_eq!(
        k.full_name[0].as_deref(),
        Some("vecAdd(float const*, float const*, float*, int)")
    );
    assert_eq!(k.full_name[1], None);
    assert_eq!(k.entry_point[0].as_deref(), Some("_Z6vecAddPKfS0_Pfi"));
    assert_eq!(k.local_x, [128, 64, 256].map(Some));
    assert_eq!(k.registers, [Some(40); 3]);
    assert_eq!(k.static_shared_bytes, [Some(16); 3]);
    assert_eq!(k.dynamic_shared_bytes, [Some(1024); 3]);
    assert_eq!(tables.dispatches.kernel, [0, 0, 1, 2].map(KernelId));
    assert_eq!(tables.dispatches.queue, [0, 1, 0, 0].map(QueueId));
}

#[test]
fn a_graph_launch_is_a_command_buffer_of_its_nodes() {
    let mut cuda = Cuda::new();
    cuda.batch(&[node(1, 9, 1010, 1020), call(GRAPH_LAUNCH, 9, 1000, 1008)]);
    cuda.batch(&[node(2, 9, 1015, 1040), node(3, 9, 1050, 1060)]);
    cuda.batch(&[
        call(GRAPH_LAUNCH, 10, 1100, 1108),
        Recorded::Activity(Activity::GraphRun {
            queue: hook::Queue(1),
            span: span(1110, 1160),
            correlation: hook::Correlation(10),
        }),
    ]);
    cuda.end(2000);
    let (manifest, tables) = cuda.finish();
    let c = &tables.command_buffers;
    assert_eq!(c.id, [0, 1].map(CommandBufferId));
    assert_eq!(c.start_ns, [Some(1010), Some(1110)]);
    assert_eq!(c.duration_ns, [Some(50), Some(50)]);
    assert_eq!(c.dispatches, [3, 0]);
    assert_eq!(c.submission, [0, 1].map(SubmissionId));
    assert_eq!(tables.submissions.command_buffers, [1, 1]);
    let d = &tables.dispatches;
    assert_eq!(d.command_buffer, [Some(CommandBufferId(0)); 3]);
    assert_eq!(d.submission, [None; 3]);
    assert_eq!(d.position, [0, 1, 2]);
    assert_eq!(tables.opaque_work.kind, [OpaqueWorkKind::Graph]);
    assert_eq!(manifest.losses, []);
}

#[test]
fn a_long_graph_is_one_command_buffer_beside_a_stream_with_many_launches() {
    let mut cuda = Cuda::new();
    cuda.batch(&[call(GRAPH_LAUNCH, 1, 1000, 1008), node(1, 1, 1010, 2000)]);
    for correlation in 2..20_000 {
        let at = 2000 + i64::from(correlation) * 10;
        cuda.batch(&[
            call(LAUNCH, correlation, at, at + 2),
            kernel(2, correlation, at + 3, at + 6),
        ]);
    }
    cuda.batch(&[node(1, 1, 1_000_000, 1_000_010)]);
    cuda.end(2_000_000);
    let (manifest, tables) = cuda.finish();
    assert_eq!(manifest.losses, []);
    let c = &tables.command_buffers;
    assert_eq!(c.dispatches, [2]);
    assert_eq!(c.duration_ns, [Some(1_000_010 - 1010)]);
}

#[test]
fn copies_have_their_direction_and_a_synchronous_one_is_a_wait_too() {
    let mut cuda = Cuda::new();
    let copy = |correlation, start_ns, end_ns| {
        Recorded::Activity(Activity::Transfer {
            route: hook::Route(1),
            bytes: 4096,
            span: span(start_ns, end_ns),
            correlation: hook::Correlation(correlation),
            node: hook::GraphNode::NONE,
        })
    };
    cuda.batch(&[call(COPY_ASYNC, 1, 1000, 1005), copy(1, 1010, 1020)]);
    cuda.batch(&[call(COPY, 2, 1100, 1130), copy(2, 1110, 1120)]);
    cuda.end(2000);
    let (manifest, tables) = cuda.finish();
    let t = &tables.transfers;
    assert_eq!(
        t.kind,
        [gapscope_trace::tables::TransferKind::HostToDevice; 2]
    );
    assert_eq!(t.bytes, [Some(4096); 2]);
    assert_eq!(t.host_memory[0], Some(MemoryPlace::Pageable));
    let h = &tables.host_calls;
    assert_eq!(
        (h.call.as_slice(), h.queue.at(0)),
        ([HostCallKind::CopyAndWait].as_slice(), Some(QueueId(0)))
    );
    assert_eq!(manifest.losses, []);
}

#[test]
fn a_stream_that_waits_for_an_event_depends_on_the_work_before_it() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        call(LAUNCH, 1, 1000, 1005),
        Recorded::Activity(Activity::EventRecord {
            event: hook::CudaEvent(6),
            occurrence: 1,
            queue: hook::Queue(1),
            correlation: hook::Correlation(2),
        }),
        call(WAIT_EVENT, 3, 1010, 1011),
        Recorded::Activity(Activity::Wait {
            kind: WaitKind::QueueForEvent,
            queue: hook::Queue(2),
            event: hook::CudaEvent(6),
            occurrence: 1,
            span: span(1010, 1010),
            correlation: hook::Correlation(3),
        }),
        call(LAUNCH, 4, 1020, 1025),
        kernel(1, 1, 1010, 1100),
        kernel(2, 4, 1101, 1200),
    ]);
    cuda.end(2000);
    let (_, tables) = cuda.finish();
    assert_eq!(tables.dependencies.submission, [SubmissionId(1)]);
    assert_eq!(tables.dependencies.waits_for, [Some(SubmissionId(0))]);
}

/// The log of calls may be read long before that of waits and events.
#[test]
fn a_stream_that_waits_depends_on_work_that_was_followed_by_thousands_of_launches() {
    const LATER: u32 = 50_000;
    let mut cuda = Cuda::new();
    let launches: Vec<_> = (0..LATER)
        .map(|at| {
            call(
                LAUNCH,
                4 + at,
                1020 + i64::from(at) * 10,
                1025 + i64::from(at) * 10,
            )
        })
        .collect();
    cuda.batch(&[call(LAUNCH, 1, 1000, 1005), call(WAIT_EVENT, 3, 1010, 1011)]);
    cuda.batch(&launches);
    let works: Vec<_> = (0..LATER)
        .map(|at| {
            kernel(
                2 - at.min(1),
                4 + at,
                1101 + i64::from(at) * 10,
                1105 + i64::from(at) * 10,
            )
        })
        .collect();
    cuda.batch(&[kernel(1, 1, 1010, 1100)]);
    cuda.batch(&works);
    cuda.batch(&[
        Recorded::Activity(Activity::EventRecord {
            event: hook::CudaEvent(6),
            occurrence: 1,
            queue: hook::Queue(1),
            correlation: hook::Correlation(2),
        }),
        Recorded::Activity(Activity::Wait {
            kind: WaitKind::QueueForEvent,
            queue: hook::Queue(2),
            event: hook::CudaEvent(6),
            occurrence: 1,
            span: span(1010, 1010),
            correlation: hook::Correlation(3),
        }),
    ]);
    cuda.end(2_000_000);
    let (_, tables) = cuda.finish();
    assert_eq!(tables.dependencies.submission, [SubmissionId(1)]);
    assert_eq!(tables.dependencies.waits_for, [Some(SubmissionId(0))]);
}

#[test]
fn what_has_no_other_half_is_counted() {
    let mut cuda = Cuda::new();
    cuda.batch(&[call(LAUNCH, 1, 1000, 1005), kernel(1, 1, 1010, 1020)]);
    // The call was captured into a graph and launched nothing.
    cuda.batch(&[
        call(BEGIN_CAPTURE, 5, 890, 895),
        call(LAUNCH, 2, 900, 905),
        call(END_CAPTURE, 6, 910, 915),
    ]);
    // The kernel was still running when the process was killed.
    cuda.batch(&[call(LAUNCH, 3, 1100, 1105)]);
    // The call was lost, and so were the times of its work.
    cuda.batch(&[Recorded::Activity(Activity::Kernel {
        launch: hook::Launch(1),
        span: None,
        correlation: hook::Correlation(4),
        node: hook::GraphNode::NONE,
    })]);
    // A batch of five was lost.
    cuda.written += 5;
    cuda.batch(&[]);
    let (manifest, tables) = cuda.finish();
    assert_eq!(tables.dispatches.start_ns, [Some(1010), None]);
    assert_eq!(tables.dispatches.submission, [Some(SubmissionId(0)), None]);
    let launches = tables
        .host_calls
        .call
        .iter()
        .filter(|c| **c == HostCallKind::Launch);
    assert_eq!(launches.count(), 2);
    let losses: Vec<_> = manifest
        .losses
        .iter()
        .map(|l| (l.kind.as_str(), l.count))
        .collect();
    assert_eq!(
        losses,
        [
            ("CUDA activities", 5),
            ("dispatch times", 1),
            ("dispatches", 1),
            ("host calls of GPU work", 1)
        ]
    );
}

#[test]
fn launches_whose_work_never_came_are_counted_when_a_process_is_gone() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        // The kernel still runs on another stream; its record comes when it has ended.
        call(LAUNCH, 1, 1000, 1005),
        // The call is captured into a graph, by this thread or another, and runs nothing.
        call(BEGIN_CAPTURE, 2, 1100, 1105),
        call(LAUNCH, 3, 1110, 1115),
        call(END_CAPTURE, 4, 1120, 1125),
        // A copy of nothing leaves no record.
        call(COPY_ASYNC, 5, 1200, 1205),
        call(LAUNCH, 6, 1300, 1305),
        kernel(1, 6, 1310, 1320),
        // These are the last calls.
        call(LAUNCH, 7, 1400, 1405),
        call(COPY_ASYNC, 8, 1410, 1415),
        call(GRAPH_LAUNCH, 9, 1420, 1425),
    ]);
    let (manifest, tables) = cuda.finish();
    assert_eq!(tables.dispatches.len(), 1);
    let lost: Vec<(&str, u64)> = (manifest.losses.iter())
        .filter(|loss| loss.reason.contains("was gone before"))
        .map(|loss| (loss.kind.as_str(), loss.count))
        .collect();
    assert_eq!(
        lost,
        [("command buffers", 1), ("dispatches", 2), ("transfers", 1)]
    );
}

#[test]
fn memory_stays_bounded_when_no_call_comes_with_its_work() {
    let mut cuda = Cuda::new();
    let most = gapscope_timeline_builder::Bounds::LIVE.waiting as u32;
    for first in (1..2 * most).step_by(1000) {
        let batch: Vec<_> = (first..first + 1000)
            .map(|c| kernel(1, c, i64::from(c) + 1, i64::from(c) + 2))
            .collect();
        cuda.batch(&batch);
        cuda.tables.dispatches.clear();
    }
    let waiting = cuda.assembler.processes[ProcessId(0)]
        .timeline
        .known_correlations();
    assert!(waiting <= most as usize + 8192, "{waiting}");
}

#[test]
fn work_of_which_nothing_is_recorded_is_counted() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        call(PREFETCH, 1, 1000, 1005),
        submission(1, 1),
        submission(1, 2),
        call(PREFETCH, 2, 1010, 1015),
        call(DECOMPRESS, 3, 1020, 1025),
        submission(1, 3),
        // The calls are captured, or refused.
        call(PREFETCH, 0, 1030, 1035),
    ]);
    cuda.end(2000);
    let (manifest, tables) = cuda.finish();
    assert_eq!(
        tables.submissions.kind,
        [
            SubmissionKind::Prefetch,
            SubmissionKind::Prefetch,
            SubmissionKind::Decompression
        ]
    );
    let losses: Vec<_> = (manifest.losses.iter())
        .map(|loss| (loss.kind.as_str(), loss.count))
        .collect();
    assert_eq!(
        losses,
        [
            ("decompressions of memory by the device", 1),
            ("prefetches and discards of managed memory", 2)
        ]
    );
}

#[test]
fn what_a_stream_waits_for_is_a_submission_without_work() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        call(LAUNCH_HOST, 1, 1000, 1005),
        submission(2, 1),
        submission(1, 2),
        call(WAIT_VALUE, 2, 1100, 1107),
        // The calls are captured or refused, so that nothing is put on a stream.
        call(LAUNCH_HOST, 0, 1200, 1204),
        // The stream is unknown, because the process was killed.
        call(WAIT_VALUE, 3, 1300, 1305),
        Recorded::Activity(Activity::HostFunction {
            queue: hook::Queue(2),
            thread: hook::Thread(77),
            span: span(1010, 1900),
            correlation: hook::Correlation(1),
        }),
    ]);
    let (manifest, tables) = cuda.finish();
    let s = &tables.submissions;
    assert_eq!(
        s.kind,
        [SubmissionKind::HostFunction, SubmissionKind::WaitValue]
    );
    assert_eq!(s.queue, [1, 0].map(QueueId));
    assert_eq!((s.start_ns[1], s.duration_ns[1]), (1100, 7));
    assert_eq!(s.function[0].as_deref(), Some("cuLaunchHostFunc"));
    assert_eq!(s.command_buffers, [0, 0]);
    let h = &tables.host_calls;
    assert_eq!(
        h.call,
        [
            HostCallKind::OtherCall,
            HostCallKind::HostFunction,
            HostCallKind::OtherCall
        ]
    );
    assert_eq!(h.function[0].as_deref(), Some("cuLaunchHostFunc"));
    assert_eq!((h.queue.at(1), h.busy_ns[1]), (Some(QueueId(1)), 890));
    assert_eq!(h.thread.at(1).map(|thread| thread.0), Some(77));
    assert_eq!(manifest.losses, []);
}

#[test]
fn work_behind_an_event_waits_for_a_host_function_before_it() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        call(LAUNCH_HOST, 1, 1000, 1005),
        submission(1, 1),
        Recorded::Activity(Activity::EventRecord {
            event: hook::CudaEvent(6),
            occurrence: 1,
            queue: hook::Queue(1),
            correlation: hook::Correlation(2),
        }),
        Recorded::Activity(Activity::Wait {
            kind: WaitKind::QueueForEvent,
            queue: hook::Queue(2),
            event: hook::CudaEvent(6),
            occurrence: 1,
            span: None,
            correlation: hook::Correlation(3),
        }),
        call(LAUNCH, 4, 1020, 1025),
        kernel(2, 4, 2000, 2100),
    ]);
    let (_, tables) = cuda.finish();
    assert_eq!(tables.dependencies.submission, [SubmissionId(1)]);
    assert_eq!(tables.dependencies.waits_for, [Some(SubmissionId(0))]);
}

#[test]
fn a_graph_launch_says_how_many_host_nodes_it_has_where_that_is_known() {
    let mut cuda = Cuda::new();
    cuda.batch(&[
        Recorded::Event(
            CudaEvent::GraphLaunched {
                function: hook::Function(GRAPH_LAUNCH),
                span: between(1000, 1008),
                correlation: hook::Correlation(9),
                host_functions: Some(2),
                graph: hook::Graph::NONE,
            }
            .into(),
        ),
        node(1, 9, 1010, 1020),
        node(2, 10, 1110, 1120),
        call(GRAPH_LAUNCH, 10, 1100, 1108),
    ]);
    cuda.end(2000);
    let (_, tables) = cuda.finish();
    assert_eq!(tables.command_buffers.host_functions, [Some(2), None]);
}

#[test]
fn only_a_hook_that_could_not_record_says_why_there_is_no_work() {
    let mut cuda = Cuda::new();
    let note = |text| CommonEvent::Note {
        text: Cow::Borrowed(text),
    };
    cuda.event(note("The program has loaded CUPTI itself."));
    assert_eq!(cuda.assembler.reasons(), [""; 0]);
    cuda.event(CommonEvent::Loss {
        kind: LossKind::CudaWork,
        count: 1,
        reason: Cow::Borrowed("libcupti was not found"),
    });
    cuda.event(note("No GPU work of CUDA was recorded."));
    assert_eq!(
        cuda.assembler.reasons(),
        ["No GPU work of CUDA was recorded."]
    );
    let (manifest, _) = cuda.finish();
    assert_eq!(manifest.notes.len(), 2);
}

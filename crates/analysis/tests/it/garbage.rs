//! Whatever the rows say, there are findings, and their sums hold.

use gapscope_analysis::intervals::Interval;
use gapscope_analysis::ranks::{RankDigest, ranks};
use gapscope_analysis::{Findings, Options, Timeline, UnderLabel, activity};
use gapscope_trace::Trace;
use gapscope_trace::ids::*;
use gapscope_trace::kernel_profile::METRICS;
use gapscope_trace::manifest::{Device, DeviceLimits, Queue, SamplingMode};
use gapscope_trace::tables::*;
use proptest::prelude::*;

fn id() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0u32..6, 1 => Just(u32::MAX), 1 => any::<u32>()]
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![
        12 => -50i64..400,
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
        1 => any::<i64>(),
    ]
}

fn some<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    proptest::option::weighted(0.85, of)
}

fn rows<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    proptest::collection::vec(of, 0..24)
}

const CALLS: [HostCallKind; 12] = [
    HostCallKind::Submit,
    HostCallKind::WaitFences,
    HostCallKind::PollFence,
    HostCallKind::CreatePipelines,
    HostCallKind::AllocateMemory,
    HostCallKind::Present,
    HostCallKind::LoadModule,
    HostCallKind::CopyAndWait,
    HostCallKind::Recording,
    HostCallKind::QueueFull,
    HostCallKind::HostFunction,
    HostCallKind::Unknown,
];
const STREAMS: [Option<&str>; 4] = [
    None,
    Some("default"),
    Some("blocking"),
    Some("non-blocking"),
];
const KINDS: [SubmissionKind; 7] = [
    SubmissionKind::CommandBuffers,
    SubmissionKind::Kernel,
    SubmissionKind::Graph,
    SubmissionKind::HostFunction,
    SubmissionKind::WaitValue,
    SubmissionKind::Prefetch,
    SubmissionKind::Decompression,
];
const RANGES: [&str; 7] = [
    "ncclCommInitRank",
    "ncclAllReduce",
    "ncclSend",
    "ncclRecv",
    "ncclGroupStart",
    "ncclGroupEnd",
    "ncclCommDestroy",
];
const FUNCTIONS: [Option<&str>; 3] = [None, Some("cudaLaunchKernel"), Some("cudaGraphLaunch")];

type Piece = (u32, u32, u32, Option<i64>, Option<i64>, Option<u32>);

fn piece() -> impl Strategy<Value = Piece> {
    (id(), id(), id(), some(time()), some(time()), some(id()))
}

prop_compose! {
    fn garbage()(
        mode in 0usize..3,
        devices in 0u32..3,
        dispatches in rows(piece()),
        transfers in rows(piece()),
        opaque in rows(piece()),
        command_buffers in rows((piece(), id(), 0usize..3)),
        submissions in rows((id(), id(), time(), time(), id(), 0..KINDS.len())),
        streams in proptest::collection::vec(0..STREAMS.len(), 3),
        dependencies in rows((id(), some(id()), proptest::option::weighted(0.2, time()))),
        calls in rows((0..CALLS.len(), time(), time(), id(), id())),
        labels in rows((id(), some(id()))),
        memory in rows((id(), time(), any::<bool>(), id(), any::<u64>())),
        bindings in rows((id(), id(), any::<u64>(), any::<u64>())),
        kernels in rows(id()),
        metrics in rows((id(), id(), some(id()), 0usize..80, any::<f64>())),
        instructions in rows((some(id()), id(), any::<u64>(), any::<u64>(), some(id()))),
    ) -> Trace {
        let mut trace = Trace::default();
        let manifest = &mut trace.manifest;
        manifest.sampling_mode = [
            SamplingMode::Dispatch,
            SamplingMode::CommandBuffer,
            SamplingMode::DispatchSerialised,
        ][mode];
        for device in 0..devices {
            let mut row = Device { id: DeviceId(device), uuid: "aa".repeat(device as usize % 2), ..Device::default() };
            row.clock.error_ns = (device > 0).then_some(i64::MAX);
            row.limits = (device < 2).then(|| DeviceLimits { multiprocessors: Some(device * 8), ..DeviceLimits::default() });
            manifest.devices.push(row);
            let kind = STREAMS[streams[device as usize]].map(Into::into);
            manifest.queues.push(Queue { id: QueueId(device), device: DeviceId(device), kind, ..Queue::default() });
            manifest.queues.push(Queue { id: QueueId(device + 3), device: DeviceId(device), kind: STREAMS[streams[0]].map(Into::into), ..Queue::default() });
        }
        let t = &mut trace.tables;
        for (cb, queue, kernel, start_ns, duration_ns, label) in dispatches {
            t.dispatches.push(Dispatch {
                // Every third names its submission and has no command buffer.
                command_buffer: (cb % 3 > 0).then_some(CommandBufferId(cb.into())), submission: (cb % 3 == 0).then_some(SubmissionId(cb.into())),
                queue: QueueId(queue), kernel: KernelId(kernel), start_ns, duration_ns, label: label.map(LabelId), bindings: label.map(BindingSetId),
                groups_x: label, groups_y: Some(1), groups_z: Some(queue), ..Dispatch::default()
            });
        }
        for (cb, queue, _, start_ns, duration_ns, label) in transfers {
            t.transfers.push(Transfer {
                command_buffer: Some(CommandBufferId(cb.into())), queue: QueueId(queue), start_ns, duration_ns, label: label.map(LabelId), bytes: label.map(u64::from),
                ..Transfer::default()
            });
        }
        for (cb, queue, _, start_ns, duration_ns, label) in opaque {
            t.opaque_work.push(OpaqueWorkRow {
                command_buffer: Some(CommandBufferId(cb.into())), queue: QueueId(queue), start_ns, duration_ns, label: label.map(LabelId),
                ..OpaqueWorkRow::default()
            });
        }
        for ((cb, queue, count, start_ns, duration_ns, label), submission, timing) in command_buffers {
            let timing = [Timing::Measured, Timing::Bracketed, Timing::NotSeen][timing];
            t.command_buffers.push(CommandBuffer {
                id: CommandBufferId(cb.into()), queue: QueueId(queue), submission: SubmissionId(submission.into()), start_ns, duration_ns, timing,
                label: label.map(LabelId), host_functions: label.map(|label| label % 3),
                dispatches: count, ..CommandBuffer::default()
            });
        }
        for (id, queue, start_ns, duration_ns, command_buffers, kind) in submissions {
            t.submissions.push(Submission {
                id: SubmissionId(id.into()), queue: QueueId(queue), start_ns, duration_ns, command_buffers, kind: KINDS[kind],
                function: FUNCTIONS[id as usize % FUNCTIONS.len()].map(Into::into), ..Submission::default()
            });
        }
        for (submission, waits_for, host_signal_ns) in dependencies {
            t.dependencies.push(Dependency {
                submission: SubmissionId(submission.into()), waits_for: waits_for.map(|id| SubmissionId(id.into())), host_signal_ns,
            });
        }
        for (call, start_ns, duration_ns, thread, count) in calls {
            t.host_calls.push(HostCall {
                call: CALLS[call], start_ns, duration_ns, thread: (thread % 3).checked_sub(1).map(ThreadId), count, queue: Some(QueueId(thread % 6)), ..HostCall::default()
            });
        }
        for (id, parent) in labels {
            t.labels.push(Label { id: LabelId(id), text: (id % 3).to_string().into(), parent: parent.map(LabelId) });
            t.markers.push(Marker { label: LabelId(id), ..Marker::default() });
        }
        for (device, at_ns, free, allocation, bytes) in memory {
            let event = if free { MemoryEvent::Free } else { MemoryEvent::Allocate };
            t.memory.push(MemoryRow { device: DeviceId(device), at_ns, event, allocation: AllocationId(allocation), bytes, heap: allocation % 2, ..MemoryRow::default() });
        }
        for (id, buffer, offset_bytes, bytes) in bindings {
            t.bindings.push(Binding { id: BindingSetId(id), buffer: BufferId(buffer), offset_bytes, bytes, ..Binding::default() });
            t.buffers.push(Buffer { id: BufferId(buffer), bytes: offset_bytes, ..Buffer::default() });
        }
        for (profile, kernel, submission, metric, value) in metrics {
            let name = METRICS.get(metric).map_or("none", |metric| metric.name);
            t.kernel_metrics.push(KernelMetric {
                profile, kernel: KernelId(kernel), submission: submission.map(|id| SubmissionId(id.into())), metric: name.into(), value, ..KernelMetric::default()
            });
        }
        for (kernel, reason, offset_bytes, samples, line) in instructions {
            t.pc_samples.push(PcSample {
                kernel: kernel.map(KernelId), function: kernel.map(|id| id.to_string().into()), stall_reason: ["wait", "selected", ""][reason as usize % 3].into(),
                offset_bytes, samples, line, file: line.map(|_| "f".into()), ..PcSample::default()
            });
        }
        for id in kernels {
            t.kernels.push(Kernel { id: KernelId(id), name: ["0", "nccl", "2"][id as usize % 3].into(), local_x: Some(id), registers: Some(id), ..Kernel::default() });
        }
        trace
    }
}

fn check(findings: &Findings, threshold_ns: i64) -> Result<(), TestCaseError> {
    let idle = &findings.idle_time;
    let by_cause: i64 = findings.gaps.iter().map(|gap| gap.total_ns).sum();
    prop_assert_eq!(by_cause, idle.total_ns);
    let mut idle_ns = 0;
    for device in &findings.devices {
        if let Some(share) = device.analysed {
            prop_assert_eq!(share.busy_ns + share.idle_ns, share.window_ns);
            prop_assert!(share.busy_ns >= 0 && share.idle_ns >= 0);
            idle_ns += share.idle_ns;
        }
        for queue in &device.queues {
            let Some(share) = queue.analysed else {
                continue;
            };
            prop_assert!(share.busy_ns >= 0 && share.idle_ns >= 0, "{:?}", queue);
            let found = idle.queues.iter().find(|q| q.queue_id == queue.queue_id);
            let by_cause: i64 = found.map_or(0, |q| q.causes.iter().map(|c| c.total_ns).sum());
            let whole = threshold_ns <= 1;
            prop_assert!(
                !whole || by_cause == share.idle_ns,
                "{:?} {:?}",
                queue,
                found
            );
        }
    }
    prop_assert_eq!(idle.total_ns + idle.below_threshold_ns, idle_ns);
    let mains: u64 = findings.gaps.iter().map(|gap| gap.main_count).sum();
    prop_assert_eq!(mains, idle.gap_count);
    let binned: i64 = idle.histogram.iter().map(|bin| bin.total_ns).sum();
    prop_assert_eq!(binned, idle.total_ns);
    for gap in &idle.longest {
        let parts: i64 = gap.parts.iter().map(|part| part.duration_ns).sum();
        prop_assert_eq!(parts, gap.duration_ns);
        prop_assert!(
            gap.parts
                .windows(2)
                .all(|p| p[0].start_ns + p[0].duration_ns == p[1].start_ns)
        );
    }
    for fill in &findings.fill {
        let (known, underfilled) = (fill.known_ns.unwrap_or(0), fill.underfilled_ns.unwrap_or(0));
        prop_assert!(
            underfilled <= known && known <= fill.computing_ns,
            "{:?}",
            fill
        );
        for kernel in &fill.kernels {
            prop_assert!(kernel.underfilled_ns <= underfilled, "{:?}", fill);
        }
    }
    for device in &idle.devices {
        let parts: i64 = (device.verdict_evidence.iter())
            .map(|part| part.total_ns)
            .sum();
        prop_assert_eq!(parts, device.verdict_window_ns.unwrap_or(0));
    }
    let evidence = &findings.verdict_evidence;
    let parts: i64 = evidence.parts.iter().map(|part| part.total_ns).sum();
    prop_assert_eq!(parts, evidence.window_ns.unwrap_or(0));
    for kernel in &findings.kernels {
        prop_assert!(kernel.busy_ns <= kernel.durations.total_ns);
        prop_assert_eq!(
            kernel.durations.timed_count + kernel.untimed_count,
            kernel.count
        );
    }
    for profiled in &findings.profiled_kernels {
        let shares: f64 = profiled.stalls.iter().map(|stall| stall.share).sum();
        prop_assert!(
            profiled.stalls.is_empty() || (shares - 1.0).abs() < 1e-6,
            "{:?}",
            profiled
        );
    }
    for sampled in &findings.sampled_kernels {
        let places = sampled.places.iter().map(|place| place.samples);
        let places = places.fold(sampled.other_samples, u64::saturating_add);
        prop_assert!(places >= sampled.samples);
        prop_assert!((0.0..=1.0).contains(&sampled.share));
    }
    for queue in &findings.latency {
        let (all, idle) = (&queue.submit_to_start, &queue.submit_to_start_idle);
        prop_assert!(idle.timed_count <= all.timed_count);
        prop_assert_eq!(all.timed_count + queue.waited_count, queue.submission_count);
        let waited: u64 = queue.waited.iter().map(|waited| waited.count).sum();
        prop_assert_eq!(waited, queue.waited_count);
    }
    let counted: u64 = findings.kernels.iter().map(|kernel| kernel.count).sum();
    prop_assert_eq!(counted, findings.dispatch_count);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_rows_have_findings_whose_sums_hold(
        trace in garbage(),
        exclude_warm_up in any::<bool>(),
        threshold in prop_oneof![Just(0), 0i64..60, Just(i64::MAX), Just(i64::MIN)],
        window in proptest::option::of((time(), time())),
        longest in 0usize..4,
    ) {
        let options = Options {
            exclude_warm_up,
            window: window.map(|(a, b)| Interval::new(a, b)),
            gap_threshold_ns: threshold,
            longest,
            equal_work: Some(("0".to_owned(), "1".to_owned())),
        };
        check(&Findings::of(&trace, &options), threshold)?;
    }

    #[test]
    fn dispatches_in_pieces_give_the_same_findings(
        mut trace in garbage(),
        rows in 1usize..5,
        longest in 0usize..4,
    ) {
        let options = Options {
            longest,
            equal_work: Some(("0".to_owned(), "1".to_owned())),
            ..Options::default()
        };
        let timeline = Timeline::of(&trace);
        let whole = (Findings::of_timeline(&timeline, &options), activity(&timeline, 7));
        let all = std::mem::take(&mut trace.tables.dispatches);
        let timeline = Timeline::of_pieces(&trace, all.len(), |take| {
            for from in (0..all.len()).step_by(rows) {
                let mut piece = Dispatches::default();
                (from..all.len().min(from + rows)).for_each(|row| piece.push(all.row(row)));
                take(&piece);
            }
            Some(())
        });
        let (timeline, ()) = timeline.unwrap();
        let pieces = (Findings::of_timeline(&timeline, &options), activity(&timeline, 7));
        prop_assert_eq!(pieces, whole);
    }

    #[test]
    fn any_traces_of_ranks_are_compared(
        traces in proptest::collection::vec(garbage(), 0..4),
        ranges in rows((id(), time(), time(), 0..RANGES.len(), 0u32..3)),
    ) {
        let mut digests = Vec::new();
        for (rank, mut trace) in (0..).zip(traces) {
            let names = &mut trace.tables.kernels.name;
            for (every, name) in [(2, "ncclDevKernel_AllReduce"), (3, "ncclDevKernel_SendRecv")] {
                (0..names.len()).step_by(every).for_each(|row| names.set(row, name.into()));
            }
            for (thread, start_ns, duration_ns, range, number) in &ranges {
                let label = LabelId(1_000 + trace.tables.labels.len() as u32);
                trace.tables.labels.push(Label { id: label, text: RANGES[*range].into(), parent: None });
                let payload = format!(
                    "NCCL communicator ID={number}, No. of ranks=2, Rank={rank}, Message size [bytes]={}, Peer rank={number}",
                    u64::MAX
                );
                trace.tables.markers.push(Marker {
                    scope: MarkerScope::Thread, label, thread: Some(ThreadId(*thread)), domain: Some("NCCL".into()), payload: Some(payload.into()),
                    start_ns: Some(*start_ns), duration_ns: Some(*duration_ns), ..Marker::default()
                });
            }
            let findings = Findings::of(&trace, &Options::default());
            digests.extend(RankDigest::of(&Timeline::of(&trace), &findings, rank));
        }
        let found = ranks(&digests, 3);
        prop_assert_eq!(found.ranks.len(), digests.len());
        for kind in &found.collectives {
            prop_assert!(kind.skew.timed_count <= kind.matched_count);
        }
    }

    #[test]
    fn work_under_a_label_is_found_in_pieces_too(mut trace in garbage(), rows in 1usize..5) {
        let options = Options::default();
        let under = |trace: &Trace, all: &Dispatches, rows: usize| {
            let feed = |take: &mut (dyn FnMut(&Dispatches) + Send)| {
                for from in (0..all.len()).step_by(rows) {
                    let mut piece = Dispatches::default();
                    (from..all.len().min(from + rows)).for_each(|row| piece.push(all.row(row)));
                    take(&piece);
                }
                Some(())
            };
            let under = UnderLabel::of(trace, "1", &options, feed).unwrap();
            let (timeline, ()) = Timeline::of_pieces(trace, all.len(), feed).unwrap();
            under.findings(&timeline, &options)
        };
        let all = std::mem::take(&mut trace.tables.dispatches);
        prop_assert_eq!(under(&trace, &all, rows), under(&trace, &all, usize::MAX));
    }

    #[test]
    fn the_order_of_rows_does_not_matter(
        works in proptest::collection::vec((0i64..300, 0i64..40, 0u32..3, -40i64..300, 0i64..20, 0..KINDS.len()), 1..20),
        calls in proptest::collection::vec((0..CALLS.len(), 0i64..300, 0i64..60), 0..12),
        depends in proptest::collection::vec((0u64..20, 0u64..20), 0..12),
        seed in any::<u64>(),
    ) {
        let build = |order: &dyn Fn(usize) -> Vec<usize>| {
            let mut trace = Trace::default();
            trace.manifest.devices.push(Device::default());
            for id in 0..3 {
                let kind = STREAMS[1 + id as usize].map(Into::into);
                trace.manifest.queues.push(Queue { id: QueueId(id), kind, ..Queue::default() });
            }
            let t = &mut trace.tables;
            for at in order(works.len()) {
                let (start, duration, queue, ..) = works[at];
                let (start_ns, duration_ns) = (Some(start), Some(duration));
                // What is no work has none.
                if KINDS[works[at].5] as u8 >= SubmissionKind::HostFunction as u8 {
                    continue;
                }
                t.dispatches.push(Dispatch {
                    command_buffer: Some(CommandBufferId(at as u64)), queue: QueueId(queue), kernel: KernelId(queue), start_ns, duration_ns,
                    ..Dispatch::default()
                });
            }
            for at in order(works.len()) {
                let (_, _, queue, start_ns, duration_ns, kind) = works[at];
                let (id, queue) = (SubmissionId(at as u64), QueueId(queue));
                t.command_buffers.push(CommandBuffer {
                    id: CommandBufferId(at as u64), queue, submission: id, dispatches: 1, ..CommandBuffer::default()
                });
                t.submissions.push(Submission {
                    id, queue, start_ns, duration_ns, command_buffers: 1, kind: KINDS[kind], ..Submission::default()
                });
            }
            for at in order(calls.len()) {
                let (call, start_ns, duration_ns) = calls[at];
                t.host_calls.push(HostCall { call: CALLS[call], start_ns, duration_ns, thread: Some(ThreadId(0)), count: 2, queue: Some(QueueId(at as u32 % 3)), ..HostCall::default() });
            }
            for at in order(depends.len()) {
                let (submission, on) = depends[at];
                t.dependencies.push(Dependency {
                    submission: SubmissionId(submission), waits_for: Some(SubmissionId(on)), host_signal_ns: None,
                });
            }
            for id in 0..3 {
                t.kernels.push(Kernel { id: KernelId(id), name: id.to_string().into(), ..Kernel::default() });
            }
            trace
        };
        let options = Options::default();
        let sorted = Findings::of(&build(&|n| (0..n).collect()), &options);
        let shuffled = build(&|n| {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by_key(|at| (*at as u64 + 1).wrapping_mul(seed | 1).rotate_left(17));
            order
        });
        check(&sorted, 0)?;
        prop_assert_eq!(sorted, Findings::of(&shuffled, &options));
    }
}

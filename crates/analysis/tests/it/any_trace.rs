//! Traces with any rows whatever.

use gapscope_trace::Trace;
use gapscope_trace::ids::*;
use gapscope_trace::kernel_profile::METRICS;
use gapscope_trace::manifest::{Device, DeviceProperties, Queue, SamplingMode};
use gapscope_trace::tables::*;
use proptest::prelude::*;

pub fn id() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0u32..6, 1 => Just(u32::MAX), 1 => any::<u32>()]
}

pub fn time() -> impl Strategy<Value = i64> {
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

pub fn rows<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    proptest::collection::vec(of, 0..24)
}

pub const CALLS: [HostCallKind; 12] = [
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
pub const STREAMS: [Option<&str>; 4] = [
    None,
    Some("default"),
    Some("blocking"),
    Some("non-blocking"),
];
pub const KINDS: [SubmissionKind; 7] = [
    SubmissionKind::CommandBuffers,
    SubmissionKind::Kernel,
    SubmissionKind::Graph,
    SubmissionKind::HostFunction,
    SubmissionKind::WaitValue,
    SubmissionKind::Prefetch,
    SubmissionKind::Decompression,
];
// The crate that compares traces shares this file.
#[allow(dead_code)]
pub const RANGES: [&str; 7] = [
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
    pub fn garbage()(
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
            row.limits = (device < 2).then(|| DeviceProperties { multiprocessors: Some(device * 8), ..DeviceProperties::default() });
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

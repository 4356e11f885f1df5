//! The tables of a trace. Times are nanoseconds of the host's monotonic clock; an absent time is unknown, and the
//! manifest's losses say why.

mod allocator_memory;
mod graph_nodes;
mod kernel_metrics;
mod pc_samples;

use crate::ids::*;
use crate::table::table;
use std::sync::Arc;

pub use crate::kinds::*;
pub use crate::table::{ColumnFacts, Table};
pub use allocator_memory::{AllocatorMemory, AllocatorRow};
pub use graph_nodes::{GraphNode, GraphNodes};
pub use kernel_metrics::{KernelMetric, KernelMetrics};
pub use pc_samples::{PcSample, PcSamples};

table! {
    /// Kernel executions, in the order in which their command buffers were seen finished.
    Dispatches of Dispatch, "dispatch" in "dispatches" {
        /// Id of the command buffer; absent for work that a host call launched by itself (CUDA, outside of graphs).
        command_buffer: Option<CommandBufferId>,
        /// Position among the commands of its command buffer (dispatches, transfers, barriers and opaque work), or of
        /// its submission where there is not a command buffer.
        position: u32,
        /// Id of the queue.
        queue: QueueId,
        /// Id of the kernel.
        kernel: KernelId,
        /// When the device began it; unknown in `command-buffer` mode.
        start_ns: Option<i64>,
        /// How long it took.
        duration_ns: Option<i64>,
        /// Workgroups in x; unknown for an indirect dispatch.
        groups_x: Option<u32>,
        /// Workgroups in y.
        groups_y: Option<u32>,
        /// Workgroups in z.
        groups_z: Option<u32>,
        /// Id of the set of bindings (`bindings`); absent when the kernel has none, or they are unknown.
        bindings: Option<BindingSetId>,
        /// Id of the innermost label.
        label: Option<LabelId>,
        /// Id of the submission (`submissions`), where there is not a command buffer to name it.
        submission: Option<SubmissionId>,
        /// Id of the node (`graph_nodes`) of a CUDA graph that ran it.
        graph_node: Option<u64>,
    }
}

table! {
    /// Command buffers: one row for each submitted instance. CUDA: a graph launch.
    CommandBuffers of CommandBuffer, "command_buffer" in "command_buffers" {
        /// Id, unique in the trace.
        id: CommandBufferId,
        /// Id of the process.
        process: ProcessId,
        /// Id of the queue.
        queue: QueueId,
        /// Id of the submission (`submissions`); 18446744073709551615 (null in SQL) where it is not known.
        submission: SubmissionId,
        /// When the device began it.
        start_ns: Option<i64>,
        /// How long it took.
        duration_ns: Option<i64>,
        /// When the hook saw that it had finished.
        seen_ns: Option<i64>,
        /// Whether the times are known.
        timing: Timing,
        /// Dispatches in it.
        dispatches: u32,
        /// Transfers in it.
        transfers: u32,
        /// Id of the label around it on the queue, or of the only top-level label inside it.
        label: Option<LabelId>,
        /// Name that the program gave it.
        name: Option<Arc<str>>,
        /// Host nodes in it (CUDA graphs): functions of the host that it runs. Absent when unknown.
        host_functions: Option<u32>,
    }
}

table! {
    /// Submissions: batches handed to a queue by a host call.
    Submissions of Submission, "submission" in "submissions" {
        /// Id, unique in the trace.
        id: SubmissionId,
        /// Id of the process.
        process: ProcessId,
        /// Id of the queue.
        queue: QueueId,
        /// What it hands to the queue.
        kind: SubmissionKind,
        /// The system's id of the thread that submitted (version 1 could write 0 for an unknown one).
        thread: Option<ThreadId>,
        /// When the host call started.
        start_ns: i64,
        /// Duration of the host call; 0 where only its start is known (imports, profiles of the SDK, profiled
        /// launches).
        duration_ns: i64,
        /// Command buffers in it.
        command_buffers: u32,
        /// The function that the program called (CUDA, Vulkan), such as `cuLaunchKernel`.
        function: Option<Arc<str>>,
    }
}

table! {
    /// Waits of submissions on the device.
    Dependencies of Dependency, "dependency" in "dependencies" {
        /// Id of the submission that waits.
        submission: SubmissionId,
        /// Id of the submission that signals; absent when the host does, or when unknown.
        waits_for: Option<SubmissionId>,
        /// When the host signalled, where it does.
        host_signal_ns: Option<i64>,
    }
}

table! {
    /// Copies, fills and the like.
    Transfers of Transfer, "transfer" in "transfers" {
        /// Id of the command buffer; absent for work that a host call launched by itself (CUDA, outside of graphs).
        command_buffer: Option<CommandBufferId>,
        /// Position among the commands of its command buffer, or of its submission.
        position: u32,
        /// Id of the queue.
        queue: QueueId,
        /// Kind of the transfer.
        kind: TransferKind,
        /// Bytes written.
        bytes: Option<u64>,
        /// When the device began it.
        start_ns: Option<i64>,
        /// How long it took.
        duration_ns: Option<i64>,
        /// Id of the buffer read.
        source: Option<BufferId>,
        /// Id of the buffer written.
        destination: Option<BufferId>,
        /// Id of the innermost label.
        label: Option<LabelId>,
        /// Id of the submission (`submissions`), where there is not a command buffer to name it.
        submission: Option<SubmissionId>,
        /// The kind of host memory at the host's end (CUDA): `pageable` (such a copy is not asynchronous), `pinned`,
        /// `managed`.
        host_memory: Option<MemoryPlace>,
        /// Id of the node (`graph_nodes`) of a CUDA graph that ran it.
        graph_node: Option<u64>,
    }
}

table! {
    /// GPU work that is timed as a whole, such as render passes.
    OpaqueWork of OpaqueWorkRow, "opaque_work" in "opaque_work" {
        /// Id of the command buffer; absent for work that a host call launched by itself.
        command_buffer: Option<CommandBufferId>,
        /// Position among the commands of its command buffer, or of its submission.
        position: u32,
        /// Id of the queue.
        queue: QueueId,
        /// Kind of the work.
        kind: OpaqueWorkKind,
        /// When the device began it.
        start_ns: Option<i64>,
        /// How long it took.
        duration_ns: Option<i64>,
        /// Id of the innermost label.
        label: Option<LabelId>,
        /// Id of the submission (`submissions`), where there is not a command buffer to name it.
        submission: Option<SubmissionId>,
    }
}

table! {
    /// Barriers in command buffers.
    Barriers of Barrier, "barrier" in "barriers" {
        /// Id of the command buffer.
        command_buffer: CommandBufferId,
        /// Position among the commands of its command buffer.
        position: u32,
        /// Stages that must have finished (VkPipelineStageFlags2).
        source_stages: u64,
        /// Stages that wait.
        destination_stages: u64,
    }
}

table! {
    /// Timed API calls on CPU threads; polling calls are folded.
    HostCalls of HostCall, "host_call" in "host_calls" {
        /// Id of the process.
        process: ProcessId,
        /// The system's id of the thread; absent when unknown, as for time that the tracing took (CUDA; version 1
        /// could write 0 for that).
        thread: Option<ThreadId>,
        /// Kind of the call.
        call: HostCallKind,
        /// When the (first) call began.
        start_ns: i64,
        /// Duration from there to the return of the (last) call.
        duration_ns: i64,
        /// Number of calls folded into this row; 1 for a single one.
        count: u32,
        /// Time inside the calls.
        busy_ns: i64,
        /// Id of the queue: the one that the call names, or that of `waits_for`.
        queue: Option<QueueId>,
        /// Bytes, where the call has a size.
        bytes: Option<u64>,
        /// Result of the call (VkResult, CUresult); 0 is success. All polls in a row returned the same: polls that
        /// find their work unfinished (VK_NOT_READY is 1, CUDA_ERROR_NOT_READY 600) and polls that find it finished
        /// are different rows. In version 1 it is the result of the last poll, so that 0 in a row of several means
        /// polls until the work was done. A poll of a timeline semaphore that has not reached the last value
        /// submitted counts as not ready; older traces do not tell. The value is -2147483648 when unknown, as for
        /// polls in imports of tools that do not record it.
        result: i32,
        /// The function that the program called (CUDA; of Vulkan's those that submit), such as `cudaStreamSynchronize`.
        function: Option<Arc<str>>,
        /// Id of the submission that the call waited for, or that a poll found done: the call can return once the work of this
        /// submission, and what was submitted to its queue before, has ended; `result` says whether it had. Of several on one queue
        /// it is the one that was submitted last, or first where the call waits for any of them. Absent when unknown, where the
        /// host gives the signal that is awaited, for waits for work of several queues, such as those for a device, and for polls
        /// that found their work unfinished.
        waits_for: Option<SubmissionId>,
    }
}

table! {
    /// Labelled ranges and instants.
    Markers of Marker, "marker" in "markers" {
        /// Id of the process.
        process: ProcessId,
        /// Where it was set.
        scope: MarkerScope,
        /// Id of the label.
        label: LabelId,
        /// Id of the queue.
        queue: Option<QueueId>,
        /// The system's id of the thread.
        thread: Option<ThreadId>,
        /// Id of the command buffer.
        command_buffer: Option<CommandBufferId>,
        /// When it began: on the device for a marker in a command buffer (its first timed command), otherwise on the
        /// host.
        start_ns: Option<i64>,
        /// How long it lasted; 0 for an instant.
        duration_ns: Option<i64>,
        /// The library or part of the program that set it (NVTX: the domain); labels nest inside their domain.
        /// gapscope itself sets `torch.module` and `torch.operator`: modules around and operators inside all other
        /// labels. In imports, `operator`, `python` and `host` are functions of the program: they label no work.
        domain: Option<Arc<str>>,
        /// Category (NVTX).
        category: Option<Arc<str>>,
        /// The value that the program attached (NVTX): a number, or the names and values of several: `bytes=4096,
        /// root=0`.
        payload: Option<Arc<str>>,
    }
}

table! {
    /// Labels: texts in their nesting.
    Labels of Label, "label" in "labels" {
        /// Id.
        id: LabelId,
        /// The label's own text.
        text: Arc<str>,
        /// Id of the label around it.
        parent: Option<LabelId>,
    }
}

table! {
    /// Allocations and frees of device memory.
    Memory of MemoryRow, "memory" in "memory" {
        /// Id of the process.
        process: ProcessId,
        /// Id of the device.
        device: DeviceId,
        /// Time of the event.
        at_ns: i64,
        /// Kind of the event.
        event: MemoryEvent,
        /// Id of the allocation.
        allocation: AllocationId,
        /// Size of the allocation.
        bytes: u64,
        /// Heap of the allocation.
        heap: u32,
    }
}

table! {
    /// Buffers.
    Buffers of Buffer, "buffer" in "buffers" {
        /// Id.
        id: BufferId,
        /// Id of the process.
        process: ProcessId,
        /// Id of the device.
        device: DeviceId,
        /// Size.
        bytes: u64,
        /// Id of the allocation.
        allocation: Option<AllocationId>,
        /// Offset in the allocation.
        offset_bytes: Option<u64>,
        /// Name that the program gave it.
        name: Option<Arc<str>>,
    }
}

table! {
    /// Buffer ranges that dispatches may reach: several rows share one id, a row for each binding.
    Bindings of Binding, "binding" in "bindings" {
        /// Id of the set of bindings.
        id: BindingSetId,
        /// Descriptor set.
        set: u32,
        /// Binding in the set.
        binding: u32,
        /// Element of an array binding.
        element: u32,
        /// Id of the buffer.
        buffer: BufferId,
        /// First byte in the buffer.
        offset_bytes: u64,
        /// Size of the range.
        bytes: u64,
        /// Access of the kernel's code to the range.
        access: Access,
    }
}

table! {
    /// Kernels: code with entry point and specialisation.
    Kernels of Kernel, "kernel" in "kernels" {
        /// Id.
        id: KernelId,
        /// Id of the process.
        process: ProcessId,
        /// The best name that is known.
        name: Arc<str>,
        /// Source of the name.
        name_source: NameSource,
        /// Entry point.
        entry_point: Option<Arc<str>>,
        /// Hash of the code; `sources/HASH.spv` holds it (Vulkan), `sources/HASH.ptx` or `sources/HASH.cubin` (CUDA:
        /// the code that the program loaded itself under the kernel's name, if there is only one).
        source: Option<Arc<str>>,
        /// Specialisation constants as `id:hex`, joined by commas.
        specialisation: Option<Arc<str>>,
        /// Threads of a workgroup in x.
        local_x: Option<u32>,
        /// Threads of a workgroup in y.
        local_y: Option<u32>,
        /// Threads of a workgroup in z.
        local_z: Option<u32>,
        /// The whole name of a C++ kernel, with namespaces and parameters, where `name` is a shorter one.
        full_name: Option<Arc<str>>,
        /// The source file of the code, where the code names it (CUDA), such as the Python file of a Triton kernel.
        source_file: Option<Arc<str>>,
        /// Hash of the source file when the code was loaded; `sources/HASH.EXTENSION` holds it.
        source_file_hash: Option<Arc<str>>,
        /// Registers of a thread.
        registers: Option<u32>,
        /// Local memory of a thread (spilled registers, stack), in bytes.
        local_bytes: Option<u32>,
        /// Shared memory of a workgroup that the code declares, in bytes; where an import knows only the total, the
        /// total, and the dynamic one is absent.
        static_shared_bytes: Option<u32>,
        /// Shared memory of a workgroup that its launches request, in bytes. A kernel that is launched with several
        /// sizes, of workgroups or of this memory, has a row for each.
        dynamic_shared_bytes: Option<u32>,
        /// What its code says of the bytes that its invocations touch through bindings (Vulkan), entries joined by
        /// `; `. `threads 256.1.1`: the threads of a workgroup, with the pipeline's specialisation. `read 0.1 4 at 4*l0+1024*w0`: each invocation reads 4 bytes of binding 1 of set 0 at this byte of the bound
        /// range, with the numbers of the invocation in its workgroup (`l`), of the workgroup (`w`) and of all
        /// workgroups (`n`) by axis; followed by ` if 1*l0+256*w0 < 0.2+0/4` where it does so only if the sum is below the number of elements of
        /// 4 bytes from byte 0 of binding 2 of set 0 on. `write 0.2 most 4`: an invocation writes at most 4 bytes of
        /// binding 2. What is not understood is left out.
        accesses: Option<Arc<str>>,
    }
}

table! {
    /// Quantities of a device, a queue or the host over time. Their values are in `counter_values`.
    Counters of Counter, "counter" in "counters" {
        /// Id.
        id: CounterId,
        /// Name of the counter.
        name: Arc<str>,
        /// The unit of its values.
        unit: CounterUnit,
        /// Id of the counter's device; absent for a counter of the host.
        device: Option<DeviceId>,
        /// Id of the counter's queue.
        queue: Option<QueueId>,
        /// Source of the values, such as the tool that measured them.
        source: Arc<str>,
    }
}

table! {
    /// Values of counters.
    CounterValues of CounterValue, "counter_value" in "counter_values" {
        /// Id of the counter.
        counter: CounterId,
        /// Start of the value.
        start_ns: i64,
        /// Duration over which the value is the mean; absent for a value that holds until the counter's next one.
        duration_ns: Option<i64>,
        /// The value, in the counter's unit.
        value: f64,
    }
}

table! {
    /// The activity of a host thread at a moment.
    Samples of Sample, "sample" in "samples" {
        /// Time of the sample.
        time_ns: i64,
        /// Id of the process: a recorded one, or one that works for it, such as a data loader.
        process: ProcessId,
        /// The system's id of the thread.
        thread: ThreadId,
        /// Id of its stack (`stacks`); absent where the stack could not be read.
        stack: Option<StackId>,
        /// State of the thread.
        state: ThreadState,
        /// Origin of the sample.
        source: SampleSource,
        /// Mean time between two samples of the thread at that time; absent where the sample was not periodic.
        period_ns: Option<i64>,
        /// The system call in which the thread was blocked, such as `futex`.
        system_call: Option<Arc<str>>,
        /// The thread of the same process that held the lock of the Python interpreter (GIL), where this one waited
        /// for it.
        gil_holder: Option<ThreadId>,
    }
}

table! {
    /// Stacks of host threads, as a tree: each is the stack of its callers plus one frame.
    Stacks of Stack, "stack" in "stacks" {
        /// Id.
        id: StackId,
        /// Id of the callers' stack, which is less than its own; absent for the outermost frame.
        parent: Option<StackId>,
        /// Id of the innermost frame (`frames`).
        frame: FrameId,
    }
}

table! {
    /// Frames of stacks: a line of a function, or a position in a library.
    Frames of Frame, "frame" in "frames" {
        /// Id.
        id: FrameId,
        /// Kind of code.
        kind: FrameKind,
        /// The function, with the classes and functions around it, such as `Model.forward`; absent where the library
        /// does not name it.
        function: Option<Arc<str>>,
        /// The file of the source, as the program names it.
        file: Option<Arc<str>>,
        /// The current line, from 1.
        line: Option<u32>,
        /// Path of the native code's library or executable.
        library: Option<Arc<str>>,
        /// Address in the library, from its base as linked, where the function is unknown.
        address: Option<u64>,
    }
}

/// Calls a macro with every table: its field in [`Tables`] and its type.
#[macro_export]
macro_rules! for_each_table {
    ($callback:ident) => {
        $callback! {
            dispatches: Dispatches,
            command_buffers: CommandBuffers,
            submissions: Submissions,
            dependencies: Dependencies,
            transfers: Transfers,
            opaque_work: OpaqueWork,
            barriers: Barriers,
            host_calls: HostCalls,
            markers: Markers,
            labels: Labels,
            memory: Memory,
            buffers: Buffers,
            bindings: Bindings,
            kernels: Kernels,
            counters: Counters,
            counter_values: CounterValues,
            samples: Samples,
            stacks: Stacks,
            frames: Frames,
            allocator_memory: AllocatorMemory,
            graph_nodes: GraphNodes,
            kernel_metrics: KernelMetrics,
            pc_samples: PcSamples,
        }
    };
}

macro_rules! define_tables {
    ($($field:ident: $table:ident,)+) => {
        /// All tables of a trace.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Tables {
            $(#[doc = concat!("See [`", stringify!($table), "`].")] pub $field: $table,)+
        }

        impl Tables {
            /// Returns true when a table that rows were pushed to has at least `rows`. Cheap enough to call after
            /// each row.
            #[inline]
            pub fn have(&self, rows: usize) -> bool {
                $(self.$field.pushed() >= rows)||+
            }
        }
    };
}
for_each_table!(define_tables);

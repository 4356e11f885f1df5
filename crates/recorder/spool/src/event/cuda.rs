//! Defines the events that only the CUDA library writes. The session (gapscope's recording process) reads them.
//!
//! The driver's tracing library reports kernels and transfers after they happened. They come in batches of packed
//! [`super::Activity`] entries; data that many entries share ([`CudaEvent::Launch`], [`CudaEvent::Route`]) is written
//! once, before the first batch that refers to it. Calls are written by the threads that make them
//! ([`CudaEvent::Called`]).

use super::{LabelScope, Payload, Span};
use crate::ids;
use gapscope_model::cuda::FunctionClass;
use gapscope_model::{GraphChange, MemoryPlace, StreamKind, TransferKind};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event of the CUDA library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CudaEvent<'a> {
    /// A batch of activities. Any thread may write it; see [`super::Activity`] for the guarantees.
    #[serde(borrow)]
    Activities(ActivityBatch<'a>),
    /// A function of an API that the program calls ([`CudaEvent::Called`]).
    Function {
        /// The function.
        function: ids::Function,
        /// The effect of the function.
        class: FunctionClass,
        /// The name of the function, without version suffixes: `cudaMalloc`.
        name: Cow<'a, str>,
    },
    /// The writing thread has called a function, which has returned.
    Called {
        /// The function.
        function: ids::Function,
        /// From its start to its return.
        span: Span,
        /// The correlation of the call, see [`super::Activity`]. Absent when nothing else of the call is recorded.
        correlation: ids::Correlation,
        /// The result (CUresult, cudaError_t); 0 is success.
        result: u32,
    },
    /// A thread asked repeatedly for the same state (cudaEventQuery): several calls as one. Any thread may write it.
    Polled {
        /// The function.
        function: ids::Function,
        /// The thread that called.
        thread: ids::Thread,
        /// From the start of the first call to the return of the last.
        span: Span,
        /// The number of calls.
        count: u32,
        /// The time inside the calls.
        busy_ns: i64,
        /// The result of each call.
        result: u32,
    },
    /// A combination of kernel, queue and launch parameters ([`super::Activity::Kernel`]).
    Launch {
        /// The combination's id.
        launch: ids::Launch,
        /// The combination.
        shape: LaunchShape,
    },
    /// Ends launch ids: later batches refer to none below this one, so they may be forgotten.
    LaunchesEnd {
        /// The least id that is still in use.
        below: ids::Launch,
    },
    /// A combination of queue, kind and memory of transfers ([`super::Activity::Transfer`]).
    Route {
        /// The combination's id.
        route: ids::Route,
        /// The queue.
        queue: ids::Queue,
        /// The kind of the transfers.
        kind: TransferKind,
        /// The memory that it reads.
        source: MemoryPlace,
        /// The memory that it writes.
        destination: MemoryPlace,
    },
    /// Properties of a queue that is a CUDA stream, in addition to [`super::CommonEvent::Queue`].
    Stream {
        /// The queue.
        queue: ids::Queue,
        /// The kind of stream.
        kind: StreamKind,
        /// The priority as the program set it; lower is more urgent, 0 is the default.
        priority: i32,
    },
    /// Properties of a CUDA device, in addition to [`super::CommonEvent::Device`].
    DeviceProperties {
        /// The device.
        device: ids::Device,
        /// The properties.
        limits: DeviceProperties,
    },
    /// The state of a memory pool.
    Pool(PoolState),
    /// Details of the label that the same thread wrote last.
    LabelDetail {
        /// The category of the label, which [`super::CommonEvent::Name`] may name.
        category: ids::LabelCategory,
        /// The value.
        payload: Option<Payload>,
    },
    /// The value of a label with several parts.
    LabelPayload {
        /// The scope in which the same thread ends the label next; `None` for the label that it wrote last.
        ending: Option<LabelScope>,
        /// Names and values: `bytes=4096, root=0`.
        text: &'a str,
    },
    /// The writing thread has launched a graph of which something is known; otherwise like [`CudaEvent::Called`].
    GraphLaunched {
        /// The function.
        function: ids::Function,
        /// From the start of the call to its return, which was a success.
        span: Span,
        /// The correlation of the call, see [`super::Activity`].
        correlation: ids::Correlation,
        /// The number of host functions that the graph runs; `None` where it is unknown, as with conditional nodes.
        host_functions: Option<u32>,
        /// The executable graph, where its number of host functions is unknown.
        graph: ids::Graph,
    },
    /// The writing thread makes or changes a graph.
    GraphChanged(GraphChange),
    /// Records of finished work on a device have arrived.
    Delivered {
        /// The device.
        device: ids::Device,
        /// The latest end of work in them.
        end_ns: i64,
        /// The time of arrival, read before the records were processed.
        at_ns: i64,
    },
    /// The writing thread has launched a kernel, which was profiled. The call itself is written later.
    KernelProfiled {
        /// The correlation of the call, see [`super::Activity`].
        correlation: ids::Correlation,
        /// The kernel, as the code calls it.
        kernel: Cow<'a, str>,
        /// The time for which the thread was held up, launch included.
        span: Span,
        /// The number of times that the kernel ran; 0 when nothing was measured.
        passes: u32,
        /// Indexes into [`METRICS`](gapscope_model::kernel_profile::METRICS), with values.
        values: Cow<'a, [(u16, f64)]>,
    },
    /// The instructions that run on a device are sampled from now on.
    InstructionSampling {
        /// The device.
        device: ids::Device,
        /// Cycles between two samples; 0 when unknown.
        period_cycles: u64,
        /// CUPTI's stall reasons, by number.
        reasons: Vec<(u32, Cow<'a, str>)>,
    },
    /// New samples of a function's instructions.
    InstructionSamples(FunctionSamples<'a>),
    /// A cubin with line information was loaded while instructions are sampled.
    SampledCubin {
        /// CUPTI's checksum of the cubin.
        cubin: u64,
        /// The cubin; empty when it is too large to be kept.
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
}

/// A batch of activities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityBatch<'a> {
    /// The number of activities that the process had written before these, so that a hole between batches is an exact
    /// loss. The last batch of a process has no entries and closes the last hole.
    pub first: u64,
    /// The number of entries in `bytes`.
    pub count: u32,
    /// The entries, for [`super::unpack`].
    #[serde(with = "serde_bytes")]
    pub bytes: &'a [u8],
}

/// The state of a memory pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolState {
    /// The pool.
    pub pool: ids::Pool,
    /// The device.
    pub device: ids::Device,
    /// The reason for the event.
    pub edge: PoolEdge,
    /// The bytes that the pool holds of the device's memory.
    pub bytes: u64,
    /// The time of the event.
    pub at_ns: i64,
}

/// New samples of a function's instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSamples<'a> {
    /// The device.
    pub device: ids::Device,
    /// CUPTI's checksum of the cubin.
    pub cubin: u64,
    /// The function, as the code calls it; empty when unknown.
    pub function: Cow<'a, str>,
    /// Triples of an offset in bytes from the function's start, the number of the stall reason, and the number of
    /// samples.
    pub samples: Cow<'a, [(u64, u32, u32)]>,
}

/// The parameters that repeated launches of a kernel share, so that a launch is recorded as a small number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaunchShape {
    /// The kernel.
    pub kernel: ids::Kernel,
    /// The queue.
    pub queue: ids::Queue,
    /// Workgroups (CUDA: the grid, in blocks) in x, y, z.
    pub groups: [u32; 3],
    /// Threads of a workgroup in x, y, z.
    pub local_size: [u32; 3],
    /// Shared memory that the code declares, bytes per workgroup.
    pub static_shared_bytes: u32,
    /// Shared memory that the launch requested, bytes per workgroup.
    pub dynamic_shared_bytes: u32,
    /// Local memory (spilled registers, stack), bytes per thread.
    pub local_bytes: u32,
    /// Registers per thread.
    pub registers: u16,
}

/// Properties of a device; 0 when unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceProperties {
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Streaming multiprocessors. AMD: compute units; Arm: shader cores.
    pub multiprocessors: u32,
    /// The clock of the cores, kHz.
    pub core_clock_khz: u32,
    /// Memory bandwidth according to the data sheet, bytes per second.
    pub memory_bytes_per_s: u64,
    /// The size of the L2 cache in bytes.
    pub l2_bytes: u64,
    /// Threads that fit on a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// Registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Shared memory of a multiprocessor in bytes.
    pub shared_bytes_per_multiprocessor: u64,
    /// Workgroups that fit on a multiprocessor.
    pub groups_per_multiprocessor: u32,
    /// Whether it is a partition of a device (MIG).
    pub partition: bool,
}

/// The reason for a [`CudaEvent::Pool`] event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolEdge {
    /// The pool was created, seen for the first time, or trimmed, or its use changed.
    Change,
    /// The pool is gone.
    End,
}

/// Values of `heap` in [`super::CommonEvent::Allocate`] for CUDA.
pub mod heap {
    /// Device memory (cudaMalloc, cuMemAlloc, arrays).
    pub const DEVICE: u32 = 0;
    /// Memory that migrates between host and device (cudaMallocManaged).
    pub const MANAGED: u32 = 1;
    /// Page-locked host memory (cudaMallocHost).
    pub const PINNED: u32 = 2;
    /// Device memory out of a memory pool (cudaMallocAsync), whose size is in [`super::CudaEvent::Pool`].
    pub const POOL: u32 = 3;
}

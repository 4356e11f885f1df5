//! Events of the CUDA library.
//!
//! The driver's tracing library reports single kernels and transfers after they happened. They come packed in batches of
//! [`super::Activity`] entries; what many entries share ([`CudaEvent::Launch`], [`CudaEvent::Route`]) is written once,
//! before the first batch that refers to it. Calls are written by the threads that make them ([`CudaEvent::Called`]).

use super::{LabelScope, Payload, Span};
use crate::ids;
use gapscope_model::cuda::FunctionClass;
use gapscope_model::{MemoryPlace, StreamKind, TransferKind};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// An event of the CUDA library.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum CudaEvent<'a> {
    /// Activities, packed. Any thread may write it; see [`super::Activity`] for what is promised.
    Activities {
        /// How many activities the process had written before these. A hole between batches is thus an exact loss; the
        /// batch that a process writes at its end has no entries and closes the last hole.
        first: u64,
        /// Entries in `bytes`.
        count: u32,
        /// For [`super::unpack`].
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
    /// A function of an API that the program calls ([`CudaEvent::Called`]).
    Function {
        /// The function.
        function: ids::Function,
        /// What it does.
        class: FunctionClass,
        /// Its name, without suffixes for versions: `cudaMalloc`.
        name: Cow<'a, str>,
    },
    /// The thread that writes this has called a function, which has returned.
    Called {
        /// Which.
        function: ids::Function,
        /// From its start to its return.
        span: Span,
        /// Its own correlation; see [`super::Activity`]. None: nothing of it is recorded besides.
        correlation: ids::Correlation,
        /// What it returned (CUresult, cudaError_t); 0 is success.
        result: u32,
    },
    /// A thread asked again and again for the same state (cudaEventQuery): several calls as one. Any thread may write it.
    Polled {
        /// Which function.
        function: ids::Function,
        /// The thread that called.
        thread: ids::Thread,
        /// From the start of the first call to the return of the last.
        span: Span,
        /// Calls.
        count: u32,
        /// Time inside the calls.
        busy_ns: i64,
        /// What each returned.
        result: u32,
    },
    /// A way in which the program launches a kernel ([`super::Activity::Kernel`]).
    Launch {
        /// The way.
        launch: ids::Launch,
        /// What it is.
        shape: LaunchShape,
    },
    /// No later batch refers to launches below this one: they may be forgotten.
    LaunchesEnd {
        /// The least id that may still come.
        below: ids::Launch,
    },
    /// A way of transfers ([`super::Activity::Transfer`]).
    Route {
        /// The way.
        route: ids::Route,
        /// The queue.
        queue: ids::Queue,
        /// What the transfer does.
        kind: TransferKind,
        /// The memory that it reads.
        source: MemoryPlace,
        /// The memory that it writes.
        destination: MemoryPlace,
    },
    /// What is known of a queue that is a CUDA stream, besides [`super::CommonEvent::Queue`].
    Stream {
        /// The queue.
        queue: ids::Queue,
        /// What kind of stream.
        kind: StreamKind,
        /// As the program set it; lower is more urgent, 0 is the default.
        priority: i32,
    },
    /// What a CUDA device can do, besides [`super::CommonEvent::Device`].
    DeviceLimits {
        /// The device.
        device: ids::Device,
        /// Its limits.
        limits: DeviceLimits,
    },
    /// The state of a memory pool.
    Pool {
        /// The pool.
        pool: ids::Pool,
        /// Its device.
        device: ids::Device,
        /// Why it is written.
        edge: PoolEdge,
        /// Bytes that the pool holds of the device's memory.
        bytes: u64,
        /// When.
        at_ns: i64,
    },
    /// More of the label that the same thread wrote last.
    LabelDetail {
        /// Its category, which [`super::CommonEvent::Name`] may name.
        category: ids::LabelCategory,
        /// Its value.
        payload: Option<Payload>,
    },
    /// The value of a label, where it has several parts.
    LabelPayload {
        /// Of the label that the same thread ends next in this scope. `None`: of the one that it wrote last.
        ending: Option<LabelScope>,
        /// Names and values: `bytes=4096, root=0`.
        text: &'a str,
    },
    /// The thread that writes this has launched a graph of which more is known than of a call ([`CudaEvent::Called`]).
    GraphLaunched {
        /// Which function.
        function: ids::Function,
        /// From its start to its return, which was a success.
        span: Span,
        /// Its own correlation; see [`super::Activity`].
        correlation: ids::Correlation,
        /// Functions of the host that the graph runs.
        host_functions: u32,
    },
    /// Records of work on a device have come: whatever they are of had ended.
    Delivered {
        /// The device.
        device: ids::Device,
        /// The latest end of work in them.
        end_ns: i64,
        /// When they came, read before anything was done with them.
        at_ns: i64,
    },
    /// The thread that writes this has launched a kernel, which was profiled; the call itself is written later.
    KernelProfiled {
        /// That of the call; see [`super::Activity`].
        correlation: ids::Correlation,
        /// The kernel, as the code calls it.
        kernel: Cow<'a, str>,
        /// How long the thread was held up: the launch is in it.
        span: Span,
        /// How often the kernel ran; 0: nothing was measured.
        passes: u32,
        /// Places in [`METRICS`](gapscope_model::kernel_profile::METRICS), with values.
        values: Cow<'a, [(u16, f64)]>,
    },
    /// The instructions that run on a device are sampled from now on.
    InstructionSampling {
        /// The device.
        device: ids::Device,
        /// Cycles between two samples; 0: not known.
        period_cycles: u64,
        /// What keeps a warp from issuing its next instruction, in CUPTI's words, by its numbers.
        reasons: Vec<(u32, Cow<'a, str>)>,
    },
    /// Samples of a function's instructions, besides those of before.
    InstructionSamples {
        /// The device.
        device: ids::Device,
        /// CUPTI's checksum of the cubin.
        cubin: u64,
        /// The function, as the code calls it; empty: not known.
        function: Cow<'a, str>,
        /// Bytes from the function's start, number of the reason, samples.
        samples: Cow<'a, [(u64, u32, u32)]>,
    },
    /// A cubin with lines of its source was loaded while instructions are sampled.
    SampledCubin {
        /// CUPTI's checksum of it.
        cubin: u64,
        /// The cubin; empty: it is too large to be kept.
        #[serde(with = "serde_bytes")]
        bytes: &'a [u8],
    },
}

/// Everything that is the same each time a program launches a kernel in the same way: a launch is then a small number.
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
    /// Shared memory that the code declares, bytes for each workgroup.
    pub static_shared_bytes: u32,
    /// Shared memory that the launch asked for, bytes for each workgroup.
    pub dynamic_shared_bytes: u32,
    /// Local memory (spilled registers, stack), bytes for each thread.
    pub local_bytes: u32,
    /// Registers for each thread.
    pub registers: u16,
}

/// What a device can do. 0: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceLimits {
    /// Compute capability, major and minor.
    pub capability: (u32, u32),
    /// Streaming multiprocessors. AMD: compute units; Arm: shader cores.
    pub multiprocessors: u32,
    /// Clock of the cores, kHz.
    pub core_clock_khz: u32,
    /// Bandwidth of the device's memory by its data sheet, bytes a second.
    pub memory_bytes_per_s: u64,
    /// Size of the L2 cache.
    pub l2_bytes: u64,
    /// Threads that a multiprocessor can hold.
    pub threads_per_multiprocessor: u32,
    /// Registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Shared memory of a multiprocessor.
    pub shared_bytes_per_multiprocessor: u64,
    /// Workgroups that a multiprocessor can hold.
    pub groups_per_multiprocessor: u32,
    /// It is a part of a device (MIG).
    pub partition: bool,
}

/// What happened to a memory pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolEdge {
    /// It was made, seen for the first time, gave memory back to the system, or its use changed.
    Change,
    /// It is gone.
    End,
}

/// Values of `heap` in [`super::CommonEvent::Allocate`] for CUDA.
pub mod heap {
    /// Device memory (cudaMalloc, cuMemAlloc, arrays).
    pub const DEVICE: u32 = 0;
    /// Memory that moves between host and device by itself (cudaMallocManaged).
    pub const MANAGED: u32 = 1;
    /// Page-locked host memory (cudaMallocHost).
    pub const PINNED: u32 = 2;
    /// Device memory out of a memory pool (cudaMallocAsync): what the pool holds is in [`super::CudaEvent::Pool`].
    pub const POOL: u32 = 3;
}

//! What CUDA's events refer to.

use serde::{Deserialize, Serialize};

/// Everything that is the same each time a program launches a kernel in the same way: a launch is then a small number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LaunchShape {
    /// The kernel ([`super::Event::Kernel`]).
    pub kernel: u32,
    /// The queue ([`super::Event::Queue`]).
    pub queue: u32,
    /// Workgroups (CUDA: the grid, in blocks) in x, y, z.
    pub groups: [u32; 3],
    /// Threads of a workgroup in x, y, z.
    pub local_size: [u32; 3],
    /// Workgroups of a cluster in x, y, z; zeros: no clusters.
    pub cluster: [u32; 3],
    /// Shared memory that the code declares, bytes for each workgroup.
    pub static_shared_bytes: u32,
    /// Shared memory that the launch asked for, bytes for each workgroup.
    pub dynamic_shared_bytes: u32,
    /// Local memory (spilled registers, stack), bytes for each thread.
    pub local_bytes: u32,
    /// Registers for each thread.
    pub registers: u16,
    /// All workgroups had to be resident at once (a cooperative launch).
    pub cooperative: bool,
    /// Launched by another kernel, not by the host.
    pub from_device: bool,
}

/// Numbers an enum for [`super::Packer`]; numbers that are not listed are its last variant.
macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[repr(u8)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// All of them, in the order of their numbers from 0.
            pub const ALL: &[$name] = &[$($name::$variant,)+];

            /// The one of this number.
            pub fn from_number(number: u8) -> $name {
                *Self::ALL.get(usize::from(number)).unwrap_or(&Self::Unknown)
            }
        }
    };
}

numbered! {
    /// What a transfer does.
    TransferKind {
        /// Host memory to the device.
        HostToDevice,
        /// Device to host memory.
        DeviceToHost,
        /// Within one device; of arrays (images) too.
        DeviceToDevice,
        /// From one device to another.
        PeerToPeer,
        /// Host to host, by the device's copy engine.
        HostToHost,
        /// Fills memory with a value (memset).
        Fill,
        /// Another kind.
        Unknown,
    }
}

numbered! {
    /// The memory at one end of a transfer.
    MemoryPlace {
        /// Host memory that may be paged out: such a copy is not asynchronous.
        Pageable,
        /// Page-locked host memory.
        Pinned,
        /// Device memory; of a module's variables too.
        Device,
        /// An array (image) on the device.
        Array,
        /// Memory that moves between host and device by itself.
        Managed,
        /// Not known, or there is no such end (the source of a fill).
        Unknown,
    }
}

numbered! {
    /// Who waited for what.
    WaitKind {
        /// The host for an event.
        HostForEvent,
        /// A queue for an event of another: the host goes on.
        QueueForEvent,
        /// The host for a queue.
        HostForQueue,
        /// The host for all queues of a context.
        HostForContext,
        /// Another kind.
        Unknown,
    }
}

numbered! {
    /// What took time besides the program's own work.
    OverheadKind {
        /// The driver compiled code.
        Compiler,
        /// Tracing: buffers were delivered.
        BufferFlush,
        /// Tracing: a launch was instrumented.
        Instrumentation,
        /// Tracing: memory or queues of its own were made.
        Resource,
        /// The runtime loaded modules.
        ModuleLoading,
        /// The driver loaded a function at its first use.
        FunctionLoading,
        /// The driver's command buffer was full: the host waited for the device.
        CommandBufferFull,
        /// Tracing: a buffer was asked for.
        BufferRequest,
        /// Tracing: unified memory was prepared for it.
        UnifiedMemory,
        /// Another kind.
        Unknown,
    }
}

impl OverheadKind {
    /// Caused by the tracing: an unrecorded program does not have it.
    pub fn is_tracing(self) -> bool {
        use OverheadKind::*;
        matches!(
            self,
            BufferFlush | Instrumentation | Resource | BufferRequest | UnifiedMemory
        )
    }
}

numbered! {
    /// What kind of stream a queue is.
    StreamKind {
        /// The default stream: it waits for all blocking streams of its context, and they for it.
        Default,
        /// Synchronises with the default stream.
        Blocking,
        /// Does not.
        NonBlocking,
        /// Not known.
        Unknown,
    }
}

numbered! {
    /// What happened to a memory pool.
    PoolEdge {
        /// It was made, or seen for the first time.
        Begin,
        /// It gave memory back to the system, or its use changed.
        Change,
        /// It is gone.
        End,
        /// Another kind.
        Unknown,
    }
}

/// Values of `heap` in [`super::Event::Allocate`] for CUDA.
pub mod heap {
    /// Device memory (cudaMalloc, cuMemAlloc, arrays).
    pub const DEVICE: u32 = 0;
    /// Memory that moves between host and device by itself (cudaMallocManaged).
    pub const MANAGED: u32 = 1;
    /// Page-locked host memory (cudaMallocHost).
    pub const PINNED: u32 = 2;
    /// Device memory out of a memory pool (cudaMallocAsync): what the pool holds is in [`super::super::Event::Pool`].
    pub const POOL: u32 = 3;
}

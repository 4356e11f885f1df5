//! CUPTI's records, declared as cupti_activity.h of CUPTI 13.0.85 does, and not by the offsets that the hook uses.

use std::ffi::c_char;

pub const MEMCPY: u32 = 1;
pub const MEMSET: u32 = 2;
pub const DEVICE: u32 = 8;
pub const CONTEXT: u32 = 9;
pub const CONCURRENT_KERNEL: u32 = 10;
pub const OVERHEAD: u32 = 17;
pub const MEMCPY2: u32 = 22;
pub const STREAM: u32 = 37;
pub const MEMORY2: u32 = 49;
pub const MEMORY_POOL: u32 = 50;
pub const GRAPH_TRACE: u32 = 51;
pub const GRAPH_HOST_NODE: u32 = 56;
pub const HOST_LAUNCH: u32 = 58;
/// A kind that no CUPTI has.
pub const NOBODY_KNOWS: u32 = 9000;
/// The kind at which CUPTI stops.
pub const TORN: u32 = 0;

/// Declares structures that are written as bytes, each with its kind and the size that `sizeof` gives for the header's. Padding is never
/// read.
macro_rules! records {
    ($($(#[$meta:meta])* $name:ident $kind:ident $size:literal { $($field:ident: $type:ty,)+ })+) => {
        $(
            $(#[$meta])*
            #[derive(Clone, Copy)]
            #[repr(C, align(8))]
            pub struct $name { $(pub $field: $type,)+ }

            impl Default for $name {
                fn default() -> Self {
                    // SAFETY: the fields are numbers, pointers and arrays of numbers, for all of which zero is a value.
                    unsafe { std::mem::zeroed() }
                }
            }

            impl Bytes for $name {}

            const _: () = assert!(size_of::<$name>() == $size);
        )+

        /// Returns the size of a record of this kind.
        pub fn size_of_kind(kind: u32) -> Option<usize> {
            match kind {
                $($kind => Some($size),)+
                _ => None,
            }
        }
    };
}

/// A record that can be copied into a buffer.
pub trait Bytes: Copy {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0u8; size_of::<Self>()];
        // SAFETY: the vector has the record's size.
        unsafe { bytes.as_mut_ptr().cast::<Self>().write_unaligned(*self) };
        bytes
    }
}

records! {
    /// CUpti_ActivityKernel10
    Kernel CONCURRENT_KERNEL 216 {
        kind: u32,
        cache_config: u8,
        shared_memory_config: u8,
        registers_per_thread: u16,
        partitioned_requested: u32,
        partitioned_executed: u32,
        start: u64,
        end: u64,
        completed: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        grid: [i32; 3],
        block: [i32; 3],
        static_shared_memory: i32,
        dynamic_shared_memory: i32,
        local_memory_per_thread: u32,
        local_memory_total: u32,
        correlation_id: u32,
        grid_id: i64,
        name: *const c_char,
        reserved0: usize,
        queued: u64,
        submitted: u64,
        launch_type: u8,
        carveout_requested: u8,
        carveout: u8,
        padding: u8,
        shared_memory_executed: u32,
        graph_node_id: u64,
        shmem_limit_config: u32,
        graph_id: u32,
        access_policy: usize,
        channel_id: u32,
        channel_type: u32,
        cluster: [u32; 3],
        cluster_policy: u32,
        local_memory_total_v2: u64,
        max_potential_cluster: u32,
        max_active_clusters: u32,
        is_device_launched: u8,
        padding3: [u8; 7],
    }
    /// CUpti_ActivityMemcpy6
    Memcpy MEMCPY 96 {
        kind: u32,
        copy_kind: u8,
        src_kind: u8,
        dst_kind: u8,
        flags: u8,
        bytes: u64,
        start: u64,
        end: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        correlation_id: u32,
        runtime_correlation_id: u32,
        pad: u32,
        reserved0: usize,
        graph_node_id: u64,
        graph_id: u32,
        channel_id: u32,
        channel_type: u32,
        is_device_launched: u8,
        pad2: [u8; 3],
        copy_count: u64,
    }
    /// CUpti_ActivityMemcpyPtoP4
    MemcpyPeer MEMCPY2 96 {
        kind: u32,
        copy_kind: u8,
        src_kind: u8,
        dst_kind: u8,
        flags: u8,
        bytes: u64,
        start: u64,
        end: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        src_device_id: u32,
        src_context_id: u32,
        dst_device_id: u32,
        dst_context_id: u32,
        correlation_id: u32,
        reserved0: usize,
        graph_node_id: u64,
        graph_id: u32,
        channel_id: u32,
        channel_type: u32,
        pad: u32,
    }
    /// CUpti_ActivityMemset4
    Memset MEMSET 88 {
        kind: u32,
        value: u32,
        bytes: u64,
        start: u64,
        end: u64,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        correlation_id: u32,
        flags: u16,
        memory_kind: u16,
        pad: u32,
        reserved0: usize,
        graph_node_id: u64,
        graph_id: u32,
        channel_id: u32,
        channel_type: u32,
        is_device_launched: u8,
        pad2: [u8; 3],
    }
    /// CUpti_ActivityGraphTrace2
    GraphTrace GRAPH_TRACE 56 {
        kind: u32,
        correlation_id: u32,
        start: u64,
        end: u64,
        device_id: u32,
        graph_id: u32,
        context_id: u32,
        stream_id: u32,
        reserved: usize,
        end_device_id: u32,
        end_context_id: u32,
    }
    /// CUpti_ActivityHostLaunch, since CUDA 13.1
    HostLaunch HOST_LAUNCH 48 {
        kind: u32,
        stream_id: u32,
        context_id: u32,
        device_id: u32,
        correlation_id: u32,
        process_id: u32,
        thread_id: u32,
        padding: u32,
        start: u64,
        end: u64,
    }
    /// CUpti_ActivityGraphHostNode, since CUDA 13.1
    GraphHostNode GRAPH_HOST_NODE 56 {
        kind: u32,
        stream_id: u32,
        context_id: u32,
        device_id: u32,
        correlation_id: u32,
        graph_id: u32,
        graph_node_id: u64,
        process_id: u32,
        thread_id: u32,
        start: u64,
        end: u64,
    }
    /// CUpti_ActivityOverhead3
    Overhead OVERHEAD 56 {
        kind: u32,
        overhead_kind: u32,
        object_kind: u32,
        object_id: [u32; 3],
        start: u64,
        end: u64,
        correlation_id: u32,
        reserved0: u32,
        overhead_data: usize,
    }
    /// CUpti_ActivityMemory4
    Memory MEMORY2 128 {
        kind: u32,
        operation: u32,
        memory_kind: u32,
        correlation_id: u32,
        address: u64,
        bytes: u64,
        timestamp: u64,
        pc: u64,
        process_id: u32,
        device_id: u32,
        context_id: u32,
        stream_id: u32,
        name: usize,
        is_async: u32,
        pad1: u32,
        pool_type: u32,
        pad2: u32,
        pool_address: u64,
        release_threshold: u64,
        pool_size: u64,
        utilized_size: u64,
        source: usize,
    }
    /// CUpti_ActivityMemoryPool3
    MemoryPool MEMORY_POOL 80 {
        kind: u32,
        operation: u32,
        pool_type: u32,
        correlation_id: u32,
        process_id: u32,
        device_id: u32,
        min_bytes_to_keep: usize,
        address: u64,
        size: u64,
        release_threshold: u64,
        timestamp: u64,
        utilized_size: u64,
        is_managed_pool: u8,
        pad2: [u8; 7],
    }
    /// CUpti_ActivityContext3
    Context CONTEXT 32 {
        kind: u32,
        context_id: u32,
        device_id: u32,
        compute_api_kind: u16,
        null_stream_id: u16,
        parent_context_id: u32,
        is_green_context: u8,
        padding: u8,
        multiprocessors: u16,
        cig_mode: u32,
        padding2: u32,
    }
    /// CUpti_ActivityStream
    Stream STREAM 24 {
        kind: u32,
        context_id: u32,
        stream_id: u32,
        priority: u32,
        flag: u32,
        correlation_id: u32,
    }
    /// CUpti_ActivityDevice5
    Device DEVICE 184 {
        kind: u32,
        flags: u32,
        global_memory_bandwidth: u64,
        global_memory_size: u64,
        constant_memory_size: u32,
        l2_cache_size: u32,
        threads_per_warp: u32,
        core_clock_rate: u32,
        memcpy_engines: u32,
        multiprocessors: u32,
        max_ipc: u32,
        max_warps: u32,
        max_blocks: u32,
        max_shared_memory: u32,
        max_registers: u32,
        max_registers_per_block: u32,
        max_shared_memory_per_block: u32,
        max_threads_per_block: u32,
        max_block: [u32; 3],
        max_grid: [u32; 3],
        capability: [u32; 2],
        id: u32,
        ecc_enabled: u32,
        uuid: [u8; 16],
        name: *const c_char,
        is_cuda_visible: u8,
        is_mig_enabled: u8,
        reserved: [u8; 6],
        gpu_instance_id: u32,
        compute_instance_id: u32,
        mig_uuid: [u8; 16],
        is_numa_node: u32,
        numa_id: u32,
    }
    /// A record of an unknown kind.
    Other NOBODY_KNOWS 16 {
        kind: u32,
        rest: [u32; 3],
    }
}

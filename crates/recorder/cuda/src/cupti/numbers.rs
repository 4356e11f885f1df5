//! The numbers of CUPTI's enums that are used, from cupti_activity.h and cupti_callbacks.h.

/// The API version of CUDA 12.0, the oldest whose records are known.
pub const OLDEST: u32 = 18;
/// The first API version whose records are not known: that of CUDA 14.
pub const TOO_NEW: u32 = 140_000;

/// The API version of CUDA 12.3, the first that says on which device a graph ends.
pub const FIRST_WITH_ENDS_OF_GRAPHS: u32 = 21;
/// The API version of CUDA 12.4, the first that says which contexts are green ones.
pub const FIRST_WITH_GREEN_CONTEXTS: u32 = 22;
/// The API version of CUDA 13.1, the first that times functions of the host.
pub const FIRST_WITH_HOST_FUNCTIONS: u32 = 130_101;

/// Kinds of records (CUpti_ActivityKind).
pub mod kind {
    pub const MEMCPY: u32 = 1;
    pub const MEMSET: u32 = 2;
    pub const KERNEL: u32 = 3;
    pub const DEVICE: u32 = 8;
    pub const CONTEXT: u32 = 9;
    pub const CONCURRENT_KERNEL: u32 = 10;
    pub const OVERHEAD: u32 = 17;
    pub const MEMCPY_PEER: u32 = 22;
    pub const STREAM: u32 = 37;
    pub const MEMORY2: u32 = 49;
    pub const MEMORY_POOL: u32 = 50;
    pub const GRAPH_TRACE: u32 = 51;
    pub const GRAPH_HOST_NODE: u32 = 56;
    pub const HOST_LAUNCH: u32 = 58;
}

/// Domains of callbacks (CUpti_CallbackDomain): calls of the driver, of the runtime, and resources.
pub mod domain {
    pub const DRIVER: u32 = 1;
    pub const RUNTIME: u32 = 2;
    pub const RESOURCE: u32 = 3;
}

/// The numbers of calls are below this in every CUPTI so far.
pub const CALL_NUMBERS: u32 = 2000;

/// Callbacks of resources (CUpti_CallbackIdResource).
pub mod resource {
    pub const CONTEXT_CREATED: u32 = 1;
    /// CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING
    pub const CONTEXT_ENDS: u32 = 2;
    pub const MODULE_LOADED: u32 = 6;
    /// CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING
    pub const MODULE_ENDS: u32 = 7;
    pub const GRAPH_CREATED: u32 = 9;
    /// CUPTI_CBID_RESOURCE_GRAPH_DESTROY_STARTING
    pub const GRAPH_ENDS: u32 = 10;
    pub const GRAPH_NODE_CREATED: u32 = 13;
    /// CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED
    pub const INSTANTIATED: u32 = 18;
    pub const GRAPH_NODE_CLONED: u32 = 20;
    /// The callback exists since CUDA 13.0.
    pub const GRAPH_NODE_UPDATED: u32 = 22;
}

/// Results of CUPTI's functions (CUptiResult).
pub mod code {
    /// No record is left in the buffer.
    pub const MAX_LIMIT_REACHED: i32 = 12;
    /// Another client is subscribed.
    pub const MULTIPLE_SUBSCRIBERS: i32 = 39;
}

/// CUpti_ActivityAttribute: 1 when the buffers that we give are zeroed already.
pub const ATTRIBUTE_ZEROED_BUFFERS: u32 = 5;
/// CUpti_ActivityAttribute: 1 when each thread has a buffer of its own.
pub const ATTRIBUTE_BUFFERS_OF_THREADS: u32 = 9;
/// The API versions of CUDA 12.3 to 12.9: earlier CUPTIs do not know that attribute, and for later ones it is 1 by default.
pub const BUFFERS_OF_ALL: std::ops::Range<u32> = 21..130_000;
/// CUpti_ActivityThreadIdType: the system's ids instead of shortened pthread handles.
pub const THREAD_IDS_OF_SYSTEM: u32 = 1;
/// CUPTI_ACTIVITY_FLAG_FLUSH_FORCED: also flushes records that are not finished.
pub const FLUSH_FORCED: u32 = 1;
/// INT_MAX: the device and the context of a graph that starts or ends on the host.
pub const ON_HOST: u32 = i32::MAX as u32;
/// CUPTI_SYNCHRONIZATION_INVALID_VALUE: the number of a context or stream that is not known, or of none.
pub const NO_ID: u32 = u32::MAX;

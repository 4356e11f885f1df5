//! The [`Record`]s of a capture, in the order in which they are written.
//!
//! Vulkan's enumerations are kept as Vulkan's numbers (`vk.xml` has their meanings), sizes and offsets are bytes. Ids
//! of objects are numbers of this capture alone; an object's record comes before the first record that names it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::content::Hash;

mod commands;
mod objects;
mod steps;

pub use commands::*;
pub use objects::*;
pub use steps::*;

// Declares the types of ids, which are kept as plain numbers.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// An allocation of device memory.
    MemoryId,
    /// A buffer.
    BufferId,
    /// A shader module: SPIR-V.
    ModuleId,
    /// A layout of a descriptor set.
    SetLayoutId,
    /// A pipeline layout.
    PipelineLayoutId,
    /// A compute pipeline.
    PipelineId,
    /// A queue.
    QueueId,
    /// A semaphore.
    SemaphoreId,
    /// The commands of one submitted command buffer.
    CommandsId,
}

/// One line of `capture.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// The first record, and only that one.
    Capture(Header),
    /// The place of a piece of content in `content.bin`.
    Chunk(Chunk),
    /// An allocation.
    Memory(Memory),
    /// A buffer.
    Buffer(Buffer),
    /// A shader module.
    Module(Module),
    /// A layout of a descriptor set.
    SetLayout(SetLayout),
    /// A pipeline layout.
    PipelineLayout(PipelineLayout),
    /// A compute pipeline.
    Pipeline(Pipeline),
    /// A queue.
    Queue(Queue),
    /// Bytes of memory before the next submission: it is the first that may touch them, or the host wrote them.
    Content(Content),
    /// The commands of a command buffer.
    Commands(Commands),
    /// A call that hands work to a queue.
    Submission(Submission),
    /// Hashes of memory after the last submission, which a replay is compared with.
    Outcome(Outcome),
    /// The end of the window: the last record before the last check. A capture without it was cut off.
    End(End),
    /// The hash of all bytes of the file before this line. A check stands before each submission and at the end.
    Check(Hash),
}

/// The interface whose work a capture holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapturedApi {
    /// The records are [`Record`]s.
    #[default]
    Vulkan,
    /// The records are [`crate::cuda::CudaRecord`]s.
    Cuda,
}

impl CapturedApi {
    fn is_vulkan(&self) -> bool {
        *self == CapturedApi::Vulkan
    }
}

/// The program, the device and the window (stretch of the program's run) that were captured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Header<D = Device> {
    /// The format that the capture has: [`crate::VULKAN_FORMAT`] or [`crate::FORMAT`].
    pub format: u32,
    /// The interface whose work the capture holds.
    #[serde(default, skip_serializing_if = "CapturedApi::is_vulkan")]
    pub api: CapturedApi,
    /// The version of gapscope that wrote the capture.
    pub gapscope: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Id of the process.
    pub pid: u32,
    /// Begin of the window, in nanoseconds since 1970.
    pub started_unix_ns: i64,
    /// The window as the command line gives it: `dispatches 10..20`.
    pub window: String,
    /// The device on which the program ran.
    pub device: D,
}

impl<D> Header<D> {
    /// Hides what looks like a secret in the command line. Captures are given to others, and a stranger's may have been
    /// written by another program.
    #[must_use]
    pub(crate) fn without_secrets(mut self) -> Self {
        self.command = gapscope_model::secrets::hide(&self.command);
        self
    }
}

/// The properties of a device that a replay compares with those of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// `VkPhysicalDeviceProperties::deviceName`
    pub name: String,
    /// PCI's number of the vendor.
    pub vendor_id: u32,
    /// The vendor's number of the device.
    pub device_id: u32,
    /// `driverName` and `driverInfo`, as far as the driver has them.
    pub driver: String,
    /// `VkPhysicalDeviceProperties::driverVersion`
    pub driver_version: u32,
    /// The version that the program may use: the lower one of the instance's and the device's.
    pub api_version: u32,
    /// `pipelineCacheUUID` as 32 hexadecimal digits: equal where the same driver compiles for the same device.
    pub pipeline_cache_uuid: String,
    /// `VkPhysicalDeviceSubgroupProperties::subgroupSize`
    pub subgroup_size: u32,
    /// Device extensions that the program enabled.
    pub extensions: Vec<String>,
    /// Features that the program enabled, by the names of their members, such as `shaderFloat16`.
    pub features: Vec<String>,
}

/// A piece of content: at most [`crate::CHUNK_BYTES`] of memory, or the whole of a shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Hash of the bytes before compression.
    pub hash: Hash,
    /// Offset of the first byte in `content.bin`.
    pub at: u64,
    /// Size in `content.bin`, of a frame of zstd.
    pub stored: u32,
    /// Size before compression.
    pub bytes: u32,
}

/// These tell serde which fields to leave out, as they have their default.
pub(crate) fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_origin(value: &[u32; 3]) -> bool {
    *value == [0; 3]
}

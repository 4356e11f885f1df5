//! What a capture says: [`Record`]s, in the order in which they were written.
//!
//! Enumerations of Vulkan travel as its numbers (`vk.xml` says what they mean), sizes and offsets are bytes. Objects are named by numbers
//! that this capture gives them; an object's record comes before the first record that names it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::content::Hash;

mod commands;
mod objects;
mod steps;

pub use commands::*;
pub use objects::*;
pub use steps::*;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// The first record, and only the first.
    Capture(Header),
    /// A piece of content, in `content.bin`.
    Chunk(Chunk),
    /// An object of the program.
    Memory(Memory),
    /// An object of the program.
    Buffer(Buffer),
    /// An object of the program.
    Module(Module),
    /// An object of the program.
    SetLayout(SetLayout),
    /// An object of the program.
    PipelineLayout(PipelineLayout),
    /// An object of the program.
    Pipeline(Pipeline),
    /// An object of the program.
    Queue(Queue),
    /// Bytes of memory as they are before the next submission: found when the window touched them first, or written by the host
    /// since.
    Content(Content),
    /// The commands of a command buffer.
    Commands(Commands),
    /// A call that handed work to a queue.
    Submission(Submission),
    /// What memory holds after the last submission: the check of a replay.
    Outcome(Outcome),
    /// The last record but for a check. Without it the capture was cut off.
    End(End),
    /// Of all bytes of the file before this line: they are as they were written. One stands before each submission, and one at the end.
    Check(Hash),
}

/// What was captured, from what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`crate::FORMAT`] of who wrote it.
    pub format: u32,
    /// The version of gapscope that wrote it.
    pub gapscope: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The process.
    pub pid: u32,
    /// Nanoseconds since 1970, when the window began.
    pub started_unix_ns: i64,
    /// What was asked for, as on the command line: `dispatches 10..20`.
    pub window: String,
    /// The device on which the program ran.
    pub device: Device,
}

/// A device, as far as a replay compares it with its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// `VkPhysicalDeviceProperties::deviceName`
    pub name: String,
    /// PCI's number of the vendor.
    pub vendor_id: u32,
    /// The vendor's number of the device.
    pub device_id: u32,
    /// `driverName` and `driverInfo`, where the driver tells them.
    pub driver: String,
    /// `VkPhysicalDeviceProperties::driverVersion`
    pub driver_version: u32,
    /// The version that the program may use: the lower of the instance's and the device's.
    pub api_version: u32,
    /// `pipelineCacheUUID`: the same when the same driver compiles for the same device. 32 hexadecimal digits.
    pub pipeline_cache_uuid: String,
    /// `VkPhysicalDeviceSubgroupProperties::subgroupSize`
    pub subgroup_size: u32,
    /// Device extensions that the program enabled.
    pub extensions: Vec<String>,
    /// Features that the program enabled, by the names of their members: `shaderFloat16`.
    pub features: Vec<String>,
}

/// A piece of content: at most [`crate::CHUNK_BYTES`] of memory, or the whole of a shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// Of the bytes as they were, before compression.
    pub hash: Hash,
    /// Where it begins in `content.bin`.
    pub at: u64,
    /// Its size there: a frame of zstd.
    pub stored: u32,
    /// Its size.
    pub bytes: u32,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_origin(value: &[u32; 3]) -> bool {
    *value == [0; 3]
}

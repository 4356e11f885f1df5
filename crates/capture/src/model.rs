//! What a capture says: [`Record`]s, in the order in which they were written.
//!
//! Enumerations of Vulkan travel as its numbers (`vk.xml` says what they mean), sizes and offsets are bytes. Objects are named by numbers
//! that this capture gives them; an object's record comes before the first record that names it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::content::Hash;

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

/// An allocation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Its number.
    pub id: MemoryId,
    /// Its size.
    pub bytes: u64,
    /// `VkMemoryPropertyFlags` of its type.
    pub properties: u32,
}

/// A buffer, and where its memory is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Its number.
    pub id: BufferId,
    /// The name that the program gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// `VkBufferUsageFlags2` as the program asked for them.
    pub usage: u64,
    /// `VkBufferCreateFlags`
    pub flags: u32,
    /// The allocation that it is bound to.
    pub memory: MemoryId,
    /// Where it begins there.
    pub offset: u64,
}

/// SPIR-V as the program handed it over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Module {
    /// Its number.
    pub id: ModuleId,
    /// The chunk with its words, little-endian.
    pub code: Hash,
}

/// `VkDescriptorSetLayoutCreateInfo`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetLayout {
    /// Its number.
    pub id: SetLayoutId,
    /// `VkDescriptorSetLayoutCreateFlags`
    pub flags: u32,
    /// Its bindings.
    pub bindings: Vec<LayoutBinding>,
}

/// `VkDescriptorSetLayoutBinding`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutBinding {
    /// The number in the shader.
    pub binding: u32,
    /// `VkDescriptorType`
    pub descriptor_type: u32,
    /// How many descriptors.
    pub count: u32,
    /// `VkShaderStageFlags`
    pub stages: u32,
    /// `VkDescriptorBindingFlags`
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags: u32,
}

/// `VkPipelineLayoutCreateInfo`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineLayout {
    /// Its number.
    pub id: PipelineLayoutId,
    /// `VkPipelineLayoutCreateFlags`
    pub flags: u32,
    /// By number of the set; a set that the layout leaves out is none.
    pub sets: Vec<Option<SetLayoutId>>,
    /// Ranges of push constants.
    pub push_constants: Vec<PushConstantRange>,
}

/// `VkPushConstantRange`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushConstantRange {
    /// `VkShaderStageFlags`
    pub stages: u32,
    /// Where it begins.
    pub offset: u32,
    /// Its size.
    pub bytes: u32,
}

/// A compute pipeline: everything of `VkComputePipelineCreateInfo` that has a meaning for its results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pipeline {
    /// Its number.
    pub id: PipelineId,
    /// The name of the kernel as a recording shows it.
    pub name: String,
    /// Its layout.
    pub layout: PipelineLayoutId,
    /// Its shader.
    pub module: ModuleId,
    /// The entry point.
    pub entry: String,
    /// `VkPipelineCreateFlags2`
    pub flags: u64,
    /// `VkPipelineShaderStageCreateFlags`
    pub stage_flags: u32,
    /// Specialisation constants that the program set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constants: Vec<Constant>,
    /// `requiredSubgroupSize`, if the program asked for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_subgroup_size: Option<u32>,
    /// `VkPipelineRobustnessCreateInfo`, if the program gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robustness: Option<Robustness>,
}

/// A specialisation constant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constant {
    /// `SpecId`
    pub id: u32,
    /// Its bytes, as the program gave them: 1, 2, 4 or 8.
    #[serde(with = "crate::hex")]
    pub value: Vec<u8>,
}

/// `VkPipelineRobustnessCreateInfo`: its four behaviours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Robustness {
    /// `storageBuffers`
    pub storage_buffers: u32,
    /// `uniformBuffers`
    pub uniform_buffers: u32,
    /// `vertexInputs`
    pub vertex_inputs: u32,
    /// `images`
    pub images: u32,
}

/// A queue that the window submitted to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Its number.
    pub id: QueueId,
    /// Its family's index.
    pub family: u32,
    /// Its index in the family.
    pub index: u32,
    /// `VkQueueFlags` of the family.
    pub flags: u32,
}

/// Bytes of an allocation. Its chunks follow each other and have [`crate::CHUNK_BYTES`] each but for the first, which ends at a multiple of that,
/// and the last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The allocation.
    pub memory: MemoryId,
    /// Where they begin in it.
    pub offset: u64,
    /// The chunks.
    pub chunks: Vec<Hash>,
    /// Why they are here.
    pub cause: ContentCause,
}

/// Why content is in the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentCause {
    /// The next submission is the first of the window that may touch it.
    FirstUse,
    /// The host wrote since the last submission.
    HostWrite,
}

/// The commands of one command buffer, secondary ones in their places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commands {
    /// Their number.
    pub id: CommandsId,
    /// In the order of recording.
    pub commands: Vec<Command>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A kernel runs.
    Dispatch(Dispatch),
    /// Bytes are copied between buffers (`vkCmdCopyBuffer`).
    Copy(Copy),
    /// A range is filled with a word (`vkCmdFillBuffer`).
    Fill(Fill),
    /// Bytes of the command buffer are written (`vkCmdUpdateBuffer`).
    Update(Update),
    /// A barrier, in the words of synchronization2.
    Barrier(Barrier),
    /// A label begins, ends or stands alone.
    Label(Label),
}

/// A range of a buffer, with its true size: never `VK_WHOLE_SIZE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BufferRange {
    /// The buffer.
    pub buffer: BufferId,
    /// Where it begins.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
}

/// A kernel with everything that it runs on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dispatch {
    /// What runs.
    pub pipeline: PipelineId,
    /// How many workgroups.
    pub groups: Groups,
    /// `vkCmdDispatchBase`: the first workgroup.
    #[serde(default, skip_serializing_if = "is_origin")]
    pub base: [u32; 3],
    /// All push constants that the pipeline's layout has, from byte 0; those never set are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::hex")]
    pub push_constants: Vec<u8>,
    /// The descriptors that the shader may use, in the order of sets, bindings and elements.
    pub bindings: Vec<Binding>,
}

/// How many workgroups a dispatch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Groups {
    /// As the command says.
    Direct([u32; 3]),
    /// The three words of a range, read by the device.
    Indirect(BufferRange),
}

/// A descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// Which of the binding's descriptors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub element: u32,
    /// `VkDescriptorType`: a uniform or storage buffer. Dynamic offsets are in the range already, and the type here is still the dynamic one.
    pub descriptor_type: u32,
    /// What it is bound to; none: a null descriptor.
    pub range: Option<BufferRange>,
    /// The shader can only read it: what it declares, and no variable of it is written through.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only: bool,
}

/// `vkCmdCopyBuffer`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// From here.
    pub from: BufferId,
    /// To here.
    pub to: BufferId,
    /// In these pieces.
    pub regions: Vec<CopyRegion>,
}

/// `VkBufferCopy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRegion {
    /// In the buffer that is read.
    pub from: u64,
    /// In the buffer that is written.
    pub to: u64,
    /// The size.
    pub bytes: u64,
}

/// `vkCmdFillBuffer`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// What is written: a multiple of 4 bytes.
    pub range: BufferRange,
    /// With what.
    pub value: u32,
}

/// `vkCmdUpdateBuffer`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// The buffer.
    pub buffer: BufferId,
    /// Where.
    pub offset: u64,
    /// What: at most 65,536 bytes.
    #[serde(with = "crate::hex")]
    pub data: Vec<u8>,
}

/// A barrier: execution and memory dependencies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    /// `VkDependencyFlags`
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flags: u32,
    /// For all memory. A barrier of `vkCmdPipelineBarrier` without memory barriers is one of these with no access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Dependency>,
    /// For a range of a buffer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<(Dependency, BufferRange)>,
}

/// What waits for what: `VkPipelineStageFlags2` and `VkAccessFlags2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// `srcStageMask`
    pub after_stages: u64,
    /// `srcAccessMask`
    pub after_access: u64,
    /// `dstStageMask`
    pub before_stages: u64,
    /// `dstAccessMask`
    pub before_access: u64,
}

/// A debug-utils label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// Until its end.
    Begin(String),
    /// Of the innermost.
    End,
    /// At this place.
    Instant(String),
}

/// A call of `vkQueueSubmit`, with its batches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// The queue.
    pub queue: QueueId,
    /// Nanoseconds since the window began, when the program called.
    pub called_ns: u64,
    /// How long the device worked on it, alone, from the first command to the last, in nanoseconds; none where the queue has no timestamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_ns: Option<u64>,
    /// In order.
    pub batches: Vec<Batch>,
}

/// `VkSubmitInfo`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Semaphores that it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<SemaphoreUse>,
    /// What runs.
    pub commands: Vec<CommandsId>,
    /// Semaphores that it signals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signals: Vec<SemaphoreUse>,
}

/// A wait or a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemaphoreUse {
    /// The semaphore.
    pub semaphore: SemaphoreId,
    /// Of a timeline: its value; of a binary one: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
    /// `VkPipelineStageFlags2` that wait, or after which it is signalled.
    pub stages: u64,
}

/// What an allocation holds, by hash: as [`Content`], and the chunks need not be in `content.bin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// The allocation.
    pub memory: MemoryId,
    /// Where it begins in it.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// Of each piece.
    pub hashes: Vec<Hash>,
}

/// How the window ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Why there.
    pub reason: EndReason,
    /// Nanoseconds since the window began.
    pub after_ns: u64,
}

/// Why a window ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// As asked for.
    Complete,
    /// The program ended, or destroyed the device, first.
    ProgramEnded,
    /// What came next cannot be captured right; it and what followed is not here.
    Refused(String),
    /// Something went wrong that has nothing to do with the program: no space on the disk.
    Failed(String),
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

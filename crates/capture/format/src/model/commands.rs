//! What command buffers do.

use serde::{Deserialize, Serialize};

use super::{BufferId, CommandsId, PipelineId};

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
    #[serde(default, skip_serializing_if = "super::is_origin")]
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
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub element: u32,
    /// `VkDescriptorType`: a uniform or storage buffer. Dynamic offsets are in the range already, and the type here is still the dynamic one.
    pub descriptor_type: u32,
    /// What it is bound to; none: a null descriptor.
    pub range: Option<BufferRange>,
    /// The shader can only read it: what it declares, and no variable of it is written through.
    #[serde(default, skip_serializing_if = "super::is_false")]
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
    #[serde(default, skip_serializing_if = "super::is_zero")]
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

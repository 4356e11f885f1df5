//! The records of command recordings: dispatches, transfers, barriers and labels.

use serde::{Deserialize, Serialize};

use super::{BufferId, CommandsId, PipelineId};

/// The commands of one command buffer, with those of secondary ones in their places.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Commands {
    /// Id of the commands.
    pub id: CommandsId,
    /// Commands in the order in which they were recorded.
    pub commands: Vec<Command>,
}

/// One command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A dispatch of a kernel.
    Dispatch(Dispatch),
    /// A copy between buffers (`vkCmdCopyBuffer`).
    Copy(Copy),
    /// A fill of a range with a word (`vkCmdFillBuffer`).
    Fill(Fill),
    /// A write of bytes that the command buffer holds (`vkCmdUpdateBuffer`).
    Update(Update),
    /// A barrier, in the terms of synchronization2.
    Barrier(Barrier),
    /// The begin or end of a label, or an instant.
    Label(Label),
}

impl Command {
    /// Returns whether the command takes time on the device: it is a dispatch or a transfer.
    pub fn is_work(&self) -> bool {
        !matches!(self, Command::Barrier(_) | Command::Label(_))
    }
}

/// A range of a buffer with its size in bytes, which is never `VK_WHOLE_SIZE`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BufferRange {
    /// The buffer.
    pub buffer: BufferId,
    /// The first byte.
    pub offset: u64,
    /// The size.
    pub bytes: u64,
}

/// A dispatch with everything that the kernel runs on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dispatch {
    /// The pipeline that runs.
    pub pipeline: PipelineId,
    /// The number of workgroups.
    pub groups: Groups,
    /// The first workgroup (`vkCmdDispatchBase`).
    #[serde(default, skip_serializing_if = "super::is_origin")]
    pub base: [u32; 3],
    /// All push constants of the pipeline's layout, from byte 0. Those that were never set are 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "crate::hex")]
    pub push_constants: Vec<u8>,
    /// The descriptors that the shader may use, in the order of sets, bindings and elements.
    pub bindings: Vec<Binding>,
}

/// The number of workgroups of a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Groups {
    /// Given by the command.
    Direct([u32; 3]),
    /// The three words of a range, which the device reads.
    Indirect(BufferRange),
}

/// A descriptor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Binding {
    /// Number of the set.
    pub set: u32,
    /// Number of the binding.
    pub binding: u32,
    /// Index among the descriptors of the binding.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub element: u32,
    /// `VkDescriptorType` of a uniform or storage buffer. Dynamic offsets are in the range already, and the type is
    /// still the dynamic one.
    pub descriptor_type: u32,
    /// The bound range; `None` for a null descriptor.
    pub range: Option<BufferRange>,
    /// Whether the shader can only read the buffer, because it says so or writes through no variable of the buffer.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub read_only: bool,
}

/// `vkCmdCopyBuffer`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// The buffer that is read.
    pub from: BufferId,
    /// The buffer that is written.
    pub to: BufferId,
    /// The ranges that are copied.
    pub regions: Vec<CopyRegion>,
}

/// `VkBufferCopy`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRegion {
    /// Offset in the buffer that is read.
    pub from: u64,
    /// Offset in the buffer that is written.
    pub to: u64,
    /// The size.
    pub bytes: u64,
}

/// `vkCmdFillBuffer`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fill {
    /// The range that is written, a multiple of 4 bytes.
    pub range: BufferRange,
    /// The word that the range is filled with.
    pub value: u32,
}

/// `vkCmdUpdateBuffer`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Update {
    /// The buffer.
    pub buffer: BufferId,
    /// Offset of the first byte.
    pub offset: u64,
    /// The bytes that are written, at most 65,536.
    #[serde(with = "crate::hex")]
    pub data: Vec<u8>,
}

impl Binding {
    /// Returns whether the binding is of uniform buffers, with a dynamic offset or without. Others are of storage
    /// buffers.
    pub fn is_uniform(&self) -> bool {
        matches!(self.descriptor_type, 6 | 8)
    }

    /// Returns whether the kernel may write through the binding.
    pub fn is_writable(&self) -> bool {
        !self.read_only && !self.is_uniform()
    }
}

impl BufferRange {
    /// Returns the range of so many bytes at the start of a buffer.
    pub fn from_start(buffer: BufferId, bytes: u64) -> BufferRange {
        BufferRange {
            buffer,
            offset: 0,
            bytes,
        }
    }
}

impl Copy {
    /// Returns a copy of so many bytes at the start of a buffer to the start of another.
    pub fn from_start(from: BufferId, to: BufferId, bytes: u64) -> Copy {
        let region = CopyRegion {
            from: 0,
            to: 0,
            bytes,
        };
        Copy {
            from,
            to,
            regions: vec![region],
        }
    }

    /// Returns the range that a region reads, then the range that it writes.
    pub fn ranges(&self, region: &CopyRegion) -> [BufferRange; 2] {
        let bytes = region.bytes;
        [(self.from, region.from), (self.to, region.to)].map(|(buffer, offset)| BufferRange {
            buffer,
            offset,
            bytes,
        })
    }
}

impl Barrier {
    /// Returns a barrier with this dependency, of all memory.
    pub fn of_memory(dependency: Dependency) -> Barrier {
        Barrier {
            memory: vec![dependency],
            ..Barrier::default()
        }
    }
}

impl Update {
    /// Returns the range that is written.
    pub fn range(&self) -> BufferRange {
        BufferRange {
            buffer: self.buffer,
            offset: self.offset,
            bytes: self.data.len() as u64,
        }
    }
}

/// A barrier: execution and memory dependencies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    /// `VkDependencyFlags`.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub flags: u32,
    /// Dependencies of all memory. A barrier of `vkCmdPipelineBarrier` without memory barriers is one of these with
    /// no access.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory: Vec<Dependency>,
    /// Dependencies of ranges of buffers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<(Dependency, BufferRange)>,
}

/// Stages and accesses that wait for others: `VkPipelineStageFlags2` and `VkAccessFlags2`.
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
    /// A label begins.
    Begin(String),
    /// The innermost label ends.
    End,
    /// A label of one moment.
    Instant(String),
}

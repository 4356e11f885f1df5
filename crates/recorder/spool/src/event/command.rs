//! The commands of a command recording (what a Vulkan command buffer contains): the Vulkan layer writes 24 bytes for
//! each, and the session decodes them. Commands are timed by timestamps (queries that write the GPU's time), which
//! are numbered within the command recording.

use bytemuck::{CheckedBitPattern, Pod, Zeroable};

/// The kind of a [`Command`]. Each variant says what the operands `a` to `d` hold; unnamed operands are unused. The
/// `query` is the index of a timestamp among those of the command recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, CheckedBitPattern)]
#[repr(u8)]
pub enum Op {
    /// The command buffer begins; `query` is its timestamp.
    Begin = 1,
    /// The command buffer ends; `query` is its timestamp.
    End,
    /// a, b, c: workgroups; d: kernel (0: unknown). `query` and `query + 1` enclose it.
    Dispatch,
    /// Like `Dispatch`, with a non-zero base.
    DispatchBase,
    /// Workgroups come from a buffer: a: the buffer's id; b, c: low and high word of the offset; d: kernel.
    DispatchIndirect,
    /// a: descriptor set index; b: content id ([`super::VulkanEvent::Bindings`]), 0 when unknown; c: 1 when it is
    /// unknown because descriptor buffers and heaps are not followed.
    BindSet,
    /// a: descriptor set index; b: index of the dynamic offset in the set; c: the offset.
    DynamicOffset,
    /// a, b: low and high word of the bytes; c: source buffer; d: destination buffer (0: an image or unknown).
    CopyBuffer,
    /// Like `CopyBuffer`, with c = 0.
    FillBuffer,
    /// Like `CopyBuffer`, with c = 0: data from the command itself.
    UpdateBuffer,
    /// Copies between buffers and images or between images: bytes as in `CopyBuffer`, both words `u32::MAX` when
    /// unknown.
    CopyImage,
    /// a, b: low and high word of the source stages; c, d: of the destination stages.
    Barrier,
    /// a: text id.
    LabelBegin,
    /// Ends the innermost label.
    LabelEnd,
    /// a: text id.
    LabelInstant,
    /// a: the secondary command recording. `query` and `query + 1` enclose it when it has no times of its own.
    Execute,
    /// Opaque work begins; a: number of the [`gapscope_model::OpaqueWorkKind`]; `query` is its timestamp.
    OpaqueBegin,
    /// Opaque work, which is timed as a whole, ends; `query` is its timestamp.
    OpaqueEnd,
}

/// One command of a command recording: 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Command {
    op: u32,
    /// The index of the first timestamp among the command recording's queries, or [`super::NO_QUERY`].
    pub query: u32,
    /// Operand, as [`Op`] says.
    pub a: u32,
    /// Operand, as [`Op`] says.
    pub b: u32,
    /// Operand, as [`Op`] says.
    pub c: u32,
    /// Operand, as [`Op`] says.
    pub d: u32,
}

impl Command {
    /// Creates a command with its four operands.
    #[inline]
    pub fn new(op: Op, query: u32, [a, b, c, d]: [u32; 4]) -> Command {
        Command {
            op: op as u32,
            query,
            a,
            b,
            c,
            d,
        }
    }

    /// Returns the kind; `None` for a value that this version does not know.
    pub fn op(&self) -> Option<Op> {
        bytemuck::checked::try_cast(u8::try_from(self.op).ok()?).ok()
    }

    /// Returns `a` (low word) and `b` (high word) as one number.
    pub fn ab(&self) -> u64 {
        u64::from(self.a) | u64::from(self.b) << 32
    }

    /// Returns `c` (low word) and `d` (high word) as one number.
    pub fn cd(&self) -> u64 {
        u64::from(self.c) | u64::from(self.d) << 32
    }

    /// Decodes the bytes of [`super::VulkanEvent::Commands`]. A torn last command is left out.
    pub fn all(bytes: &[u8]) -> impl Iterator<Item = Command> + '_ {
        bytes
            .chunks_exact(size_of::<Command>())
            .map(bytemuck::pod_read_unaligned)
    }
}

//! The commands of a recording.

use bytemuck::{Pod, Zeroable};

/// What a [`Command`] is. The meaning of `a`–`d` is given for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// The command buffer begins; `query` is its timestamp.
    Begin = 1,
    /// The command buffer ends; `query` is its timestamp.
    End,
    /// a, b, c: workgroups; d: kernel (0: unknown). `query` and `query + 1` enclose it.
    Dispatch,
    /// As `Dispatch`, with a non-zero base.
    DispatchBase,
    /// Workgroups come from a buffer: a: the buffer's id; b, c: low and high word of the offset; d: kernel.
    DispatchIndirect,
    /// a: descriptor set index; b: content id ([`super::VulkanEvent::Bindings`]), 0 where it is not known; c: 1 where that is
    /// because descriptor buffers and heaps are not followed.
    BindSet,
    /// a: descriptor set index; b: which dynamic offset of the set; c: the offset.
    DynamicOffset,
    /// a, b: low and high word of the bytes; c: source buffer; d: destination buffer (0: an image or unknown).
    CopyBuffer,
    /// As `CopyBuffer`, with c = 0.
    FillBuffer,
    /// As `CopyBuffer`, with c = 0: data from the command itself.
    UpdateBuffer,
    /// Buffer to image or back, image to image: bytes as `CopyBuffer`, both words `u32::MAX` when unknown.
    CopyImage,
    /// a, b: low and high word of the source stages; c, d: of the destination stages.
    Barrier,
    /// a: text id.
    LabelBegin,
    /// Ends the innermost label.
    LabelEnd,
    /// a: text id.
    LabelInstant,
    /// a: the secondary recording executed here. `query` and `query + 1` enclose it when it has no times of its own.
    Execute,
    /// Work that is not taken apart begins: a: [`gapscope_model::OpaqueWorkKind`]'s number. `query` is its timestamp.
    OpaqueBegin,
    /// It ends; `query` is its timestamp.
    OpaqueEnd,
}

/// One command of a recording: 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Command {
    op: u32,
    /// Index of its first timestamp among the recording's queries, or [`super::NO_QUERY`].
    pub query: u32,
    /// See [`Op`].
    pub a: u32,
    /// See [`Op`].
    pub b: u32,
    /// See [`Op`].
    pub c: u32,
    /// See [`Op`].
    pub d: u32,
}

impl Command {
    /// A command with its four operands.
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

    /// What it is; `None` for a value that this version does not know.
    pub fn op(&self) -> Option<Op> {
        use Op::*;
        const ALL: [Op; 18] = [
            Begin,
            End,
            Dispatch,
            DispatchBase,
            DispatchIndirect,
            BindSet,
            DynamicOffset,
            CopyBuffer,
            FillBuffer,
            UpdateBuffer,
            CopyImage,
            Barrier,
            LabelBegin,
            LabelEnd,
            LabelInstant,
            Execute,
            OpaqueBegin,
            OpaqueEnd,
        ];
        // They are numbered from 1 in this order.
        let index = self.op.checked_sub(1)?;
        ALL.get(index as usize)
            .copied()
            .filter(|op| *op as u32 == self.op)
    }

    /// `a` and `b` as one number.
    pub fn ab(&self) -> u64 {
        u64::from(self.a) | u64::from(self.b) << 32
    }

    /// `c` and `d` as one number.
    pub fn cd(&self) -> u64 {
        u64::from(self.c) | u64::from(self.d) << 32
    }

    /// The commands in the bytes of [`super::VulkanEvent::Commands`]. A torn last one is left out.
    pub fn all(bytes: &[u8]) -> impl Iterator<Item = Command> + '_ {
        bytes
            .chunks_exact(size_of::<Command>())
            .map(bytemuck::pod_read_unaligned)
    }
}

//! Defines [`Program`], a kernel as one control-flow graph of operations on registers. `lower` makes it from SPIR-V,
//! `fold` and `slice` reduce it to what the machine runs.

use std::ops::Range;
use std::sync::Arc;

use super::code::Code;
use super::reason::Cause;

/// The number of a register. Each invocation has its own registers.
pub(crate) type Register = u32;
/// The number of a block.
pub(crate) type BlockId = u32;

/// An operand of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operand {
    /// A value that is the same in all invocations.
    Known(u64),
    Register(Register),
    /// An unknown value, with the cause.
    Unknown(Cause),
}

/// An operation in a block.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// Applies an arithmetic operation to operands of `bits` bits.
    Compute {
        code: Code,
        bits: u8,
        result: Register,
        operands: [Operand; 3],
    },
    /// Reads the register at `index` among `count` registers from `first` on.
    Pick {
        result: Register,
        first: Register,
        count: u32,
        index: Operand,
    },
    /// Writes the register at `index` among `count` registers from `first` on.
    Put {
        first: Register,
        count: u32,
        index: Operand,
        value: Operand,
    },
    /// Reads bytes of known contents, such as push constants.
    Look {
        result: Register,
        content: usize,
        offset: Operand,
        bytes: u8,
    },
    Access(Access),
    /// An access that cannot be followed.
    Escape(Escape),
}

impl Op {
    /// Returns the operation that copies a value of 64 bits to a register.
    pub fn copy(result: Register, from: Operand) -> Op {
        Op::Compute {
            code: Code::Copy,
            bits: 64,
            result,
            operands: [from, Operand::Known(0), Operand::Known(0)],
        }
    }

    /// Returns the registers that the operation writes, or of which it writes one.
    pub fn written(&self) -> Range<Register> {
        match self {
            Op::Compute { result, .. } | Op::Pick { result, .. } | Op::Look { result, .. } => {
                *result..result + 1
            }
            Op::Put { first, count, .. } => *first..first + count,
            Op::Access(_) | Op::Escape(_) => 0..0,
        }
    }

    /// Returns the registers of which the operation reads one, chosen by an operand.
    pub fn picked_from(&self) -> Range<Register> {
        match self {
            Op::Pick { first, count, .. } => *first..first + count,
            _ => 0..0,
        }
    }

    /// Returns the operands that the operation reads.
    pub fn operands(&self) -> impl Iterator<Item = Operand> {
        let operands = match self {
            Op::Compute { operands, .. } => operands.map(Some),
            Op::Pick { index, .. } => [Some(*index), None, None],
            Op::Put { index, value, .. } => [Some(*index), Some(*value), None],
            Op::Look { offset, .. } => [Some(*offset), None, None],
            Op::Access(access) => {
                let stride = access.rows.map(|(_, stride)| stride);
                [Some(access.offset), stride, None]
            }
            Op::Escape(_) => [None; 3],
        };
        operands.into_iter().flatten()
    }
}

/// A read or write of a buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    /// Index of the bound buffer.
    pub buffer: usize,
    /// Offset from the first bound byte.
    pub offset: Operand,
    /// Number of bytes of a scalar.
    pub scalar_bytes: u32,
    /// Number of scalars.
    pub scalars: u32,
    pub direction: Direction,
    /// Rows of a matrix that all invocations of a subgroup reach together: their number, and the bytes from one to
    /// the next.
    pub rows: Option<(u32, Operand)>,
}

/// The direction of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
    /// Reads and writes at once, with other invocations kept out.
    Atomic,
}

impl Direction {
    pub fn reads(self) -> bool {
        self != Direction::Write
    }

    pub fn writes(self) -> bool {
        self != Direction::Read
    }
}

/// An access that cannot be followed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Escape {
    /// Index of the bound buffer; `None` if any memory may be reached.
    pub buffer: Option<usize>,
    pub reads: bool,
    pub writes: bool,
    pub cause: Cause,
}

/// A value at the start of a block that depends on the block run before.
#[derive(Debug, Clone)]
pub(crate) struct Phi {
    pub result: Register,
    /// The value by the block that was run before.
    pub sources: Vec<(BlockId, Operand)>,
}

/// The end of a block, which says which block runs next.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Stop,
    Jump(BlockId),
    /// Goes to `then` where the condition is not 0.
    Branch {
        condition: Operand,
        then: BlockId,
        otherwise: BlockId,
    },
    Switch {
        selector: Operand,
        default: BlockId,
        cases: Vec<(u64, BlockId)>,
    },
}

impl End {
    /// Returns the different blocks that may run next.
    pub fn targets(&self) -> Vec<BlockId> {
        match self {
            End::Stop => Vec::new(),
            End::Jump(to) => vec![*to],
            End::Branch {
                then, otherwise, ..
            } if then == otherwise => vec![*then],
            End::Branch {
                then, otherwise, ..
            } => vec![*then, *otherwise],
            End::Switch { default, cases, .. } => {
                let mut targets: Vec<BlockId> = cases.iter().map(|(_, to)| *to).collect();
                targets.push(*default);
                targets.sort_unstable();
                targets.dedup();
                targets
            }
        }
    }

    /// Returns the operand that selects among several targets; `None` if there is at most one target.
    pub fn selector(&self) -> Option<Operand> {
        match self {
            End::Stop | End::Jump(_) => None,
            End::Branch {
                condition: on,
                then,
                otherwise,
            } => (then != otherwise).then_some(*on),
            End::Switch { selector, .. } => (self.targets().len() > 1).then_some(*selector),
        }
    }
}

/// A sequence of operations that is entered at its start and left at its end only.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub phis: Vec<Phi>,
    pub ops: Vec<Op>,
    pub end: End,
}

/// A built-in input of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Input {
    /// `GlobalInvocationId`, by axis.
    Global(u8),
    /// `LocalInvocationId`, by axis.
    Local(u8),
    /// `WorkgroupId`, by axis.
    Group(u8),
    /// `LocalInvocationIndex`
    LocalIndex,
}

/// A kernel as a graph of blocks. Block 0 is its entry.
#[derive(Debug, Default)]
pub(crate) struct Program {
    pub blocks: Vec<Block>,
    /// Blocks in the order of their code: the blocks of a loop come before those after it.
    pub order: Vec<BlockId>,
    pub registers: u32,
    /// The built-in inputs that are used, each with the register that holds it.
    pub inputs: Vec<(Input, Register)>,
    /// Variables, each as its first register and its number of registers.
    pub variables: Vec<(Register, u32)>,
    /// Known bytes that [`Op::Look`] reads.
    pub contents: Vec<Arc<[u8]>>,
}

impl Program {
    /// Returns for each block whether it can be reached from the entry.
    pub fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.blocks.len()];
        let mut stack = vec![0];
        while let Some(block) = stack.pop() {
            if !std::mem::replace(&mut reached[block as usize], true) {
                stack.extend(self.blocks[block as usize].end.targets());
            }
        }
        reached
    }
}

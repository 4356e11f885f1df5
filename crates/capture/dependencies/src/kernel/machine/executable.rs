//! Defines the form of a kernel that the machine runs: `slice` builds it from a
//! [`Program`](crate::kernel::program::Program), reduced to the operations that addresses depend on.

use std::ops::Range;
use std::sync::Arc;

use crate::kernel::code::Code;
use crate::kernel::program::{Direction, Input};

/// The part of a kernel that addresses depend on. Block 0 is its entry.
#[derive(Debug, Default)]
pub(crate) struct Executable {
    pub blocks: Vec<Block>,
    /// The instructions of all blocks; an index here is the number of a site.
    pub instructions: Vec<Instruction>,
    pub registers: usize,
    /// Pairs of a built-in input and the register that holds it.
    pub inputs: Vec<(Input, u32)>,
    /// Registers that are 0 at the start.
    pub variables: Vec<u32>,
    /// Pairs of a value and the register that always has it.
    pub known: Vec<(u64, u32)>,
    /// The known bytes that instructions read.
    pub contents: Vec<Arc<[u8]>>,
}

impl Executable {
    /// Returns whether an instruction reads known contents of memory.
    pub fn looks(&self) -> bool {
        let mut all = self.instructions.iter();
        all.any(|instruction| matches!(instruction, Instruction::Look { .. }))
    }
}

/// A sequence of instructions, by their indices, that runs from the first to the last.
#[derive(Debug)]
pub(crate) struct Block {
    pub instructions: Range<usize>,
    pub end: End,
}

/// An operation on registers, which are given by their numbers.
#[derive(Debug, Clone)]
pub(crate) enum Instruction {
    /// Applies an arithmetic operation to operands of `bits` bits.
    Compute {
        code: Code,
        bits: u8,
        operands: [u32; 3],
        result: u32,
    },
    /// Reads the register with an index among `count` ones, or 0 beyond them.
    Pick {
        first: u32,
        count: u32,
        index: u32,
        result: u32,
    },
    /// Writes the register with an index among `count` ones, or nothing beyond them.
    Put {
        first: u32,
        count: u32,
        index: u32,
        value: u32,
    },
    /// Reads a number of `bytes` bytes from known contents.
    Look {
        content: usize,
        offset: u32,
        bytes: u8,
        result: u32,
    },
    /// Reaches bytes of a buffer from an offset on; `rows` is the number of such runs, and the register with the
    /// bytes from one to the next.
    Access {
        buffer: u32,
        offset: u32,
        bytes: u32,
        direction: Direction,
        rows: Option<(u32, u32)>,
    },
}

/// The end of a block: where its invocations go next.
#[derive(Debug)]
pub(crate) enum End {
    Stop,
    Jump(Edge),
    /// Goes to `then` where the condition's register is not 0.
    Branch {
        condition: u32,
        then: Edge,
        otherwise: Edge,
    },
    /// Goes to the case that has the selector's value, or else to the default.
    Switch {
        selector: u32,
        default: Edge,
        cases: Vec<(u64, Edge)>,
    },
}

/// A jump to a block, with the registers that it copies, as pairs of destination and source.
#[derive(Debug)]
pub(crate) struct Edge {
    pub to: u32,
    pub copies: Vec<(u32, u32)>,
    /// Whether a copy reads a register that another copy writes.
    pub tangled: bool,
}

impl Edge {
    pub fn new(to: u32, copies: Vec<(u32, u32)>) -> Edge {
        let tangled = (copies.iter()).any(|(_, from)| copies.iter().any(|(to, _)| to == from));
        Edge {
            to,
            copies,
            tangled,
        }
    }
}

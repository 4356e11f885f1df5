//! Finds the operations and blocks of a [`Program`] that chosen operations depend on, and builds an [`Executable`] of
//! them.
//!
//! Order of calls: [`Needs::op`] for each chosen operation, [`Needs::all`] once, then [`Needs::executable`]. A branch
//! that decides over nothing needed becomes a jump to the block where its ways meet again.

use std::collections::HashMap;

use crate::kernel::flow::Flow;
use crate::kernel::machine::{self, Edge, Executable, Instruction};
use crate::kernel::program::{BlockId, End, Op, Operand, Program, Register};

/// The place where a register is written.
#[derive(Debug, Clone, Copy)]
enum Writer {
    /// An operation, by its block and its index there.
    Op(BlockId, u32),
    /// A phi (a value that depends on the block from which a jump came), likewise.
    Phi(BlockId, u32),
}

/// The operations and blocks that are needed.
pub(super) struct Needs<'a> {
    program: &'a Program,
    flow: &'a Flow,
    /// For each register the places that write it; emptied once they have been added.
    writers: Vec<Vec<Writer>>,
    /// For each block and operation whether it is needed; `phis` and `branches` say the same of phis and of the ends
    /// of blocks.
    ops: Vec<Vec<bool>>,
    phis: Vec<Vec<bool>>,
    branches: Vec<bool>,
    /// For each block whether the branches that decide over it have been added.
    decided: Vec<bool>,
    /// For each register whether it is needed.
    registers: Vec<bool>,
    /// Needed registers whose writers have not been added yet.
    waiting: Vec<Register>,
}

impl<'a> Needs<'a> {
    pub fn new(program: &'a Program, flow: &'a Flow) -> Needs<'a> {
        let mut writers = vec![Vec::new(); program.registers as usize];
        for (id, block) in program.blocks.iter().enumerate() {
            if !flow.reached[id] {
                continue;
            }
            let id = id as BlockId;
            for (index, phi) in block.phis.iter().enumerate() {
                writers[phi.result as usize].push(Writer::Phi(id, index as u32));
            }
            for (index, op) in block.ops.iter().enumerate() {
                for register in op.written() {
                    writers[register as usize].push(Writer::Op(id, index as u32));
                }
            }
        }
        let count = program.blocks.len();
        Needs {
            program,
            flow,
            writers,
            ops: (program.blocks.iter().map(|b| vec![false; b.ops.len()])).collect(),
            phis: (program.blocks.iter().map(|b| vec![false; b.phis.len()])).collect(),
            branches: vec![false; count],
            decided: vec![false; count],
            registers: vec![false; program.registers as usize],
            waiting: Vec::new(),
        }
    }

    /// Adds a needed operation.
    pub fn op(&mut self, block: BlockId, index: u32) {
        let is_needed = &mut self.ops[block as usize][index as usize];
        if std::mem::replace(is_needed, true) {
            return;
        }
        self.block(block);
        let program = self.program;
        let op = &program.blocks[block as usize].ops[index as usize];
        op.operands().for_each(|operand| self.operand(operand));
        // An operation that writes one register of several keeps the others.
        let registers = op.picked_from().chain(op.written());
        registers.for_each(|register| self.operand(Operand::Register(register)));
    }

    fn operand(&mut self, operand: Operand) {
        if let Operand::Register(register) = operand
            && !std::mem::replace(&mut self.registers[register as usize], true)
        {
            self.waiting.push(register);
        }
    }

    /// Adds the branches that decide whether a block runs.
    fn block(&mut self, block: BlockId) {
        let mut stack = vec![block];
        while let Some(block) = stack.pop() {
            if std::mem::replace(&mut self.decided[block as usize], true) {
                continue;
            }
            let flow = self.flow;
            for decider in &flow.deciders[block as usize] {
                self.branch(*decider);
                stack.push(*decider);
            }
        }
    }

    /// Adds the branch at the end of a block, with the operand that selects the target.
    fn branch(&mut self, block: BlockId) {
        if !std::mem::replace(&mut self.branches[block as usize], true)
            && let Some(selector) = self.program.blocks[block as usize].end.selector()
        {
            self.operand(selector);
        }
    }

    /// Adds everything that the needed operations need.
    pub fn all(&mut self) {
        while let Some(register) = self.waiting.pop() {
            for writer in std::mem::take(&mut self.writers[register as usize]) {
                match writer {
                    Writer::Op(block, index) => self.op(block, index),
                    Writer::Phi(block, index) => self.phi(block, index),
                }
            }
        }
    }

    /// Adds a needed phi, with its sources and the branches that decide which of them counts.
    fn phi(&mut self, block: BlockId, index: u32) {
        self.phis[block as usize][index as usize] = true;
        self.block(block);
        let program = self.program;
        for (from, operand) in &program.blocks[block as usize].phis[index as usize].sources {
            if self.flow.reached[*from as usize] {
                self.operand(*operand);
                self.block(*from);
                self.branch(*from);
            }
        }
    }

    /// Builds the program of the needed operations; returns `None` if it is inconsistent.
    pub fn executable(&self) -> Option<Executable> {
        let program = self.program;
        let mut numbers = HashMap::new();
        let order: Vec<BlockId> = (program.order.iter().copied())
            .filter(|id| self.flow.reached[*id as usize])
            .filter(|id| {
                let next = numbers.len() as u32;
                let is_new = !numbers.contains_key(id);
                numbers.entry(*id).or_insert(next);
                is_new
            })
            .collect();
        let mut left = KeptRegisters {
            registers: HashMap::new(),
            known: HashMap::new(),
            count: 0,
        };
        let mut executable = Executable {
            contents: program.contents.clone(),
            ..Executable::default()
        };
        // The registers of a variable lie together, as operations on it require.
        for (first, count) in &program.variables {
            let all = *first..first + count;
            if all
                .clone()
                .any(|register| self.registers[register as usize])
            {
                for register in all {
                    executable.variables.push(left.register(register));
                }
            }
        }
        for (input, register) in &program.inputs {
            if self.registers[*register as usize] {
                let register = left.register(*register);
                executable.inputs.push((*input, register));
            }
        }
        for id in order {
            let block = &program.blocks[id as usize];
            let begin = executable.instructions.len();
            for (op, _) in (block.ops.iter().zip(&self.ops[id as usize])).filter(|(_, is)| **is) {
                executable.instructions.push(left.instruction(op)?);
            }
            let edge = |left: &mut KeptRegisters, to: &BlockId| {
                let mut copies = Vec::new();
                let target = &program.blocks[*to as usize];
                for (phi, needed) in target.phis.iter().zip(&self.phis[*to as usize]) {
                    if *needed {
                        let source = phi.sources.iter().find(|(from, _)| *from == id);
                        let result = left.register(phi.result);
                        copies.push((result, left.operand(source?.1)?));
                    }
                }
                Some(Edge::new(*numbers.get(to)?, copies))
            };
            let end = match &block.end {
                End::Stop => machine::End::Stop,
                End::Jump(to) => machine::End::Jump(edge(&mut left, to)?),
                _ if !self.branches[id as usize] => match self.flow.after[id as usize] {
                    Some(after) => machine::End::Jump(edge(&mut left, &after)?),
                    None => machine::End::Stop,
                },
                End::Branch {
                    condition,
                    then,
                    otherwise,
                } => machine::End::Branch {
                    condition: left.operand(*condition)?,
                    then: edge(&mut left, then)?,
                    otherwise: edge(&mut left, otherwise)?,
                },
                End::Switch {
                    selector,
                    default,
                    cases,
                } => machine::End::Switch {
                    selector: left.operand(*selector)?,
                    default: edge(&mut left, default)?,
                    cases: (cases.iter())
                        .map(|(value, to)| Some((*value, edge(&mut left, to)?)))
                        .collect::<Option<_>>()?,
                },
            };
            let instructions = begin..executable.instructions.len();
            executable.blocks.push(machine::Block { instructions, end });
        }
        executable.known = left.known.into_iter().collect();
        executable.registers = left.count as usize;
        Some(executable)
    }
}

/// The registers of the program that is built, numbered anew.
struct KeptRegisters {
    /// The new number of each register.
    registers: HashMap<Register, u32>,
    /// The new register of each known value.
    known: HashMap<u64, u32>,
    count: u32,
}

impl KeptRegisters {
    /// Returns the new number of a register, and gives it one if it has none.
    fn register(&mut self, register: Register) -> u32 {
        *(self.registers.entry(register)).or_insert_with(|| next(&mut self.count))
    }

    /// Returns the new register of an operand; `None` if it is unknown.
    fn operand(&mut self, operand: Operand) -> Option<u32> {
        match operand {
            Operand::Register(register) => Some(self.register(register)),
            Operand::Known(value) => {
                let register = self.known.entry(value);
                Some(*register.or_insert_with(|| next(&mut self.count)))
            }
            Operand::Unknown(_) => None,
        }
    }

    /// Returns an operation with new registers; `None` if it cannot be run.
    fn instruction(&mut self, op: &Op) -> Option<Instruction> {
        Some(match op {
            Op::Compute {
                code,
                bits,
                result,
                operands: [a, b, c],
            } => Instruction::Compute {
                code: *code,
                bits: *bits,
                operands: [self.operand(*a)?, self.operand(*b)?, self.operand(*c)?],
                result: self.register(*result),
            },
            Op::Pick {
                result,
                first,
                count,
                index,
            } => Instruction::Pick {
                first: self.register(*first),
                count: *count,
                index: self.operand(*index)?,
                result: self.register(*result),
            },
            Op::Put {
                first,
                count,
                index,
                value,
            } => Instruction::Put {
                first: self.register(*first),
                count: *count,
                index: self.operand(*index)?,
                value: self.operand(*value)?,
            },
            Op::Look {
                result,
                content,
                offset,
                bytes,
            } => Instruction::Look {
                content: *content,
                offset: self.operand(*offset)?,
                bytes: *bytes,
                result: self.register(*result),
            },
            Op::Access(access) => Instruction::Access {
                buffer: access.buffer as u32,
                offset: self.operand(access.offset)?,
                bytes: access.scalar_bytes * access.scalars,
                direction: access.direction,
                rows: match access.rows {
                    Some((rows, stride)) => Some((rows, self.operand(stride)?)),
                    None => None,
                },
            },
            Op::Escape(_) => return None,
        })
    }
}

/// Counts up, and returns the count of before.
fn next(count: &mut u32) -> u32 {
    *count += 1;
    *count - 1
}

//! Reduces a [`Program`] to the operations that known addresses depend on, and finds out which addresses cannot be
//! known.
//!
//! A value is unknown if it depends on an unknown one, or on a branch that does. A read or write is followed if its
//! address and all branches on the way to it are known; else it is only bounded, by the bytes that are bound. Only
//! what followed accesses need is kept: a branch that decides nothing else is left out.
//!
//! Order: unknown values are found first (`UnknownValues`), then accesses that are only bounded, and then what the
//! followed accesses need (`needs.rs`).

mod needs;

use super::flow::Flow;
use super::machine::Executable;
use super::program::{BlockId, Direction, Op, Operand, Program, Register};
use super::reason::{Cause, Reason};
use needs::Needs;

/// The most rounds in which unknown values are passed on through a program; beyond them slicing fails. Nested loops
/// take a few rounds.
const MAX_ROUNDS: usize = 64;

/// The part of a program that must be run, and the facts about its accesses that are known without running it.
#[derive(Debug)]
pub(crate) struct Slice {
    pub executable: Executable,
    /// The accesses to each bound buffer.
    pub buffers: Vec<Reach>,
    /// Access to memory outside of the dispatch's buffers: whether it may be read, whether it may be written, and
    /// why; `None` if there is no such access.
    pub beyond: Option<(bool, bool, Reason)>,
}

/// The accesses of a kernel to one buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reach {
    pub reads: bool,
    /// Whether the kernel may write the buffer; `reads` says the same of reads.
    pub writes: bool,
    /// Whether something other than an atomic operation reaches the buffer.
    pub plain: bool,
    /// Why reads of the buffer are only bounded; `None` if they are followed.
    pub read_bound: Option<Reason>,
    /// The same for writes.
    pub write_bound: Option<Reason>,
    /// Size of the smallest scalar that is read or written; 0 if there is no access.
    pub scalar_bytes: u32,
}

/// Slices a program that uses `buffers` buffers.
///
/// # Errors
/// Slicing takes too long.
pub(crate) fn slice(program: &Program, buffers: usize) -> Result<Slice, Reason> {
    let flow = Flow::new(program).ok_or(Reason::Limit("4,000,000 branches inside of others"))?;
    let unknown = UnknownValues::find(program, &flow)?;
    let mut needs = Needs::new(program, &flow);
    let mut reaches = vec![Reach::default(); buffers];
    let mut beyond: Option<(bool, bool, Reason)> = None;
    let blocks = (program.blocks.iter().enumerate()).filter(|(id, _)| flow.reached[*id]);
    let ops = blocks.flat_map(|(id, block)| {
        let numbered = block.ops.iter().enumerate();
        numbered.map(move |(index, op)| (id as BlockId, index as u32, op))
    });
    // Accesses that are only bounded need no operations, so that they are found first.
    for (block, _, op) in ops.clone() {
        match op {
            Op::Access(access) => {
                let reach = &mut reaches[access.buffer];
                let direction = access.direction;
                reach.reads |= direction.reads();
                reach.writes |= direction.writes();
                reach.plain |= direction != Direction::Atomic;
                reach.scalar_bytes = match reach.scalar_bytes {
                    0 => access.scalar_bytes,
                    bytes => bytes.min(access.scalar_bytes),
                };
                let rows = access.rows.map_or(Operand::Known(0), |(_, stride)| stride);
                let condition = unknown.blocks[block as usize];
                let place = unknown.cause(access.offset).or(unknown.cause(rows));
                let reason = condition
                    .map(|cause| Reason::Condition(cause.to_string()))
                    .or(place.map(|cause| Reason::Place(cause.to_string())));
                if let Some(reason) = reason {
                    reach.bound(direction.reads(), direction.writes(), &reason);
                }
            }
            Op::Escape(escape) => {
                let reason = Reason::Escape(escape.cause.to_string());
                match escape.buffer {
                    Some(buffer) => {
                        let reach = &mut reaches[buffer];
                        reach.reads |= escape.reads;
                        reach.writes |= escape.writes;
                        reach.plain = true;
                        reach.bound(escape.reads, escape.writes, &reason);
                    }
                    None => {
                        let (reads, writes, _) = beyond.get_or_insert((false, false, reason));
                        *reads |= escape.reads;
                        *writes |= escape.writes;
                    }
                }
            }
            _ => {}
        }
    }
    for (block, index, op) in ops {
        if let Op::Access(access) = op {
            let reach = &reaches[access.buffer];
            let read = access.direction.reads() && reach.read_bound.is_none();
            let write = access.direction.writes() && reach.write_bound.is_none();
            if read || write {
                needs.op(block, index);
            }
        }
    }
    needs.all();
    let executable = needs
        .executable()
        .ok_or(Reason::Kernel("its control flow cannot be followed"))?;
    Ok(Slice {
        executable,
        buffers: reaches,
        beyond,
    })
}

impl Reach {
    /// Notes that reads, writes or both are only bounded. The first reason stays.
    pub fn bound(&mut self, reads: bool, writes: bool, reason: &Reason) {
        if reads {
            self.read_bound.get_or_insert_with(|| reason.clone());
        }
        if writes {
            self.write_bound.get_or_insert_with(|| reason.clone());
        }
    }
}

/// The values that are not known, with their causes.
struct UnknownValues {
    /// For each register why its value is not known; `None` if it is known.
    registers: Vec<Option<Cause>>,
    /// For each block why it is not known whether it runs; `None` if it is known.
    blocks: Vec<Option<Cause>>,
    /// Whether a cause was added since the start of the round.
    changed: bool,
}

impl UnknownValues {
    /// Passes causes on through the blocks, round after round, until none is added.
    fn find(program: &Program, flow: &Flow) -> Result<UnknownValues, Reason> {
        let mut unknown = UnknownValues {
            registers: vec![None; program.registers as usize],
            blocks: vec![None; program.blocks.len()],
            changed: true,
        };
        let selectors: Vec<Option<Operand>> =
            (program.blocks.iter().map(|block| block.end.selector())).collect();
        let mut sources = vec![Vec::new(); program.blocks.len()];
        for (id, block) in program.blocks.iter().enumerate() {
            if flow.reached[id] {
                for to in block.end.targets() {
                    sources[to as usize].push(id as BlockId);
                }
            }
        }
        for _ in 0..MAX_ROUNDS {
            if !std::mem::take(&mut unknown.changed) {
                return Ok(unknown);
            }
            for id in &program.order {
                let id = *id as usize;
                if flow.reached[id] {
                    unknown.decide(id, flow, &selectors);
                    unknown.pass(program, id, flow, &selectors, &sources[id]);
                }
            }
        }
        Err(Reason::Limit("64 rounds through its loops"))
    }

    /// Returns why an operand is not known; `None` if it is known.
    fn cause(&self, operand: Operand) -> Option<Cause> {
        match operand {
            Operand::Known(_) => None,
            Operand::Register(register) => self.registers[register as usize],
            Operand::Unknown(cause) => Some(cause),
        }
    }

    /// Returns why it is not known which block runs after `block`; `None` if it is known.
    fn branch_cause(&self, block: BlockId, selectors: &[Option<Operand>]) -> Option<Cause> {
        let selector = selectors[block as usize];
        self.blocks[block as usize].or(selector.and_then(|selector| self.cause(selector)))
    }

    /// Notes why a register is not known. The first cause stays.
    fn set(&mut self, register: Register, cause: Option<Cause>) {
        let known = &mut self.registers[register as usize];
        if known.is_none() && cause.is_some() {
            *known = cause;
            self.changed = true;
        }
    }

    /// Notes that it is not known whether a block runs, if a branch that decides over it is not known.
    fn decide(&mut self, id: usize, flow: &Flow, selectors: &[Option<Operand>]) {
        if self.blocks[id].is_some() {
            return;
        }
        let mut deciders = flow.deciders[id].iter();
        let cause = deciders.find_map(|decider| self.branch_cause(*decider, selectors));
        if cause.is_some() {
            self.blocks[id] = cause;
            self.changed = true;
        }
    }

    /// Passes causes on through the operations of a block, of which `from` are the blocks before. A phi is also
    /// unknown if it is not known from which block the way came and the values differ.
    fn pass(
        &mut self,
        program: &Program,
        id: usize,
        flow: &Flow,
        selectors: &[Option<Operand>],
        from: &[BlockId],
    ) {
        let here = self.blocks[id];
        let block = &program.blocks[id];
        for phi in &block.phis {
            let sources = || {
                let reached = |(from, _): &&(BlockId, Operand)| flow.reached[*from as usize];
                phi.sources.iter().filter(reached)
            };
            let first = sources().next().map(|(_, operand)| *operand);
            let same = sources().all(|(_, operand)| Some(*operand) == first);
            let complete =
                (from.iter()).all(|block| phi.sources.iter().any(|(from, _)| from == block));
            let mut cause = here.or(sources().find_map(|(_, operand)| self.cause(*operand)));
            if !complete {
                cause = Some(Cause::Undefined);
            }
            if !same {
                let mut from = from.iter();
                cause = cause.or(from.find_map(|from| self.branch_cause(*from, selectors)));
            }
            self.set(phi.result, cause);
        }
        for op in &block.ops {
            let mut operands = op.operands();
            let cause = here.or(operands.find_map(|operand| self.cause(operand)));
            let mut picked = op
                .picked_from()
                .map(|register| self.registers[register as usize]);
            let cause = cause.or(picked.find_map(|cause| cause));
            for register in op.written() {
                self.set(register, cause);
            }
        }
    }
}

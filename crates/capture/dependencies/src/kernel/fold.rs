//! Replaces registers of a [`Program`] by known values, also where these went through variables, in which a compiler
//! without optimisation keeps a kernel's parameters.
//!
//! A register that only one operation writes, and whose value is known, has that value wherever it is defined. A
//! branch on it goes one way.

use super::code::{Code, Single, operate, word};
use super::program::{Block, End, Op, Operand, Program, Register};

/// The most rounds. Each may make more values known, but few programs need more than two; after them the remaining
/// registers stay.
const MAX_ROUNDS: usize = 8;

/// Replaces registers by known values until none is left to replace.
pub(crate) fn fold(program: &mut Program) {
    for _ in 0..MAX_ROUNDS {
        let reached = program.reached();
        let values = values(program, &reached);
        if !put(program, &values) {
            return;
        }
    }
}

/// Returns the value of each register; `None` where it is not known.
fn values(program: &Program, reached: &[bool]) -> Vec<Option<u64>> {
    let count = program.registers as usize;
    let mut writers = vec![0_u8; count];
    let mut written = |register: Register, times: u8| {
        let writers = &mut writers[register as usize];
        *writers = writers.saturating_add(times);
    };
    // The invocation's own numbers are written from outside the program.
    for (_, register) in &program.inputs {
        written(*register, 1);
    }
    let blocks = || (program.order.iter().map(|id| *id as usize)).filter(|id| reached[*id]);
    for id in blocks() {
        let block = &program.blocks[id];
        block.phis.iter().for_each(|phi| written(phi.result, 1));
        for op in &block.ops {
            // The operation may write any of the registers, so that no value of them is known.
            let times = if matches!(op, Op::Put { .. }) { 2 } else { 1 };
            op.written().for_each(|register| written(register, times));
        }
    }
    let mut values = vec![None; count];
    for id in blocks() {
        let block = &program.blocks[id];
        for phi in &block.phis {
            let mut sources = (phi.sources.iter())
                .filter(|(from, _)| reached[*from as usize])
                .map(|(_, operand)| known(&values, *operand));
            if let Some(Some(first)) = sources.next()
                && sources.all(|other| other == Some(first))
                && writers[phi.result as usize] == 1
            {
                values[phi.result as usize] = Some(first);
            }
        }
        for op in &block.ops {
            let (result, value) = match op {
                Op::Compute {
                    code,
                    bits,
                    result,
                    operands,
                } => (*result, computed(&values, *code, *bits, *operands)),
                Op::Look {
                    result,
                    content,
                    offset,
                    bytes,
                } => {
                    let at = known(&values, *offset);
                    (
                        *result,
                        at.map(|at| word(&program.contents[*content], at, *bytes)),
                    )
                }
                _ => continue,
            };
            if writers[result as usize] == 1 {
                values[result as usize] = value;
            }
        }
    }
    values
}

/// Returns the value of an operand, if it is known.
fn known(values: &[Option<u64>], operand: Operand) -> Option<u64> {
    match operand {
        Operand::Known(value) => Some(value),
        Operand::Register(register) => values[register as usize],
        Operand::Unknown(_) => None,
    }
}

/// Returns the result of an operation, if its operands are known; of a selection only the chosen one must be.
fn computed(values: &[Option<u64>], code: Code, bits: u8, operands: [Operand; 3]) -> Option<u64> {
    let [a, b, c] = operands.map(|operand| known(values, operand));
    match (code, a) {
        (Code::Select, Some(0)) => c,
        (Code::Select, Some(_)) => b,
        _ => Some(operate(code, bits, Single(a?, b?, c?))),
    }
}

/// Replaces registers by their values, turns branches on known values into jumps, and returns whether a register was
/// replaced.
fn put(program: &mut Program, values: &[Option<u64>]) -> bool {
    let mut changed = false;
    let mut replace = |operand: &mut Operand| {
        if let Operand::Register(register) = operand
            && let Some(value) = values[*register as usize]
        {
            *operand = Operand::Known(value);
            changed = true;
        }
    };
    for Block { phis, ops, end } in &mut program.blocks {
        let sources = phis.iter_mut().flat_map(|phi| &mut phi.sources);
        sources.for_each(|(_, operand)| replace(operand));
        for op in ops {
            match op {
                Op::Compute { code, operands, .. } => {
                    operands.iter_mut().for_each(&mut replace);
                    if let (Code::Select, [Operand::Known(condition), b, c]) = (*code, *operands) {
                        *code = Code::Copy;
                        let chosen = if condition != 0 { b } else { c };
                        *operands = [chosen, Operand::Known(0), Operand::Known(0)];
                    }
                }
                Op::Pick { index, .. } => replace(index),
                Op::Put { index, value, .. } => {
                    replace(index);
                    replace(value);
                }
                Op::Look { offset, .. } => replace(offset),
                Op::Access(access) => {
                    replace(&mut access.offset);
                    if let Some((_, stride)) = &mut access.rows {
                        replace(stride);
                    }
                }
                Op::Escape(_) => {}
            }
        }
        match end {
            End::Branch {
                condition,
                then,
                otherwise,
            } => {
                replace(condition);
                if let Operand::Known(value) = condition {
                    *end = End::Jump(if *value != 0 { *then } else { *otherwise });
                }
            }
            End::Switch {
                selector,
                default,
                cases,
            } => {
                replace(selector);
                if let Operand::Known(value) = selector {
                    let taken = cases.iter().find(|(case, _)| case == value);
                    *end = End::Jump(taken.map_or(*default, |(_, to)| *to));
                }
            }
            End::Stop | End::Jump(_) => {}
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::program::{Access, Direction, Phi};
    use crate::kernel::reason::Cause;

    fn block(phis: Vec<Phi>, ops: Vec<Op>, end: End) -> Block {
        Block { phis, ops, end }
    }

    /// A parameter is stored in a variable, and a branch on it decides whether an index is loaded.
    #[test]
    fn a_branch_on_a_parameter_in_a_variable_goes_one_way() {
        let store = Op::copy(0, Operand::Known(0));
        let place = Phi {
            result: 1,
            sources: vec![
                (1, Operand::Unknown(Cause::LoadedData)),
                (2, Operand::Known(7)),
            ],
        };
        let access = Op::Access(Access {
            buffer: 0,
            offset: Operand::Register(1),
            scalar_bytes: 4,
            scalars: 1,
            direction: Direction::Write,
            rows: None,
        });
        let branch = End::Branch {
            condition: Operand::Register(0),
            then: 1,
            otherwise: 2,
        };
        let program = |stores: usize| Program {
            blocks: vec![
                block(Vec::new(), vec![store.clone(); stores], branch.clone()),
                block(Vec::new(), Vec::new(), End::Jump(3)),
                block(Vec::new(), Vec::new(), End::Jump(3)),
                block(vec![place.clone()], vec![access.clone()], End::Stop),
            ],
            order: vec![0, 1, 2, 3],
            registers: 2,
            ..Program::default()
        };
        let offset = |program: &Program| match &program.blocks[3].ops[0] {
            Op::Access(access) => access.offset,
            _ => unreachable!(),
        };
        let mut once = program(1);
        fold(&mut once);
        assert_eq!(offset(&once), Operand::Known(7));
        // A variable that is written twice may have either value.
        let mut twice = program(2);
        fold(&mut twice);
        assert_eq!(offset(&twice), Operand::Register(1));
    }
}

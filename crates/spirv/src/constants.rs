//! Evaluates the integer constants of a module with the values that a pipeline gives its specialisation constants
//! (those that are set when a pipeline is made): an id goes in, a number comes out.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use crate::module::{Module, StoredInstruction};
use crate::numbers::op;

/// The values of specialisation constants as little-endian bytes, by `SpecId`.
pub type Specialisation = BTreeMap<u32, Vec<u8>>;

/// The greatest depth of nested expressions; no compiler nests them more deeply, and beyond it the value is unknown.
const MAX_DEPTH: u32 = 64;
/// The most steps of all evaluations of a module; beyond them values are unknown. Without a limit, a small module
/// could take for ever.
const MAX_STEPS: u32 = 100_000;

/// The integer constants of a module.
#[derive(Debug)]
pub struct Constants<'a> {
    module: &'a Module,
    /// The instructions that define constants, by the constants' ids.
    by_id: HashMap<u32, &'a StoredInstruction>,
    /// The values that the pipeline gives, by the constants' ids.
    specialised: HashMap<u32, u64>,
    /// The steps that evaluations may still take.
    steps_left: Cell<u32>,
}

impl<'a> Constants<'a> {
    /// Takes the constants of a module, with the values of `specialisation` instead of the defaults.
    pub fn new(module: &'a Module, specialisation: &Specialisation) -> Constants<'a> {
        let specialised = module.decorations.iter().filter_map(|(id, decorations)| {
            let bytes = specialisation.get(&decorations.spec_id?)?;
            let mut wide = [0; 8];
            for (to, from) in wide.iter_mut().zip(bytes) {
                *to = *from;
            }
            Some((*id, u64::from_le_bytes(wide)))
        });
        let by_id = module.constants.iter().filter_map(|constant| {
            let id = module.operands(constant).get(1)?;
            Some((*id, constant))
        });
        Constants {
            module,
            by_id: by_id.collect(),
            specialised: specialised.collect(),
            steps_left: Cell::new(MAX_STEPS),
        }
    }

    /// Returns the value of a constant; `None` if it is no integer, or is computed in a way that is not followed.
    pub fn value(&self, id: u32) -> Option<u64> {
        self.nested(id, MAX_DEPTH)
    }

    /// Returns the value of a constant if it has 32 bits.
    pub fn word(&self, id: u32) -> Option<u32> {
        self.value(id)?.try_into().ok()
    }

    /// Returns the values of three constants of 32 bits, such as the sizes of a workgroup.
    pub fn words(&self, ids: [u32; 3]) -> Option<[u32; 3]> {
        let [x, y, z] = ids.map(|id| self.word(id));
        Some([x?, y?, z?])
    }

    /// Returns the parts of a constant vector of three; `None` for another constant.
    pub fn vector(&self, id: u32) -> Option<[u32; 3]> {
        match self.get(id)? {
            (op::CONSTANT_COMPOSITE | op::SPEC_CONSTANT_COMPOSITE, parts) => {
                self.words(parts.try_into().ok()?)
            }
            _ => None,
        }
    }

    /// Returns the id of the type of a constant.
    pub fn type_id(&self, id: u32) -> Option<u32> {
        let constant = self.by_id.get(&id)?;
        self.module.operands(constant).first().copied()
    }

    /// Counts a step of an evaluation that rests on constants; returns `None` once there were too many.
    pub fn step(&self) -> Option<()> {
        self.steps_left.set(self.steps_left.get().checked_sub(1)?);
        Some(())
    }

    /// Returns the opcode of a constant, and its operands behind type and result.
    fn get(&self, id: u32) -> Option<(u16, &'a [u32])> {
        let constant = *self.by_id.get(&id)?;
        Some((constant.op, self.module.operands(constant).get(2..)?))
    }

    /// Evaluates a constant whose expression is nested at most `depth` deep.
    fn nested(&self, id: u32, depth: u32) -> Option<u64> {
        if let Some(value) = self.specialised.get(&id) {
            return Some(*value);
        }
        let depth = depth.checked_sub(1)?;
        self.step()?;
        let value = |id: &u32| self.nested(*id, depth);
        match self.get(id)? {
            (op::CONSTANT_TRUE | op::SPEC_CONSTANT_TRUE, []) => Some(1),
            (op::CONSTANT_FALSE | op::SPEC_CONSTANT_FALSE | op::CONSTANT_NULL, []) => Some(0),
            (op::CONSTANT | op::SPEC_CONSTANT, [low]) => Some(u64::from(*low)),
            (op::CONSTANT | op::SPEC_CONSTANT, [low, high]) => {
                Some(u64::from(*high) << 32 | u64::from(*low))
            }
            (op::SPEC_CONSTANT_OP, [operation, operands @ ..]) => {
                match (u16::try_from(*operation).ok()?, operands) {
                    (op::U_CONVERT | op::S_CONVERT | op::BITCAST, [a]) => value(a),
                    (operation, [a, b]) => evaluate(operation, value(a)?, value(b)?),
                    (op::SELECT, [condition, a, b]) => match value(condition)? {
                        0 => value(b),
                        _ => value(a),
                    },
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// Evaluates an operation on two integers of 32 bits; returns `None` if it is not followed, or divides by zero.
fn evaluate(operation: u16, a: u64, b: u64) -> Option<u64> {
    let word = |value: u64| value & 0xffff_ffff;
    Some(match operation {
        op::I_ADD => word(a.wrapping_add(b)),
        op::I_SUB => word(a.wrapping_sub(b)),
        op::I_MUL => word(a.wrapping_mul(b)),
        op::U_DIV | op::S_DIV => a.checked_div(b)?,
        op::U_MOD | op::S_MOD => a.checked_rem(b)?,
        op::SHIFT_RIGHT_LOGICAL | op::SHIFT_RIGHT_ARITHMETIC => {
            a.checked_shr(b.try_into().ok()?).unwrap_or(0)
        }
        op::SHIFT_LEFT_LOGICAL => word(a.checked_shl(b.try_into().ok()?).unwrap_or(0)),
        op::BITWISE_OR => a | b,
        op::BITWISE_XOR => a ^ b,
        op::BITWISE_AND => a & b,
        op::I_EQUAL => u64::from(a == b),
        op::I_NOT_EQUAL => u64::from(a != b),
        op::U_GREATER_THAN | op::S_GREATER_THAN => u64::from(a > b),
        op::U_GREATER_THAN_EQUAL | op::S_GREATER_THAN_EQUAL => u64::from(a >= b),
        op::U_LESS_THAN | op::S_LESS_THAN => u64::from(a < b),
        op::U_LESS_THAN_EQUAL | op::S_LESS_THAN_EQUAL => u64::from(a <= b),
        op::LOGICAL_OR => u64::from(a != 0 || b != 0),
        op::LOGICAL_AND => u64::from(a != 0 && b != 0),
        _ => return None,
    })
}

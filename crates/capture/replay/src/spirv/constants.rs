//! The values of constants, specialised.

use std::cell::Cell;

use super::read::Module;
use super::{Map, Specialisation};

/// Deeper expressions are of nobody's compiler.
const DEPTH: u32 = 64;
/// A module could otherwise be made to take for ever.
const STEPS: u32 = 100_000;

/// Integer constants of a module.
#[derive(Debug)]
pub struct Constants<'a> {
    module: &'a Module,
    values: Map<u64>,
    steps: Cell<u32>,
}

impl<'a> Constants<'a> {
    /// With these values instead of the defaults.
    pub fn of(module: &'a Module, specialisation: &Specialisation) -> Constants<'a> {
        let mut values = Map::new();
        for (id, spec_id) in &module.spec_ids {
            if let Some(bytes) = specialisation.get(spec_id) {
                let mut wide = [0; 8];
                for (to, from) in wide.iter_mut().zip(bytes) {
                    *to = *from;
                }
                values.insert(*id, u64::from_le_bytes(wide));
            }
        }
        Constants {
            module,
            values,
            steps: Cell::new(STEPS),
        }
    }

    /// The value of a constant; none where it is no integer, or made in a way that this does not follow.
    pub fn value(&self, id: u32) -> Option<u64> {
        self.nested(id, DEPTH)
    }

    /// The value, if it is one of 32 bits.
    pub fn word(&self, id: u32) -> Option<u32> {
        self.value(id)?.try_into().ok()
    }

    /// Three of them.
    pub fn triple(&self, ids: [u32; 3]) -> Option<[u32; 3]> {
        let [x, y, z] = ids.map(|id| self.word(id));
        Some([x?, y?, z?])
    }

    /// A constant of three parts.
    pub fn triple_of(&self, id: u32) -> Option<[u32; 3]> {
        match self.module.constants.get(&id) {
            Some((44 | 51, _, parts)) => self.triple(parts.as_slice().try_into().ok()?),
            _ => None,
        }
    }

    /// Counts a step of any evaluation; none: there were too many.
    pub fn step(&self) -> Option<()> {
        self.steps.set(self.steps.get().checked_sub(1)?);
        Some(())
    }

    fn nested(&self, id: u32, depth: u32) -> Option<u64> {
        if let Some(value) = self.values.get(&id) {
            return Some(*value);
        }
        let depth = depth.checked_sub(1)?;
        self.step()?;
        let (op, _, operands) = self.module.constants.get(&id)?;
        let of = |id: &u32| self.nested(*id, depth);
        match (op, operands.as_slice()) {
            // OpConstantTrue, OpConstantFalse, and specialised
            (41 | 48, []) => Some(1),
            (42 | 49, []) | (46, []) => Some(0),
            (43 | 50, [low]) => Some(u64::from(*low)),
            (43 | 50, [low, high]) => Some(u64::from(*high) << 32 | u64::from(*low)),
            // OpSpecConstantOp
            // UConvert, SConvert, Bitcast
            (52, [113 | 114 | 124, a]) => of(a),
            (52, [operation, a, b]) => {
                let (a, b) = (of(a)?, of(b)?);
                let word = |value: u64| value & 0xffff_ffff;
                match operation {
                    128 => Some(word(a.wrapping_add(b))),
                    130 => Some(word(a.wrapping_sub(b))),
                    132 => Some(word(a.wrapping_mul(b))),
                    134 | 135 => a.checked_div(b),
                    137 | 139 => a.checked_rem(b),
                    194 | 195 => Some(a.checked_shr(b.try_into().ok()?).unwrap_or(0)),
                    196 => Some(word(a.checked_shl(b.try_into().ok()?).unwrap_or(0))),
                    197 => Some(a | b),
                    198 => Some(a ^ b),
                    199 => Some(a & b),
                    170 => Some(u64::from(a == b)),
                    171 => Some(u64::from(a != b)),
                    172 | 173 => Some(u64::from(a > b)),
                    174 | 175 => Some(u64::from(a >= b)),
                    176 | 177 => Some(u64::from(a < b)),
                    178 | 179 => Some(u64::from(a <= b)),
                    166 => Some(u64::from(a != 0 || b != 0)),
                    167 => Some(u64::from(a != 0 && b != 0)),
                    _ => None,
                }
            }
            // OpSelect
            (52, [169, condition, a, b]) => match of(condition)? {
                0 => of(b),
                _ => of(a),
            },
            _ => None,
        }
    }
}

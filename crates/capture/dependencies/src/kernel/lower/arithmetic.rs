//! Lowers instructions (makes operations of the flat program of them) that compute values from values: arithmetic,
//! comparisons, conversions and selections. Operands are SPIR-V's ids of values; a value with several scalars, such
//! as a vector, is computed scalar by scalar.

use super::values::Value;
use super::{Lowering, Typed};
use crate::kernel::code::{Code, mask};
use crate::kernel::program::Operand;
use crate::kernel::reason::Cause;
use gapscope_spirv::Type;
use gapscope_spirv::numbers::{glsl, op};

/// Fills the places of operands that an operation does not take.
const NONE: Operand = Operand::Known(0);

impl Lowering<'_> {
    /// Lowers an instruction from the operands behind its type and result ids, and returns its value; `None` if the
    /// instruction is not arithmetic that is followed.
    pub(super) fn evaluate(&mut self, op: u16, type_id: u32, operands: &[u32]) -> Option<Value> {
        Some(match (op, operands) {
            (op::UNDEF, _) => self.zero(type_id),
            (op::EXT_INST, [set, number, arguments @ ..]) if Some(*set) == self.module.glsl => {
                return self.extended(*number, type_id, arguments);
            }
            (op::VECTOR_EXTRACT_DYNAMIC, [vector, index]) => self.extract_dynamic(*vector, *index),
            (op::VECTOR_INSERT_DYNAMIC, [vector, component, index]) => {
                self.insert_dynamic(*vector, *component, *index)
            }
            (op::VECTOR_SHUFFLE, [a, b, components @ ..]) => self.shuffle(*a, *b, components),
            (op::COMPOSITE_CONSTRUCT, parts) => self.construct(type_id, parts),
            (op::COMPOSITE_EXTRACT, [composite, path @ ..]) => self.extract(*composite, path),
            (op::COMPOSITE_INSERT, [object, composite, path @ ..]) => {
                self.insert(*object, *composite, path)
            }
            (op::COPY_OBJECT | op::COPY_LOGICAL, [value]) => self.typed(*value).value,
            (op::U_CONVERT, [value]) => {
                let bits = self.module.bits(type_id)?;
                let source = self.bits_of(*value)?;
                let all = Operand::Known(mask(bits));
                match source <= bits {
                    true => self.typed(*value).value,
                    false => self.each(type_id, &[*value], |this, a| {
                        this.compute(Code::And, 64, [a[0], all, NONE])
                    }),
                }
            }
            (op::S_CONVERT, [value]) => {
                let (bits, source) = (self.module.bits(type_id)?, self.bits_of(*value)?);
                let all = Operand::Known(mask(bits));
                self.each(type_id, &[*value], |this, a| {
                    let wide = this.compute(Code::SignExtend, source, [a[0], NONE, NONE]);
                    this.compute(Code::And, 64, [wide, all, NONE])
                })
            }
            (op::BITCAST, [value]) => self.bitcast(type_id, *value),
            // The result is a structure with two members.
            (op::I_ADD_CARRY..=op::S_MUL_EXTENDED, [a, b]) => {
                let (low, high) = match op {
                    op::I_ADD_CARRY => (Code::Add, Code::Carry),
                    op::I_SUB_BORROW => (Code::Sub, Code::Borrow),
                    op::U_MUL_EXTENDED => (Code::Mul, Code::UMulHigh),
                    _ => (Code::Mul, Code::SMulHigh),
                };
                let of = self.typed(*a).type_id;
                let mut both = self.map(low, of, &[*a, *b])?;
                both.extend(self.map(high, of, &[*a, *b])?);
                Value::Scalars(both.into())
            }
            (op::ANY | op::ALL, [vector]) => {
                let count = self.scalars(self.typed(*vector).type_id)?;
                let code = if op == op::ANY { Code::Or } else { Code::And };
                let mut scalars = self.typed(*vector).value.scalars(count).into_iter();
                let mut so_far = scalars.next()?;
                for next in scalars {
                    so_far = self.compute(code, 1, [so_far, next, NONE]);
                }
                Value::one(so_far)
            }
            (op::SELECT, [condition, a, b]) => self.select(type_id, *condition, *a, *b),
            (op::BIT_FIELD_INSERT, [base, insert, offset, count]) => {
                self.insert_bits(type_id, [*base, *insert], *offset, *count)?
            }
            (op::BIT_FIELD_S_EXTRACT | op::BIT_FIELD_U_EXTRACT, [base, offset, count]) => self
                .extract_bits(
                    type_id,
                    *base,
                    *offset,
                    *count,
                    op == op::BIT_FIELD_S_EXTRACT,
                )?,
            (_, [a]) => {
                let code = match op {
                    op::S_NEGATE => Code::Negate,
                    op::LOGICAL_NOT | op::NOT => Code::Not,
                    op::BIT_REVERSE => Code::Reverse,
                    op::BIT_COUNT => Code::Count,
                    _ => return None,
                };
                let of = self.typed(*a).type_id;
                Value::Scalars(self.map(code, of, &[*a])?.into())
            }
            (_, [a, b]) => {
                let (code, swapped) = binary(op)?;
                let of = self.typed(*a).type_id;
                let (a, b) = if swapped { (*b, *a) } else { (*a, *b) };
                Value::Scalars(self.map(code, of, &[a, b])?.into())
            }
            _ => return None,
        })
    }

    /// Lowers an instruction of the extended set `GLSL.std.450`, and returns its value.
    fn extended(&mut self, number: u32, type_id: u32, arguments: &[u32]) -> Option<Value> {
        let code = match number {
            glsl::S_ABS => Code::SAbs,
            glsl::S_SIGN => Code::SSign,
            glsl::U_MIN => Code::UMin,
            glsl::S_MIN => Code::SMin,
            glsl::U_MAX => Code::UMax,
            glsl::S_MAX => Code::SMax,
            glsl::U_CLAMP | glsl::S_CLAMP => {
                let [value, low, high] = arguments else {
                    return None;
                };
                let (max, min) = match number {
                    glsl::U_CLAMP => (Code::UMax, Code::UMin),
                    _ => (Code::SMax, Code::SMin),
                };
                let bits = self.module.bits(type_id)?;
                return Some(self.each(type_id, &[*value, *low, *high], |this, a| {
                    let above = this.compute(max, bits, [a[0], a[1], NONE]);
                    this.compute(min, bits, [above, a[2], NONE])
                }));
            }
            glsl::FIND_I_LSB => Code::LowestBit,
            glsl::FIND_S_MSB => Code::SHighestBit,
            glsl::FIND_U_MSB => Code::HighestBit,
            _ => return None,
        };
        let arity = if matches!(number, glsl::U_MIN..=glsl::S_MAX) {
            2
        } else {
            1
        };
        let arguments = arguments.get(..arity)?;
        let of = self.typed(arguments[0]).type_id;
        Some(Value::Scalars(self.map(code, of, arguments)?.into()))
    }

    /// Applies an operation to each scalar of the arguments, with the bits of the type `of`.
    fn map(&mut self, code: Code, of: u32, arguments: &[u32]) -> Option<Vec<Operand>> {
        let bits = self.module.bits(of)?;
        let value = self.each(of, arguments, |this, scalars| {
            let operand = |index: usize| scalars.get(index).copied().unwrap_or(NONE);
            this.compute(code, bits, [operand(0), operand(1), operand(2)])
        });
        Some(value.scalars(self.scalars(of)?))
    }

    /// Applies a function to each scalar of the arguments, which have as many scalars as the type `type_id`.
    fn each(
        &mut self,
        type_id: u32,
        arguments: &[u32],
        mut with: impl FnMut(&mut Self, &[Operand]) -> Operand,
    ) -> Value {
        let Some(count) = self.scalars(type_id) else {
            return Value::Unknown(Cause::Undefined);
        };
        let columns: Vec<Vec<Operand>> = (arguments.iter())
            .map(|id| self.typed(*id).value.scalars(count))
            .collect();
        let scalars = (0..count as usize).map(|index| {
            let row: Vec<Operand> = columns.iter().map(|column| column[index]).collect();
            with(self, &row)
        });
        Value::Scalars(scalars.collect())
    }

    /// Lowers a choice between two values. A condition of several scalars chooses each scalar apart; a choice between
    /// pointers is unknown unless the condition is known.
    fn select(&mut self, type_id: u32, condition: u32, a: u32, b: u32) -> Value {
        let Typed {
            type_id: of_condition,
            value: condition,
        } = self.typed(condition);
        let conditions = self.scalars(of_condition).unwrap_or(1);
        let conditions = condition.scalars(conditions);
        let Some(count) = self.scalars(type_id) else {
            return match conditions.as_slice() {
                [Operand::Known(0)] => self.typed(b).value,
                [Operand::Known(_)] => self.typed(a).value,
                _ => Value::Unknown(Cause::Pointer),
            };
        };
        let (a, b) = (
            self.typed(a).value.scalars(count),
            self.typed(b).value.scalars(count),
        );
        let scalars = (0..count as usize).map(|index| {
            let condition = match conditions.as_slice() {
                [single] => *single,
                many => many.get(index).copied().unwrap_or(NONE),
            };
            self.compute(Code::Select, 64, [condition, a[index], b[index]])
        });
        Value::Scalars(scalars.collect())
    }

    /// Lowers the reading of a value's bits as another type of the same size: each new scalar is put together from
    /// the old ones that its bits lie in.
    fn bitcast(&mut self, type_id: u32, value: u32) -> Value {
        let typed = self.typed(value);
        if matches!(
            self.module.types.get(&type_id),
            None | Some(Type::Pointer { .. })
        ) || matches!(typed.value, Value::Pointer(_))
        {
            return Value::Unknown(Cause::DeviceAddress);
        }
        let shape = |id| Some((self.module.bits(id)?, self.scalars(id)?));
        let (Some(to), Some(from)) = (shape(type_id), shape(typed.type_id)) else {
            return Value::Unknown(Cause::Undefined);
        };
        if to == from {
            return typed.value;
        }
        if u32::from(to.0) * to.1 != u32::from(from.0) * from.1 {
            return Value::Unknown(Cause::Undefined);
        }
        let scalars = typed.value.scalars(from.1);
        let result: Vec<Operand> = (0..to.1)
            .map(|index| {
                let at = index * u32::from(to.0);
                let mut so_far = NONE;
                for (number, scalar) in scalars.iter().enumerate() {
                    let begin = number as u32 * u32::from(from.0);
                    let end = begin + u32::from(from.0);
                    if end <= at || at + u32::from(to.0) <= begin {
                        continue;
                    }
                    let piece = match begin < at {
                        true => {
                            let by = Operand::Known(u64::from(at - begin));
                            self.compute(Code::Shr, 64, [*scalar, by, NONE])
                        }
                        false => {
                            let by = Operand::Known(u64::from(begin - at));
                            self.compute(Code::Shl, 64, [*scalar, by, NONE])
                        }
                    };
                    so_far = self.compute(Code::Or, 64, [so_far, piece, NONE]);
                }
                let all = Operand::Known(mask(to.0));
                self.compute(Code::And, 64, [so_far, all, NONE])
            })
            .collect();
        Value::Scalars(result.into())
    }

    /// Computes `(1 << count) - 1`, where the operand may be up to 64.
    fn low_bits(&mut self, count: Operand) -> Operand {
        let power = self.compute(Code::Shl, 64, [Operand::Known(1), count, NONE]);
        self.compute(Code::Sub, 64, [power, Operand::Known(1), NONE])
    }

    /// Replaces `count` bits from `offset` on in the first of two values by the low bits of the second.
    fn insert_bits(
        &mut self,
        type_id: u32,
        values: [u32; 2],
        offset: u32,
        count: u32,
    ) -> Option<Value> {
        let bits = self.module.bits(type_id)?;
        let (offset, count) = (self.scalar(offset), self.scalar(count));
        let low = self.low_bits(count);
        let field = self.compute(Code::Shl, bits, [low, offset, NONE]);
        let rest = self.compute(Code::Not, bits, [field, NONE, NONE]);
        Some(self.each(type_id, &values, |this, a| {
            let kept = this.compute(Code::And, bits, [a[0], rest, NONE]);
            let moved = this.compute(Code::Shl, bits, [a[1], offset, NONE]);
            let new = this.compute(Code::And, bits, [moved, field, NONE]);
            this.compute(Code::Or, bits, [kept, new, NONE])
        }))
    }

    /// Returns `count` bits of a value from `offset` on, with their sign extended if `signed`.
    fn extract_bits(
        &mut self,
        type_id: u32,
        base: u32,
        offset: u32,
        count: u32,
        signed: bool,
    ) -> Option<Value> {
        let bits = self.module.bits(type_id)?;
        let (offset, count) = (self.scalar(offset), self.scalar(count));
        let low = self.low_bits(count);
        let above = self.compute(Code::Sub, 64, [Operand::Known(64), count, NONE]);
        let all = Operand::Known(mask(bits));
        Some(self.each(type_id, &[base], |this, a| {
            let moved = this.compute(Code::Shr, 64, [a[0], offset, NONE]);
            let field = this.compute(Code::And, 64, [moved, low, NONE]);
            if !signed {
                return field;
            }
            let top = this.compute(Code::Shl, 64, [field, above, NONE]);
            let wide = this.compute(Code::Sar, 64, [top, above, NONE]);
            this.compute(Code::And, 64, [wide, all, NONE])
        }))
    }
}

/// Returns the operation for an instruction with two operands, and whether these must be swapped.
fn binary(op: u16) -> Option<(Code, bool)> {
    let code = match op {
        op::I_ADD => Code::Add,
        op::I_SUB => Code::Sub,
        op::I_MUL => Code::Mul,
        op::U_DIV => Code::UDiv,
        op::S_DIV => Code::SDiv,
        op::U_MOD => Code::URem,
        op::S_REM => Code::SRem,
        op::S_MOD => Code::SMod,
        op::LOGICAL_EQUAL | op::I_EQUAL => Code::Equal,
        op::LOGICAL_NOT_EQUAL | op::I_NOT_EQUAL => Code::NotEqual,
        op::LOGICAL_OR | op::BITWISE_OR => Code::Or,
        op::LOGICAL_AND | op::BITWISE_AND => Code::And,
        op::U_GREATER_THAN | op::U_LESS_THAN => Code::ULess,
        op::S_GREATER_THAN | op::S_LESS_THAN => Code::SLess,
        op::U_GREATER_THAN_EQUAL | op::U_LESS_THAN_EQUAL => Code::ULessEqual,
        op::S_GREATER_THAN_EQUAL | op::S_LESS_THAN_EQUAL => Code::SLessEqual,
        op::SHIFT_RIGHT_LOGICAL => Code::Shr,
        op::SHIFT_RIGHT_ARITHMETIC => Code::Sar,
        op::SHIFT_LEFT_LOGICAL => Code::Shl,
        op::BITWISE_XOR => Code::Xor,
        _ => return None,
    };
    // "Greater" is "less" with swapped operands.
    Some((
        code,
        matches!(op, op::U_GREATER_THAN..=op::S_GREATER_THAN_EQUAL),
    ))
}

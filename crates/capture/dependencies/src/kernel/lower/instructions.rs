//! Lowers single instructions of a function (from SPIR-V to operations on registers), and decides which are followed.
//!
//! An instruction that is followed changes the program, or defines a value by its id. What is not followed is assumed
//! to reach all memory that its pointers may point into: it escapes.

use super::values::{Base, Pointer, Value};
use super::{Lowering, TooLarge, Typed};
use crate::kernel::program::{Direction, Operand};
use crate::kernel::reason::Cause;
use gapscope_spirv::numbers::op;
use gapscope_spirv::{StoredInstruction, Type};

impl Lowering<'_> {
    pub(super) fn instruction(&mut self, instruction: &StoredInstruction) -> Result<(), TooLarge> {
        let module = self.module;
        let operands = module.operands(instruction);
        match (instruction.op, operands) {
            // Merges, barriers and lines change no value.
            (op::NOP | op::LINE | op::NO_LINE | op::CONTROL_BARRIER | op::MEMORY_BARRIER, _)
            | (op::LOOP_MERGE | op::SELECTION_MERGE, _) => {}
            (op::BRANCH..=op::UNREACHABLE | op::TERMINATE_INVOCATION, _) => {
                return self.branch(instruction.op, operands);
            }
            (op::FUNCTION_CALL, _) => return self.call(operands),
            (op::PHI, _) => self.phi(operands),
            (op::VARIABLE, [type_id, id, _, rest @ ..]) => {
                let Some(Type::Pointer { pointee, .. }) = module.types.get(type_id) else {
                    return Ok(());
                };
                let base = self.local(*pointee, rest.first().copied());
                let pointer = Pointer::new(base, *pointee);
                self.define(*id, *type_id, Value::Pointer(pointer));
            }
            (op::LOAD, [type_id, id, pointer, ..]) => {
                let pointer = self.pointer(*pointer);
                let value = match module.types.get(type_id) {
                    Some(Type::Pointer { .. }) => {
                        self.load(&pointer, *type_id);
                        Value::Pointer(Pointer::lost(Cause::DeviceAddress))
                    }
                    _ => self.load(&pointer, *type_id),
                };
                self.define(*id, *type_id, value);
            }
            (op::STORE, [pointer, value, ..]) => {
                let (pointer, value) = (self.pointer(*pointer), self.typed(*value));
                self.store(&pointer, &value);
            }
            (op::COPY_MEMORY, [to, from, ..]) => {
                let (to, from) = (self.pointer(*to), self.pointer(*from));
                let value = Typed {
                    type_id: from.type_id,
                    value: self.load(&from, from.type_id),
                };
                self.store(&to, &value);
            }
            (op::ACCESS_CHAIN | op::IN_BOUNDS_ACCESS_CHAIN, [type_id, id, base, indices @ ..]) => {
                let pointer = self.pointer(*base);
                let pointer = self.chain(pointer, indices);
                self.define(*id, *type_id, Value::Pointer(pointer));
            }
            (
                op::PTR_ACCESS_CHAIN | op::IN_BOUNDS_PTR_ACCESS_CHAIN,
                [type_id, id, base, element, indices @ ..],
            ) => {
                let pointer = self.element(*base, *element);
                let pointer = self.chain(pointer, indices);
                self.define(*id, *type_id, Value::Pointer(pointer));
            }
            (op::ARRAY_LENGTH, [type_id, id, pointer, member]) => {
                let length = self.array_length(&self.pointer(*pointer), *member);
                self.define(*id, *type_id, Value::one(length));
            }
            (op::ATOMIC_LOAD, [type_id, id, pointer, ..]) => {
                self.atomic(*pointer, Direction::Read);
                self.define(*id, *type_id, Value::Unknown(Cause::LoadedData));
            }
            (op::ATOMIC_STORE, [pointer, ..]) => self.atomic(*pointer, Direction::Write),
            (
                op::ATOMIC_EXCHANGE..=op::ATOMIC_XOR
                | op::ATOMIC_F_MIN_EXT
                | op::ATOMIC_F_MAX_EXT
                | op::ATOMIC_F_ADD_EXT,
                [type_id, id, pointer, ..],
            ) => {
                self.atomic(*pointer, Direction::Atomic);
                self.define(*id, *type_id, Value::Unknown(Cause::LoadedData));
            }
            (op::COOPERATIVE_MATRIX_LOAD_KHR, [type_id, id, pointer, layout, rest @ ..]) => {
                let stride = rest.first().copied();
                self.matrix(*pointer, *type_id, *layout, stride, Direction::Read);
                self.define(*id, *type_id, Value::Unknown(Cause::LoadedData));
            }
            (op::COOPERATIVE_MATRIX_STORE_KHR, [pointer, object, layout, rest @ ..]) => {
                let stride = rest.first().copied();
                let matrix = self.typed(*object).type_id;
                self.matrix(*pointer, matrix, *layout, stride, Direction::Write);
            }
            (op, [type_id, id, rest @ ..]) if module.types.contains_key(type_id) => {
                match self.evaluate(op, *type_id, rest) {
                    Some(value) => self.define(*id, *type_id, value),
                    None => {
                        self.unfollowed(op, operands);
                        let value = Value::Unknown(self.cause_of(op, rest));
                        let typed = Typed {
                            type_id: *type_id,
                            value,
                        };
                        self.frame.values.entry(*id).or_insert(typed);
                    }
                }
            }
            (op, _) => self.unfollowed(op, operands),
        }
        Ok(())
    }

    /// Lowers an atomic operation on what a pointer points to.
    fn atomic(&mut self, pointer: u32, direction: Direction) {
        let pointer = self.pointer(pointer);
        match &pointer.base {
            Base::Buffer(buffer) => {
                self.access(*buffer, &pointer, direction);
            }
            Base::Local { first, count } => {
                self.clobber(*first, *count, Cause::LoadedData);
            }
            Base::Lost(cause) => {
                self.escape(None, direction.reads(), direction.writes(), *cause);
            }
            _ => {}
        }
    }

    /// Returns why the result of an instruction is not known. An operation on an unknown operand has the operand's
    /// reason.
    fn cause_of(&self, op: u16, operands: &[u32]) -> Cause {
        let own = cause(op);
        let unknown = |id: &u32| match self.typed(*id).value {
            Value::Unknown(cause) => Some(cause),
            Value::Scalars(scalars) => scalars.iter().find_map(|scalar| match scalar {
                Operand::Unknown(cause) => Some(*cause),
                _ => None,
            }),
            Value::Pointer(_) => None,
        };
        match own {
            Cause::FloatingPoint => operands
                .iter()
                .filter(|id| self.is_value(**id))
                .find_map(unknown),
            _ => None,
        }
        .unwrap_or(own)
    }

    /// Returns whether an id is that of a value that was defined.
    fn is_value(&self, id: u32) -> bool {
        self.frame.values.contains_key(&id) || self.globals.contains_key(&id)
    }

    /// Assumes that an instruction that is not followed may read and write through all its pointer operands. A
    /// literal that is mistaken for a pointer's id does no harm.
    fn unfollowed(&mut self, op: u16, operands: &[u32]) {
        if is_image(op) {
            return self.escape(None, true, true, Cause::Image);
        }
        for (at, id) in operands.iter().enumerate() {
            // The number of an extended instruction, such as 4 for FAbs, often equals the id of a pointer.
            if (op, at) == (op::EXT_INST, 3) {
                continue;
            }
            let known = self.frame.values.get(id).or_else(|| self.globals.get(id));
            let Some(Value::Pointer(pointer)) = known.map(|typed| typed.value.clone()) else {
                continue;
            };
            match pointer.base {
                Base::Buffer(buffer) => self.escape(Some(buffer), true, true, cause(op)),
                Base::Local { first, count } => self.clobber(first, count, cause(op)),
                Base::Lost(cause) => self.escape(None, true, true, cause),
                Base::Descriptors { .. } => self.escape(None, true, true, cause(op)),
                Base::Content(_) | Base::Fixed(_) | Base::Opaque(_) => {}
            }
        }
    }
}

/// Returns whether an instruction reaches an image.
fn is_image(op: u16) -> bool {
    // OpSampledImage to OpImageQuerySamples, and OpImageSparse…
    op == op::IMAGE_TEXEL_POINTER || matches!(op, 86..=106 | 305..=320 if op != op::NO_LINE)
}

/// Returns the reason why the result of an instruction that is not followed is unknown.
fn cause(op: u16) -> Cause {
    match op {
        // Conversions; negation and arithmetic; products; classification; comparisons.
        op::EXT_INST
        | 109..=112
        | 115
        | 116
        | 127
        | 129
        | 131
        | 133
        | 136
        | 140..=148
        | 156..=163
        | 180..=191 => Cause::FloatingPoint,
        // OpGroup…, OpGroupNonUniform…, and those of extensions.
        261..=271 | 333..=366 | 4421..=4432 | 5110 | 5111 | 6026 => Cause::Subgroup,
        // OpConvertPtrToU to OpGenericCastToPtrExplicit
        117..=123 => Cause::DeviceAddress,
        op => Cause::Instruction(op),
    }
}

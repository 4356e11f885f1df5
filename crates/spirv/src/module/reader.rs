//! Fills the tables of a [`Module`] from its words, instruction by instruction. The first invalid instruction is
//! noted as the module's fault, and reading goes on.

use super::{EntryPoint, Function, Module, StoredInstruction, Variable};
use crate::error::ReadError;
use crate::numbers::{GL_COMPUTE, WORKGROUP_SIZE, decoration, op};
use crate::types::Type;
use crate::words::{Instruction, Instructions, Literal};

/// The most instructions of a module; one with more is refused. The largest kernel of llama.cpp has some 50,000.
const MAX_INSTRUCTIONS: usize = 2_000_000;

/// The state of reading a module.
pub(super) struct Reader {
    pub module: Module,
    /// The bound of ids: all are below it.
    pub bound: u32,
    /// The id of the function whose end has not been read yet, and the function.
    pub function: Option<(u32, Function)>,
}

impl Reader {
    /// Reads all instructions behind the header.
    ///
    /// # Errors
    /// An instruction is cut off, or there are too many.
    pub fn read(&mut self, words: &[u32]) -> Result<(), ReadError> {
        for (count, instruction) in Instructions::new(words).enumerate() {
            let instruction = instruction?;
            if count == MAX_INSTRUCTIONS {
                return Err(ReadError::TooLong(MAX_INSTRUCTIONS));
            }
            let is_valid = self.is_valid(instruction);
            self.take(instruction);
            if !is_valid && self.module.fault.is_none() {
                let Instruction { at, op, .. } = instruction;
                self.module.fault = Some(ReadError::Instruction { at, op });
            }
        }
        if self.function.is_some() && self.module.fault.is_none() {
            self.module.fault = Some(ReadError::OpenFunction);
        }
        Ok(())
    }

    /// Returns whether the operands of an instruction are valid, as far as this crate knows the instruction.
    fn is_valid(&self, Instruction { op, operands, .. }: Instruction<'_>) -> bool {
        let is_id = |id: &u32| (1..self.bound).contains(id);
        let is_inside = self.function.is_some();
        match (op, operands) {
            (op::CAPABILITY, operands) => operands.len() == 1,
            (op::EXTENSION, text) => Literal::read(text).is_valid,
            (op::ENTRY_POINT, [GL_COMPUTE, function, text @ ..]) => {
                is_id(function) && Literal::read(text).is_valid
            }
            (op::DECORATE, [id, _, ..]) => is_id(id),
            (op::MEMBER_DECORATE, [id, _, decoration::OFFSET, _]) => is_id(id),
            (op, [id, ..]) if defines_type(op) => is_id(id),
            (op, [result_type, id, ..]) if defines_constant(op) => {
                is_id(result_type) && (is_inside || is_id(id))
            }
            (op::VARIABLE, [result_type, id, _, ..]) => {
                is_inside || is_id(result_type) && is_id(id)
            }
            (op::FUNCTION, [_, id, _, _]) => !is_inside && is_id(id),
            (op::FUNCTION_END, []) => is_inside,
            // With other operands these are invalid.
            (op::DECORATE | op::VARIABLE | op::FUNCTION | op::FUNCTION_END, _) => false,
            _ => true,
        }
    }

    /// Adds what an instruction defines to the module, or the instruction to the open function.
    fn take(&mut self, instruction: Instruction<'_>) {
        let stored = StoredInstruction {
            op: instruction.op,
            operand_count: instruction.operands.len() as u16,
            at: instruction.at,
        };
        if let Some((_, function)) = &mut self.function {
            match (stored.op, instruction.operands) {
                // OpSourceContinued to OpLine
                (2..=op::LINE | op::NO_LINE | op::MODULE_PROCESSED, _) => {}
                (op::FUNCTION_PARAMETER, [type_id, id]) => {
                    function.parameters.push((*id, *type_id))
                }
                (op::FUNCTION_END, _) => self.module.functions.extend(self.function.take()),
                _ => function.body.push(stored),
            }
            return;
        }
        let module = &mut self.module;
        match (instruction.op, instruction.operands) {
            (op::CAPABILITY, [capability]) => {
                module.capabilities.insert(*capability);
            }
            (op::EXTENSION, text) => {
                module.extensions.insert(Literal::read(text).text);
            }
            (op::EXT_INST_IMPORT, [id, name @ ..])
                if Literal::read(name).text == "GLSL.std.450" =>
            {
                module.glsl = Some(*id);
            }
            (op::ENTRY_POINT, [GL_COMPUTE, function, text @ ..]) => {
                let Literal { text, rest, .. } = Literal::read(text);
                module.entry_points.push(EntryPoint {
                    name: text,
                    function: *function,
                    interface: rest.to_vec(),
                    modes: Vec::new(),
                });
            }
            (op::EXECUTION_MODE | op::EXECUTION_MODE_ID, [function, mode, values @ ..]) => {
                let entries = module.entry_points.iter_mut();
                for entry in entries.filter(|entry| entry.function == *function) {
                    entry.modes.push((*mode, values.to_vec()));
                }
            }
            (op::DECORATE, [id, decoration, values @ ..]) => {
                module.decorate(*id, *decoration, values.first().copied());
            }
            (op::MEMBER_DECORATE, [id, member, decoration, values @ ..]) => {
                module.decorate_member((*id, *member), *decoration, values.first().copied());
            }
            (op::FUNCTION, [_, id, ..]) => self.function = Some((*id, Function::default())),
            (op::VARIABLE, [type_id, id, class, rest @ ..]) => {
                let variable = Variable {
                    type_id: *type_id,
                    class: *class,
                    initializer: rest.first().copied(),
                };
                module.variables.insert(*id, variable);
            }
            (op, [id, operands @ ..]) if defines_type(op) => {
                let is_defined = |id| module.types.contains_key(&id);
                if let Some(new) = Type::read(op, operands, is_defined) {
                    // The first definition counts, so that no array or vector contains itself.
                    module.types.entry(*id).or_insert(new);
                }
            }
            (op, _) if defines_constant(op) => module.constants.push(stored),
            _ => {}
        }
    }
}

impl Module {
    /// Notes a decoration of an id; those that gapscope does not use are passed over.
    fn decorate(&mut self, id: u32, decoration: u32, value: Option<u32>) {
        let decorations = self.decorations.entry(id).or_default();
        match decoration {
            decoration::SPEC_ID => decorations.spec_id = value,
            decoration::ARRAY_STRIDE => decorations.array_stride = value,
            decoration::BUILT_IN => {
                decorations.built_in = value;
                if value == Some(WORKGROUP_SIZE) {
                    self.workgroup_size = Some(id);
                }
            }
            decoration::BINDING => decorations.binding = value,
            decoration::DESCRIPTOR_SET => decorations.set = value,
            _ => {}
        }
    }

    /// Notes a decoration of a member, given by the id of its structure and its number.
    fn decorate_member(&mut self, member: (u32, u32), decoration: u32, value: Option<u32>) {
        let decorations = self.members.entry(member).or_default();
        match decoration {
            decoration::ROW_MAJOR => decorations.row_major = true,
            decoration::MATRIX_STRIDE => decorations.matrix_stride = value,
            decoration::BUILT_IN => decorations.built_in = value,
            decoration::OFFSET => decorations.offset = value,
            _ => {}
        }
    }
}

/// Returns whether an instruction defines a type.
fn defines_type(op: u16) -> bool {
    matches!(
        op,
        op::TYPE_VOID
            ..=op::TYPE_FORWARD_POINTER
                | op::TYPE_COOPERATIVE_MATRIX_KHR
                | op::TYPE_VECTOR_ID_EXT
                | op::TYPE_COOPERATIVE_MATRIX_NV
    )
}

/// Returns whether an instruction defines a constant.
fn defines_constant(op: u16) -> bool {
    matches!(
        op,
        op::UNDEF
            | op::CONSTANT_TRUE..=op::CONSTANT_NULL
            | op::SPEC_CONSTANT_TRUE..=op::SPEC_CONSTANT_OP
    )
}

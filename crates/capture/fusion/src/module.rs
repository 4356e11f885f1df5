//! Reads the SPIR-V of a kernel for merging: bytes, entry point and specialisation constants go in, a [`Kernel`]
//! comes out, in which these constants are fixed and unused code is removed.

use std::collections::{BTreeMap, HashMap, HashSet};

use rspirv::dr::{Instruction, Loader, Module, Operand};
use rspirv::spirv::{Decoration, ExecutionMode, Op, StorageClass, Word};

use crate::refusal::Refusal;

/// A kernel with one entry point.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// The module without the functions that the entry point does not call, and without the variables that only these
    /// use.
    pub module: Module,
    /// Id of the entry point's function.
    pub entry: Word,
    /// The entry point's execution modes except the local size, sorted.
    pub modes: Vec<Instruction>,
    /// Set and binding of each descriptor's variable, by the variable's id.
    pub bound: BTreeMap<Word, (u32, u32)>,
    /// Id of the variable of push constants.
    pub push_constants: Option<Word>,
}

impl Kernel {
    /// Reads a kernel from SPIR-V. `constants` are specialisation constants as pairs of number and bits; the others
    /// get their default values.
    pub fn read(code: &[u8], entry: &str, constants: &[(u32, u64)]) -> Result<Kernel, Refusal> {
        let mut loader = Loader::new();
        rspirv::binary::parse_bytes(code, &mut loader)
            .map_err(|error| Refusal::Spirv(error.to_string()))?;
        let mut module = loader.module();
        let facts = gapscope_spirv::Module::read(code)?;
        let function = facts.entry_point(entry)?.function;
        let reached = facts.reached_functions(function);
        module
            .functions
            .retain(|of| of.def_id().is_some_and(|id| reached.contains(&id)));
        check(&module)?;
        let used = used(&module);
        let mut modes: Vec<Instruction> = (module.execution_modes.iter())
            .filter(|mode| mode.operands.first() == Some(&Operand::IdRef(function)))
            .filter(|mode| !is_local_size(mode))
            .cloned()
            .collect();
        modes.sort_by_key(|mode| format!("{:?}", &mode.operands[1..]));
        module.execution_modes.clear();
        module.entry_points.clear();
        module.types_global_values.retain(|of| {
            of.class.opcode != Op::Variable || of.result_id.is_some_and(|id| used.contains(&id))
        });
        freeze(&mut module, constants);
        let known = ids(&module);
        let is_known = |of: &Instruction| match of.operands.first() {
            Some(Operand::IdRef(id)) => known.contains(id),
            _ => true,
        };
        module.annotations.retain(is_known);
        module.debug_names.retain(is_known);
        let variables = module.types_global_values.iter();
        let bound = variables.filter_map(|of| {
            storage_class(of)?;
            let decorations = facts.decorations.get(&of.result_id?)?;
            Some((of.result_id?, (decorations.set?, decorations.binding?)))
        });
        let bound = bound.collect();
        let push_constants = (module.types_global_values.iter())
            .find(|of| storage_class(of) == Some(StorageClass::PushConstant))
            .and_then(|of| of.result_id);
        Ok(Kernel {
            entry: function,
            modes,
            bound,
            push_constants,
            module,
        })
    }
}

/// Returns the storage class of a variable; `None` for any other instruction.
pub fn storage_class(of: &Instruction) -> Option<StorageClass> {
    match (of.class.opcode, of.operands.first()) {
        (Op::Variable, Some(Operand::StorageClass(class))) => Some(*class),
        _ => None,
    }
}

/// Returns whether an execution mode is the size of workgroups, which the merged kernel declares itself.
fn is_local_size(mode: &Instruction) -> bool {
    matches!(
        mode.operands.get(1),
        Some(Operand::ExecutionMode(
            ExecutionMode::LocalSize | ExecutionMode::LocalSizeId
        ))
    )
}

/// Returns the ids that instructions of the module use.
fn used(module: &Module) -> HashSet<Word> {
    let mut used = HashSet::new();
    for function in &module.functions {
        for of in function.all_inst_iter() {
            used.extend(of.operands.iter().filter_map(Operand::id_ref_any));
        }
    }
    used
}

/// Returns the ids that the module defines.
fn ids(module: &Module) -> HashSet<Word> {
    module
        .all_inst_iter()
        .filter_map(|of| of.result_id)
        .collect()
}

/// Refuses instructions and variables that a merged kernel cannot have.
fn check(module: &Module) -> Result<(), Refusal> {
    for function in &module.functions {
        for of in function.all_inst_iter() {
            let opcode = of.class.opcode;
            let name = of.class.opname;
            match opcode {
                Op::ControlBarrier => return Err(Refusal::ControlBarrier),
                Op::MemoryBarrier => return Err(Refusal::MemoryBarrier),
                _ if name.starts_with("Atomic") => return Err(Refusal::Atomics),
                _ if name.starts_with("Group") || name.starts_with("Subgroup") => {
                    return Err(Refusal::Subgroups);
                }
                _ if name.starts_with("Image") || name.starts_with("SampledImage") => {
                    return Err(Refusal::Images);
                }
                Op::CooperativeMatrixLoadKHR | Op::CooperativeMatrixStoreKHR => {
                    return Err(Refusal::Subgroups);
                }
                _ => {}
            }
        }
    }
    let used = used(module);
    for of in &module.types_global_values {
        if of.result_id.is_some_and(|id| used.contains(&id)) {
            match storage_class(of) {
                Some(StorageClass::Workgroup) => return Err(Refusal::SharedMemory),
                Some(StorageClass::UniformConstant | StorageClass::Image) => {
                    return Err(Refusal::Images);
                }
                _ => {}
            }
        }
        if of.class.opcode == Op::TypeForwardPointer {
            return Err(Refusal::Addresses);
        }
    }
    Ok(())
}

/// Replaces specialisation constants by constants of their values.
fn freeze(module: &mut Module, constants: &[(u32, u64)]) {
    let mut numbers: HashMap<Word, u32> = HashMap::new();
    module.annotations.retain(|of| match of.operands[..] {
        [
            Operand::IdRef(id),
            Operand::Decoration(Decoration::SpecId),
            Operand::LiteralBit32(number),
        ] => {
            numbers.insert(id, number);
            false
        }
        // The merged kernel declares its local size itself.
        [
            Operand::IdRef(_),
            Operand::Decoration(Decoration::BuiltIn),
            Operand::BuiltIn(built_in),
        ] => built_in != rspirv::spirv::BuiltIn::WorkgroupSize,
        _ => true,
    });
    let grammar = |op| rspirv::grammar::INSTRUCTION_TABLE.get(op);
    for of in &mut module.types_global_values {
        let number = of.result_id.and_then(|id| numbers.get(&id));
        let value = number.and_then(|number| {
            let set = constants.iter().find(|(id, _)| id == number);
            set.map(|(_, value)| *value)
        });
        match of.class.opcode {
            Op::SpecConstant => {
                of.class = grammar(Op::Constant);
                if let (Some(value), Some(operand)) = (value, of.operands.first_mut()) {
                    *operand = match operand {
                        Operand::LiteralBit64(_) => Operand::LiteralBit64(value),
                        _ => Operand::LiteralBit32(value as u32),
                    };
                }
            }
            Op::SpecConstantTrue | Op::SpecConstantFalse => {
                let default = of.class.opcode == Op::SpecConstantTrue;
                of.class = grammar(match value.map_or(default, |value| value as u32 != 0) {
                    true => Op::ConstantTrue,
                    false => Op::ConstantFalse,
                });
            }
            Op::SpecConstantComposite => of.class = grammar(Op::ConstantComposite),
            _ => {}
        }
    }
}

//! Rewrites the loads and stores of intermediates (memory that a kernel writes and a later kernel of the chain reads)
//! in the functions of a kernel: as volatile ones if values go through memory, else as accesses to a variable of the
//! invocation.

use std::collections::HashMap;

use rspirv::dr::{Function, Instruction, Operand};
use rspirv::spirv::{MemoryAccess, Op, StorageClass, Word};

use super::{Builder, instruction};
use crate::merge::MergePlan;
use crate::module::Kernel;
use crate::refusal::Refusal;

/// Rewrites the functions of a kernel, whose ids are those of the merged module. `number` is the kernel's index in
/// the chain; `ids` has the merged module's ids by those of the kernel.
pub fn rewrite(
    builder: &mut Builder<'_>,
    number: usize,
    kernel: &Kernel,
    plan: &MergePlan,
    ids: &HashMap<Word, Word>,
    functions: &mut [Function],
) -> Result<(), Refusal> {
    let intermediates = kernel.bound.iter().filter_map(|(variable, place)| {
        let intermediate = plan.slots[number].get(place)?.intermediate?;
        Some((ids[variable], intermediate))
    });
    let intermediates: HashMap<Word, usize> = intermediates.collect();
    if intermediates.is_empty() {
        return Ok(());
    }
    let types = value_types(builder, functions);
    for function in functions {
        let reached = reached(function, &intermediates)?;
        for block in &mut function.blocks {
            let before = std::mem::take(&mut block.instructions);
            for of in before {
                let pointer = of.operands.first().and_then(Operand::id_ref_any);
                let intermediate = pointer.and_then(|id| reached.get(&id)).copied();
                match (of.class.opcode, intermediate) {
                    (Op::Load, Some(which)) => {
                        block
                            .instructions
                            .push(load(builder, number, plan, which, of)?);
                    }
                    (Op::Store, Some(which)) => {
                        let value = of.operands[1].id_ref_any().unwrap_or_default();
                        let value_type = *types.get(&value).ok_or(Refusal::Types)?;
                        let stores = store(builder, number, plan, which, of, value_type)?;
                        block.instructions.extend(stores);
                    }
                    _ => block.instructions.push(of),
                }
            }
        }
    }
    Ok(())
}

/// Returns the ids of the pointers into intermediates, each with the intermediate's index; refuses a function that
/// uses such a pointer for anything but a chain, a load, a store to it, or an array's length.
fn reached(
    function: &Function,
    intermediates: &HashMap<Word, usize>,
) -> Result<HashMap<Word, usize>, Refusal> {
    let mut reached = intermediates.clone();
    // A pointer is defined before it is used, but blocks may stand in another order than they run. Two passes are
    // enough for that.
    for _ in 0..2 {
        for of in function.all_inst_iter() {
            let from = of.operands.first().and_then(Operand::id_ref_any);
            let root = from.and_then(|from| reached.get(&from)).copied();
            let makes_pointer = matches!(
                of.class.opcode,
                Op::AccessChain | Op::InBoundsAccessChain | Op::CopyObject
            );
            if let (Some(root), true, Some(id)) = (root, makes_pointer, of.result_id) {
                reached.insert(id, root);
            }
        }
    }
    for of in function.all_inst_iter() {
        let mut uses = of.operands.iter().filter_map(Operand::id_ref_any);
        let is_followed = matches!(
            of.class.opcode,
            Op::AccessChain | Op::InBoundsAccessChain | Op::CopyObject | Op::Load | Op::ArrayLength
        );
        let is_stored_to = of.class.opcode == Op::Store
            && !uses.clone().skip(1).any(|id| reached.contains_key(&id));
        if !is_followed && !is_stored_to && uses.any(|id| reached.contains_key(&id)) {
            return Err(Refusal::Pointer);
        }
    }
    Ok(reached)
}

/// Returns what replaces a load `of` the intermediate `which` by the kernel `number`: a load of the variable that
/// forwards the value, or a volatile load of memory if nothing is forwarded or no earlier kernel writes it.
fn load(
    builder: &mut Builder<'_>,
    number: usize,
    plan: &MergePlan,
    which: usize,
    mut of: Instruction,
) -> Result<Instruction, Refusal> {
    let intermediate = &plan.intermediates[which];
    if !plan.forwarded || number <= intermediate.writer {
        make_volatile(&mut of, 1);
        return Ok(of);
    }
    let (variable, value_type) = builder.values.get(&which).copied().ok_or(Refusal::Types)?;
    if of.result_type != Some(value_type) {
        return Err(Refusal::Types);
    }
    of.operands = vec![Operand::IdRef(variable)];
    Ok(of)
}

/// Returns what replaces a store to the intermediate `which`: a volatile store if nothing is forwarded, else a store
/// to the variable (made at the first store), after one to memory if the kernel's stores must reach memory.
fn store(
    builder: &mut Builder<'_>,
    number: usize,
    plan: &MergePlan,
    which: usize,
    mut of: Instruction,
    value_type: Word,
) -> Result<Vec<Instruction>, Refusal> {
    if !plan.forwarded {
        make_volatile(&mut of, 2);
        return Ok(vec![of]);
    }
    let (variable, known) = match builder.values.get(&which) {
        Some(known) => *known,
        None => {
            let made = (
                builder.variable(value_type, StorageClass::Private),
                value_type,
            );
            builder.values.insert(which, made);
            made
        }
    };
    if known != value_type {
        return Err(Refusal::Types);
    }
    let operands = vec![Operand::IdRef(variable), of.operands[1].clone()];
    let kept = instruction(Op::Store, None, None, operands);
    Ok(match plan.intermediates[which].stored[number] {
        true => vec![of, kept],
        false => vec![kept],
    })
}

/// Makes a load or store volatile, so that stores reach memory and loads read it. `at` is the index of the operand
/// with the memory access.
fn make_volatile(of: &mut Instruction, at: usize) {
    match of.operands.get_mut(at) {
        Some(Operand::MemoryAccess(access)) => *access |= MemoryAccess::VOLATILE,
        _ => of
            .operands
            .insert(at, Operand::MemoryAccess(MemoryAccess::VOLATILE)),
    }
}

/// Returns the id of the type of each value, by the value's id.
fn value_types(builder: &Builder<'_>, functions: &[Function]) -> HashMap<Word, Word> {
    let global = builder.module.types_global_values.iter();
    let local = functions.iter().flat_map(Function::all_inst_iter);
    let each = global.chain(local);
    each.filter_map(|of| Some((of.result_id?, of.result_type?)))
        .collect()
}

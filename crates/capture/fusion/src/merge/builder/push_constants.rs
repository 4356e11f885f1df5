//! Joins the push-constant blocks of several kernels (bytes that a dispatch passes to its kernel) into one block with
//! the kernels' blocks as members: [`Builder::join_push_constants`] is called once all kernels have been added.

use rspirv::dr::{Instruction, Operand};
use rspirv::spirv::{Decoration, Op, StorageClass};

use super::{Builder, instruction};

impl Builder<'_> {
    /// Declares the joined block, and replaces each use of a kernel's own block in its functions by a pointer to the
    /// member, which the function computes at its beginning. Without push constants nothing changes.
    pub(super) fn join_push_constants(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        if blocks.is_empty() {
            return;
        }
        let structure = self.id();
        let members = blocks
            .iter()
            .map(|block| Operand::IdRef(block.structure))
            .collect();
        let of = instruction(Op::TypeStruct, None, Some(structure), members);
        self.module.types_global_values.push(of);
        let decorate = |op, operands| instruction(op, None, None, operands);
        let mut annotations = vec![decorate(
            Op::Decorate,
            vec![
                Operand::IdRef(structure),
                Operand::Decoration(Decoration::Block),
            ],
        )];
        let variable = self.variable(structure, StorageClass::PushConstant);
        let operands = vec![Operand::LiteralBit32(32), Operand::LiteralBit32(0)];
        let integer = self.type_of(Op::TypeInt, operands);
        for (index, block) in (0..).zip(&blocks) {
            annotations.push(decorate(
                Op::MemberDecorate,
                vec![
                    Operand::IdRef(structure),
                    Operand::LiteralBit32(index),
                    Operand::Decoration(Decoration::Offset),
                    Operand::LiteralBit32(block.offset),
                ],
            ));
            let constant = self.id();
            let operands = vec![Operand::LiteralBit32(index)];
            let of = instruction(Op::Constant, Some(integer), Some(constant), operands);
            self.module.types_global_values.push(of);
            for number in block.functions.clone() {
                let chain = self.id();
                let function = &mut self.module.functions[number];
                let mut is_used = false;
                for of in function.all_inst_iter_mut() {
                    for id in of.operands.iter_mut().filter_map(Operand::id_ref_any_mut) {
                        if *id == block.variable {
                            *id = chain;
                            is_used = true;
                        }
                    }
                }
                if let (true, Some(first)) = (is_used, function.blocks.first_mut()) {
                    let operands = vec![Operand::IdRef(variable), Operand::IdRef(constant)];
                    let of =
                        instruction(Op::AccessChain, Some(block.pointer), Some(chain), operands);
                    let is_variable = |of: &Instruction| of.class.opcode == Op::Variable;
                    let after = first.instructions.iter().rposition(is_variable);
                    first.instructions.insert(after.map_or(0, |at| at + 1), of);
                }
            }
        }
        self.module.annotations.append(&mut annotations);
    }
}

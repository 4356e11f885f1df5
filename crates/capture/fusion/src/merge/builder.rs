//! Builds a merged module: kernels are added one by one with their ids renumbered, and at the end the entry point
//! that calls them.
//!
//! Order of calls: `new` with all kernels, `add` for each in the order of the chain, then `finish`. Ids are SPIR-V's
//! numbers of values and types. An intermediate is memory that a kernel of the chain writes and a later one reads.

mod memory;
mod push_constants;

use std::collections::{HashMap, HashSet};

use gapscope_spirv::numbers::version;
use rspirv::dr::{Block, Function, Instruction, Module, ModuleHeader, Operand};
use rspirv::grammar::INSTRUCTION_TABLE;
use rspirv::spirv::{
    AddressingModel, BuiltIn, Decoration, ExecutionMode, ExecutionModel, FunctionControl, Op,
    StorageClass, Word,
};

use super::{ENTRY, MergePlan};
use crate::module::{Kernel, storage_class};
use crate::refusal::Refusal;

/// A merged module, to which one kernel after the other is added.
pub struct Builder<'a> {
    plan: &'a MergePlan,
    pub module: Module,
    /// The next unused id.
    next: Word,
    /// The greatest version of SPIR-V among the kernels.
    version: Word,
    /// The ids of types and other declarations that may be declared only once, by opcode and operands.
    types: HashMap<(Op, Vec<Operand>), Word>,
    /// The ids of imported sets of instructions.
    imports: HashMap<Vec<Operand>, Word>,
    /// The variable of each built-in input, and its type.
    built_ins: HashMap<BuiltIn, (Word, Word)>,
    /// The functions of the kernels' entry points.
    entries: Vec<Word>,
    /// The ids that have a name for debugging.
    named: HashSet<Word>,
    /// Whether push-constant blocks of several kernels become one.
    joins_push_constants: bool,
    /// The blocks of push constants that are joined.
    blocks: Vec<JoinedBlock>,
    /// The variable that forwards the value of an intermediate, and the value's type, by the intermediate's index.
    pub values: HashMap<usize, (Word, Word)>,
}

/// A block of push constants of one kernel, with its place in the joined block.
struct JoinedBlock {
    offset: u32,
    /// The type of the block; `pointer` is the type of the variable.
    structure: Word,
    pointer: Word,
    variable: Word,
    /// The kernel's functions, by their indices in the merged module.
    functions: std::ops::Range<usize>,
}

impl<'a> Builder<'a> {
    /// Unites what kernels declare for the whole module, or refuses kernels that differ in it.
    pub fn new(kernels: &[Kernel], plan: &'a MergePlan) -> Result<Builder<'a>, Refusal> {
        let mut module = Module::new();
        for kernel in kernels {
            let of = &kernel.module;
            unite(&mut module.capabilities, &of.capabilities);
            unite(&mut module.extensions, &of.extensions);
            match &module.memory_model {
                None => module.memory_model.clone_from(&of.memory_model),
                known if *known == of.memory_model => {}
                _ => return Err(Refusal::Modules("memory models")),
            }
            if !same_modes(&kernels[0].modes, &kernel.modes) {
                return Err(Refusal::Modules("execution modes"));
            }
            if of
                .annotations
                .iter()
                .any(|of| of.class.opcode == Op::DecorationGroup)
            {
                return Err(Refusal::Spirv("it has groups of decorations".to_owned()));
            }
        }
        let logical = (module.memory_model.iter()).all(|of| {
            of.operands.first() == Some(&Operand::AddressingModel(AddressingModel::Logical))
        });
        if !logical {
            return Err(Refusal::Addresses);
        }
        let versions = kernels
            .iter()
            .filter_map(|kernel| kernel.module.header.as_ref());
        let blocks = kernels
            .iter()
            .filter(|kernel| kernel.push_constants.is_some());
        let mut builder = Builder {
            plan,
            next: 1,
            version: versions
                .map(|header| header.version)
                .max()
                .unwrap_or(version::V1_3),
            types: HashMap::new(),
            imports: HashMap::new(),
            built_ins: HashMap::new(),
            entries: Vec::new(),
            named: HashSet::new(),
            joins_push_constants: blocks.count() > 1,
            blocks: Vec::new(),
            values: HashMap::new(),
            module,
        };
        builder.module.execution_modes.clone_from(&kernels[0].modes);
        Ok(builder)
    }

    /// Takes the next unused id.
    pub fn id(&mut self) -> Word {
        self.next += 1;
        self.next - 1
    }

    /// Returns the id of a type that may be declared only once, and declares it if needed.
    pub fn type_of(&mut self, op: Op, operands: Vec<Operand>) -> Word {
        let key = (op, operands);
        if let Some(id) = self.types.get(&key) {
            return *id;
        }
        let id = self.id();
        let of = instruction(op, None, Some(id), key.1.clone());
        self.module.types_global_values.push(of);
        self.types.insert(key, id);
        id
    }

    /// Declares a variable of a storage class, and returns its id.
    pub fn variable(&mut self, pointee: Word, class: StorageClass) -> Word {
        let operands = vec![Operand::StorageClass(class), Operand::IdRef(pointee)];
        let pointer = self.type_of(Op::TypePointer, operands);
        let id = self.id();
        let operands = vec![Operand::StorageClass(class)];
        let of = instruction(Op::Variable, Some(pointer), Some(id), operands);
        self.module.types_global_values.push(of);
        id
    }

    /// Adds the kernel with this number in the plan, which is called after those added before.
    pub fn add(&mut self, number: usize, kernel: &Kernel) -> Result<(), Refusal> {
        let mut ids: HashMap<Word, Word> = HashMap::new();
        let mut gone: HashSet<Word> = HashSet::new();
        for of in &kernel.module.ext_inst_imports {
            let (Some(old), key) = (of.result_id, of.operands.clone()) else {
                continue;
            };
            let id = match self.imports.get(&key) {
                Some(id) => *id,
                None => {
                    let id = self.id();
                    self.imports.insert(key.clone(), id);
                    let of = instruction(Op::ExtInstImport, None, Some(id), key);
                    self.module.ext_inst_imports.push(of);
                    id
                }
            };
            ids.insert(old, id);
        }
        let built_ins = built_ins(kernel);
        for of in &kernel.module.types_global_values {
            let mut renumbered = of.clone();
            self.renumber(&mut renumbered, &mut ids, true);
            let old = of.result_id.unwrap_or_default();
            if is_unique(of.class.opcode) {
                let id = self.type_of(of.class.opcode, renumbered.operands);
                ids.insert(old, id);
                continue;
            }
            if let Some(built_in) = built_ins.get(&old) {
                let of_type = renumbered.result_type.unwrap_or_default();
                match self.built_ins.get(built_in) {
                    Some((_, known)) if *known != of_type => return Err(Refusal::BuiltIns),
                    Some((id, _)) => {
                        ids.insert(old, *id);
                        gone.insert(old);
                        continue;
                    }
                    None => {
                        let id = self.fresh(old, &mut ids);
                        self.built_ins.insert(*built_in, (id, of_type));
                    }
                }
            }
            if storage_class(of) == Some(StorageClass::PushConstant) && self.joins_push_constants {
                let pointer = renumbered.result_type.unwrap_or_default();
                let variable = self.fresh(old, &mut ids);
                let structure = self.pointee(pointer).ok_or(Refusal::Pointer)?;
                let first = self.module.functions.len();
                self.blocks.push(JoinedBlock {
                    offset: self.plan.push_constants[number],
                    structure,
                    pointer,
                    variable,
                    functions: first..first + kernel.module.functions.len(),
                });
                gone.insert(old);
                continue;
            }
            if of.result_id.is_some() {
                renumbered.result_id = Some(self.fresh(old, &mut ids));
            }
            self.module.types_global_values.push(renumbered);
        }
        self.annotations(number, kernel, &mut ids, &gone)?;
        let is_gone = |of: &Instruction| {
            of.operands
                .first()
                .and_then(Operand::id_ref_any)
                .is_some_and(|id| gone.contains(&id))
        };
        for of in kernel.module.debug_names.iter().filter(|of| !is_gone(of)) {
            let mut renumbered = of.clone();
            self.renumber(&mut renumbered, &mut ids, false);
            let is_member = of.class.opcode == Op::MemberName;
            if let Some(Operand::IdRef(id)) = renumbered.operands.first()
                && (is_member || self.named.insert(*id))
            {
                self.module.debug_names.push(renumbered);
            }
        }
        // Lines refer to sources that are not kept.
        let is_line = |of: &Instruction| matches!(of.class.opcode, Op::Line | Op::NoLine);
        let mut functions = kernel.module.functions.clone();
        for function in &mut functions {
            for block in &mut function.blocks {
                block.instructions.retain(|of| !is_line(of));
            }
            for of in function.all_inst_iter_mut() {
                self.renumber(of, &mut ids, false);
            }
        }
        memory::rewrite(self, number, kernel, self.plan, &ids, &mut functions)?;
        self.module.functions.append(&mut functions);
        self.entries.push(ids[&kernel.entry]);
        Ok(())
    }

    /// Returns the new id of a kernel's id, and gives it one if it has none.
    fn fresh(&mut self, old: Word, ids: &mut HashMap<Word, Word>) -> Word {
        match ids.get(&old) {
            Some(id) => *id,
            None => {
                let id = self.id();
                ids.insert(old, id);
                id
            }
        }
    }

    /// Replaces the ids of an instruction by new ones, but for its result if `keep_result`.
    fn renumber(&mut self, of: &mut Instruction, ids: &mut HashMap<Word, Word>, keep_result: bool) {
        for id in of.operands.iter_mut().filter_map(Operand::id_ref_any_mut) {
            *id = self.fresh(*id, ids);
        }
        if let Some(id) = &mut of.result_type {
            *id = self.fresh(*id, ids);
        }
        if let (Some(id), false) = (&mut of.result_id, keep_result) {
            *id = self.fresh(*id, ids);
        }
    }

    /// Returns the id of the type that a pointer type points to.
    pub fn pointee(&self, pointer: Word) -> Option<Word> {
        let of = (self.module.types_global_values.iter())
            .find(|of| of.result_id == Some(pointer) && of.class.opcode == Op::TypePointer)?;
        of.operands.get(1)?.id_ref_any()
    }

    /// Adds the decorations of a kernel, with bindings moved to their slots in set 0. Those of declarations that are
    /// `gone`, because others take their place, are left out; variables that share memory are marked as aliased.
    fn annotations(
        &mut self,
        number: usize,
        kernel: &Kernel,
        ids: &mut HashMap<Word, Word>,
        gone: &HashSet<Word>,
    ) -> Result<(), Refusal> {
        let slots = &self.plan.slots[number];
        // Structures of variables that share their memory: some of these may be writable, and others not.
        let mut shared = HashSet::new();
        for (variable, place) in &kernel.bound {
            let slot = slots.get(place).ok_or(Refusal::DescriptorArray)?;
            if slot.aliased {
                let of = (kernel.module.types_global_values.iter())
                    .find(|of| of.result_id == Some(*variable));
                let pointer = of.and_then(|of| of.result_type).unwrap_or_default();
                shared.extend(self.pointee(ids[&pointer]));
                let id = ids[variable];
                let operands = vec![Operand::IdRef(id), Operand::Decoration(Decoration::Aliased)];
                self.module
                    .annotations
                    .push(instruction(Op::Decorate, None, None, operands));
            }
        }
        let joined: HashSet<Word> = self.blocks.iter().map(|block| block.structure).collect();
        for of in &kernel.module.annotations {
            let target = match of.operands.first() {
                Some(Operand::IdRef(id)) => *id,
                _ => continue,
            };
            if gone.contains(&target) {
                continue;
            }
            let mut renumbered = of.clone();
            self.renumber(&mut renumbered, ids, false);
            let slot = kernel.bound.get(&target).and_then(|place| slots.get(place));
            let at = match of.class.opcode {
                Op::MemberDecorate => 2,
                _ => 1,
            };
            if let Some(Operand::Decoration(decoration)) = of.operands.get(at) {
                let is_aliased =
                    slot.is_some_and(|slot| slot.aliased) || shared.contains(&ids[&target]);
                match decoration {
                    Decoration::DescriptorSet if slot.is_some() => {
                        renumbered.operands[2] = Operand::LiteralBit32(0);
                    }
                    Decoration::Binding => {
                        if let Some(slot) = slot {
                            renumbered.operands[2] = Operand::LiteralBit32(slot.number);
                        }
                    }
                    Decoration::Restrict
                    | Decoration::Aliased
                    | Decoration::NonWritable
                    | Decoration::NonReadable
                        if is_aliased =>
                    {
                        continue;
                    }
                    // The block becomes a member of another block.
                    Decoration::Block if joined.contains(&ids[&target]) => continue,
                    _ => {}
                }
            }
            self.module.annotations.push(renumbered);
        }
        Ok(())
    }

    /// Adds the entry point, and returns the merged module.
    pub fn finish(mut self) -> Module {
        self.join_push_constants();
        let void = self.type_of(Op::TypeVoid, Vec::new());
        let signature = self.type_of(Op::TypeFunction, vec![Operand::IdRef(void)]);
        let (entry, label) = (self.id(), self.id());
        let mut instructions = Vec::new();
        for callee in self.entries.clone() {
            let (id, operands) = (self.id(), vec![Operand::IdRef(callee)]);
            instructions.push(instruction(
                Op::FunctionCall,
                Some(void),
                Some(id),
                operands,
            ));
        }
        instructions.push(instruction(Op::Return, None, None, Vec::new()));
        let operands = vec![
            Operand::FunctionControl(FunctionControl::NONE),
            Operand::IdRef(signature),
        ];
        self.module.functions.push(Function {
            def: Some(instruction(Op::Function, Some(void), Some(entry), operands)),
            end: Some(instruction(Op::FunctionEnd, None, None, Vec::new())),
            parameters: Vec::new(),
            blocks: vec![Block {
                label: Some(instruction(Op::Label, None, Some(label), Vec::new())),
                instructions,
            }],
        });
        // Since SPIR-V 1.4 the interface lists all variables.
        let names_all = self.version >= version::V1_4;
        let interface = self.module.types_global_values.iter().filter(|of| {
            storage_class(of).is_some_and(|class| names_all || class == StorageClass::Input)
        });
        let mut operands = vec![
            Operand::ExecutionModel(ExecutionModel::GLCompute),
            Operand::IdRef(entry),
            Operand::LiteralString(ENTRY.to_owned()),
        ];
        operands.extend(interface.filter_map(|of| of.result_id).map(Operand::IdRef));
        self.module
            .entry_points
            .push(instruction(Op::EntryPoint, None, None, operands));
        for mode in &mut self.module.execution_modes {
            mode.operands[0] = Operand::IdRef(entry);
        }
        let mut operands = vec![
            Operand::IdRef(entry),
            Operand::ExecutionMode(ExecutionMode::LocalSize),
        ];
        operands.extend(self.plan.local_size.map(Operand::LiteralBit32));
        self.module
            .execution_modes
            .push(instruction(Op::ExecutionMode, None, None, operands));
        let mut header = ModuleHeader::new(self.next);
        header.version = self.version;
        self.module.header = Some(header);
        self.module
    }
}

pub fn instruction(
    op: Op,
    result_type: Option<Word>,
    result_id: Option<Word>,
    operands: Vec<Operand>,
) -> Instruction {
    Instruction {
        class: INSTRUCTION_TABLE.get(op),
        result_type,
        result_id,
        operands,
    }
}

/// Adds the instructions that are not there yet.
fn unite(all: &mut Vec<Instruction>, more: &[Instruction]) {
    for of in more {
        if !all.contains(of) {
            all.push(of.clone());
        }
    }
}

/// Returns whether two kernels have the same execution modes, apart from the entry point.
fn same_modes(a: &[Instruction], b: &[Instruction]) -> bool {
    // Modes that name constants would have to be renumbered.
    let plain = |of: &Instruction| of.class.opcode == Op::ExecutionMode;
    let equal = |(a, b): (&Instruction, &Instruction)| a.operands[1..] == b.operands[1..];
    a.len() == b.len() && a.iter().chain(b).all(plain) && a.iter().zip(b).all(equal)
}

/// Returns whether SPIR-V lets a type with this opcode be declared only once.
fn is_unique(op: Op) -> bool {
    matches!(
        op,
        Op::TypeVoid
            | Op::TypeBool
            | Op::TypeInt
            | Op::TypeFloat
            | Op::TypeVector
            | Op::TypeMatrix
            | Op::TypePointer
            | Op::TypeFunction
    )
}

/// Returns the variables of a kernel that are built-in inputs.
fn built_ins(kernel: &Kernel) -> HashMap<Word, BuiltIn> {
    let each = kernel
        .module
        .annotations
        .iter()
        .filter_map(|of| match of.operands[..] {
            [
                Operand::IdRef(id),
                Operand::Decoration(Decoration::BuiltIn),
                Operand::BuiltIn(built_in),
            ] => Some((id, built_in)),
            _ => None,
        });
    each.collect()
}

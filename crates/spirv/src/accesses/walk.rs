//! Follows the function of a kernel's entry point block by block: which buffers its instructions touch, and under which conditions.

use std::collections::{BTreeMap, HashMap};

use super::sums::{Sum, number};
use super::values::{Pointer, Value};
use super::{ArrayLength, CertainAccess};
use crate::constants::Constants;
use crate::module::{Function, Module};
use crate::numbers::{op, storage_class};
use crate::types::Type;

/// The number of a built-in input.
const LOCAL_INVOCATION_INDEX: u32 = 29;

/// A condition under which a block runs.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Below(Sum, ArrayLength),
    /// A condition that is not understood, by the id of its value and whether that is true.
    Other(u32, bool),
}

/// The walk through a function.
pub struct Walk<'a> {
    pub module: &'a Module,
    pub constants: Constants<'a>,
    pub local_size: [u32; 3],
    pub values: HashMap<u32, Value>,
    /// The conditions of each block, by its label; `None` where they are not known.
    reached: HashMap<u32, Option<Vec<Condition>>>,
    /// The conditions of the branches that lead to a block, by its label.
    edges: HashMap<u32, Vec<Option<Vec<Condition>>>>,
    /// The block that is followed.
    label: u32,
    /// Whether the first loop has begun.
    in_loops: bool,
    /// How often each variable of the function is stored to, and whether it has an initial value.
    stores: HashMap<u32, (u32, bool)>,
    /// Whether the first branch with a condition has come.
    has_branched: bool,
    /// The values of variables of the function that are stored to once.
    locals: HashMap<u32, Value>,
    pub certain: Vec<CertainAccess>,
    /// The most bytes by set, binding and direction; `None` where they are not known.
    pub most: BTreeMap<(u32, u32, bool), Option<u32>>,
}

impl Walk<'_> {
    pub fn new<'a>(module: &'a Module, constants: Constants<'a>, local_size: [u32; 3]) -> Walk<'a> {
        Walk {
            module,
            constants,
            local_size,
            values: HashMap::new(),
            reached: HashMap::new(),
            edges: HashMap::new(),
            label: 0,
            in_loops: false,
            stores: HashMap::new(),
            has_branched: false,
            locals: HashMap::new(),
            certain: Vec::new(),
            most: BTreeMap::new(),
        }
    }

    /// Notes of all buffers that a function names that it is not known how much is touched.
    pub fn give_up_on(&mut self, function: &Function) {
        for instruction in &function.body {
            let named = self.module.operands(instruction);
            let named: Vec<u32> = named
                .iter()
                .copied()
                .filter(|id| self.is_buffer(*id))
                .collect();
            named.into_iter().for_each(|id| self.give_up(id));
        }
    }

    pub fn give_up(&mut self, variable: u32) {
        if let Some((set, binding)) = self.place(variable) {
            self.most.insert((set, binding, false), None);
            self.most.insert((set, binding, true), None);
        }
    }

    pub fn is_buffer(&self, id: u32) -> bool {
        let variable = self.module.variables.get(&id);
        variable.is_some_and(|variable| {
            matches!(
                variable.class,
                storage_class::STORAGE_BUFFER | storage_class::UNIFORM
            )
        })
    }

    /// Returns the set and the binding of a variable.
    pub fn place(&self, variable: u32) -> Option<(u32, u32)> {
        let decorations = self.module.decorations.get(&variable)?;
        Some((decorations.set.unwrap_or(0), decorations.binding?))
    }

    /// Counts the stores to each variable of the function. Any other use but a load counts as several.
    fn count_stores(&mut self, function: &Function) {
        for instruction in &function.body {
            let operands = self.module.operands(instruction);
            let used = match (instruction.op, operands) {
                (op::VARIABLE, [_, id, _, initializer @ ..]) => {
                    self.stores.insert(*id, (0, !initializer.is_empty()));
                    continue;
                }
                (op::LOAD, [_, _, _, rest @ ..]) => rest,
                (op::STORE, [pointer, rest @ ..]) => {
                    self.stores
                        .entry(*pointer)
                        .and_modify(|(count, _)| *count += 1);
                    rest
                }
                _ => operands,
            };
            for id in used {
                self.stores.entry(*id).and_modify(|(count, _)| *count += 2);
            }
        }
    }

    /// Follows the blocks in their order, in which a block comes after all that it needs.
    pub fn follow(&mut self, function: &Function) {
        self.count_stores(function);
        for instruction in &function.body {
            let module = self.module;
            let operands = module.operands(instruction);
            match (instruction.op, operands) {
                (op::LABEL, [label]) => self.enter(*label),
                (op::BRANCH, [to]) => self.branch(*to, None),
                (op::BRANCH_CONDITIONAL, [condition, to, otherwise, ..]) => {
                    self.has_branched = true;
                    self.branch(*to, Some((*condition, true)));
                    self.branch(*otherwise, Some((*condition, false)));
                }
                (op::SWITCH, [_, targets @ ..]) => {
                    self.has_branched = true;
                    for target in targets {
                        self.edges.entry(*target).or_default().push(None);
                    }
                }
                (op::LOOP_MERGE, _) => self.in_loops = true,
                (op::LOAD, [type_id, id, pointer, ..]) => self.load(*type_id, *id, *pointer),
                (op::STORE, [pointer, value, ..]) => self.store(*pointer, *value),
                _ => self.compute(instruction.op, operands),
            }
        }
    }

    /// Begins a block. The first has no conditions; one that two opposite branches lead to has those of both.
    fn enter(&mut self, label: u32) {
        let conditions = match self.edges.remove(&label) {
            None => (self.reached.is_empty()).then(Vec::new),
            Some(edges) => edges.into_iter().reduce(joined).flatten(),
        };
        // A block after a loop, or in one, may run later, more than once, or not at all.
        let conditions = conditions.filter(|_| !self.in_loops);
        self.reached.insert(label, conditions);
        self.label = label;
    }

    fn branch(&mut self, to: u32, condition: Option<(u32, bool)>) {
        let mut conditions = self.reached.get(&self.label).cloned().flatten();
        if let (Some(conditions), Some((id, is_true))) = (&mut conditions, condition) {
            conditions.push(match self.values.get(&id) {
                Some(Value::Below(sum, length, below)) if *below == is_true => {
                    Condition::Below(sum.clone(), *length)
                }
                _ => Condition::Other(id, is_true),
            });
        }
        self.edges.entry(to).or_default().push(conditions);
    }

    /// Adds an access of the current block.
    fn access(&mut self, pointer: &Pointer, type_id: u32, writes: bool) {
        let Some((set, binding)) = self.place(pointer.variable) else {
            return;
        };
        let length = |id| self.constants.word(id);
        let bytes = self
            .module
            .pieces(type_id, None, 64, &length)
            .map(|pieces| {
                let bytes = pieces
                    .iter()
                    .map(|piece| piece.scalars * piece.scalar_bytes);
                let is_whole = matches!(pieces.as_slice(), [piece] if piece.offset == 0);
                (bytes.sum::<u32>(), is_whole)
            });
        let most = self.most.entry((set, binding, writes)).or_insert(Some(0));
        *most = match (*most, bytes) {
            (Some(most), Some((bytes, _))) if !self.in_loops => most.checked_add(bytes),
            _ => None,
        };
        let conditions = self.reached.get(&self.label).cloned().flatten();
        let (Some(conditions), Some(address), Some((bytes, true))) =
            (conditions, pointer.address.clone(), bytes)
        else {
            return;
        };
        let mut below = pointer.clamped.clone();
        for condition in conditions {
            match condition {
                Condition::Below(sum, length) => below.push((sum, length)),
                Condition::Other(..) => return,
            }
        }
        self.certain.push(CertainAccess {
            set,
            binding,
            writes,
            bytes,
            address,
            below,
        });
    }

    fn load(&mut self, type_id: u32, id: u32, pointer: u32) {
        if let Some(value) = self.locals.get(&pointer) {
            self.values.insert(id, value.clone());
            return;
        }
        let Some(pointer) = self.pointer(pointer) else {
            return;
        };
        if self.is_buffer(pointer.variable) {
            return self.access(&pointer, type_id, false);
        }
        let built_in = self.module.decorations.get(&pointer.variable);
        let Some(built_in) = built_in.and_then(|of| of.built_in) else {
            return;
        };
        let is_vector = matches!(self.module.types.get(&type_id), Some(Type::Vector { .. }));
        let value = match (is_vector, built_in) {
            (true, _) => Value::Vector((0..3).map(|axis| self.input(built_in, axis)).collect()),
            (false, LOCAL_INVOCATION_INDEX) => Value::Sum(self.local_index()),
            (false, _) => {
                let component = pointer.address.as_ref().and_then(number);
                let input =
                    component.and_then(|axis| self.input(built_in, u8::try_from(axis).ok()?));
                match input {
                    Some(input) => Value::Sum(input),
                    None => return,
                }
            }
        };
        self.values.insert(id, value);
    }

    fn store(&mut self, pointer: u32, value: u32) {
        let Some(pointer) = self.pointer(pointer) else {
            // A variable of the function that is stored to once has this value wherever it is loaded, but for its
            // initial value, which counts where the store is skipped.
            let is_only = match self.stores.get(&pointer) {
                Some((1, has_initial)) => !has_initial || !self.has_branched,
                _ => false,
            };
            if is_only {
                let sum = self.sum(value).map(Value::Sum);
                let value = self.values.get(&value).cloned().or(sum);
                self.locals.extend(value.map(|value| (pointer, value)));
            }
            return;
        };
        if self.is_buffer(pointer.variable) {
            self.access(&pointer, pointer.type_id, true);
        }
    }
}

/// Joins the conditions of two branches that lead to one block, either of which is enough: those of opposite branches
/// cancel out, and of others those are kept that are understood.
fn joined(a: Option<Vec<Condition>>, b: Option<Vec<Condition>>) -> Option<Vec<Condition>> {
    let (a, b) = match (a, b) {
        (Some(a), Some(b)) => (a, b),
        (a, b) => return a.or(b),
    };
    if let (
        Some((Condition::Other(id, is_true), rest)),
        Some((Condition::Other(other, opposite), more)),
    ) = (a.split_last(), b.split_last())
        && rest == more
        && id == other
        && is_true != opposite
    {
        return Some(rest.to_vec());
    }
    let is_understood =
        |of: &Vec<Condition>| of.iter().all(|of| matches!(of, Condition::Below(..)));
    Some(if is_understood(&b) && !is_understood(&a) {
        b
    } else {
        a
    })
}

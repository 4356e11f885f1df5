//! Finds the elements of bound buffers that each invocation of a kernel certainly reads or writes: a module, an entry
//! point and specialisation constants go in, and accesses come out, whose addresses are sums over the numbers of the
//! invocation's workgroup and of the invocation in it.
//!
//! An access is certain where every invocation makes it, or every one whose index is below the length of an array.
//! Only the entry point's own function is followed, and no loop: what is not understood is left out.

use std::collections::{BTreeMap, HashMap};

use crate::constants::{Constants, Specialisation};
use crate::module::{EntryPoint, Function, LocalSize, Module};
use crate::numbers::{glsl, op, storage_class};
use crate::types::Type;

/// The most terms of a sum; longer ones are not followed.
const MAX_TERMS: usize = 16;
/// The most instructions that are followed; a longer function has no known accesses.
const MAX_INSTRUCTIONS: usize = 100_000;
/// Numbers of built-in inputs.
const NUM_WORKGROUPS: u32 = 24;
const WORKGROUP_ID: u32 = 26;
const LOCAL_INVOCATION_ID: u32 = 27;
const GLOBAL_INVOCATION_ID: u32 = 28;
const LOCAL_INVOCATION_INDEX: u32 = 29;

/// A number that differs between invocations or dispatches, with its axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// The number of the workgroup.
    Group(u8),
    /// The number of the invocation in its workgroup.
    Local(u8),
    /// How many workgroups the dispatch has.
    Groups(u8),
}

/// A sum of products: the factor of each product of symbols. The product of none is 1.
pub type Sum = BTreeMap<Vec<Symbol>, u64>;

/// The length of the array at the end of a bound buffer: the elements of `stride` bytes from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArrayLength {
    /// Descriptor set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// The first byte of the array.
    pub offset: u32,
    /// Bytes from one element to the next.
    pub stride: u32,
}

/// An access that each invocation certainly makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertainAccess {
    /// Descriptor set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// Whether the access writes, and not reads.
    pub writes: bool,
    /// The number of bytes.
    pub bytes: u32,
    /// The first byte in the buffer.
    pub address: Sum,
    /// Only invocations in which each of these sums is below the length of the array make the access.
    pub below: Vec<(Sum, ArrayLength)>,
}

/// The most bytes that an invocation reads or writes of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MostBytes {
    /// Descriptor set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// Whether these are bytes written, and not read.
    pub writes: bool,
    /// The number of bytes.
    pub bytes: u32,
}

/// What a kernel's code says of the bytes that it touches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelAccesses {
    /// The threads of a workgroup.
    pub local_size: [u32; 3],
    /// Accesses that are certain.
    pub certain: Vec<CertainAccess>,
    /// Bindings of which it is known how much an invocation touches at most.
    pub most: Vec<MostBytes>,
}

impl KernelAccesses {
    /// Finds the accesses of an entry point. `None` where the module has no such entry point, or the size of its
    /// workgroups is not known.
    pub fn read(
        module: &Module,
        entry: &str,
        specialisation: &Specialisation,
    ) -> Option<KernelAccesses> {
        let entry = module.entry_point(entry).ok()?;
        let function = module.functions.get(&entry.function)?;
        let constants = Constants::new(module, specialisation);
        let local_size = local_size(module, entry, &constants)?;
        let mut walk = Walk {
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
        };
        let others = module.reached_functions(entry.function);
        for (id, other) in &module.functions {
            if *id != entry.function && others.contains(id) {
                walk.give_up_on(other);
            }
        }
        match function.body.len() <= MAX_INSTRUCTIONS {
            true => walk.follow(function),
            false => walk.give_up_on(function),
        }
        let most = walk
            .most
            .into_iter()
            .filter_map(|((set, binding, writes), bytes)| {
                Some(MostBytes {
                    set,
                    binding,
                    writes,
                    bytes: bytes?,
                })
            });
        Some(KernelAccesses {
            local_size,
            most: most.collect(),
            certain: walk.certain,
        })
    }
}

/// Returns the size of workgroups.
fn local_size(module: &Module, entry: &EntryPoint, constants: &Constants) -> Option<[u32; 3]> {
    match (module.workgroup_size, entry.local_size()) {
        (Some(id), _) => constants.vector(id),
        (None, Some(LocalSize::Literal(size))) => Some(size),
        (None, Some(LocalSize::Ids(ids))) => constants.words(ids),
        (None, None) => None,
    }
}

/// A value in the function.
#[derive(Debug, Clone)]
enum Value {
    Sum(Sum),
    Vector(Vec<Option<Sum>>),
    /// A pointer into a bound buffer, or to a built-in input.
    Pointer(Pointer),
    Length(ArrayLength),
    /// The length less one.
    LastIndex(ArrayLength),
    /// A sum, or the last index of the array if that is less.
    Clamped(Sum, ArrayLength),
    /// Whether a sum is below a length; `false` for the opposite.
    Below(Sum, ArrayLength, bool),
}

#[derive(Debug, Clone)]
struct Pointer {
    variable: u32,
    type_id: u32,
    /// The address in the buffer; `None` where it is not understood.
    address: Option<Sum>,
    /// The lengths that an index on the way is clamped to.
    clamped: Vec<(Sum, ArrayLength)>,
}

/// A condition under which a block runs.
#[derive(Debug, Clone, PartialEq)]
enum Condition {
    Below(Sum, ArrayLength),
    /// A condition that is not understood, by the id of its value and whether that is true.
    Other(u32, bool),
}

/// The walk through a function.
struct Walk<'a> {
    module: &'a Module,
    constants: Constants<'a>,
    local_size: [u32; 3],
    values: HashMap<u32, Value>,
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
    certain: Vec<CertainAccess>,
    /// The most bytes by set, binding and direction; `None` where they are not known.
    most: BTreeMap<(u32, u32, bool), Option<u32>>,
}

impl Walk<'_> {
    /// Notes of all buffers that a function names that it is not known how much is touched.
    fn give_up_on(&mut self, function: &Function) {
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

    fn give_up(&mut self, variable: u32) {
        if let Some((set, binding)) = self.place(variable) {
            self.most.insert((set, binding, false), None);
            self.most.insert((set, binding, true), None);
        }
    }

    fn is_buffer(&self, id: u32) -> bool {
        let variable = self.module.variables.get(&id);
        variable.is_some_and(|variable| {
            matches!(
                variable.class,
                storage_class::STORAGE_BUFFER | storage_class::UNIFORM
            )
        })
    }

    /// Returns the set and the binding of a variable.
    fn place(&self, variable: u32) -> Option<(u32, u32)> {
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
    fn follow(&mut self, function: &Function) {
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

    /// Returns a component of a built-in input.
    fn input(&self, built_in: u32, axis: u8) -> Option<Sum> {
        let size = u64::from(*self.local_size.get(usize::from(axis))?);
        // In a workgroup of one invocation its number is 0.
        let local = (size > 1).then(|| (vec![Symbol::Local(axis)], 1));
        Some(match built_in {
            NUM_WORKGROUPS => Sum::from([(vec![Symbol::Groups(axis)], 1)]),
            WORKGROUP_ID => Sum::from([(vec![Symbol::Group(axis)], 1)]),
            LOCAL_INVOCATION_ID => local.into_iter().collect(),
            GLOBAL_INVOCATION_ID => local
                .into_iter()
                .chain([(vec![Symbol::Group(axis)], size)])
                .collect(),
            _ => return None,
        })
    }

    fn local_index(&self) -> Sum {
        let [x, y, _] = self.local_size.map(u64::from);
        let factors = [1, x, x * y];
        let axes = (0..3).filter(|axis| self.local_size[usize::from(*axis)] > 1);
        axes.map(|axis| (vec![Symbol::Local(axis)], factors[usize::from(axis)]))
            .collect()
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

    /// Returns the value with this id as a pointer to a variable outside of functions.
    fn pointer(&self, id: u32) -> Option<Pointer> {
        if let Some(Value::Pointer(pointer)) = self.values.get(&id) {
            return Some(pointer.clone());
        }
        let variable = self.module.variables.get(&id)?;
        let Some(Type::Pointer { pointee, .. }) = self.module.types.get(&variable.type_id) else {
            return None;
        };
        // An array of descriptors has no address.
        let is_array = matches!(
            self.module.types.get(pointee),
            Some(Type::Array { .. } | Type::RuntimeArray { .. })
        );
        Some(Pointer {
            variable: id,
            type_id: *pointee,
            address: (!is_array).then(Sum::new),
            clamped: Vec::new(),
        })
    }

    /// Returns the value with this id as a sum.
    fn sum(&self, id: u32) -> Option<Sum> {
        match self.values.get(&id) {
            Some(Value::Sum(sum)) => Some(sum.clone()),
            Some(_) => None,
            None => {
                let value = self.constants.value(id)?;
                Some(constant(value))
            }
        }
    }

    /// Follows an instruction that touches no memory.
    fn compute(&mut self, code: u16, operands: &[u32]) {
        let &[type_id, id, ref rest @ ..] = operands else {
            return self.escape(operands);
        };
        let sums = |walk: &Self, ids: &[u32]| -> Option<Vec<Sum>> {
            ids.iter().map(|id| walk.sum(*id)).collect()
        };
        let value = match (code, rest) {
            (op::ACCESS_CHAIN | op::IN_BOUNDS_ACCESS_CHAIN, [base, indices @ ..]) => self
                .pointer(*base)
                .map(|pointer| Value::Pointer(self.chain(pointer, indices))),
            (op::ARRAY_LENGTH, [pointer, member]) => self.length(*pointer, *member),
            (op::COMPOSITE_EXTRACT, [vector, axis]) => match self.values.get(vector) {
                Some(Value::Vector(parts)) => {
                    let part = parts.get(*axis as usize).cloned().flatten();
                    part.map(Value::Sum)
                }
                _ => None,
            },
            (op::COMPOSITE_CONSTRUCT, parts) => Some(Value::Vector(
                parts.iter().map(|id| self.sum(*id)).collect(),
            )),
            (op::VECTOR_SHUFFLE, [a, b, places @ ..]) => {
                match (self.values.get(a), self.values.get(b)) {
                    (Some(Value::Vector(a)), Some(Value::Vector(b))) => {
                        let parts: Vec<Option<Sum>> = a.iter().chain(b).cloned().collect();
                        let part = |place: &u32| parts.get(*place as usize).cloned().flatten();
                        Some(Value::Vector(places.iter().map(part).collect()))
                    }
                    _ => None,
                }
            }
            (op::U_CONVERT | op::S_CONVERT | op::BITCAST | op::COPY_OBJECT, [from]) => {
                self.values.get(from).cloned()
            }
            (op::I_ADD, [a, b]) => sums(self, &[*a, *b]).and_then(|sums| add(&sums[0], &sums[1])),
            (op::I_SUB, [a, b]) => {
                match (self.values.get(a), self.sum(*b).as_ref().and_then(number)) {
                    (Some(Value::Length(length)), Some(1)) => Some(Value::LastIndex(*length)),
                    _ => None,
                }
            }
            (op::I_MUL, [a, b]) => {
                sums(self, &[*a, *b]).and_then(|sums| multiply(&sums[0], &sums[1]))
            }
            (op::SHIFT_LEFT_LOGICAL, [a, b]) => {
                let factor = self.sum(*b).as_ref().and_then(number);
                let factor = factor.and_then(|bits| 1_u64.checked_shl(u32::try_from(bits).ok()?));
                self.sum(*a)
                    .zip(factor)
                    .and_then(|(sum, factor)| multiply(&sum, &constant(factor)))
            }
            (op::EXT_INST, [set, glsl::U_MIN | glsl::S_MIN, a, b])
                if Some(*set) == self.module.glsl =>
            {
                self.clamp(*a, *b).or_else(|| self.clamp(*b, *a))
            }
            (op::U_LESS_THAN | op::S_LESS_THAN, [a, b]) => self.below(*a, *b, true),
            (op::U_GREATER_THAN | op::S_GREATER_THAN, [a, b]) => self.below(*b, *a, true),
            (op::U_GREATER_THAN_EQUAL | op::S_GREATER_THAN_EQUAL, [a, b]) => {
                self.below(*a, *b, false)
            }
            (op::U_LESS_THAN_EQUAL | op::S_LESS_THAN_EQUAL, [a, b]) => self.below(*b, *a, false),
            (op::LOGICAL_NOT, [a]) => match self.values.get(a) {
                Some(Value::Below(sum, length, below)) => {
                    Some(Value::Below(sum.clone(), *length, !below))
                }
                _ => None,
            },
            _ => {
                self.escape(operands);
                None
            }
        };
        // Sums of fewer bits wrap earlier than those of 32, which readers check.
        let is_narrow = self.module.bits(type_id).is_some_and(|bits| bits < 32);
        let is_sum = matches!(value, Some(Value::Sum(_) | Value::Vector(_)));
        if let Some(value) = value.filter(|_| !(is_narrow && is_sum)) {
            self.values.insert(id, value);
        }
    }

    /// Gives up on the buffers that an instruction names which may touch them in any way.
    fn escape(&mut self, operands: &[u32]) {
        for id in operands {
            match self.values.get(id) {
                Some(Value::Pointer(pointer)) => self.give_up(pointer.variable),
                _ if self.is_buffer(*id) => self.give_up(*id),
                _ => {}
            }
        }
    }

    fn clamp(&self, index: u32, last: u32) -> Option<Value> {
        match self.values.get(&last) {
            Some(Value::LastIndex(length)) => Some(Value::Clamped(self.sum(index)?, *length)),
            _ => None,
        }
    }

    fn below(&self, index: u32, length: u32, below: bool) -> Option<Value> {
        match self.values.get(&length) {
            Some(Value::Length(length)) => Some(Value::Below(self.sum(index)?, *length, below)),
            _ => None,
        }
    }

    fn length(&self, pointer: u32, member: u32) -> Option<Value> {
        let pointer = self.pointer(pointer)?;
        let (set, binding) = self.place(pointer.variable)?;
        let Some(Type::Struct(members)) = self.module.types.get(&pointer.type_id) else {
            return None;
        };
        let array = members.get(member as usize)?;
        let decorations = self.module.members.get(&(pointer.type_id, member))?;
        Some(Value::Length(ArrayLength {
            set,
            binding,
            offset: decorations.offset?,
            stride: self.module.decorations.get(array)?.array_stride?,
        }))
    }

    /// Follows an access chain. Its address is not known where a step is not understood.
    fn chain(&self, mut pointer: Pointer, indices: &[u32]) -> Pointer {
        for id in indices {
            let (type_id, step) = self.step(&mut pointer, *id);
            pointer.address = (pointer.address.zip(step)).and_then(|(address, step)| {
                match add(&address, &step)? {
                    Value::Sum(sum) => Some(sum),
                    _ => None,
                }
            });
            pointer.type_id = type_id;
        }
        pointer
    }

    /// Returns the type that a step leads to, and the bytes that it adds to the address.
    fn step(&self, pointer: &mut Pointer, id: u32) -> (u32, Option<Sum>) {
        let module = self.module;
        let index = match self.values.get(&id) {
            Some(Value::Clamped(sum, length)) => {
                pointer.clamped.push((sum.clone(), *length));
                Some(sum.clone())
            }
            _ => self.sum(id),
        };
        let scaled =
            |stride: Option<u32>| match multiply(&index.clone()?, &constant(stride?.into()))? {
                Value::Sum(sum) => Some(sum),
                _ => None,
            };
        match module.types.get(&pointer.type_id) {
            Some(Type::Struct(members)) => {
                let member = index
                    .as_ref()
                    .and_then(number)
                    .and_then(|of| u32::try_from(of).ok());
                let decorations = member.and_then(|of| module.members.get(&(pointer.type_id, of)));
                let offset = decorations.and_then(|of| of.offset);
                let type_id = member.and_then(|of| members.get(of as usize)).copied();
                (type_id.unwrap_or(0), offset.map(|of| constant(of.into())))
            }
            Some(Type::Array { element, .. } | Type::RuntimeArray { element }) => {
                let stride = module.decorations.get(&pointer.type_id);
                (*element, scaled(stride.and_then(|of| of.array_stride)))
            }
            Some(Type::Vector { component, .. }) => {
                // Inputs are counted in components, buffers in bytes.
                let stride = match self.is_buffer(pointer.variable) {
                    true => module.scalar_bytes(*component),
                    false => Some(1),
                };
                (*component, scaled(stride))
            }
            _ => (0, None),
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

fn constant(value: u64) -> Sum {
    Sum::from([(Vec::new(), value)])
}

/// Returns the number that a sum is, where it is the same for all invocations.
fn number(sum: &Sum) -> Option<u64> {
    match sum.len() {
        0 => Some(0),
        1 => sum.get(&Vec::new()).copied(),
        _ => None,
    }
}

fn add(a: &Sum, b: &Sum) -> Option<Value> {
    let mut sum = a.clone();
    for (symbols, factor) in b {
        let total = sum.entry(symbols.clone()).or_default();
        *total = total.checked_add(*factor)?;
    }
    bounded(sum)
}

fn multiply(a: &Sum, b: &Sum) -> Option<Value> {
    let mut product = Sum::new();
    for (left, factor) in a {
        for (right, other) in b {
            let mut symbols: Vec<Symbol> = left.iter().chain(right).copied().collect();
            symbols.sort_unstable();
            let total = product.entry(symbols).or_default();
            *total = total.checked_add(factor.checked_mul(*other)?)?;
        }
    }
    bounded(product)
}

/// Drops products with the factor 0, and gives up on sums that wrap in 32 bits or are too long.
fn bounded(mut sum: Sum) -> Option<Value> {
    sum.retain(|_, factor| *factor > 0);
    let is_small = |factor: &u64| *factor <= u64::from(u32::MAX);
    let is_short = sum.keys().all(|symbols| symbols.len() <= 3) && sum.len() <= MAX_TERMS;
    (is_short && sum.values().all(is_small)).then_some(Value::Sum(sum))
}

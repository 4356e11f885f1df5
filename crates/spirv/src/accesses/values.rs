//! The values of a kernel's function as far as they are understood: sums, pointers into bound buffers, lengths of arrays, and checks of
//! a sum against a length.

use super::ArrayLength;
use super::sums::{Sum, Symbol, add, constant, multiply, number};
use super::walk::Walk;
use crate::numbers::{glsl, op};
use crate::types::Type;

/// Numbers of built-in inputs.
const NUM_WORKGROUPS: u32 = 24;
const WORKGROUP_ID: u32 = 26;
const LOCAL_INVOCATION_ID: u32 = 27;
const GLOBAL_INVOCATION_ID: u32 = 28;

/// A value in the function.
#[derive(Debug, Clone)]
pub enum Value {
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
pub struct Pointer {
    pub variable: u32,
    pub type_id: u32,
    /// The address in the buffer; `None` where it is not understood.
    pub address: Option<Sum>,
    /// The lengths that an index on the way is clamped to.
    pub clamped: Vec<(Sum, ArrayLength)>,
}

impl Walk<'_> {
    /// Returns a component of a built-in input.
    pub fn input(&self, built_in: u32, axis: u8) -> Option<Sum> {
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

    pub fn local_index(&self) -> Sum {
        let [x, y, _] = self.local_size.map(u64::from);
        let factors = [1, x, x * y];
        let axes = (0..3).filter(|axis| self.local_size[usize::from(*axis)] > 1);
        axes.map(|axis| (vec![Symbol::Local(axis)], factors[usize::from(axis)]))
            .collect()
    }

    /// Returns the value with this id as a pointer to a variable outside of functions.
    pub fn pointer(&self, id: u32) -> Option<Pointer> {
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
    pub fn sum(&self, id: u32) -> Option<Sum> {
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
    pub fn compute(&mut self, code: u16, operands: &[u32]) {
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
            (op::I_ADD, [a, b]) => {
                sums(self, &[*a, *b]).and_then(|sums| add(&sums[0], &sums[1]).map(Value::Sum))
            }
            (op::I_SUB, [a, b]) => {
                match (self.values.get(a), self.sum(*b).as_ref().and_then(number)) {
                    (Some(Value::Length(length)), Some(1)) => Some(Value::LastIndex(*length)),
                    _ => None,
                }
            }
            (op::I_MUL, [a, b]) => {
                sums(self, &[*a, *b]).and_then(|sums| multiply(&sums[0], &sums[1]).map(Value::Sum))
            }
            (op::SHIFT_LEFT_LOGICAL, [a, b]) => {
                let factor = self.sum(*b).as_ref().and_then(number);
                let factor = factor.and_then(|bits| 1_u64.checked_shl(u32::try_from(bits).ok()?));
                self.sum(*a)
                    .zip(factor)
                    .and_then(|(sum, factor)| multiply(&sum, &constant(factor)).map(Value::Sum))
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
    pub fn escape(&mut self, operands: &[u32]) {
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
            pointer.address =
                (pointer.address.zip(step)).and_then(|(address, step)| add(&address, &step));
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
        let scaled = |stride: Option<u32>| multiply(index.as_ref()?, &constant(stride?.into()));
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

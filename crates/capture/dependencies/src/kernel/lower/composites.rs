//! Lowers instructions on composites: vectors, matrices, arrays and structures. A composite is kept as its scalars
//! one after the other. Parts and composites are given by ids; a path is the indices from the composite down to the
//! part.

use super::values::Value;
use super::{Lowering, Typed};
use crate::kernel::code::Code;
use crate::kernel::program::Operand;
use crate::kernel::reason::Cause;
use gapscope_spirv::Type;

impl Lowering<'_> {
    /// Returns a composite of the values with the ids `parts`, which may be composites themselves.
    pub(super) fn construct(&mut self, type_id: u32, parts: &[u32]) -> Value {
        let Some(count) = self.scalars(type_id) else {
            return Value::Unknown(Cause::LargeVariable);
        };
        let mut scalars = Vec::new();
        for part in parts {
            let Typed { type_id, value } = self.typed(*part);
            match self.scalars(type_id) {
                Some(count) => scalars.extend(value.scalars(count)),
                None => return Value::Unknown(Cause::Undefined),
            }
            if scalars.len() > count as usize {
                return Value::Unknown(Cause::Undefined);
            }
        }
        Value::Scalars(scalars.into())
    }

    /// Returns the index of a part among the scalars of a type, and the type of the part.
    fn part(&self, mut type_id: u32, path: &[u32]) -> Option<(u32, u32)> {
        let mut at = 0_u32;
        for index in path {
            let (before, part) = match self.module.types.get(&type_id)? {
                Type::Vector { component, count } if index < count => (*index, *component),
                Type::Matrix { column, count } if index < count => {
                    (index.checked_mul(self.scalars(*column)?)?, *column)
                }
                Type::Array { element, .. } => {
                    (index.checked_mul(self.scalars(*element)?)?, *element)
                }
                Type::Struct(members) => {
                    let part = *members.get(*index as usize)?;
                    let mut before = 0;
                    for member in &members[..*index as usize] {
                        before += self.scalars(*member)?;
                    }
                    (before, part)
                }
                _ => return None,
            };
            at = at.checked_add(before)?;
            type_id = part;
        }
        Some((at, type_id))
    }

    /// Returns the part of a composite at a path.
    pub(super) fn extract(&self, composite: u32, path: &[u32]) -> Value {
        let Typed { type_id, value } = self.typed(composite);
        if let Value::Unknown(cause) = value {
            return Value::Unknown(cause);
        }
        let found = self.part(type_id, path).and_then(|(at, part)| {
            let all = value.scalars(self.scalars(type_id)?);
            let end = at.checked_add(self.scalars(part)?)?;
            Some(all.get(at as usize..end as usize)?.into())
        });
        found.map_or(Value::Unknown(Cause::Undefined), Value::Scalars)
    }

    /// Returns a composite with the part at a path replaced by an object.
    pub(super) fn insert(&self, object: u32, composite: u32, path: &[u32]) -> Value {
        let Typed { type_id, value } = self.typed(composite);
        let found = self.part(type_id, path).and_then(|(at, part)| {
            let mut all = value.scalars(self.scalars(type_id)?);
            let count = self.scalars(part)?;
            let place = all.get_mut(at as usize..at.checked_add(count)? as usize)?;
            place.copy_from_slice(&self.typed(object).value.scalars(count));
            Some(all.into())
        });
        found.map_or(Value::Unknown(Cause::Undefined), Value::Scalars)
    }

    /// Returns a vector of components of two vectors, which are numbered one after the other. A component that
    /// neither has is 0.
    pub(super) fn shuffle(&self, a: u32, b: u32, components: &[u32]) -> Value {
        let of = |id| {
            let typed = self.typed(id);
            let count = self.scalars(typed.type_id).unwrap_or(0);
            typed.value.scalars(count)
        };
        let both = [of(a), of(b)].concat();
        let chosen = components.iter().map(|index| {
            let scalar = both.get(*index as usize);
            scalar.copied().unwrap_or(Operand::Known(0))
        });
        Value::Scalars(chosen.collect())
    }

    /// Reads a component of a vector that is chosen at run time.
    pub(super) fn extract_dynamic(&mut self, vector: u32, index: u32) -> Value {
        let typed = self.typed(vector);
        let count = self.scalars(typed.type_id).unwrap_or(0).min(16);
        let scalars = typed.value.scalars(count);
        let index = self.scalar(index);
        let mut chosen = Operand::Known(0);
        for (number, scalar) in scalars.into_iter().enumerate() {
            let number = Operand::Known(number as u64);
            let is = self.compute(Code::Equal, 64, [index, number, Operand::Known(0)]);
            chosen = self.compute(Code::Select, 64, [is, scalar, chosen]);
        }
        Value::one(chosen)
    }

    /// Returns a vector with a component replaced that is chosen at run time.
    pub(super) fn insert_dynamic(&mut self, vector: u32, component: u32, index: u32) -> Value {
        let typed = self.typed(vector);
        let count = self.scalars(typed.type_id).unwrap_or(0).min(16);
        let (index, component) = (self.scalar(index), self.scalar(component));
        let mut scalars = typed.value.scalars(count);
        for (number, scalar) in scalars.iter_mut().enumerate() {
            let number = Operand::Known(number as u64);
            let is = self.compute(Code::Equal, 64, [index, number, Operand::Known(0)]);
            *scalar = self.compute(Code::Select, 64, [is, component, *scalar]);
        }
        Value::Scalars(scalars.into())
    }
}

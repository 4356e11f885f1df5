//! Reads sizes, elements of buffers (the numbers of which a buffer is an array) and cooperative matrices from the
//! types of a module.

use std::collections::{BTreeMap, BTreeSet};

use gapscope_spirv::numbers::storage_class;
use gapscope_spirv::{Constants, Module, Type, Variable};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Matrix, Slot};

/// The greatest depth of nested types that is followed; no compiler nests them more deeply.
const MAX_DEPTH: u32 = 64;

/// The type of a plain number in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Element {
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
}

impl Element {
    /// All types of numbers.
    pub const ALL: [Element; 11] = [
        Element::F16,
        Element::F32,
        Element::F64,
        Element::I8,
        Element::I16,
        Element::I32,
        Element::I64,
        Element::U8,
        Element::U16,
        Element::U32,
        Element::U64,
    ];

    /// Returns the size of a number.
    pub fn bytes(self) -> u64 {
        match self {
            Element::I8 | Element::U8 => 1,
            Element::F16 | Element::I16 | Element::U16 => 2,
            Element::F32 | Element::I32 | Element::U32 => 4,
            Element::F64 | Element::I64 | Element::U64 => 8,
        }
    }

    /// Returns the name of the type, such as `f32`.
    pub fn name(self) -> &'static str {
        match self {
            Element::F16 => "f16",
            Element::F32 => "f32",
            Element::F64 => "f64",
            Element::I8 => "i8",
            Element::I16 => "i16",
            Element::I32 => "i32",
            Element::I64 => "i64",
            Element::U8 => "u8",
            Element::U16 => "u16",
            Element::U32 => "u32",
            Element::U64 => "u64",
        }
    }

    /// Returns whether the type is of floating-point numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::F32 | Element::F64)
    }
}

/// The types of a module.
#[derive(Debug)]
pub struct Types<'a> {
    pub module: &'a Module,
    pub constants: &'a Constants<'a>,
}

impl Types<'_> {
    /// Returns the descriptor of a variable; its count is `None` for an array whose length only the layout gives.
    pub fn slot(&self, variable: &Variable, set: u32, binding: u32) -> Slot {
        let mut pointee = self.pointee(variable);
        let count = match pointee.and_then(|id| self.get(id)) {
            Some(Type::Array { element, length }) => {
                pointee = Some(*element);
                self.constants.word(*length)
            }
            Some(Type::RuntimeArray { element }) => {
                pointee = Some(*element);
                None
            }
            _ => Some(1),
        };
        let buffers = [storage_class::UNIFORM, storage_class::STORAGE_BUFFER];
        Slot {
            set,
            binding,
            is_buffer: buffers.contains(&variable.class),
            count,
            element: pointee.and_then(|id| self.element(id)),
        }
    }

    /// Returns the size of a variable, laid out without gaps; `None` if it is not known.
    pub fn variable_bytes(&self, variable: &Variable) -> Option<u64> {
        self.bytes(self.pointee(variable)?, MAX_DEPTH)
    }

    /// Returns the types of cooperative matrices.
    pub fn matrices(&self) -> BTreeSet<Matrix> {
        let all = self.module.types.values();
        all.filter_map(|of| match of {
            Type::CooperativeMatrix {
                component,
                scope,
                rows,
                columns,
                role,
            } => Some(Matrix {
                component: component_type(self.get(*component)?)?,
                scope: self.constants.word(*scope)?,
                rows: self.constants.word(*rows)?,
                columns: self.constants.word(*columns)?,
                role: self.constants.word(*role)?,
            }),
            _ => None,
        })
        .collect()
    }

    /// Returns the sizes of specialisation constants, by `SpecId`.
    pub fn constant_bytes(&self) -> BTreeMap<u32, u64> {
        let all = self.module.decorations.iter();
        all.filter_map(|(id, decorations)| {
            let bytes = self.bytes(self.constants.type_id(*id)?, MAX_DEPTH)?;
            Some((decorations.spec_id?, bytes))
        })
        .collect()
    }

    fn get(&self, id: u32) -> Option<&Type> {
        self.module.types.get(&id)
    }

    /// Returns the type that a variable points to.
    fn pointee(&self, variable: &Variable) -> Option<u32> {
        match self.get(variable.type_id)? {
            Type::Pointer { pointee, .. } => Some(*pointee),
            _ => None,
        }
    }

    /// Returns the element type of a block `struct { T data[]; }`, where T is a number, or a vector or array of
    /// numbers without gaps.
    fn element(&self, block: u32) -> Option<Element> {
        let Type::Struct(members) = self.get(block)? else {
            return None;
        };
        let [member] = members[..] else {
            return None;
        };
        if self.module.members.get(&(block, 0))?.offset != Some(0) {
            return None;
        }
        let (element, count) = self.numbers(member, MAX_DEPTH)?;
        (count > 0).then_some(element)
    }

    /// Returns the type of the numbers of which a type is made without gaps, and their count (for a run-time array
    /// that of one element).
    fn numbers(&self, id: u32, depth: u32) -> Option<(Element, u64)> {
        let depth = depth.checked_sub(1)?;
        let (inner, length) = match *self.get(id)? {
            Type::Int { bits, signed } => {
                let kind = if signed { 'i' } else { 'u' };
                return Some((Element::from_name(&format!("{kind}{bits}"))?, 1));
            }
            Type::Float {
                bits,
                encoding: None,
            } => return Some((Element::from_name(&format!("f{bits}"))?, 1)),
            Type::Vector { component, count } => {
                let (element, of_one) = self.numbers(component, depth)?;
                return Some((element, of_one.checked_mul(u64::from(count))?));
            }
            Type::Array { element, length } => (element, Some(length)),
            Type::RuntimeArray { element } => (element, None),
            _ => return None,
        };
        let (element, of_one) = self.numbers(inner, depth)?;
        let stride = self.module.decorations.get(&id)?.array_stride?;
        if of_one.checked_mul(element.bytes())? != u64::from(stride) {
            return None;
        }
        let length = match length {
            Some(length) => self.constants.value(length)?,
            None => 1,
        };
        Some((element, of_one.checked_mul(length)?))
    }

    /// Returns the size of a type without gaps, followed to this depth; a Boolean takes 4 bytes.
    fn bytes(&self, id: u32, depth: u32) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        self.constants.step()?;
        match self.get(id)? {
            Type::Bool => Some(4),
            Type::Int { bits, .. } | Type::Float { bits, .. } => Some(u64::from(*bits) / 8),
            Type::Vector {
                component: part,
                count,
            }
            | Type::Matrix {
                column: part,
                count,
            } => self.bytes(*part, depth)?.checked_mul(u64::from(*count)),
            Type::Array { element, length } => {
                let element = self.bytes(*element, depth)?;
                element.checked_mul(self.constants.value(*length)?)
            }
            Type::Struct(members) => members.iter().try_fold(0_u64, |sum, member| {
                sum.checked_add(self.bytes(*member, depth)?)
            }),
            _ => None,
        }
    }
}

/// Returns the `VkComponentTypeKHR` of a type of numbers.
fn component_type(of: &Type) -> Option<i32> {
    const BFLOAT16: u32 = 0;
    const FLOAT8_E4M3: u32 = 4214;
    const FLOAT8_E5M2: u32 = 4215;
    Some(match *of {
        Type::Float { bits, encoding } => match (bits, encoding) {
            (16, None) => 0,
            (32, None) => 1,
            (64, None) => 2,
            (16, Some(BFLOAT16)) => 1_000_141_000,
            (8, Some(FLOAT8_E4M3)) => 1_000_491_002,
            (8, Some(FLOAT8_E5M2)) => 1_000_491_003,
            _ => return None,
        },
        Type::Int { bits, signed } => match (bits, signed) {
            (8, true) => 3,
            (16, true) => 4,
            (32, true) => 5,
            (64, true) => 6,
            (8, false) => 7,
            (16, false) => 8,
            (32, false) => 9,
            (64, false) => 10,
            _ => return None,
        },
        _ => return None,
    })
}

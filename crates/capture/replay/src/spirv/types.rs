//! What types say of sizes and of buffers.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::constants::Constants;
use super::read::{Module, Variable};
use super::{Matrix, Slot, class};

/// Deeper nesting is of nobody's compiler.
const DEPTH: u32 = 64;

/// A plain number in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)] // Their names say it.
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
    /// All of them.
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

    /// Its size.
    pub fn bytes(self) -> u64 {
        match self {
            Element::I8 | Element::U8 => 1,
            Element::F16 | Element::I16 | Element::U16 => 2,
            Element::F32 | Element::I32 | Element::U32 => 4,
            Element::F64 | Element::I64 | Element::U64 => 8,
        }
    }

    /// Its name: `f32`.
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

    /// It has values that are no numbers.
    pub fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::F32 | Element::F64)
    }
}

/// A module's types.
#[derive(Debug)]
pub struct Types<'a> {
    pub module: &'a Module,
    pub constants: &'a Constants<'a>,
}

impl Types<'_> {
    /// The descriptor of a variable.
    pub fn slot(&self, variable: Variable, set: u32, binding: u32) -> Slot {
        let mut pointee = self.pointee(variable.pointer);
        // An array of descriptors.
        let count = match pointee.and_then(|id| self.get(id)) {
            Some((28, [element, length])) => {
                pointee = Some(*element);
                self.constants.word(*length)
            }
            Some((29, [element])) => {
                pointee = Some(*element);
                None
            }
            _ => Some(1),
        };
        let of_buffers = [class::UNIFORM, class::STORAGE_BUFFER].contains(&variable.class);
        Slot {
            set,
            binding,
            is_buffer: of_buffers,
            count,
            element: pointee.and_then(|id| self.array_of(id)),
        }
    }

    /// The size of what a pointer points to, laid out without gaps but for alignment; none: not known.
    pub fn pointee_bytes(&self, pointer: u32) -> Option<u64> {
        self.bytes(self.pointee(pointer)?, DEPTH)
    }

    /// The types of cooperative matrices.
    pub fn matrices(&self) -> BTreeSet<Matrix> {
        let all = self.module.types.values();
        all.filter_map(|(op, parts)| match (op, parts.as_slice()) {
            (4456, [component, scope, rows, columns, role]) => Some(Matrix {
                component: self.component(*component)?,
                scope: self.constants.word(*scope)?,
                rows: self.constants.word(*rows)?,
                columns: self.constants.word(*columns)?,
                role: self.constants.word(*role)?,
            }),
            _ => None,
        })
        .collect()
    }

    /// The sizes of specialisation constants, by `SpecId`.
    pub fn constant_bytes(&self) -> BTreeMap<u32, u64> {
        let all = self.module.spec_ids.iter();
        all.filter_map(|(id, spec_id)| {
            let (_, of_type, _) = self.module.constants.get(id)?;
            Some((*spec_id, self.bytes(*of_type, DEPTH)?))
        })
        .collect()
    }

    fn get(&self, id: u32) -> Option<(u32, &[u32])> {
        let (op, parts) = self.module.types.get(&id)?;
        Some((*op, parts))
    }

    fn pointee(&self, pointer: u32) -> Option<u32> {
        match self.get(pointer)? {
            (32, [_, pointee]) => Some(*pointee),
            _ => None,
        }
    }

    /// What a block is an array of: `struct { T data[]; }`, T a number or a vector or array of them without gaps.
    fn array_of(&self, block: u32) -> Option<Element> {
        let member = match self.get(block)? {
            (30, [member]) => *member,
            _ => return None,
        };
        if self
            .module
            .member_offsets
            .get(&block)
            .and_then(|offsets| offsets.get(&0))
            != Some(&0)
        {
            return None;
        }
        let (element, count) = self.numbers(member, DEPTH)?;
        (count > 0).then_some(element)
    }

    /// The numbers of which a type is made without gaps, and how many (of an array without end: of one element).
    fn numbers(&self, id: u32, depth: u32) -> Option<(Element, u64)> {
        let depth = depth.checked_sub(1)?;
        match self.get(id)? {
            (21, [width, signed]) => Some((integer(*width, *signed)?, 1)),
            (22, [width]) => Some((float(*width)?, 1)),
            (23, [element, count]) => {
                let (element, of_one) = self.numbers(*element, depth)?;
                Some((element, of_one.checked_mul(u64::from(*count))?))
            }
            (28 | 29, [inner, length @ ..]) => {
                let (element, of_one) = self.numbers(*inner, depth)?;
                let stride = self.module.array_strides.get(&id)?;
                if of_one.checked_mul(element.bytes())? != u64::from(*stride) {
                    return None;
                }
                let length = match length {
                    [length] => self.constants.value(*length)?,
                    _ => 1,
                };
                Some((element, of_one.checked_mul(length)?))
            }
            _ => None,
        }
    }

    fn bytes(&self, id: u32, depth: u32) -> Option<u64> {
        let depth = depth.checked_sub(1)?;
        self.constants.step()?;
        match self.get(id)? {
            // Bool
            (20, []) => Some(4),
            (21, [width, _]) | (22, [width, ..]) => Some(u64::from(*width).div_ceil(8)),
            (23 | 24, [element, count]) => {
                self.bytes(*element, depth)?.checked_mul(u64::from(*count))
            }
            (28, [element, length]) => {
                let element = self.bytes(*element, depth)?;
                element.checked_mul(self.constants.value(*length)?)
            }
            (30, members) => members.iter().try_fold(0_u64, |sum, member| {
                sum.checked_add(self.bytes(*member, depth)?)
            }),
            _ => None,
        }
    }

    /// `VkComponentTypeKHR` of a number.
    fn component(&self, id: u32) -> Option<i32> {
        match self.get(id)? {
            (22, [16]) => Some(0),
            (22, [32]) => Some(1),
            (22, [64]) => Some(2),
            (21, [8, 1]) => Some(3),
            (21, [16, 1]) => Some(4),
            (21, [32, 1]) => Some(5),
            (21, [64, 1]) => Some(6),
            (21, [8, _]) => Some(7),
            (21, [16, _]) => Some(8),
            (21, [32, _]) => Some(9),
            (21, [64, _]) => Some(10),
            // BFloat16
            (22, [16, 0]) => Some(1_000_141_000),
            // Float8E4M3, Float8E5M2
            (22, [8, 4214]) => Some(1_000_491_002),
            (22, [8, 4215]) => Some(1_000_491_003),
            _ => None,
        }
    }
}

fn integer(width: u32, signed: u32) -> Option<Element> {
    Some(match (width, signed) {
        (8, 0) => Element::U8,
        (8, _) => Element::I8,
        (16, 0) => Element::U16,
        (16, _) => Element::I16,
        (32, 0) => Element::U32,
        (32, _) => Element::I32,
        (64, 0) => Element::U64,
        (64, _) => Element::I64,
        _ => return None,
    })
}

fn float(width: u32) -> Option<Element> {
    Some(match width {
        16 => Element::F16,
        32 => Element::F32,
        64 => Element::F64,
        _ => return None,
    })
}

//! Defines [`Type`], a type of a module as far as the layout of memory depends on it: an instruction's opcode and
//! operands go in, kinds that are not listed are left out.

use crate::numbers::op;

/// A type; its parts are the ids of other types.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // Operands have the specification's names.
pub enum Type {
    Bool,
    Int {
        bits: u32,
        signed: bool,
    },
    Float {
        bits: u32,
        /// The number of an encoding that is not IEEE 754's, such as BFloat16.
        encoding: Option<u32>,
    },
    Vector {
        component: u32,
        count: u32,
    },
    Matrix {
        column: u32,
        count: u32,
    },
    Array {
        element: u32,
        /// The id of a constant.
        length: u32,
    },
    RuntimeArray {
        element: u32,
    },
    Struct(Vec<u32>),
    Pointer {
        class: u32,
        pointee: u32,
    },
    /// A cooperative matrix of `VK_KHR_cooperative_matrix`; all but the component are ids of constants.
    CooperativeMatrix {
        component: u32,
        scope: u32,
        rows: u32,
        columns: u32,
        role: u32,
    },
}

impl Type {
    /// Reads a type from the operands behind its result id; returns `None` for a kind of type that is not listed.
    /// `is_defined` returns whether an id is that of an earlier type, which only members of structures and pointees
    /// need not be.
    pub(crate) fn read(
        op: u16,
        operands: &[u32],
        is_defined: impl Fn(u32) -> bool,
    ) -> Option<Type> {
        let read = match (op, operands) {
            (op::TYPE_BOOL, _) => Type::Bool,
            (op::TYPE_INT, &[bits @ (8 | 16 | 32 | 64), signed]) => Type::Int {
                bits,
                signed: signed == 1,
            },
            (op::TYPE_FLOAT, &[bits @ (8 | 16 | 32 | 64), ref encoding @ ..]) => Type::Float {
                bits,
                encoding: encoding.first().copied(),
            },
            (op::TYPE_VECTOR, &[component, count @ 2..=16]) => Type::Vector { component, count },
            (op::TYPE_MATRIX, &[column, count @ 2..=4]) => Type::Matrix { column, count },
            (op::TYPE_ARRAY, &[element, length]) => Type::Array { element, length },
            (op::TYPE_RUNTIME_ARRAY, &[element]) => Type::RuntimeArray { element },
            // A member that is not defined yet is a forward pointer, which has no layout in a buffer.
            (op::TYPE_STRUCT, members) => Type::Struct(members.to_vec()),
            (op::TYPE_POINTER, &[class, pointee]) => Type::Pointer { class, pointee },
            (op::TYPE_COOPERATIVE_MATRIX_KHR, &[component, scope, rows, columns, role]) => {
                Type::CooperativeMatrix {
                    component,
                    scope,
                    rows,
                    columns,
                    role,
                }
            }
            _ => return None,
        };
        let part = match &read {
            Type::Vector { component: id, .. }
            | Type::Matrix { column: id, .. }
            | Type::Array { element: id, .. }
            | Type::RuntimeArray { element: id }
            | Type::CooperativeMatrix { component: id, .. } => Some(*id),
            _ => None,
        };
        part.is_none_or(is_defined).then_some(read)
    }
}

//! Defines the values of a kernel while it is lowered (made one flat program), scalars and pointers, and finds them
//! by their SPIR-V ids. A scalar is an operand: a known value, a register or unknown.

use std::rc::Rc;

use super::{Lowering, MAX_SCALARS, Typed};
use crate::kernel::program::{Operand, Register};
use crate::kernel::reason::Cause;
use gapscope_spirv::MatrixLayout;

/// A value of a kernel while it is lowered.
#[derive(Debug, Clone)]
pub(super) enum Value {
    /// A scalar, or the scalars of a composite one after the other.
    Scalars(Rc<[Operand]>),
    /// A pointer into memory or variables.
    Pointer(Pointer),
    /// A value that is not followed, with the reason.
    Unknown(Cause),
}

/// A pointer: a base, and an offset from its beginning.
#[derive(Debug, Clone)]
pub(super) struct Pointer {
    pub base: Base,
    /// The offset in bytes for buffers and content, else in scalars.
    pub offset: Operand,
    /// Id of the type that the pointer points to; 0 if unknown.
    pub type_id: u32,
    /// How the matrix lies in memory that the pointee is, holds, or is a column of.
    pub matrix: Option<MatrixLayout>,
}

/// The memory that a pointer points into.
#[derive(Debug, Clone)]
pub(super) enum Base {
    /// A bound buffer, by its index.
    Buffer(usize),
    /// An array of descriptors, of which none is chosen yet.
    Descriptors { set: u32, binding: u32 },
    /// Known bytes, such as push constants, by their index in the program's contents.
    Content(usize),
    /// A variable of the invocation, in registers.
    Local { first: Register, count: u32 },
    /// Values that do not change.
    Fixed(Rc<[Operand]>),
    /// Memory other than buffers, which is not followed.
    Opaque(Cause),
    /// Unknown memory, which may be a buffer.
    Lost(Cause),
}

impl Pointer {
    /// Returns a pointer to the beginning of memory, of the type `type_id`.
    pub fn new(base: Base, type_id: u32) -> Pointer {
        Pointer {
            base,
            offset: Operand::Known(0),
            type_id,
            matrix: None,
        }
    }

    /// Returns a pointer to unknown memory.
    pub fn lost(cause: Cause) -> Pointer {
        Pointer::new(Base::Lost(cause), 0)
    }
}

impl Value {
    pub fn known(value: u64) -> Value {
        Value::Scalars(Rc::new([Operand::Known(value)]))
    }

    /// Returns a value of one scalar.
    pub fn one(operand: Operand) -> Value {
        Value::Scalars(Rc::new([operand]))
    }

    /// Returns the value in consecutive registers.
    pub fn registers(first: Register, count: u32) -> Value {
        Value::Scalars((first..first + count).map(Operand::Register).collect())
    }

    /// Returns the scalars of a value, which should be `count`; otherwise as many unknown ones.
    pub fn scalars(&self, count: u32) -> Vec<Operand> {
        match self {
            Value::Scalars(scalars) if scalars.len() == count as usize => scalars.to_vec(),
            Value::Scalars(_) => vec![Operand::Unknown(Cause::Undefined); count as usize],
            Value::Pointer(_) => vec![Operand::Unknown(Cause::Pointer); count as usize],
            Value::Unknown(cause) => vec![Operand::Unknown(*cause); count as usize],
        }
    }
}

impl Lowering<'_> {
    /// Returns the value with an id and its type: of the current function, or else a global one. Unknown where
    /// neither has it.
    pub(super) fn typed(&self, id: u32) -> Typed {
        let found = self.frame.values.get(&id).or_else(|| self.globals.get(&id));
        found.cloned().unwrap_or(Typed {
            type_id: 0,
            value: Value::Unknown(Cause::Undefined),
        })
    }

    /// Sets the value with an id in the current function.
    pub(super) fn define(&mut self, id: u32, type_id: u32, value: Value) {
        self.frame.values.insert(id, Typed { type_id, value });
    }

    /// Returns the value with this id as one scalar.
    pub(super) fn scalar(&self, id: u32) -> Operand {
        self.typed(id).value.scalars(1)[0]
    }

    /// Returns the number of bits of a scalar of the value with an id.
    pub(super) fn bits_of(&self, id: u32) -> Option<u8> {
        self.module.bits(self.typed(id).type_id)
    }

    /// Returns the number of scalars of a type; `None` if there are more than `MAX_SCALARS`.
    pub(super) fn scalars(&self, type_id: u32) -> Option<u32> {
        let length = |id| self.length(id);
        self.module.scalars(type_id, MAX_SCALARS, &length)
    }

    /// Returns the length of an array from the id of its constant.
    pub(super) fn length(&self, id: u32) -> Option<u32> {
        match self.scalar(id) {
            Operand::Known(length) => u32::try_from(length).ok(),
            _ => None,
        }
    }

    /// Returns the value of a type whose scalars are all 0.
    pub(super) fn zero(&self, type_id: u32) -> Value {
        match self.scalars(type_id) {
            Some(count) => Value::Scalars(vec![Operand::Known(0); count as usize].into()),
            None => Value::Unknown(Cause::LargeVariable),
        }
    }
}

//! Finds the scalars (single numbers) of a type: their offsets in a buffer, as the type's decorations give them, and
//! their number in a variable of a kernel.

use crate::module::Module;
use crate::types::Type;

/// The greatest depth of nested types; no compiler nests them more deeply, and beyond it the layout is unknown.
const MAX_DEPTH: u32 = 24;
/// The most steps of a walk through a type; no compiler's type takes more, and beyond them the layout is unknown.
const MAX_STEPS: u32 = 1 << 17;

/// Scalars of a type that a buffer holds without a hole between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The first byte.
    pub offset: u64,
    /// Bytes of each scalar.
    pub scalar_bytes: u32,
    /// The number of scalars.
    pub scalars: u32,
}

/// The layout of the matrices of a structure's member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MatrixLayout {
    /// Bytes from one column to the next, or from one row to the next.
    pub stride: u32,
    /// Whether rows are contiguous, and not columns.
    pub row_major: bool,
}

impl Module {
    /// Returns the size in bytes of the scalar type with this id; `None` for another type.
    pub fn scalar_bytes(&self, id: u32) -> Option<u32> {
        match self.types.get(&id)? {
            Type::Int { bits, .. } | Type::Float { bits, .. } => Some(bits / 8),
            _ => None,
        }
    }

    /// Returns the number of bits of a scalar type, or of the components of a vector; a boolean has one.
    pub fn bits(&self, id: u32) -> Option<u8> {
        match self.types.get(&id)? {
            Type::Bool => Some(1),
            Type::Int { bits, .. } | Type::Float { bits, .. } => Some(*bits as u8),
            Type::Vector { component, .. } => self.bits(*component),
            _ => None,
        }
    }

    /// Returns whether a type is a signed integer, or a vector of signed integers.
    pub fn is_signed(&self, id: u32) -> bool {
        match self.types.get(&id) {
            Some(Type::Int { signed, .. }) => *signed,
            Some(Type::Vector { component, .. }) => self.is_signed(*component),
            _ => false,
        }
    }

    /// Returns the number of scalars of a type; `None` if it is more than `max`, or unknown. `length` evaluates the
    /// constant that is an array's length.
    pub fn scalars(&self, id: u32, max: u32, length: &dyn Fn(u32) -> Option<u32>) -> Option<u32> {
        self.nested_scalars(id, max, length, MAX_DEPTH, &mut { MAX_STEPS })
    }

    /// Counts the scalars of a type that is nested at most `depth` deep, in at most `steps` steps.
    fn nested_scalars(
        &self,
        id: u32,
        max: u32,
        length: &dyn Fn(u32) -> Option<u32>,
        depth: u32,
        steps: &mut u32,
    ) -> Option<u32> {
        let depth = depth.checked_sub(1)?;
        *steps = steps.checked_sub(1)?;
        let mut scalars = |id| self.nested_scalars(id, max, length, depth, steps);
        let count = match self.types.get(&id)? {
            Type::Bool | Type::Int { .. } | Type::Float { .. } => 1,
            Type::Vector { component, count } => scalars(*component)?.checked_mul(*count)?,
            Type::Matrix { column, count } => scalars(*column)?.checked_mul(*count)?,
            Type::Array {
                element,
                length: id,
            } => scalars(*element)?.checked_mul(length(*id)?)?,
            Type::Struct(members) => {
                let mut sum = 0_u32;
                for member in members {
                    sum = sum.checked_add(scalars(*member)?)?;
                    if sum > max {
                        return None;
                    }
                }
                sum
            }
            _ => return None,
        };
        (count <= max).then_some(count)
    }

    /// Returns the pieces of a type in a buffer, in the order of its scalars; `None` if there are more than `max`, or
    /// the layout is not known. `matrix` is the layout of the type's matrices, `length` evaluates the constant that
    /// is an array's length.
    pub fn pieces(
        &self,
        id: u32,
        matrix: Option<MatrixLayout>,
        max: usize,
        length: &dyn Fn(u32) -> Option<u32>,
    ) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut layout = Layout {
            module: self,
            max,
            length,
            pieces: &mut pieces,
            steps: MAX_STEPS,
        };
        layout.add(id, 0, matrix, MAX_DEPTH)?;
        Some(pieces)
    }
}

/// The state of a walk over a type; the fields are the arguments of [`Module::pieces`].
struct Layout<'a> {
    module: &'a Module,
    /// The most pieces; beyond them the walk ends.
    max: usize,
    /// Evaluates the constant that is an array's length.
    length: &'a dyn Fn(u32) -> Option<u32>,
    pieces: &'a mut Vec<Piece>,
    /// The steps that the walk may still take.
    steps: u32,
}

impl Layout<'_> {
    /// Adds the pieces of a type at an offset; `None` where the layout is not known or too large.
    fn add(
        &mut self,
        id: u32,
        offset: u64,
        matrix: Option<MatrixLayout>,
        depth: u32,
    ) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        self.steps = self.steps.checked_sub(1)?;
        let module = self.module;
        match module.types.get(&id)? {
            Type::Int { .. } | Type::Float { .. } => self.push(offset, module.scalar_bytes(id)?, 1),
            Type::Vector { component, count } => {
                self.push(offset, module.scalar_bytes(*component)?, *count)
            }
            Type::Matrix { column, count } => {
                let layout = matrix?;
                if layout.row_major {
                    return None;
                }
                for index in 0..u64::from(*count) {
                    let at = offset + index * u64::from(layout.stride);
                    self.add(*column, at, None, depth)?;
                }
                Some(())
            }
            Type::Array { element, length } => {
                let stride = module.decorations.get(&id)?.array_stride?;
                for index in 0..u64::from((self.length)(*length)?) {
                    self.add(*element, offset + index * u64::from(stride), matrix, depth)?;
                }
                Some(())
            }
            Type::Struct(members) => {
                for (index, member) in members.iter().enumerate() {
                    let decorations = module.members.get(&(id, index as u32))?;
                    let matrix = decorations.matrix_stride.map(|stride| MatrixLayout {
                        stride,
                        row_major: decorations.row_major,
                    });
                    self.add(
                        *member,
                        offset + u64::from(decorations.offset?),
                        matrix,
                        depth,
                    )?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Adds scalars: to the last piece where they follow it without a hole, else as a new piece; `None` at the limit.
    fn push(&mut self, offset: u64, scalar_bytes: u32, scalars: u32) -> Option<()> {
        if let Some(last) = self.pieces.last_mut()
            && last.scalar_bytes == scalar_bytes
            && last.offset + u64::from(last.scalars * scalar_bytes) == offset
            && last.scalars < 1 << 16
        {
            last.scalars += scalars;
            return Some(());
        }
        if self.pieces.len() == self.max {
            return None;
        }
        self.pieces.push(Piece {
            offset,
            scalar_bytes,
            scalars,
        });
        Some(())
    }
}

//! Where the parts of a type are: in a buffer by its decorations, in a variable of the kernel one after the other.

use super::{Module, Type};

/// Types nest less deeply.
const DEPTH_AT_MOST: u32 = 24;
/// A type that takes more steps to walk through is nobody's.
const STEPS_AT_MOST: u32 = 1 << 17;

/// A part of a type that a buffer holds without a hole in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Where it begins.
    pub offset: u64,
    /// Bytes of each scalar.
    pub scalar_bytes: u32,
    /// How many scalars.
    pub scalars: u32,
}

/// How the matrices of a member lie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MatrixLayout {
    pub stride: u32,
    pub row_major: bool,
}

impl Module {
    /// The bytes of a scalar type.
    pub fn scalar_bytes(&self, id: u32) -> Option<u32> {
        match self.types.get(&id)? {
            Type::Int { bits, .. } | Type::Float { bits } => Some(bits / 8),
            _ => None,
        }
    }

    /// The bits of an integer or truth type as values have them.
    pub fn bits(&self, id: u32) -> Option<u8> {
        match self.types.get(&id)? {
            Type::Bool => Some(1),
            Type::Int { bits, .. } | Type::Float { bits } => Some(*bits as u8),
            Type::Vector { component, .. } => self.bits(*component),
            _ => None,
        }
    }

    /// True for signed integers, and vectors of them.
    pub fn is_signed(&self, id: u32) -> bool {
        match self.types.get(&id) {
            Some(Type::Int { signed, .. }) => *signed,
            Some(Type::Vector { component, .. }) => self.is_signed(*component),
            _ => false,
        }
    }

    /// How many scalars a type has; none: more than `most`, or unknown. `length` gives the length of an array.
    pub fn scalars(&self, id: u32, most: u32, length: &dyn Fn(u32) -> Option<u32>) -> Option<u32> {
        self.scalars_of(id, most, length, DEPTH_AT_MOST, &mut { STEPS_AT_MOST })
    }

    fn scalars_of(
        &self,
        id: u32,
        most: u32,
        length: &dyn Fn(u32) -> Option<u32>,
        depth: u32,
        steps: &mut u32,
    ) -> Option<u32> {
        let depth = depth.checked_sub(1)?;
        *steps = steps.checked_sub(1)?;
        let mut of = |id| self.scalars_of(id, most, length, depth, steps);
        let count = match self.types.get(&id)? {
            Type::Bool | Type::Int { .. } | Type::Float { .. } => 1,
            Type::Vector { component, count } => of(*component)?.checked_mul(*count)?,
            Type::Matrix { column, count } => of(*column)?.checked_mul(*count)?,
            Type::Array {
                element,
                length: id,
            } => of(*element)?.checked_mul(length(*id)?)?,
            Type::Struct(members) => {
                let mut sum = 0_u32;
                for member in members {
                    sum = sum.checked_add(of(*member)?)?;
                    if sum > most {
                        return None;
                    }
                }
                sum
            }
            _ => return None,
        };
        (count <= most).then_some(count)
    }

    /// The pieces of a type in a buffer, in the order of its scalars, at most `most`; none: more, or its layout is not known.
    pub fn pieces(
        &self,
        id: u32,
        matrix: Option<MatrixLayout>,
        most: usize,
        length: &dyn Fn(u32) -> Option<u32>,
    ) -> Option<Vec<Piece>> {
        let mut pieces = Vec::new();
        let mut layout = Layout {
            module: self,
            most,
            length,
            pieces: &mut pieces,
            steps: STEPS_AT_MOST,
        };
        layout.add(id, 0, matrix, DEPTH_AT_MOST)?;
        Some(pieces)
    }
}

struct Layout<'a> {
    module: &'a Module,
    most: usize,
    length: &'a dyn Fn(u32) -> Option<u32>,
    pieces: &'a mut Vec<Piece>,
    steps: u32,
}

impl Layout<'_> {
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
                    let of = module.members.get(&(id, index as u32))?;
                    let matrix = of.matrix_stride.map(|stride| MatrixLayout {
                        stride,
                        row_major: of.row_major,
                    });
                    self.add(*member, offset + u64::from(of.offset?), matrix, depth)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn push(&mut self, offset: u64, scalar_bytes: u32, scalars: u32) -> Option<()> {
        if let Some(last) = self.pieces.last_mut()
            && last.scalar_bytes == scalar_bytes
            && last.offset + u64::from(last.scalars * scalar_bytes) == offset
            && last.scalars < 1 << 16
        {
            last.scalars += scalars;
            return Some(());
        }
        if self.pieces.len() == self.most {
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

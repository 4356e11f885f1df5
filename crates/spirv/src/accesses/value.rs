//! The values of a kernel's function as far as they are understood.

use super::ArrayLength;
use super::sums::Sum;

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

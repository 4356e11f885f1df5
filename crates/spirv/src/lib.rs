//! Reads SPIR-V modules of any origin (SPIR-V specification 1.6, section 2.3 for the layout and 3.52 for the instructions).
//!
//! [`Instructions`] walks over the words of a module and allocates nothing. [`Description`] is the result of such a
//! walk in hooks (gapscope's libraries in a program): entry points, the source's name, and the accesses of the code
//! to descriptors. [`Module`] keeps types, constants, decorations, entry points and functions, and [`Constants`]
//! evaluates its integer constants. [`KernelAccesses`] says which bytes of bound buffers an invocation touches for certain. Whatever the words are, reading them ends and does not panic.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod accesses;
mod constants;
mod description;
mod error;
mod layout;
mod module;
pub mod numbers;
mod types;
mod words;

pub use accesses::{ArrayLength, CertainAccess, KernelAccesses, MostBytes, Sum, Symbol};
pub use constants::{Constants, Specialisation};
pub use description::{BoundVariable, Description, EntryPointSize};
pub use error::ReadError;
pub use layout::{MatrixLayout, Piece};
pub use module::{
    Decorations, EntryPoint, Function, LocalSize, MemberDecorations, Module, StoredInstruction,
    Variable,
};
pub use types::Type;
pub use words::{HEADER_WORDS, Header, Instruction, Instructions, Literal};

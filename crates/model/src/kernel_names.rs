//! Names of kernels: what is behind those that compilers and libraries give.
//!
//! The session demangles them, analyses make them readable, and the hook for CUDA looks in all of them for the kernels that it
//! shall profile ([`Spellings`]).

mod communication;
mod cpp;
mod demangled;
mod functor;
mod fused;
mod matrix;
mod pytorch;
mod readable;
mod spellings;
mod templates;
mod types;

pub use communication::is_communication;
pub use demangled::{CppName, demangle};
pub use readable::{UNKNOWN, of_family, readable, without_parameters};
pub use spellings::Spellings;

//! Turns kernel names of compilers and libraries into readable ones.
//!
//! The session demangles names, analyses make them readable, and the CUDA hook searches all [`Spellings`] for the
//! kernels that it is to profile. `readable` asks the modules for one library or compiler each, which return `None`
//! for names that are not theirs; `cpp` parses C++ names for them.

mod communication;
mod cpp;
mod demangled;
mod fused;
mod matrix;
mod operations;
mod pytorch;
mod readable;
mod spellings;
mod templates;

pub use communication::is_communication;
pub use demangled::{CppName, demangle};
pub use readable::{UNKNOWN, library_kernel_name, readable, without_parameters};
pub use spellings::Spellings;

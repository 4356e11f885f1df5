//! Kernels: from SPIR-V to the bytes that a dispatch of one reads and writes.
//!
//! [`lower`] makes one flat [`program`] of a kernel and everything that is known of a dispatch; [`fold`] finds what else of it is known, [`slice`] keeps of it what addresses
//! depend on, and says what cannot be known; [`machine`] runs that for all invocations.

pub(crate) mod code;
mod flow;
pub(crate) mod fold;
pub(crate) mod lower;
pub(crate) mod machine;
pub(crate) mod program;
pub(crate) mod reason;
pub(crate) mod slice;

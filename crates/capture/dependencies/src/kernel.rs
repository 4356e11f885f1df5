//! Evaluates kernels: SPIR-V goes in, and the bytes that a dispatch reads and writes come out.
//!
//! [`lower`] makes one flat [`program`] of a kernel and all that is known of a dispatch. [`fold`] finds more values
//! that are known, [`slice`] keeps what addresses depend on and says what cannot be known, and [`machine`] runs that
//! for all invocations.

pub(crate) mod code;
mod flow;
pub(crate) mod fold;
pub(crate) mod lower;
pub(crate) mod machine;
pub(crate) mod program;
pub(crate) mod reason;
pub(crate) mod slice;

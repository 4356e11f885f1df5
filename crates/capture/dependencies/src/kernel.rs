//! Evaluates kernels: the SPIR-V of a kernel and the facts of a dispatch go in, and the bytes that the dispatch reads
//! and writes come out.
//!
//! [`lower`] makes one flat [`program`] of a kernel, in which the known facts of a dispatch are constants. [`fold`]
//! finds more values that are known, `slice` keeps only the operations that addresses depend on and finds the
//! addresses that cannot be known, and [`machine`] runs the kept operations for all invocations.
//!
//! The other modules serve these: [`code`] computes single operations, `flow` finds which branches decide over a
//! block, and [`reason`] says why something is not known.

pub(crate) mod code;
mod flow;
pub(crate) mod fold;
pub(crate) mod lower;
pub(crate) mod machine;
pub(crate) mod program;
pub(crate) mod reason;
pub(crate) mod slice;

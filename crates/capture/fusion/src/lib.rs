//! Merges chains of elementwise kernels of a capture, proves that this is right, and times it.
//!
//! [`find`] follows every invocation and finds chains of dispatches in which each invocation reads from the
//! intermediate what the same invocation of the dispatch before it wrote. [`rewrite()`] writes a capture in which each
//! chain is one dispatch of a merged kernel; any replay can run it. [`fuse`] runs all forms, and reports what merging
//! saves, measured and predicted.
//!
//! # Internals
//! `module` reads a kernel, `proof` checks what invocations reach, `chain` finds chains, `merge` builds one module
//! from several, `liveness` finds stores that no command reads, `draft` writes captures, and `rewrite` puts merged
//! dispatches into one.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod chain;
mod difference;
mod draft;
mod error;
mod fusion;
mod liveness;
mod measure;
mod merge;
mod module;
mod predict;
mod proof;
mod refusal;
mod rewrite;

pub use chain::{Chain, Chains, Member, Refused, find};
pub use difference::Difference;
pub use draft::DraftError;
pub use error::FuseError;
pub use fusion::{ChainReport, FormReport, FuseOptions, Fusion, fuse};
pub use merge::ENTRY;
pub use predict::Costs;
pub use proof::Region;
pub use refusal::Refusal;
pub use rewrite::{Form, Merged, Rewritten, merged, rewrite};

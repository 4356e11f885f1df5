//! Chains of elementwise kernels of a capture, merged, proved and timed.
//!
//! [`find`] finds chains of dispatches where each invocation of one reads of the intermediate what the same invocation of the one before
//! wrote, by following every invocation. [`rewrite`] makes of a capture one in which each chain is one dispatch of a merged kernel,
//! which any replay can run. [`fuse`] runs all forms, and says what merging saves, measured and predicted.
//!
//! # Internals
//! `module` reads a kernel, `proof` checks what invocations reach, `chain` finds chains, `merge` makes one module of several, `life` says
//! which stores nobody needs, `draft` writes captures, `rewrite` puts merged dispatches into one.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod chain;
mod difference;
mod draft;
mod fusion;
mod life;
mod measure;
mod merge;
mod module;
mod predict;
mod proof;
mod refusal;
mod rewrite;

pub use chain::{Chain, Found, Member, Refused, find};
pub use difference::Difference;
pub use draft::DraftError;
pub use fusion::{ChainReport, FormReport, FuseError, FuseOptions, Fusion, fuse};
pub use merge::ENTRY;
pub use predict::Costs;
pub use proof::Region;
pub use refusal::Refusal;
pub use rewrite::{Form, Merged, Rewritten, merged, rewrite};

//! NVTX, NVIDIA's interface for labels: texts that the program, or a library in it, sets around its work. Calls of
//! NVTX's functions go in; labels in the log of the calling thread come out.
//!
//! NVTX is a header: each module that includes it asks for its own table of functions, fills it with ours, and calls them on the thread
//! that sets the label. They write to that thread's log at once; a lock is taken only at the first use of a text. (Offsets and numbers:
//! nvtxTypes.h and nvToolsExt.h of NVTX 3.)
//!
//! Modules from low to high: [`text`], [`domains`], [`payload`], [`attributes`], [`operators`], [`label`] and [`names`], and what fills
//! the tables: [`table`] and [`extension`].

mod attributes;
mod domains;
mod extension;
mod label;
mod names;
mod operators;
mod payload;
mod table;
mod text;

pub use extension::{ExtensionModule, attach_extension};
pub use table::{GetExportTable, attach};

//! The trace format: reads, writes and models traces.
//!
//! A trace is a folder `NAME.gapscope/` with a manifest (`trace.json`), one Parquet file for each table, and the
//! sources (the code) of kernels, named by hash. [`tables`] defines the tables and their columns, [`manifest`] the
//! manifest.
//! `docs/trace-format.md` describes the format for readers without this crate.
//!
//! A *kernel* is a program for the GPU, a *dispatch* one run of it. A *command buffer* holds dispatches and transfers
//! that were submitted together; *opaque work* is timed as a whole, such as a render pass. A *submission* is what one
//! call of a host thread hands to a *queue* of a device, and a *label* is a name that the program gave to a part of
//! its work.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod accesses;
pub mod build;
mod checksums;
pub mod column;
mod conversion;
pub mod csv_cell;
mod damage;
mod delta;
mod diagnostic;
pub mod embedded;
mod encoding;
mod error;
pub mod ids;
mod kinds;
pub mod lookup;
pub mod manifest;
pub mod measured;
pub mod memory;
mod merge;
pub mod names;
pub mod optional;
pub mod own_hashes;
pub mod own_recordings;
mod pages;
pub mod panics;
pub mod parallel;
mod part;
mod ranks;
pub mod reader;
mod sizes;
#[cfg(feature = "synthetic")]
pub mod synthetic;
mod table;
pub mod table_file;
pub mod tables;
pub mod text;
pub mod text_column;
mod thrift;
mod unread;
mod versions;
mod window;
pub mod writer;

pub use damage::Damage;
pub use diagnostic::Diagnostic;
pub use error::Error;
pub use gapscope_files::{ContainedPath, create_private_folder};
pub use gapscope_model::{
    Ledger, Loss, LossKind, instructions, kernel_names, kernel_profile, secrets,
};
pub use manifest::Manifest;
pub use names::Names;
pub use ranks::{rank_folders, rank_links};
pub use reader::{DispatchPieces, Selection, meant_trace, read, read_manifest};
pub use sizes::{TableSize, table_sizes};
pub use tables::Tables;
pub use text::{TextError, TextProblem};
pub use unread::UnreadTable;
pub use writer::{Parts, TraceWriter};

/// A trace in memory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    /// The facts about the recording as a whole.
    pub manifest: Manifest,
    /// The rows.
    pub tables: Tables,
    /// The tables that could not be read, or not to their end. Findings that rest on them are unknown.
    pub unread: Vec<UnreadTable>,
}

impl Trace {
    /// Returns true where nothing that was read is missing, damaged or altered: neither a table nor the manifest.
    pub fn is_whole(&self) -> bool {
        self.unread.is_empty() && !self.manifest.altered
    }

    /// Returns a diagnostic for each column with ids that the trace does not define.
    pub fn dangling_ids(&self) -> Vec<Diagnostic> {
        reader::dangling_ids(self)
    }
}

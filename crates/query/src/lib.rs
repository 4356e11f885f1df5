//! Answers SQL queries over one trace or many, with DataFusion.
//!
//! [`Traces::open`] finds the traces, and [`Session`] answers queries on them. Each table of the trace format is one
//! SQL table with the rows of all traces: besides its own columns it has `trace`, a column for each `NAME=VALUE`
//! folder on the way to the traces, and the names behind its ids (`kernel_name`, `label_path`, …). Manifests
//! (`trace.json`, which describes a trace) become tables, too (`traces`, `devices`, …). Rows are read as they are
//! needed, so memory does not grow with the traces.
//!
//! `docs/query.md` is the users' description.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod activity;
mod catalogue;
mod computed;
mod error;
mod gains;
mod gaps;
mod kernel_counters;
mod library;
mod manifests;
mod output;
mod prompt;
pub mod saved;
mod scan;
mod schema;
mod session;
mod source;
mod statement;
mod steps;

pub use error::Error;
pub use output::{Format, RowCount};
pub use prompt::prompt;
pub use session::{STACK_BYTES, Session, panicked, too_much_memory};
pub use source::{Source, Traces, looks_like_sql};

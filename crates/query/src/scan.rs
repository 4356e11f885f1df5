//! Reading one table of all traces, as a plan of DataFusion.

mod file;
mod names;
mod plan;
mod prune;
mod reader;
mod table;

pub(crate) use table::TraceTable;

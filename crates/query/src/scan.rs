//! Reads one table of all traces, as a plan of DataFusion.

mod names;
mod plan;
mod prune;
mod reader;
mod table;

pub(crate) use plan::Unit;
pub(crate) use prune::RowGroups;
pub(crate) use table::TraceTable;

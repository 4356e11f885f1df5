//! Reads one table of all traces, as a plan of DataFusion (the SQL engine).

mod leaf;
mod names;
mod plan;
mod prune;
mod reader;
mod row_group;
mod table;

pub(crate) use leaf::{Leaf, LeafSource, Result, inexact};
pub(crate) use prune::Pruning;
pub(crate) use row_group::RowGroup;
pub(crate) use table::TraceTable;

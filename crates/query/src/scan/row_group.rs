//! Defines [`RowGroup`], a part of a trace's Parquet file that is read at once.

/// A row group to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowGroup {
    /// Index of the trace among the session's sources.
    pub source: usize,
    pub index: usize,
    pub rows: usize,
}

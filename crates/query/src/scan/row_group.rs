//! Defines [`RowGroup`], a part of a trace's Parquet file that is read at once.

/// A row group to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowGroup {
    /// Index of the trace among the session's sources.
    pub source: usize,
    /// Index of the row group in its file.
    pub index: usize,
    /// Number of rows.
    pub rows: usize,
}

//! A row group of a trace's file.

/// A row group to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowGroup {
    /// Index of the trace.
    pub source: usize,
    pub index: usize,
    pub rows: usize,
}

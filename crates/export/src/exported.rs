//! What came of a trace's rows.

/// The rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// Name of the table.
    pub table: &'static str,
    /// Rows that are in the export; of `submissions`, in the queue depth.
    pub drawn: u64,
    /// Rows that are not, because their times are unknown or cannot be.
    pub without_times: u64,
}

/// What an export holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// By table.
    pub rows: Vec<Rows>,
}

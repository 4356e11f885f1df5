//! Defines [`Exported`], the counts of rows that an export has and lacks, which every format's `write` returns.

/// The rows of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRows {
    /// The name of the table.
    pub table: &'static str,
    /// The number of rows in the export; for `submissions`, of those in the counter of queue depth (how many
    /// submissions a queue has at a time).
    pub written: u64,
    /// The number of rows that are left out because their times are unknown or impossible.
    pub without_times: u64,
}

/// The rows of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// The rows by table.
    pub rows: Vec<TableRows>,
}

//! The progress of a recording, which callers show.

/// The progress of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// xctrace records.
    Recording,
    /// xctrace exports a table.
    Exporting {
        /// Number of tables that are exported already.
        done: usize,
        /// Number of all tables.
        of: usize,
    },
    /// The tables are imported.
    Importing,
}

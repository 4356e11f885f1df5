//! The progress of a recording, which callers show.

/// The progress of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// xctrace records.
    Recording,
    /// xctrace exports a table.
    Exporting {
        /// The tables that are exported.
        done: usize,
        /// All tables.
        of: usize,
    },
    /// The tables are imported.
    Importing,
}

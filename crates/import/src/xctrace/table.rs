//! The description of a table of xctrace that an import reads.

/// A table that an import uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// The name of its schema.
    pub schema: &'static str,
    /// The part of a trace that is missing without the table.
    pub gives: &'static str,
    /// True if `gapscope record` fails when the recording lists the table and xctrace does not export it, and an import
    /// notes its absence or that it has no rows.
    pub needed: bool,
}

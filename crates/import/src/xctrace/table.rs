//! The tables of an export.

/// A table that an import uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// The name of its schema.
    pub schema: &'static str,
    /// The part of a trace that is missing without the table.
    pub gives: &'static str,
    /// The table is required for a trace.
    pub needed: bool,
}

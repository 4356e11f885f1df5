//! What there is to say of a document beside its rows.

use std::collections::BTreeMap;

/// How a document ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// With the tag that closes it.
    #[default]
    Complete,
    /// After a whole row or node: xctrace may have crashed when all was written, or before.
    AfterRow,
    /// Inside a row, which is lost.
    InRow,
    /// It is not XML from here on.
    Malformed(String),
}

/// What there is to say of a document beside its rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Nodes; none is what xctrace writes when the table or the run does not exist.
    pub nodes: u64,
    /// Rows of each table that were read.
    pub rows: BTreeMap<String, u64>,
    /// Rows that were not.
    pub damaged: BTreeMap<Damage, u64>,
    pub ending: Ending,
}

/// Why rows of a table were not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Damage {
    pub table: String,
    pub reason: &'static str,
}

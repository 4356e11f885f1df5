//! Summarises how a document was read.

use std::collections::BTreeMap;

/// How a document ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The document ended with the closing tag of its root.
    #[default]
    Complete,
    /// The document ended after a whole row or node: xctrace may have crashed before all was written, or after.
    AfterRow,
    /// The document ended inside a row, which is lost.
    InRow,
    /// The document is not XML from some point on.
    Malformed(String),
}

/// The summary of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The number of nodes; none is what xctrace writes if the table or the run does not exist.
    pub nodes: u64,
    /// The number of rows of each table that were read.
    pub rows: BTreeMap<String, u64>,
    /// The number of rows that were not read.
    pub damaged: BTreeMap<Damage, u64>,
    pub ending: Ending,
}

/// The reason why rows of a table were not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Damage {
    pub table: String,
    pub reason: &'static str,
}

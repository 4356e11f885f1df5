//! The summary that the reader of a document returns: rows, damage, and how the document ended.

use std::collections::BTreeMap;

/// The way in which a document ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The document ended with the closing tag of its root.
    #[default]
    Complete,
    /// The document ended after a whole row or node: xctrace may have crashed before all was written, or after.
    AfterRow,
    /// The document ended inside a row, which is lost.
    InRow,
    /// The rest of the document is not XML, for the reason given.
    Malformed(String),
}

/// The summary of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The number of nodes; 0 if the table or the run does not exist, because xctrace then writes an empty
    /// document.
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
    /// The name of the table's schema; `?` where the table has none.
    pub table: String,
    pub reason: &'static str,
}

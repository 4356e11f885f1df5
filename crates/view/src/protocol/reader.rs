//! The messages with notes that the reader of the page writes, with queries that were asked, and with answers of SQL.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A note of the reader at a moment or of a range of a trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Note {
    pub from_ns: i64,
    /// Null for a moment.
    pub to_ns: Option<i64>,
    pub text: String,
}

/// The notes of a trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NotesAnswer {
    /// Changes with the notes.
    pub revision: String,
    pub notes: Vec<Note>,
    /// Why none can be written.
    pub unwritable: Option<String>,
}

/// The queries that were asked, the latest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Queries {
    pub queries: Vec<String>,
}

/// The kind of a column's values.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SqlType {
    Integer,
    Fraction,
    Boolean,
    Text,
}

/// A column of an answer of SQL.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SqlColumn {
    pub name: String,
    pub r#type: SqlType,
}

/// The rows that SQL has over all traces.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SqlAnswer {
    pub columns: Vec<SqlColumn>,
    /// At most 1,000 rows; every value is a text, and NULL is null.
    pub rows: Vec<Vec<Option<String>>>,
    /// There are more rows than these.
    pub more: bool,
    /// Sentences about rows that are missing.
    pub missing: Vec<String>,
    /// What the column `trace` says of each trace, in the order of the overview.
    pub traces: Vec<String>,
    pub took_ms: f64,
}

/// What can be asked in SQL.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Catalogue {
    pub tables: Vec<SqlTable>,
    pub saved: Vec<SavedQuery>,
}

/// A table that can be asked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SqlTable {
    pub name: String,
    pub meaning: String,
    pub columns: Vec<SqlTableColumn>,
}

/// A column of a table that can be asked.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SqlTableColumn {
    pub name: String,
    pub r#type: String,
    pub meaning: String,
}

/// A query that gapscope brings along.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SavedQuery {
    pub name: String,
    pub meaning: String,
    pub sql: String,
}

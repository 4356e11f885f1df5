//! Defines [`Error`], the reasons why a query has no answer.

use std::io;
use std::path::PathBuf;

/// Why a query has no answer. Each reason prints as one sentence, with advice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No trace can be queried.
    #[error("{0}")]
    NoTrace(String),
    /// The SQL cannot be parsed, or names tables or columns that do not exist.
    #[error("{0}")]
    Sql(String),
    /// The query failed while it ran.
    #[error("{0}")]
    Failed(String),
    /// There is no saved query with that name.
    #[error("no saved query is called {name}: there are {known}")]
    NoSaved {
        /// The requested name.
        name: String,
        /// The names of all saved queries.
        known: String,
    },
    /// The answer cannot be written.
    #[error("the answer cannot be written: {0}")]
    Write(#[source] io::Error),
    /// The prompt's terminal or history failed.
    #[error("the prompt failed: {0}")]
    Prompt(String),
    /// The file for the answer exists.
    #[error("{} is there already, and nothing is overwritten: choose another name after -o, or remove it", .0.display())]
    Exists(PathBuf),
}

//! What the programs `gapscope` and `gapscope-query` share: the options of `gapscope query`, which the one completes
//! and explains and the other answers, and how both write to a terminal or a pipe.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod query;
mod streams;

pub use query::{AnswerFormat, Query};
pub use streams::{one_line, say, steers, without_number, write};

/// The exit status of a command whose answer lacks what could not be read, as it says itself.
pub const INCOMPLETE: u8 = 3;

/// The program that answers `gapscope query`. It is a program of its own because its SQL engine takes longer to build
/// than all the rest, and is larger.
pub const QUERY_PROGRAM: &str = "gapscope-query";

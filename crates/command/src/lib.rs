//! What the programs `gapscope`, `gapscope-query` and `gapscope-mcp` share: the options of `gapscope query` and `gapscope mcp`,
//! which the first completes and explains and the others answer, where the programs find each other, and how they write to a terminal or a pipe.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod companion;
mod mcp;
mod query;
mod state;
mod streams;

pub use mcp::{LONGEST, Mcp};
pub use query::{AnswerFormat, Query};
pub use state::state_folder;
pub use streams::{one_line, say, steers, without_number, write};

/// The exit status of a command whose answer lacks what could not be read, as it says itself.
pub const INCOMPLETE: u8 = 3;

/// The program that answers `gapscope query`. It is a program of its own because its SQL engine takes longer to build
/// than all the rest, and is larger.
pub const QUERY_PROGRAM: &str = "gapscope-query";

/// The program that answers `gapscope mcp`: what it runs on is in no other command.
pub const MCP_PROGRAM: &str = "gapscope-mcp";

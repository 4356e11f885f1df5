//! What the programs `gapscope`, `gapscope-query` and `gapscope-mcp` share: the options of `gapscope query` and
//! `gapscope mcp`, which the first completes and explains and the others answer; how the programs find each other;
//! and how they write to a terminal or a pipe.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod companion;
mod mcp;
mod query;
mod state;
mod streams;
mod time;

pub use mcp::{DEFAULT_LONGEST_S, Mcp};
pub use query::{AnswerFormat, Query, with_sql_apart};
pub use state::state_folder;
pub use streams::{WriteError, one_line, say, steers, without_os_error_numbers, write};
pub use time::{NotATime, time};

/// The exit status of a command whose answer is incomplete because something could not be read.
pub const INCOMPLETE: u8 = 3;

/// The program that answers `gapscope query`. It is separate because its SQL engine is large and takes longer to
/// build than all the rest.
pub const QUERY_PROGRAM: &str = "gapscope-query";

/// The program that answers `gapscope mcp`. It is separate because no other command needs its libraries.
pub const MCP_PROGRAM: &str = "gapscope-mcp";

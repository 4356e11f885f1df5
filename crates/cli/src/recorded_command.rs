//! Chooses the exit status of commands that record another command (`record`, `capture`): the other's own comes
//! first.

use crate::failure::Failure;
use crate::{exit, page};
use std::process::ExitCode;

/// Returns the recorded command's `status` unless it is 0, and otherwise the status of `outcome`. Prints the
/// failure of `outcome`.
pub fn exit_code(status: u8, outcome: Result<(), Failure>) -> ExitCode {
    let own = outcome.map_or_else(
        |failure| {
            page::note(&failure);
            exit::CANNOT_RECORD
        },
        |()| 0,
    );
    ExitCode::from(if status != 0 { status } else { own })
}

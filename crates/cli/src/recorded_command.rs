//! Ends commands that record another command.

use crate::failure::Failure;
use crate::{exit, page};
use std::process::ExitCode;

/// Returns the status of a command that recorded another one: the other's `status` unless that is 0, or else the
/// outcome's. Prints the outcome's failure.
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

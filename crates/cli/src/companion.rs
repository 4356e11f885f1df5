//! Tasks that a program of its own does, because what it is made of is large or slow to build: `gapscope query` and `gapscope mcp`.

use crate::failure::Failure;
use gapscope_companion::{companion, without_number};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes the program of the task, with the arguments that were given: its exit status and the signals that it gets are then
/// its own. Returns only when it cannot.
pub fn run(task: &str, name: &str) -> Failure {
    let Some(program) = companion::find(name) else {
        return Failure::new(companion::missing(task, name));
    };
    // Before them are the names of this program and of this task.
    let arguments = std::env::args_os().skip(2);
    let error = Command::new(&program).args(arguments).exec();
    Failure::new(without_number(&format!(
        "{} cannot be started: {error}",
        program.display()
    )))
}

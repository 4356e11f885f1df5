//! Runs the tasks that programs of their own do because they are large or slow to build: `gapscope query` and
//! `gapscope mcp`.

use crate::failure::Failure;
use gapscope_companion::{companion, without_number};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Becomes the program of the task, with the arguments that were given, so that its exit status and signals are its
/// own. Returns only when the program cannot be started.
pub fn run(task: &str, name: &str) -> Failure {
    let Some(program) = companion::find(name) else {
        return Failure::new(companion::missing(task, name));
    };
    // The first two are the names of this program and of the task.
    let arguments = std::env::args_os().skip(2);
    let error = Command::new(&program).args(arguments).exec();
    Failure::new(without_number(&format!(
        "{} cannot be started: {error}",
        program.display()
    )))
}

//! Runs the tasks of separate programs, `gapscope query` and `gapscope mcp`, which are separate because they are
//! large or slow to build.

use crate::failure::Failure;
use gapscope_companion::{companion, without_os_error_numbers};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Replaces this process by the program of a task, with the given arguments, so that exit status and signals are
/// the program's. Returns only if the program cannot be started.
pub fn run(task: &str, name: &str) -> Failure {
    let Some(program) = companion::find(name) else {
        return Failure::new(companion::missing(task, name));
    };
    // The first two arguments are the names of this program and of the task.
    let arguments = std::env::args_os().skip(2);
    let error = Command::new(&program).args(arguments).exec();
    Failure::new(without_os_error_numbers(&format!(
        "{} cannot be started: {error}",
        program.display()
    )))
}

//! Tasks that a program of its own does, because what it is made of is large or slow to build: `gapscope query` and `gapscope mcp`.

use crate::failure::Failure;
use gapscope_command::without_number;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Becomes the program of the task, with the arguments that were given: its exit status and the signals that it gets are then
/// its own. Returns only when it cannot.
pub fn run(task: &str, name: &str) -> Failure {
    let Some(program) = find(name) else {
        return Failure::new(format!(
            "`gapscope {task}` needs the program {name}, which is neither beside gapscope nor in PATH: {}",
            mend(name)
        ));
    };
    // Before them are the names of this program and of this task.
    let arguments = std::env::args_os().skip(2);
    let error = Command::new(&program).args(arguments).exec();
    Failure::new(without_number(&format!(
        "{} cannot be started: {error}",
        program.display()
    )))
}

/// The program of a task: beside this one, or in PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let executable = std::env::current_exe().and_then(|path| path.canonicalize());
    let beside = executable.ok().map(|path| path.with_file_name(name));
    beside
        .filter(|path| path.is_file())
        .or_else(|| in_path(name))
}

/// What to do where it is not there.
pub fn mend(name: &str) -> String {
    format!(
        "build it with `cargo build -p {name}` (with the same --release or --profile), or install the wheel, which has it"
    )
}

/// The program of this name in PATH.
pub fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let may_run = |path: &PathBuf| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&folders)
        .map(|folder| folder.join(name))
        .find(may_run)
}

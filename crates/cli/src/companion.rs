//! Tasks that a program of its own does, because what it is made of is large or slow to build: `gapscope query` and `gapscope mcp`.

use crate::failure::Failure;
use gapscope_command::without_number;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Becomes the program of the task, with the arguments that were given: its exit status and the signals that it gets are then
/// its own. Returns only when it cannot.
pub fn run(task: &str, name: &str) -> Failure {
    let executable = std::env::current_exe().and_then(|path| path.canonicalize());
    let beside = executable.ok().and_then(|path| beside(&path, name));
    let program = beside.as_deref().unwrap_or(Path::new(name));
    // Before them are the names of this program and of this task.
    let arguments = std::env::args_os().skip(2);
    let error = Command::new(program).args(arguments).exec();
    Failure::new(match error.kind() {
        io::ErrorKind::NotFound if beside.is_none() => format!(
            "`gapscope {task}` needs the program {name}, which is neither beside gapscope nor in PATH: build it with \
             `cargo build -p {name}` (with the same --release or --profile), or install the wheel, which has it"
        ),
        _ => without_number(&format!("{} cannot be started: {error}", program.display())),
    })
}

/// The program in the folder of `executable`.
fn beside(executable: &Path, name: &str) -> Option<PathBuf> {
    let path = executable.with_file_name(name);
    path.is_file().then_some(path)
}

//! Finds the programs beside gapscope, which are large or slow to build, and words the error when one is missing.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Finds a program beside the running one, or in PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let executable = std::env::current_exe().and_then(|path| path.canonicalize());
    let beside = executable.ok().map(|path| path.with_file_name(name));
    beside
        .filter(|path| path.is_file())
        .or_else(|| in_path(name))
}

/// Returns the error for a task whose program is missing.
pub fn missing(task: &str, name: &str) -> String {
    format!(
        "`gapscope {task}` needs the program {name}, which is neither beside gapscope nor in PATH: {}",
        mend(name)
    )
}

/// Returns the advice for a missing program.
pub fn mend(name: &str) -> String {
    format!(
        "build it with `cargo build -p {name}` (with the same --release or --profile), or install the wheel, which has it"
    )
}

/// Finds a program in PATH.
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

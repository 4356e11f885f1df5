//! Programs beside gapscope, which do what is large or slow to build: where they are, and what is said where they are not.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The program of this name: beside the one that runs, or in PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let executable = std::env::current_exe().and_then(|path| path.canonicalize());
    let beside = executable.ok().map(|path| path.with_file_name(name));
    beside
        .filter(|path| path.is_file())
        .or_else(|| in_path(name))
}

/// The sentence that a task says whose program is not there.
pub fn missing(task: &str, name: &str) -> String {
    format!(
        "`gapscope {task}` needs the program {name}, which is neither beside gapscope nor in PATH: {}",
        mend(name)
    )
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

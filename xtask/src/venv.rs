//! Makes virtual environments of Python and installs packages into them. The folder of an environment goes in, and its
//! Python and commands of its pip come out.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::{command, packages};

/// Makes an environment in place of any other in the folder, and returns its Python.
pub fn create(folder: &Path) -> Result<PathBuf> {
    if !command::succeeds("python3", &["-c", "import ensurepip, venv"]) {
        packages::install(&["python3-venv"], false)?;
    }
    command::run(command::line("python3 -m venv --clear").arg(folder))?;
    Ok(folder.join("bin/python"))
}

/// Returns the Python of the environment in the folder, which is made if it is not there.
pub fn ensure(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin/python");
    if python.exists() {
        return Ok(python);
    }
    create(folder)
}

/// Returns a command of pip that prints errors only; `task` is pip's subcommand.
pub fn pip(python: &Path, task: &str) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", task, "--quiet", "--disable-pip-version-check"]);
    pip
}

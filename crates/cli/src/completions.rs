//! `gapscope completions`: prints the script with which a shell completes gapscope's command line.

use crate::args::{Arguments, Completions};
use crate::failure::Failure;
use crate::page;
use clap::CommandFactory;
use std::process::ExitCode;

/// Prints the completion script of a shell.
pub fn run(arguments: &Completions) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "gapscope",
        &mut script,
    );
    page::write(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

//! Runs work in more than one process. Each process prints its own line of truth: what a trace should show.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::host::steady;
use crate::args::Args;
use crate::truth::Truth;

/// Starts `count` programs in the mode `steady` with otherwise the same command line, works beside them, and prints
/// their lines.
pub fn children(args: &Args, truth: &mut Truth) -> Result<()> {
    let program = std::env::current_exe().context("this program's file is not known")?;
    let child_args: Vec<_> = std::env::args()
        .skip(1)
        .map(|arg| {
            if arg == "children" {
                "steady".to_owned()
            } else {
                arg
            }
        })
        .collect();
    let mut running = Vec::new();
    for _ in 0..args.count {
        let mut command = Command::new(&program);
        running.push(
            command
                .args(&child_args)
                .stdout(Stdio::piped())
                .spawn()
                .context("a child did not start")?,
        );
    }
    steady(args, truth)?;
    for child in running {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("a child ended with {}", output.status);
        }
        print!("{}", String::from_utf8_lossy(&output.stdout));
    }
    truth.note("children", args.count);
    Ok(())
}

/// Forks before any use of Vulkan, because a driver does not survive a fork; the second child uses no Vulkan.
pub fn fork(args: &Args, truth: &mut Truth) -> Result<()> {
    let worker = fork_process()?;
    steady(args, truth)?;
    if worker == 0 {
        return Ok(());
    }
    let idler = fork_process()?;
    if idler == 0 {
        // SAFETY: the call ends this process, without handlers that belong to the parent.
        unsafe { libc::_exit(0) };
    }
    for child in [worker, idler] {
        let mut status = 0;
        // SAFETY: `child` is a child of this process and not yet waited for.
        if unsafe { libc::waitpid(child, &mut status, 0) } != child || status != 0 {
            bail!("the forked process {child} ended with status {status:#x}");
        }
    }
    steady(args, truth)?;
    truth.note("children", 2);
    Ok(())
}

/// Forks, and returns the child's id; 0 in the child.
fn fork_process() -> Result<libc::pid_t> {
    // SAFETY: this process has only one thread of its own. The second child may find locks of a driver taken, but
    // only exits.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()).context("the process could not fork"),
        child => Ok(child),
    }
}

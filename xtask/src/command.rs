//! Runs the commands of a task. Each command is printed before it runs, and its failure is an error.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

thread_local! {
    /// The file that gets the output of this thread's commands, if another thread runs commands at the same time.
    static OUTPUT: RefCell<Option<File>> = const { RefCell::new(None) };
}

/// Runs a task beside others. The output of its commands is kept in a file, so that the outputs of two tasks do not mix.
/// It is printed if the task fails.
pub fn beside<T>(output: &Path, task: impl FnOnce() -> Result<T>) -> Result<T> {
    let file =
        File::create(output).with_context(|| format!("cannot write {}", output.display()))?;
    OUTPUT.set(Some(file));
    let result = task();
    OUTPUT.set(None);
    if result.is_ok() {
        return result;
    }
    let copied = File::open(output).and_then(|mut file| io::copy(&mut file, &mut io::stderr()));
    copied.with_context(|| format!("cannot print {}", output.display()))?;
    result
}

/// Runs a command whose output goes to the task's output. A failure is an error.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    eprintln!("+ {shown}");
    OUTPUT.with_borrow(|output| -> Result<()> {
        if let Some(file) = output {
            use io::Write as _;
            writeln!(&mut &*file, "+ {shown}")?;
            command.stdout(file.try_clone()?).stderr(file.try_clone()?);
        }
        Ok(())
    })?;
    let start = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    let seconds = start.elapsed().as_secs();
    if seconds >= 10 {
        eprintln!("  took {seconds} s");
    }
    Ok(())
}

/// Runs a command and returns its standard output. A failure is an error with the command's standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed: {}: {}", output.status, complaint.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns true if a command can be started and succeeds. Nothing is printed.
pub fn succeeds(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns a command of the cargo that runs this task.
pub fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    command
}

/// Returns the command of a line: the name of a program, and its first arguments.
pub fn line(line: &str) -> Command {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// Returns a command of the cargo that runs this task, with the words of a line as its arguments.
pub fn cargo_line(line: &str) -> Command {
    cargo(line.split(' '))
}

/// Returns a command as the text that is printed before it runs.
pub fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    if let Some(name) = text
        .strip_prefix('/')
        .and_then(|path| path.rsplit('/').next())
    {
        text = name.to_owned();
    }
    for argument in command.get_args() {
        let _ = write!(text, " {}", argument.to_string_lossy());
    }
    text
}

//! Checks the programs and packages that accompany gapscope, such as the query program and the Python package.

use super::check::{Check, Group, Subject};
use gapscope_companion::companion;
use gapscope_companion::{MCP_PROGRAM, QUERY_PROGRAM};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const GROUP: Group = Group::Programs;
/// The time after which a Python that has not answered counts as hanging and is killed.
const PYTHON_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns all checks of programs and packages.
pub fn checks() -> Vec<Check> {
    vec![
        program("query", QUERY_PROGRAM),
        program("mcp", MCP_PROGRAM),
        python(),
    ]
}

fn program(task: &'static str, name: &str) -> Check {
    let subject = Subject::new(GROUP, task);
    match companion::find(name) {
        Some(path) => subject.ok(path.display().to_string()),
        None => subject.missing(
            format!(
                "`gapscope {task}` does not run: its program {name} is neither beside gapscope nor in PATH"
            ),
            companion::mend(name),
        ),
    }
}

/// Checks the package in the Python that PATH names. A program may run another Python.
fn python() -> Check {
    let subject = Subject::new(GROUP, "python");
    let missing = |found: &str, follows: &str| {
        let check = subject.missing(
            format!("{follows}; recording Python programs needs neither"),
            "install the package into the Python that you use: `pip install ./python` in gapscope's repository",
        );
        check.found(found)
    };
    let Some(python) = companion::in_path("python3") else {
        return missing("", "there is no python3 in PATH");
    };
    let python = python.display().to_string();
    match version(&python) {
        Some(version) => subject.ok(format!("gapscope {version} of {python}")),
        None => missing(
            &python,
            "`import gapscope`, with which programs set ranges and open traces, does not work there",
        ),
    }
}

/// Returns the package's version that a Python prints; `None` if it cannot import it or does not answer in time.
fn version(python: &str) -> Option<String> {
    let words = "import gapscope, importlib.metadata as m; print(m.version('gapscope'))";
    let mut child = Command::new(python)
        .args(["-c", words])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let began = Instant::now();
    while child.try_wait().ok()?.is_none() {
        if began.elapsed() > PYTHON_TIMEOUT {
            // The child's state no longer matters.
            let _ = child.kill();
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !version.is_empty()).then_some(version)
}

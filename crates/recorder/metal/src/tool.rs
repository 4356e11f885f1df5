//! Finds and runs Apple's command line tools.

use crate::Error;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variable with the path of the xctrace to run instead.
pub const XCTRACE_VARIABLE: &str = "GAPSCOPE_XCTRACE";

/// Apple's `xctrace`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Xctrace {
    program: PathBuf,
    /// The arguments before its own.
    first: Vec<OsString>,
}

impl Xctrace {
    /// Finds the xctrace of the selected Xcode, or the one that [`XCTRACE_VARIABLE`] names.
    pub fn find() -> Xctrace {
        match std::env::var_os(XCTRACE_VARIABLE).filter(|path| !path.is_empty()) {
            Some(path) => Xctrace::at(path),
            None => Xctrace {
                program: "/usr/bin/xcrun".into(),
                first: vec!["xctrace".into()],
            },
        }
    }

    /// Takes the xctrace at a path.
    pub fn at(program: impl Into<PathBuf>) -> Xctrace {
        Xctrace {
            program: program.into(),
            first: Vec::new(),
        }
    }

    /// Returns whether [`XCTRACE_VARIABLE`] names an xctrace; any system, not only macOS, then records through it.
    pub fn is_chosen() -> bool {
        std::env::var_os(XCTRACE_VARIABLE).is_some_and(|path| !path.is_empty())
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns a command that runs xctrace with these arguments and no standard input.
    pub(crate) fn command<S: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = S>,
    ) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.first)
            .args(arguments)
            .stdin(Stdio::null());
        command
    }

    /// Returns the version, such as `xctrace version 27.2 (27B5019j)`.
    ///
    /// # Errors
    /// There is no xctrace; the error says what to do.
    pub fn version(&self) -> Result<String, Error> {
        let missing = |reason: String| Error::NoTool {
            tool: "xctrace",
            reason,
        };
        let output = self.command(["version"]).output().map_err(|error| {
            missing(format!(
                "{} cannot be started ({error}); install Xcode, which contains xctrace, and start it once",
                self.program.display()
            ))
        })?;
        if !output.status.success() {
            // The command line tools alone contain xcrun and no xctrace.
            return Err(missing(format!(
                "{}; install Xcode, start it once, and select it with `sudo xcode-select --switch /Applications/Xcode.app`",
                last_words(&String::from_utf8_lossy(&output.stderr))
            )));
        }
        let version = String::from_utf8_lossy(&output.stdout);
        Ok(version.lines().next().unwrap_or_default().trim().to_owned())
    }
}

/// Returns the last three lines of a program's output on one line; a phrase for an empty output.
pub(crate) fn last_words(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    match lines.as_slice() {
        [] => "it said nothing".to_owned(),
        lines => lines[lines.len().saturating_sub(3)..].join(" / "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_what_counts() {
        assert_eq!(last_words("a\n\nb\n c\nd\n"), "b / c / d");
        assert_eq!(last_words("\n"), "it said nothing");
    }

    #[test]
    fn a_missing_xctrace_says_what_to_install() {
        let error = Xctrace::at("/nowhere/xctrace")
            .version()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/nowhere/xctrace") && error.contains("install Xcode"),
            "{error}"
        );
    }
}

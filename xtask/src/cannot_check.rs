//! Tells checks that a machine cannot do, because it lacks a tool for another system, from checks that failed.

use std::fmt::Display;

use anyhow::{Result, bail};

use crate::clients;

/// The error that a check's tools could not be installed, so that nothing is known about the code.
#[derive(Debug)]
struct CannotCheck(String);

impl Display for CannotCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotCheck {}

/// Marks an error as the machine's fault and not the code's.
pub fn cannot<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| anyhow::Error::new(CannotCheck(format!("{error:#}"))))
}

/// Returns a sentence if a check could not be done, for the caller to print at the end of all tests. The sentence
/// is an error where clients (programs that tests record) must be there, as in CI. Other errors stay errors.
pub fn tolerate(what: &str, result: Result<()>) -> Result<Option<String>> {
    match result {
        Ok(()) => Ok(None),
        Err(error) if error.chain().any(|e| e.is::<CannotCheck>()) => {
            let unchecked = format!("{what}:\n{error:#}");
            if clients::required() {
                bail!("not checked: {unchecked}");
            }
            Ok(Some(unchecked))
        }
        Err(error) => Err(error),
    }
}

/// Prints loudly which check was not done.
pub fn warn(unchecked: &str) {
    let line = "!".repeat(100);
    eprintln!("{line}\nNOT CHECKED: {unchecked}\n{line}");
}

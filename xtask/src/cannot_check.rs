//! Checks that not every machine can do: for another system, with what it may be impossible to have.

use std::fmt::Display;

use anyhow::{Result, bail};

use crate::clients;

/// What is needed for a check could not be had: the code itself may be right.
#[derive(Debug)]
struct CannotCheck(String);

impl Display for CannotCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotCheck {}

/// Marks an error as one of the machine, not of the code.
pub fn cannot<T>(result: Result<T>) -> Result<T> {
    result.map_err(|error| anyhow::Error::new(CannotCheck(format!("{error:#}"))))
}

/// A check as a part of all tests: where it cannot be done, that is given to be said last and loudly, and is a failure where CI
/// demands everything.
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

/// Says what was not checked, so that nobody takes silence for success.
pub fn warn(unchecked: &str) {
    let line = "!".repeat(100);
    eprintln!("{line}\nNOT CHECKED: {unchecked}\n{line}");
}

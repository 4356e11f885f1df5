//! Explains errors of the command line that come from empty arguments, mostly from a shell variable that is not
//! set.

use crate::{exit, page};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::process::ExitCode;

/// Prints why the arguments cannot be understood. Help and the version, which are no errors, end here, too.
pub fn refuse(error: &clap::Error) -> ExitCode {
    let Some(argument) = empty_argument(error) else {
        error.exit();
    };
    page::note(format!(
        "\"\" is given for {argument}, and an empty text names nothing: write it, or set the variable that stands for it"
    ));
    ExitCode::from(exit::USAGE)
}

/// Returns the name of an argument that is an empty text, which clap reports as missing; `None` for other errors.
fn empty_argument(error: &clap::Error) -> Option<&str> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let is_empty = error.kind() == ErrorKind::InvalidValue
        && text(ContextKind::InvalidValue).is_some_and(str::is_empty)
        && !matches!(error.get(ContextKind::ValidValue), Some(ContextValue::Strings(values)) if !values.is_empty());
    text(ContextKind::InvalidArg).filter(|_| is_empty)
}

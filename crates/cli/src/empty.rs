//! Empty arguments, which mostly come of a variable of the shell that is not set.

use crate::page;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::process::ExitCode;

/// The exit status of arguments that cannot be understood, as clap has it.
const USAGE: u8 = 2;

/// Says why the arguments cannot be understood. Help and the version are no errors, and end here too.
pub fn refused(error: &clap::Error) -> ExitCode {
    let Some(argument) = empty(error) else {
        error.exit();
    };
    page::say(&format!(
        "gapscope: \"\" is given for {argument}, and an empty text names nothing: write it, or set the variable that stands for it\n"
    ));
    ExitCode::from(USAGE)
}

/// The argument that is an empty text. Of such clap says that there is none.
fn empty(error: &clap::Error) -> Option<&str> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let is_empty = error.kind() == ErrorKind::InvalidValue
        && text(ContextKind::InvalidValue).is_some_and(str::is_empty)
        && !matches!(error.get(ContextKind::ValidValue), Some(ContextValue::Strings(values)) if !values.is_empty());
    text(ContextKind::InvalidArg).filter(|_| is_empty)
}

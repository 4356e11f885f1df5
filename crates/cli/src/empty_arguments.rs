//! Empty arguments, which mostly come of a variable of the shell that is not set.

use crate::{exit, page};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::process::ExitCode;

/// Says why the arguments cannot be understood. Help and the version are no errors, and end here too.
pub fn refuse(error: &clap::Error) -> ExitCode {
    let Some(argument) = empty_argument(error) else {
        error.exit();
    };
    page::say(&format!(
        "gapscope: \"\" is given for {argument}, and an empty text names nothing: write it, or set the variable that stands for it\n"
    ));
    ExitCode::from(exit::USAGE)
}

/// The argument that is an empty text. Of such clap says that there is none.
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

//! Writes documents to stdout and stderr: to a terminal with its width and colours, to files and pipes without
//! colours.

use crate::args::Width;
use crate::failure::Failure;
pub use gapscope_companion::say;
use gapscope_report::{Block, Document, Terminal};
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{IsTerminal, stderr, stdout};
use terminal_size::Height;

/// The greatest number of columns that `--width` accepts.
const MAX_COLUMNS: u16 = 1000;
/// The least number of columns that `--width` accepts.
const MIN_COLUMNS: u16 = 60;

/// Returns the terminal of stdout, with the number of columns that the user asked for, if any.
pub fn stdout_terminal(width: &Width) -> Terminal {
    let terminal = terminal(&stdout(), terminal_size::terminal_size_of(stdout()));
    let columns = width.columns.map_or(terminal.columns, usize::from);
    Terminal {
        columns,
        ..terminal
    }
}

/// Returns the terminal of stderr.
pub fn stderr_terminal() -> Terminal {
    terminal(&stderr(), terminal_size::terminal_size_of(stderr()))
}

/// Returns the terminal of a stream; only a stream that is a terminal has a width and colours of its own.
fn terminal(stream: &impl IsTerminal, size: Option<(terminal_size::Width, Height)>) -> Terminal {
    let is_terminal = stream.is_terminal();
    let size = size.filter(|_| is_terminal).map(|(width, _)| width.0);
    Terminal {
        columns: columns(std::env::var("COLUMNS").ok().as_deref(), size),
        colour: is_terminal && coloured(std::env::var_os("NO_COLOR"), std::env::var_os("TERM")),
    }
}

/// Returns the columns of a page: those of the user's variable, or else those of the terminal, at least
/// [`MIN_COLUMNS`] and at most [`MAX_COLUMNS`]; 80 without both.
fn columns(variable: Option<&str>, terminal: Option<u16>) -> usize {
    let set = variable.and_then(|columns| columns.trim().parse().ok());
    let columns = set.filter(|columns| *columns > 0).or(terminal);
    columns.map_or(80, |columns| columns.clamp(MIN_COLUMNS, MAX_COLUMNS).into())
}

/// Returns true if a terminal gets colours, by the rules of no-color.org.
fn coloured(no_color: Option<OsString>, term: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty()) && term.is_none_or(|term| term != "dumb")
}

/// Writes a document to stdout.
pub fn print(document: &Document, width: &Width) -> Result<(), Failure> {
    write(&stdout_terminal(width).draw(document))
}

/// Prints a message of gapscope itself on stderr.
pub fn note(text: impl Display) {
    say(&format!("gapscope: {text}\n"));
}

/// Returns sentences as items of a document.
pub fn items<'a>(sentences: impl IntoIterator<Item = &'a String>) -> impl Iterator<Item = Block> {
    let sentences = sentences.into_iter();
    sentences.map(|sentence| Block::Item(sentence.as_str().into()))
}

/// Returns a value as indented JSON that ends with a line feed.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

/// Writes a value as JSON to stdout.
pub fn write_json(value: &impl Serialize) -> Result<(), Failure> {
    write(&json(value)?)
}

/// Writes text to stdout.
pub fn write(text: &str) -> Result<(), Failure> {
    Ok(gapscope_companion::write(text)?)
}

#[cfg(test)]
mod tests {
    use super::{coloured, columns};

    #[test]
    fn a_page_is_as_wide_as_the_variable_or_the_terminal_says() {
        assert_eq!(columns(None, None), 80, "a pipe");
        assert_eq!(columns(None, Some(211)), 211, "a wide terminal is used");
        assert_eq!(columns(Some("140"), None), 140);
        assert_eq!(columns(Some("140"), Some(211)), 140);
        assert_eq!(columns(Some("3"), None), 60);
        for nothing in ["", "wide", "-1", "0", "99999"] {
            assert_eq!(columns(Some(nothing), Some(100)), 100, "{nothing}");
        }
    }

    #[test]
    fn no_color_is_respected() {
        assert!(coloured(None, None));
        assert!(coloured(Some("".into()), Some("xterm".into())));
        assert!(!coloured(Some("1".into()), None));
        assert!(!coloured(None, Some("dumb".into())));
    }
}

//! Writes pages: to a terminal with its width and colours, to anything else plainly.

use crate::args::Width;
use crate::failure::Failure;
pub use gapscope_companion::say;
use gapscope_report::{Document, Terminal};
use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};
use terminal_size::Height;

/// As many columns as `--width` takes.
const WIDEST: u16 = 1000;
const NARROWEST: u16 = 60;

/// The terminal of stdout, in as many columns as were asked for.
pub fn of_stdout(width: &Width) -> Terminal {
    let terminal = terminal(&stdout(), terminal_size::terminal_size_of(stdout()));
    let columns = width.columns.map_or(terminal.columns, usize::from);
    Terminal {
        columns,
        ..terminal
    }
}

/// The terminal of stderr.
pub fn of_stderr() -> Terminal {
    terminal(&stderr(), terminal_size::terminal_size_of(stderr()))
}

fn terminal(stream: &impl IsTerminal, size: Option<(terminal_size::Width, Height)>) -> Terminal {
    let is_terminal = stream.is_terminal();
    let size = size.filter(|_| is_terminal).map(|(width, _)| width.0);
    Terminal {
        columns: columns(std::env::var("COLUMNS").ok().as_deref(), size),
        colour: is_terminal && coloured(std::env::var_os("NO_COLOR"), std::env::var_os("TERM")),
    }
}

/// The columns of a page: those of the variable, which somebody has set, else those of the terminal.
fn columns(variable: Option<&str>, terminal: Option<u16>) -> usize {
    let set = variable.and_then(|columns| columns.trim().parse().ok());
    let columns = set.filter(|columns| *columns > 0).or(terminal);
    columns.map_or(80, |columns| columns.clamp(NARROWEST, WIDEST).into())
}

/// Whether a terminal gets colours: see no-color.org.
fn coloured(no_color: Option<OsString>, term: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty()) && term.is_none_or(|term| term != "dumb")
}

/// Draws a document on stdout.
pub fn print(document: &Document, width: &Width) -> Result<(), Failure> {
    write(&of_stdout(width).draw(document))
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

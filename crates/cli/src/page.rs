//! Writes pages: to a terminal with its width and colours, to anything else plainly.

use crate::failure::Failure;
pub use gapscope_command::say;
use gapscope_report::{Document, Terminal};
use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};
use terminal_size::{Height, Width};

/// Wider lines are hard to read.
const WIDEST: u16 = 120;
const NARROWEST: u16 = 60;

/// The terminal of stdout.
pub fn of_stdout() -> Terminal {
    terminal(&stdout(), terminal_size::terminal_size_of(stdout()))
}

/// The terminal of stderr.
pub fn of_stderr() -> Terminal {
    terminal(&stderr(), terminal_size::terminal_size_of(stderr()))
}

fn terminal(stream: &impl IsTerminal, size: Option<(Width, Height)>) -> Terminal {
    if !stream.is_terminal() {
        return Terminal::default();
    }
    let columns = size.map_or(80, |(width, _)| width.0);
    Terminal {
        columns: columns.clamp(NARROWEST, WIDEST).into(),
        colour: coloured(std::env::var_os("NO_COLOR"), std::env::var_os("TERM")),
    }
}

/// Whether a terminal gets colours: see no-color.org.
fn coloured(no_color: Option<OsString>, term: Option<OsString>) -> bool {
    no_color.is_none_or(|value| value.is_empty()) && term.is_none_or(|term| term != "dumb")
}

/// Draws a document on stdout.
pub fn print(document: &Document) -> Result<(), Failure> {
    write(&of_stdout().draw(document))
}

/// Writes text to stdout.
pub fn write(text: &str) -> Result<(), Failure> {
    gapscope_command::write(text).map_err(Failure::new)
}

#[cfg(test)]
mod tests {
    use super::coloured;

    #[test]
    fn no_color_is_respected() {
        assert!(coloured(None, None));
        assert!(coloured(Some("".into()), Some("xterm".into())));
        assert!(!coloured(Some("1".into()), None));
        assert!(!coloured(None, Some("dumb".into())));
    }
}

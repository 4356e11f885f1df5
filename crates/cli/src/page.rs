//! Writes pages: to a terminal with its width and colours, to anything else plainly.

use crate::args::Width;
use crate::failure::Failure;
pub use gapscope_command::say;
use gapscope_report::{Document, Terminal};
use std::ffi::OsString;
use std::io::{IsTerminal, stderr, stdout};
use terminal_size::Height;

/// Wider lines are hard to read: who wants them says so.
const WIDEST: u16 = 120;
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
    if !stream.is_terminal() {
        let columns = std::env::var("COLUMNS").ok();
        let columns = columns.and_then(|columns| columns.parse::<u16>().ok());
        return Terminal {
            columns: columns.map_or(80, fitting),
            colour: false,
        };
    }
    let columns = size.map_or(80, |(width, _)| width.0);
    Terminal {
        columns: fitting(columns),
        colour: coloured(std::env::var_os("NO_COLOR"), std::env::var_os("TERM")),
    }
}

fn fitting(columns: u16) -> usize {
    columns.clamp(NARROWEST, WIDEST).into()
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

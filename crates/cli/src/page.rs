//! Writes pages: to a terminal with its width and colours, to anything else plainly.

use crate::failure::{Failure, without_number};
use gapscope_report::{Document, Terminal};
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write, stderr, stdout};
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

/// Writes text to stdout. A reader that has had enough (`| head`) is no failure.
pub fn write(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let text = format!("cannot write to stdout: {error}");
            Err(Failure::new(without_number(&text)))
        }
    }
}

/// Writes text to stderr. That nobody reads it is no failure either.
pub fn say(text: &str) {
    let _ = stderr().lock().write_all(text.as_bytes());
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

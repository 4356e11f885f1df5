//! Draws a line on the terminal that this process was started from, while a program that is recorded writes elsewhere.
//!
//! The program has this process's stdout and stderr. Where either is a terminal, a line of ours would be drawn into what the program
//! draws there, such as a progress bar of its own. A program may also open `/dev/tty` at any moment to ask for a password. No check
//! before drawing can exclude that, so the line is drawn only where the user says that the program leaves the terminal alone.

use gapscope_report::fit;
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;
use std::fs::{File, OpenOptions};
use std::io::{IsTerminal, Write, stderr, stdout};
use terminal_size::{Width, terminal_size_of};

/// The columns of a terminal that does not tell its size.
const USUAL_COLUMNS: u16 = 80;

/// A line on the terminal that controls this process.
pub struct TerminalLine {
    terminal: File,
    is_drawn: bool,
}

impl TerminalLine {
    /// Returns a line that is not drawn yet.
    ///
    /// # Errors
    /// A terminal gets what the program writes, or there is no terminal; the error is the reason as a clause.
    pub fn beside_program() -> Result<TerminalLine, &'static str> {
        if stdout().is_terminal() || stderr().is_terminal() {
            return Err("the command writes to the terminal");
        }
        let terminal = OpenOptions::new().write(true).open("/dev/tty");
        let terminal = terminal.map_err(|_| "there is no terminal")?;
        Ok(TerminalLine {
            terminal,
            is_drawn: false,
        })
    }

    /// Draws a text in place of the last one, as far as it fits; nothing while another job has the terminal.
    pub fn draw(&mut self, text: &str) {
        let has_terminal = tcgetpgrp(&self.terminal).is_ok_and(|group| group == getpgrp());
        if !has_terminal {
            return;
        }
        let size = terminal_size_of(&self.terminal);
        let columns = size.map_or(USUAL_COLUMNS, |(Width(columns), _)| columns);
        // In the last column some terminals begin a new line.
        let room = usize::from(columns).saturating_sub(1);
        let text = fit::take(text.chars(), room);
        // A terminal that is gone shows nothing.
        let _ = write!(self.terminal, "\r{text}\x1b[K");
        self.is_drawn = true;
    }
}

impl Drop for TerminalLine {
    fn drop(&mut self) {
        if self.is_drawn {
            let _ = write!(self.terminal, "\r\x1b[K");
        }
    }
}

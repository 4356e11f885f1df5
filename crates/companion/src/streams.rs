//! Writes text to stdout and sentences to stderr.

use std::io::{self, ErrorKind, Write, stderr, stdout};

/// Stdout cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to stdout: {}", without_os_error_numbers(&.0.to_string()))]
pub struct WriteError(#[source] io::Error);

/// Writes text to stdout. A reader that closes the pipe (`| head`) is not a failure.
///
/// # Errors
/// Stdout cannot be written.
pub fn write(text: &str) -> Result<(), WriteError> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(WriteError(error)),
    }
}

/// Writes text to stderr and ignores failures.
pub fn say(text: &str) {
    let _ = stderr().lock().write_all(text.as_bytes());
}

/// Puts a sentence on one line and replaces everything that controls a terminal, whatever an error of the system or a
/// trace holds.
pub fn one_line(text: &str) -> String {
    let harmless = |c: char| match c {
        '\n' | '\r' => ' ',
        c if steers(c) => '·',
        c => c,
    };
    text.chars().map(harmless).collect()
}

/// Returns true for control characters, and for marks that change the direction of writing and can hide text.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Removes the system's error numbers from a sentence.
pub fn without_os_error_numbers(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((before, after)) => {
            let after = after.split_once(')').map_or("", |(_, rest)| rest);
            format!("{before}{after}")
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_steers_no_terminal() {
        assert_eq!(one_line("a\nb\x1b[2J \u{202e}c"), "a b·[2J ·c");
    }

    #[test]
    fn an_error_number_is_left_out() {
        let text = "a: No space left on device (os error 28): b";
        assert_eq!(
            without_os_error_numbers(text),
            "a: No space left on device: b"
        );
    }
}

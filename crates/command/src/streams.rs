//! Text for stdout and sentences for stderr.

use std::io::{ErrorKind, Write, stderr, stdout};

/// Writes text to stdout. A reader that has had enough (`| head`) is not a failure.
///
/// # Errors
/// What stdout goes to cannot be written: a sentence about it.
pub fn write(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            let text = format!("cannot write to stdout: {error}");
            Err(without_number(&text))
        }
    }
}

/// Writes text to stderr. That nobody reads it is not a failure either.
pub fn say(text: &str) {
    let _ = stderr().lock().write_all(text.as_bytes());
}

/// A sentence on one line that does nothing to a terminal, whatever an error of the system or a trace holds.
pub fn one_line(text: &str) -> String {
    let harmless = |c: char| match c {
        '\n' | '\r' => ' ',
        c if steers(c) => '·',
        c => c,
    };
    text.chars().map(harmless).collect()
}

/// True for control characters, and for marks that turn the direction of writing and so hide what is there.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A sentence without the system's error numbers, which say nothing to a reader.
pub fn without_number(text: &str) -> String {
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
        assert_eq!(without_number(text), "a: No space left on device: b");
    }
}

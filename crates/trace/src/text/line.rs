//! Splits a line of a trace as text into a word and `name=value` pairs.

use super::problem::TextProblem;
use std::iter::Peekable;
use std::str::Chars;

/// A line that holds a row.
#[derive(Debug)]
pub(super) struct Line {
    /// The first word, which says what the line describes.
    pub word: String,
    /// The names with their values, without quotes, in the order of the line.
    pub pairs: Vec<(String, String)>,
}

impl Line {
    /// Parses a line; `None` for an empty line and for a comment.
    pub fn parse(text: &str) -> Result<Option<Line>, TextProblem> {
        let mut chars = text.chars().peekable();
        let mut line: Option<Line> = None;
        loop {
            while chars.next_if(|c| c.is_whitespace()).is_some() {}
            match chars.peek() {
                None | Some('#') => return Ok(line),
                Some(_) => {}
            }
            let name = take_until(&mut chars, |c| c.is_whitespace() || c == '=');
            let has_value = chars.next_if_eq(&'=').is_some();
            match &mut line {
                None if has_value => {
                    return Err(TextProblem::NoRow(name));
                }
                None => {
                    line = Some(Line {
                        word: name,
                        pairs: Vec::new(),
                    });
                }
                Some(_) if !has_value || name.is_empty() => {
                    return Err(TextProblem::NoPair(name));
                }
                Some(line) => {
                    let value = if chars.next_if_eq(&'"').is_some() {
                        let Some(value) = quoted(&mut chars) else {
                            return Err(TextProblem::OpenQuote(name));
                        };
                        if chars.peek().is_some_and(|c| !c.is_whitespace()) {
                            return Err(TextProblem::TextAfterQuote(name));
                        }
                        value
                    } else {
                        take_until(&mut chars, char::is_whitespace)
                    };
                    line.pairs.push((name, value));
                }
            }
        }
    }

    /// Returns the value of `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Takes the characters before the first for which `end` is true.
fn take_until(chars: &mut Peekable<Chars<'_>>, end: impl Fn(char) -> bool) -> String {
    let mut taken = String::new();
    while let Some(c) = chars.next_if(|c| !end(*c)) {
        taken.push(c);
    }
    taken
}

/// Returns the text before the closing quote; `None` without a closing quote, or with an unknown escape.
fn quoted(chars: &mut Peekable<Chars<'_>>) -> Option<String> {
    let mut value = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(value),
            '\\' => value.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                c @ ('"' | '\\') => c,
                'u' => {
                    chars.next_if_eq(&'{')?;
                    let digits = take_until(chars, |c| c == '}');
                    chars.next()?;
                    char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?
                }
                _ => return None,
            }),
            c => value.push(c),
        }
    }
}

/// Appends ` name=value`, quoted where necessary.
pub(super) fn write_pair(text: &mut String, name: &str, value: &str) {
    text.push(' ');
    text.push_str(name);
    text.push('=');
    let plain = !value.is_empty()
        && value
            .chars()
            .all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '\\' | '#'));
    if plain {
        text.push_str(value);
        return;
    }
    text.push('"');
    for c in value.chars() {
        match c {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => text.extend(c.escape_unicode()),
            c => text.push(c),
        }
    }
    text.push('"');
}

//! Takes off what journald, docker-compose, Kubernetes, llama.cpp's router and others put before each line of a log. The
//! line that begins a block shows the prefix; later lines of the same program have as many words, and the same words
//! but for times.

use super::BLOCK;

/// The maximum number of words of a prefix. Other lines that mention a block are text.
const MAX_WORDS: usize = 8;
/// The maximum number of distinct prefixes that are remembered.
const MAX_PREFIXES: usize = 64;
/// The word that stands for a time in the name of a source.
const TIME: &str = "*";

/// The numbers of words of the prefixes so far, the greatest first.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    words: Vec<usize>,
}

impl Prefixes {
    /// Adds the prefix of a line that begins a block, and returns its source: the words, with times left out.
    pub fn add(&mut self, before: &str) -> String {
        let words = before.split_whitespace().count();
        if !self.words.contains(&words) && self.words.len() < MAX_PREFIXES {
            self.words.push(words);
            self.words.sort_unstable_by(|a, b| b.cmp(a));
        }
        source(before)
    }

    /// Splits a line into the source of its prefix, one for which `is_open` is true, and the text behind it; `None` if
    /// it has no such prefix.
    pub fn split<'l>(
        &self,
        line: &'l str,
        is_open: impl Fn(&str) -> bool,
    ) -> Option<(String, &'l str)> {
        let mut prefixes = self.words.iter();
        prefixes.find_map(|words| {
            let (before, text) = split_words(line, *words)?;
            let source = source(before);
            is_open(&source).then_some((source, text))
        })
    }
}

/// Returns a line without the escape sequences of terminals, trimmed.
pub(super) fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            plain.push(c);
            continue;
        }
        // A control sequence ends with a letter or one of a few signs.
        if chars.next_if_eq(&'[').is_some() {
            chars.by_ref().find(|c| matches!(c, '@'..='~'));
        } else {
            chars.next();
        }
    }
    plain.trim().to_owned()
}

/// Returns what stands before the beginning of a block in its line; `None` for other lines.
pub(super) fn before_block(line: &str) -> Option<&str> {
    let before = line.strip_suffix(BLOCK)?;
    let is_prefix = before.is_empty() || before.ends_with(char::is_whitespace);
    (is_prefix && before.split_whitespace().count() <= MAX_WORDS).then_some(before)
}

/// Returns the words of a source that name its program: without times.
pub(super) fn program(source: &str) -> String {
    let words = source
        .split(' ')
        .filter(|word| *word != TIME && *word != "|");
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the words of a prefix, joined by spaces, with [`TIME`] in place of times.
fn source(before: &str) -> String {
    let words = before.split_whitespace();
    let words = words.map(|word| if is_time(word) { TIME } else { word });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns whether a word is a part of a time, such as `26`, `10:00:01`, `[12.345]` or `2026-11-26T10:00:01Z`.
fn is_time(word: &str) -> bool {
    let is_time_sign =
        |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | ',' | '-' | '+' | 'T' | 'Z' | '/');
    let bare = word.trim_matches(['[', ']', '(', ')']);
    let digits = bare.chars().filter(char::is_ascii_digit).count();
    let has_signs = bare.chars().any(|c| !c.is_ascii_digit());
    // A number in brackets is the number of a process.
    digits > 0 && bare.chars().all(is_time_sign) && (has_signs || bare.len() == word.len())
}

/// Splits a line behind a number of words; `None` if it has fewer, or nothing behind them.
fn split_words(line: &str, words: usize) -> Option<(&str, &str)> {
    let mut rest = line.trim_start();
    for _ in 0..words {
        let end = rest.find(char::is_whitespace)?;
        rest = rest.get(end..)?.trim_start();
    }
    let before = line.get(..line.len() - rest.len())?;
    (!rest.is_empty()).then_some((before, rest))
}

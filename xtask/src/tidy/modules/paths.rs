//! Finds the paths to modules that a source text names. The text is split into words and is not parsed as Rust.

/// A path that starts at `crate`, `super`, `self` or a name.
#[derive(Debug, PartialEq)]
pub struct UsedPath {
    pub segments: Vec<String>,
    /// True if the path is part of a `pub use`.
    pub is_exported: bool,
}

/// Returns the paths of a source text without its unit tests. A path that starts with a name other than `crate`,
/// `super` and `self` may be a path to a submodule.
pub fn used_paths(text: &str) -> Vec<UsedPath> {
    let words = words(text);
    let mut paths = Vec::new();
    let mut at = 0;
    let (mut exported, mut in_use) = (false, false);
    while at < words.len() {
        let word = words[at];
        if words[at..].starts_with(&["#", "[", "cfg", "(", "test", ")", "]", "mod"]) {
            at = end_of_block(&words, at);
            continue;
        }
        match word {
            "use" => {
                in_use = true;
                exported = at > 0 && (words[at - 1] == "pub" || words[at - 1] == ")");
            }
            ";" => (in_use, exported) = (false, false),
            _ => {}
        }
        let starts = is_name(word) && words.get(at + 1) == Some(&"::");
        if starts || in_use && is_name(word) && word != "use" {
            let (found, next) = tree(&words, at);
            paths.extend(found.into_iter().map(|segments| UsedPath {
                segments: segments.into_iter().map(str::to_owned).collect(),
                is_exported: exported,
            }));
            at = next;
        } else {
            at += 1;
        }
    }
    paths
}

/// Returns the index of the word that ends the next block; the number of words if the block is not closed.
fn end_of_block(words: &[&str], start: usize) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(start) {
        match *word {
            "{" => depth += 1,
            "}" if depth == 1 => return at + 1,
            "}" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    words.len()
}

/// Returns the paths of a tree such as `a::{b, c::D}`, and the index of the word behind it.
fn tree<'a>(words: &[&'a str], mut at: usize) -> (Vec<Vec<&'a str>>, usize) {
    let mut path = Vec::new();
    loop {
        match words.get(at) {
            Some(&"{") => {
                at += 1;
                let mut paths = Vec::new();
                while let Some(word) = words.get(at).filter(|word| **word != "}") {
                    if is_name(word) {
                        let (ends, next) = tree(words, at);
                        paths.extend(ends.into_iter().map(|end| [path.as_slice(), &end].concat()));
                        at = next;
                    } else {
                        at += 1;
                    }
                }
                return (paths, at + 1);
            }
            Some(word) if is_name(word) => {
                path.push(*word);
                at += 1;
            }
            _ => return (vec![path], at),
        }
        if words.get(at) != Some(&"::") {
            if words.get(at) == Some(&"as") {
                at += 2;
            }
            return (vec![path], at);
        }
        at += 1;
    }
}

/// Returns whether a word is a name or a keyword.
fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Returns the names, `::` and other signs of a source text, without comments and literals.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            string_length(rest)
        } else if let Some(length) = raw_string_length(rest) {
            length
        } else if first == '\'' {
            character_length(rest)
        } else if first.is_alphanumeric() || first == '_' {
            let name = |c: char| !(c.is_alphanumeric() || c == '_');
            let length = rest.find(name).unwrap_or(rest.len());
            words.push(&rest[..length]);
            length
        } else if rest.starts_with("::") {
            words.push("::");
            2
        } else {
            if !first.is_whitespace() {
                words.push(&rest[..first.len_utf8()]);
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    words
}

/// Returns the length of the string that a text begins with, both quotes included.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// Returns the length of a raw string `r"…"` with any number of `#`; `None` for other texts.
fn raw_string_length(text: &str) -> Option<usize> {
    let marks = text.strip_prefix('r')?;
    let count = marks.bytes().take_while(|byte| *byte == b'#').count();
    let inner = marks[count..].strip_prefix('"')?;
    let end = inner.find(&format!("\"{}", "#".repeat(count)))?;
    Some(1 + count + 1 + end + 1 + count)
}

/// Returns the length of a character literal, or of the quote alone if it starts a lifetime.
fn character_length(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(text.len(), |end| 3 + end + 1),
        _ => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let path = |path: UsedPath| path.segments.join("::");
        used_paths(text).into_iter().map(path).collect()
    }

    #[test]
    fn trees_are_taken_apart() {
        assert_eq!(
            shown("use crate::{a, b::{self, C as D}}; use super::e;"),
            ["crate::a", "crate::b::self", "crate::b::C", "super::e"]
        );
    }

    #[test]
    fn paths_outside_of_imports_are_found() {
        let text = "fn f<'a>(x: &'a crate::b::B) -> char { super::g('\\''); 'c' }";
        assert_eq!(shown(text), ["crate::b::B", "super::g"]);
    }

    #[test]
    fn exports_are_told_from_imports() {
        let found = used_paths("pub use a::B; pub(crate) use macros; use c::D;");
        let exported: Vec<bool> = found.iter().map(|path| path.is_exported).collect();
        assert_eq!(exported, [true, true, false]);
    }

    #[test]
    fn literals_and_tests_are_passed_over() {
        let text = "const A: &str = r#\"crate::\"a\"\"#; b(\"\\\"crate::a\"); #[cfg(test)] mod t { use crate::c; } use crate::d;";
        assert_eq!(shown(text), ["crate::d"]);
    }
}

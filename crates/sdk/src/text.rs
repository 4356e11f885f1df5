//! Shows texts of the program, such as labels and paths, without what would steer a terminal.

use std::borrow::Cow;
use std::path::Path;

/// Returns the text with a `·` for each control character and each mark that changes the direction of writing.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    match text.contains(steers) {
        true => text
            .chars()
            .map(|c| if steers(c) { '·' } else { c })
            .collect(),
        false => Cow::Borrowed(text),
    }
}

/// Returns the path as [`shown`] does a text.
pub(crate) fn shown_path(path: &Path) -> String {
    shown(&path.to_string_lossy()).into_owned()
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        assert_eq!(shown("a\x1b[2Jb\nc\u{202e}d"), "a·[2Jb·c·d");
        assert_eq!(shown_path(Path::new("x\x1b]0;y\x07")), "x·]0;y·");
    }
}

//! Text made to fit: widths in columns, truncation in the middle, wrapping, and nothing that could steer a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns that a text takes in a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A text of the recorded program (kernel, label, path) that is safe to print: control characters, which could move
/// the cursor or break a table, become `·`.
pub fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { '·' } else { c })
        .collect()
}

/// What stands between two names of which one follows the other.
pub const ARROW: &str = " → ";

/// At most `columns` of `text`: when it is longer, its middle becomes `…`, since names mostly differ at their ends. Of two
/// names with an [`ARROW`] between them, each is clipped.
///
/// ```
/// use gapscope_report::fit::clip;
/// assert_eq!(clip("matmul_f16_aligned_l", 11), "matmu…ned_l");
/// assert_eq!(clip("matmul_f16 → sin", 14), "matm…f16 → sin");
/// ```
pub fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(width(ARROW));
    if let Some((before, after)) = text.split_once(ARROW).filter(|_| room >= 2) {
        let half = room / 2;
        let of_after = width(after).min(half.max(room.saturating_sub(width(before))));
        let before = clip_one(before, room - of_after);
        return format!("{before}{ARROW}{}", clip_one(after, of_after));
    }
    clip_one(text, columns)
}

fn clip_one(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let head = take(text.chars(), room - room / 2);
    let tail: String = take(text.chars().rev(), room / 2).chars().rev().collect();
    format!("{head}…{tail}")
}

fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    chars
        .take_while(|c| {
            let wide = c.width().unwrap_or(0);
            let fits = wide <= left;
            left = left.saturating_sub(wide);
            fits
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_clipped_in_the_middle_and_never_past_its_columns() {
        assert_eq!(clip("main", 4), "main");
        assert_eq!(clip("kernel", 5), "ke…el");
        assert_eq!(clip("kernel", 1), "…");
        assert_eq!(clip("kernel", 0), "");
        for columns in 0..30 {
            assert!(width(&clip("行列の積_f32_混合精度", columns)) <= columns);
            assert!(width(&clip("行列の積_f32 → 混合精度 → x", columns)) <= columns);
        }
        assert_eq!(clip("a_long_name → a_long_name", 17), "a_l…ame → a_l…ame");
        assert_eq!(clip("short → a_long_name", 17), "short → a_lo…name");
    }

    #[test]
    fn an_escape_sequence_in_a_label_does_not_reach_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc"), "a·[2Jb·c");
    }
}

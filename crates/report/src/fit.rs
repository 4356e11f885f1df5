//! Fits text into columns of a terminal or table: measures widths, clips in the middle, and removes characters that
//! could steer a terminal.

use gapscope_companion::steers;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Returns the columns that a text takes in a terminal.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The maximum number of characters of a text. Longer texts lose their middle: nobody reads such a name, and a trace
/// may have thousands of them.
const MAX_CHARACTERS: usize = 8192;

/// The maximum number of characters without a width that may follow a character with a width: more than any script
/// needs.
const MAX_MARKS: usize = 8;

/// Makes a text of the recorded program (kernel, label, path) safe to print: characters that could move the cursor, break a table or
/// turn the direction of writing become `·`, and the text takes a bounded space.
pub fn clean(text: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| (b' '..=b'~').contains(&byte);
    if text.len() <= MAX_CHARACTERS && text.bytes().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut marks = 0;
    let harmless = text.chars().map(|c| if steers(c) { '·' } else { c });
    let mut harmless: String = harmless
        .filter(|c| {
            marks = if c.width() == Some(0) { marks + 1 } else { 0 };
            marks <= MAX_MARKS
        })
        .collect();
    if harmless.char_indices().nth(MAX_CHARACTERS).is_some() {
        let half = MAX_CHARACTERS / 2;
        let head = harmless.char_indices().nth(half);
        let tail = harmless.char_indices().nth_back(half - 1);
        if let (Some((head, _)), Some((tail, _))) = (head, tail) {
            harmless.replace_range(head..tail, "…");
        }
    }
    Cow::Owned(harmless)
}

/// The arrow between two names of which one follows the other.
pub const ARROW: &str = " → ";

/// Clips a text to `columns`: its middle becomes `…`, since names mostly differ at their ends; a name that ends with a bracket loses its
/// end. Where two names have an [`ARROW`] between them, each is clipped.
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

/// Clips one name: at its end where it ends with a bracket, as it says what matters before that (`gemm bf16 128x64 nn
/// (cutla…`), otherwise in the middle.
fn clip_one(text: &str, columns: usize) -> String {
    match columns.checked_sub(1) {
        Some(room) if text.ends_with(['>', ')']) && width(text) > columns => {
            format!("{}…", take(text.chars(), room))
        }
        _ => clip_middle(text, columns),
    }
}

/// Clips a text to `columns` in the middle.
fn clip_middle(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let head = take(text.chars(), room - room / 2);
    format!("{head}…{}", take_last(text, room / 2))
}

/// Clips the texts of a column, each to at most `columns`: different texts stay different, as far as the column has
/// room; where nothing else helps, by a number at their end.
///
/// ```
/// use gapscope_report::fit::clip_apart;
/// assert_eq!(clip_apart(&["a_long_name_1_of", "a_long_name_2_of"], 8), ["a_…_1_of", "a_…_2_of"]);
/// ```
pub fn clip_apart<T: AsRef<str>>(texts: &[T], columns: usize) -> Vec<String> {
    let mut clips: HashMap<&str, String> = HashMap::new();
    for text in texts {
        let text = text.as_ref();
        clips.entry(text).or_insert_with(|| clip(text, columns));
    }
    if halves_look_alike(&clips) {
        let halves = halves_apart(texts, columns);
        for (text, clip) in &mut clips {
            if let Some((before, after)) = text.split_once(ARROW)
                && text != clip
            {
                *clip = format!("{}{ARROW}{}", halves[before], halves[after]);
            }
        }
    }
    // The order is that of the rows, so that numbers follow it.
    let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut seen: HashSet<&str> = HashSet::new();
    for text in texts
        .iter()
        .map(AsRef::as_ref)
        .filter(|text| seen.insert(text))
    {
        let clip = clips[text].as_str();
        let place = *places.entry(clip).or_insert(alike.len());
        if place == alike.len() {
            alike.push((clip.to_owned(), Vec::new()));
        }
        alike[place].1.push(text);
    }
    let mut taken: HashSet<String> = alike.iter().map(|(clip, _)| clip.clone()).collect();
    for (_, group) in alike.iter().filter(|(_, group)| group.len() > 1) {
        for (text, clip) in group.iter().zip(told_apart(group, columns, &taken)) {
            taken.insert(clip.clone());
            clips.insert(text, clip);
        }
    }
    texts
        .iter()
        .map(|text| clips[text.as_ref()].clone())
        .collect()
}

/// Returns true where clips of two names with an arrow between them show different names alike.
fn halves_look_alike(clips: &HashMap<&str, String>) -> bool {
    let pairs = clips.iter().filter_map(|(text, clip)| {
        let (names, shown) = (text.split_once(ARROW)?, clip.split_once(ARROW)?);
        Some([(names.0, shown.0), (names.1, shown.1)])
    });
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut pairs = pairs.flatten();
    pairs.any(|(name, shown)| *names.entry(shown).or_insert(name) != name)
}

/// Returns clips of texts whose names before and behind an arrow each get half of the columns.
fn halves_apart<T: AsRef<str>>(texts: &[T], columns: usize) -> HashMap<&str, String> {
    let pairs = texts
        .iter()
        .filter_map(|text| text.as_ref().split_once(ARROW));
    let halves: Vec<&str> = pairs.flat_map(|(before, after)| [before, after]).collect();
    let clips = clip_apart(&halves, columns.saturating_sub(width(ARROW)) / 2);
    halves.into_iter().zip(clips).collect()
}

/// Returns different clips for texts that would be clipped alike: the first of several ways to clip that gives clips
/// which differ from each other and from those `taken`, otherwise numbered clips.
fn told_apart(group: &[&str], columns: usize, taken: &HashSet<String>) -> Vec<String> {
    let same = group[1..]
        .iter()
        .map(|text| shared(group[0], text))
        .min()
        .unwrap_or(0);
    let ways: [&dyn Fn(&str) -> String; 3] = [
        &|text| clip_middle(text, columns),
        // The clip begins with a few columns of their start and goes on where they differ.
        &|text| {
            let head = take(text.chars(), columns.saturating_sub(1).min(columns / 3));
            let room = columns.saturating_sub(width(&head) + 1);
            let rest = &text[same.max(head.len())..];
            match width(rest) <= room {
                // There is room for more of the common part.
                true => format!("{head}…{}", take_last(text, room)),
                false => format!("{head}…{}", clip_middle(rest, room)),
            }
        },
        &|text| match columns.checked_sub(1) {
            Some(room) => format!("…{}", take_last(text, room)),
            None => String::new(),
        },
    ];
    for way in ways {
        let clips: Vec<String> = group.iter().map(|text| way(text)).collect();
        let mut seen = HashSet::new();
        if clips
            .iter()
            .all(|clip| !taken.contains(clip) && seen.insert(clip))
        {
            return clips;
        }
    }
    let mut number = 0;
    let numbered = group.iter().map(|text| {
        loop {
            number += 1;
            let mark = format!(" #{number}");
            let clip = match columns.checked_sub(width(&mark)).filter(|room| *room > 0) {
                Some(room) => format!("{}{mark}", clip_one(text, room)),
                None => take_last(&mark, columns),
            };
            // Where the column cannot hold another number, the clips stay alike.
            if !taken.contains(&clip) || number > taken.len() + group.len() {
                return clip;
            }
        }
    });
    numbered.collect()
}

/// Returns the length in bytes of the common start of two texts.
fn shared(a: &str, b: &str) -> usize {
    let both = a.char_indices().zip(b.chars());
    let differs = both.into_iter().find(|((_, a), b)| a != b);
    differs.map_or(a.len().min(b.len()), |((at, _), _)| at)
}

/// Returns the end of a text that fits into `columns`.
fn take_last(text: &str, columns: usize) -> String {
    take(text.chars().rev(), columns).chars().rev().collect()
}

/// Returns the first characters that fit into `columns`.
pub fn take(chars: impl Iterator<Item = char>, columns: usize) -> String {
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
    fn different_names_stay_different_at_any_width() {
        let gemm = |layout, stages| {
            format!("gemm s1688 128x128 {layout} (cutlass 80 tensorop {stages} align4)")
        };
        let mut names = vec![
            "vectorized_elementwise_kernel<4, add, array<char*, 3>>".to_owned(),
            "vectorized_elementwise_kernel<4, gelu, array<char*, 3>>".to_owned(),
            "行列の積_f32_混合精度".to_owned(),
            "行列の積_f16_混合精度".to_owned(),
        ];
        for layout in ["nn", "nt", "tn"] {
            names.extend(["32x3", "32x5", "16x4"].map(|stages| gemm(layout, stages)));
        }
        // One kernel that occurs twice has one clip.
        names.push(names[0].clone());
        for columns in 5..90 {
            let clips = clip_apart(&names, columns);
            assert_eq!(clips[0], clips[names.len() - 1]);
            let different: HashSet<&String> = clips.iter().collect();
            assert_eq!(different.len(), names.len() - 1, "{columns}: {clips:#?}");
            assert!(
                clips.iter().all(|clip| width(clip) <= columns),
                "{columns}: {clips:#?}"
            );
        }
        for columns in 0..5 {
            clip_apart(&names, columns);
        }
    }

    #[test]
    fn the_part_that_differs_is_kept() {
        let names = [
            "vectorized_elementwise_kernel<4, add<float>, array<char*, 3>>",
            "vectorized_elementwise_kernel<4, gelu<float>, array<char*, 3>>",
        ];
        assert_eq!(
            clip_apart(&names, 24),
            ["vectoriz…add<flo…r*, 3>>", "vectoriz…gelu<fl…r*, 3>>"]
        );
        let details = [
            "gemm f32 64x64 nn (cutlass 80 align4)",
            "fill<float> (vec4)",
        ];
        assert_eq!(
            clip_apart(&details, 22),
            ["gemm f32 64x64 nn (cu…", "fill<float> (vec4)"]
        );
    }

    #[test]
    fn pairs_of_names_keep_their_arrow() {
        let name = |end| format!("split_embedding_backward_codegen_kernel_{end}_per_row");
        let pairs = [
            format!("{} → {}", name("cta"), name("warp")),
            format!("{} → {}", name("warp"), name("cta")),
            "short → name".to_owned(),
        ];
        for columns in 20..100 {
            let clips = clip_apart(&pairs, columns);
            assert!(clips.iter().all(|clip| clip.contains(ARROW)), "{clips:?}");
            assert!(clips.iter().all(|clip| width(clip) <= columns), "{clips:?}");
            assert_ne!(clips[0], clips[1]);
            let clips = pairs.iter().map(String::as_str).zip(clips).collect();
            assert!(!halves_look_alike(&clips), "{clips:?}");
        }
    }

    #[test]
    fn long_names_take_no_time() {
        let names = [
            format!("{}1", "a".repeat(1 << 20)),
            format!("{}2", "a".repeat(1 << 20)),
        ];
        assert_ne!(clip_apart(&names, 20)[0], clip_apart(&names, 20)[1]);
    }

    #[test]
    fn a_text_takes_a_bounded_space_wherever_it_stands() {
        let endless = format!("begin{}end", "a".repeat(1 << 20));
        let shown = clean(&endless);
        assert_eq!(shown.chars().count(), MAX_CHARACTERS + 1);
        assert!(shown.starts_with("begina") && shown.ends_with("aend"));
        assert_eq!(
            clean(&"行".repeat(9000)).chars().count(),
            MAX_CHARACTERS + 1
        );
        assert_eq!(clean("e\u{301}te\u{301}"), "e\u{301}te\u{301}");
        let marks = format!("e{}t", "\u{301}".repeat(1 << 20));
        assert_eq!(clean(&marks).chars().count(), 2 + MAX_MARKS);
        use crate::document::{Block, Document, Text};
        for text in [endless, marks, "ab ".repeat(1 << 19)] {
            let blocks = vec![
                Block::Title(text.clone(), text.clone()),
                Block::Heading(text.clone(), text.clone()),
                Block::Sentence(Text::new().and(text.as_str())),
                Block::Item(Text::new().strong(text.as_str())),
            ];
            let document = Document { blocks };
            let page = crate::terminal::Terminal::default().draw(&document);
            let markdown = crate::markdown::draw(&document);
            assert!(page.len() < 6 * MAX_CHARACTERS, "{}", page.len());
            assert!(markdown.len() < 8 * MAX_CHARACTERS, "{}", markdown.len());
        }
    }

    #[test]
    fn an_escape_sequence_in_a_label_does_not_reach_the_terminal() {
        assert_eq!(clean("a\x1b[2Jb\nc"), "a·[2Jb·c");
        // Neither does a text that was not cleaned before, nor a mark that turns the direction of writing.
        let text = crate::document::Text::new().and("1.0\x1b]0;x\u{7}\u{202e}");
        assert_eq!(text.plain_text(), "1.0·]0;x··");
    }
}

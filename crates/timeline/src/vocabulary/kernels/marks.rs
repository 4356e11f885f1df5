//! Finds, for kernels of different code that have one name, the short marks behind the name that tell them apart,
//! such as `[64x64 f16]` or `(spv:1a2b3c4d)`. Where the whole names do not all differ, the first eight digits of the
//! hashes of code are tried first. Then come the words between a common beginning and end, the words that not all
//! names have, and last a digest.

use gapscope_trace::kernel_names::without_parameters;
use std::collections::HashSet;

/// The maximum length of a mark made of words. Longer marks say less than a digest, which takes their place.
const MAX_MARK_BYTES: usize = 40;

/// The kernels that have one name and one code.
pub(super) struct KernelGroup<'a> {
    /// The kernels' name, without a mark.
    pub(super) base: String,
    /// The kernels' whole name in the code.
    pub(super) whole: &'a str,
    /// The hash of the code; `None` where the trace has none.
    pub(super) hash: Option<&'a str>,
    /// The name of the function in the code at which the kernels start; empty where the trace has none.
    pub(super) entry_point: &'a str,
    /// The row of the first of the kernels.
    pub(super) row: usize,
}

/// Returns marks of kernels with one name. They all differ, and one of them may be empty.
pub(super) fn marks<'a>(groups: &[&KernelGroup<'a>]) -> Vec<String> {
    let names: Vec<&str> = groups.iter().map(|group| group.whole).collect();
    if !all_differ(&names) && groups.iter().all(|group| group.hash.is_some()) {
        let hash = |group: &KernelGroup| format!("{:.8}", group.hash.unwrap_or_default());
        let hashes = groups.iter().map(|group| format!("(spv:{})", hash(group)));
        let with_entry_points =
            (groups.iter()).map(|group| format!("(spv:{} {})", hash(group), group.entry_point));
        let ways: [Vec<String>; 2] = [hashes.collect(), with_entry_points.collect()];
        if let Some(marks) = ways.into_iter().find(|marks| fits(marks)) {
            return marks;
        }
    }
    let texts = texts(groups);
    let words: Vec<Vec<&str>> = texts.iter().map(|text| words(text)).collect();
    let between = between(&words);
    if fits(&between) && between.iter().all(|mark| !mark.is_empty()) {
        return between;
    }
    let own = own(&words);
    if fits(&own) {
        return own;
    }
    if fits(&between) {
        return between;
    }
    let digests = groups.iter().zip(texts).map(|(group, text)| {
        let parts = [text, group.hash.unwrap_or_default()];
        format!("[#{:08x}]", digest(parts.into_iter().flat_map(str::bytes)))
    });
    digests.collect()
}

/// Returns the texts in which kernels with one name differ: the whole names, if needed with their parameters, else
/// the entry points.
fn texts<'a>(groups: &[&KernelGroup<'a>]) -> Vec<&'a str> {
    let texts =
        |text: fn(&KernelGroup<'a>) -> &'a str| groups.iter().map(|group| text(group)).collect();
    let differ = |texts: &Vec<&str>| texts.iter().any(|text| text != &texts[0]);
    let bare: Vec<&str> = texts(|group| without_parameters(group.whole));
    if all_differ(&bare) {
        return bare;
    }
    let whole = texts(|group| group.whole);
    match differ(&whole) {
        true => whole,
        false => texts(|group| group.entry_point),
    }
}

/// Returns the words of each text between the words that all texts start with and those that all end with.
fn between(words: &[Vec<&str>]) -> Vec<String> {
    let shortest = words.iter().map(Vec::len).min().unwrap_or(0);
    let same = |place: &dyn Fn(&Vec<&str>) -> usize| {
        let word = words[0][place(&words[0])];
        words.iter().all(|other| other[place(other)] == word)
    };
    let before = (0..shortest).take_while(|at| same(&|_| *at)).count();
    let behind = (0..shortest - before)
        .take_while(|at| same(&|words| words.len() - 1 - at))
        .count();
    let marks = words.iter().map(|words| {
        let between = &words[before..words.len() - behind];
        mark(between.iter().copied())
    });
    marks.collect()
}

/// Returns the words of each text that some other text lacks.
fn own(words: &[Vec<&str>]) -> Vec<String> {
    let mut sets = words
        .iter()
        .map(|words| words.iter().copied().collect::<HashSet<_>>());
    let first = sets.next().unwrap_or_default();
    let common = sets.fold(first, |common, set| &common & &set);
    let marks = words.iter().map(|words| {
        let mut seen = HashSet::new();
        let own =
            (words.iter().copied()).filter(|word| !common.contains(word) && seen.insert(*word));
        mark(own)
    });
    marks.collect()
}

/// Returns the words in brackets; nothing where there are no words, and a mark that is too long to fit, cut off,
/// where they are many.
fn mark<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut mark = String::new();
    for word in words {
        mark.push_str(if mark.is_empty() { "[" } else { " " });
        mark.push_str(word);
        if mark.len() > MAX_MARK_BYTES {
            return mark;
        }
    }
    if !mark.is_empty() {
        mark.push(']');
    }
    mark
}

/// Returns true where the marks tell all kernels apart and none is too long.
fn fits(marks: &[String]) -> bool {
    all_differ(marks) && marks.iter().all(|mark| mark.len() <= MAX_MARK_BYTES)
}

fn all_differ<T: std::hash::Hash + Eq>(texts: &[T]) -> bool {
    let mut seen = HashSet::new();
    texts.iter().all(|text| seen.insert(text))
}

/// Returns the identifiers and numbers in a name.
fn words(name: &str) -> Vec<&str> {
    let words = name.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns the FNV-1a hash. It must stay the same in every version, since names are compared between traces.
fn digest(mut bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.by_ref().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

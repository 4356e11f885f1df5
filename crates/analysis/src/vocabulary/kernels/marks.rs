//! What stands behind the names of kernels that share one, so that people can tell them apart.

use super::Group;
use gapscope_trace::kernel_names::without_parameters;
use std::collections::HashSet;

/// Longer marks say less than a digest.
const LONGEST_MARK: usize = 40;

/// What tells kernels with one name apart: all different, one of them may be empty.
pub(super) fn of<'a>(groups: &[&Group<'a>]) -> Vec<String> {
    let names: Vec<&str> = groups.iter().map(|group| group.whole).collect();
    if !all_differ(&names) && groups.iter().all(|group| group.hash.is_some()) {
        let hash = |group: &Group| format!("{:.8}", group.hash.unwrap_or_default());
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

/// What differs between kernels with one name: the whole names, if need be with their parameters, else the entry points.
fn texts<'a>(groups: &[&Group<'a>]) -> Vec<&'a str> {
    let texts = |of: fn(&Group<'a>) -> &'a str| groups.iter().map(|group| of(group)).collect();
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

/// The words of each that are between those that all start with and those that all end with.
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

/// The words of each that some other lacks.
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

fn mark<'a>(words: impl Iterator<Item = &'a str>) -> String {
    let mut mark = String::new();
    for word in words {
        mark.push_str(if mark.is_empty() { "[" } else { " " });
        mark.push_str(word);
        if mark.len() > LONGEST_MARK {
            return mark;
        }
    }
    if !mark.is_empty() {
        mark.push(']');
    }
    mark
}

fn fits(marks: &[String]) -> bool {
    all_differ(marks) && marks.iter().all(|mark| mark.len() <= LONGEST_MARK)
}

fn all_differ<T: std::hash::Hash + Eq>(texts: &[T]) -> bool {
    let mut seen = HashSet::new();
    texts.iter().all(|text| seen.insert(text))
}

/// The identifiers and numbers in a name.
fn words(name: &str) -> Vec<&str> {
    let words = name.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| !word.is_empty()).collect()
}

/// FNV-1a: the same in every version, since names are compared between traces.
fn digest(mut bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.by_ref().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

//! Puts stacks that read the same into one line.

use super::MIN_SAMPLES_FOR_SHARES;
use super::idle_code::{CauseCode, CodeTime};
use super::stacks::text;
use gapscope_timeline::quantity::share_of;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Stacks that read the same.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeLine<'a> {
    /// The words for the stacks.
    pub text: String,
    /// The stack with the most time.
    pub first: &'a CodeTime,
    /// The time of all stacks.
    pub total_ns: i64,
    /// The samples of all stacks.
    pub samples: u64,
}

impl<'a> CodeLine<'a> {
    /// Merges stacks, the greatest first, whose `text` is the same. The greatest line comes first.
    pub fn from_times(
        times: &'a [CodeTime],
        text: impl Fn(&CodeTime) -> String,
    ) -> Vec<CodeLine<'a>> {
        let mut lines: Vec<CodeLine<'a>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for time in times {
            let text = text(time);
            let place = *places.entry(text.clone()).or_insert(lines.len());
            match lines.get_mut(place) {
                Some(line) => {
                    line.total_ns += time.total_ns;
                    line.samples += time.samples;
                }
                None => lines.push(CodeLine {
                    text,
                    first: time,
                    total_ns: time.total_ns,
                    samples: time.samples,
                }),
            }
        }
        lines.sort_by_key(|line| Reverse((line.total_ns, line.samples)));
        lines
    }
}

impl CodeTime {
    /// Returns the words for the stack.
    pub fn name(&self) -> String {
        match self.frames.is_empty() {
            true => "a stack that could not be read".to_owned(),
            false => text(&self.frames),
        }
    }
}

impl CauseCode {
    /// Returns the code of a cause in a few words, such as `train.py:41 load_batch > resize 71 %`. Few samples have no shares.
    pub fn in_short(&self) -> Option<String> {
        let lines = CodeLine::from_times(&self.code, CodeTime::name).into_iter();
        let lines: Vec<String> = lines
            .filter(|line| !line.first.frames.is_empty())
            .take(2)
            .map(|line| match self.samples >= MIN_SAMPLES_FOR_SHARES {
                true => format!("{} {}", line.text, share_of(line.total_ns, self.total_ns)),
                false => line.text,
            })
            .collect();
        match lines.is_empty() {
            true => Some(text(&self.exact.first()?.frames)),
            false => Some(lines.join(", ")),
        }
    }
}

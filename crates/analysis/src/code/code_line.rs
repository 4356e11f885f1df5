//! Merges stacks that have the same text into one line, for lists of the code behind idle time.

use super::MIN_SAMPLES_FOR_SHARES;
use super::idle_code::{CauseCode, CodeTime};
use super::stacks::text;
use gapscope_timeline::quantity::share_of;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Stacks that have the same text.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeLine<'a> {
    /// The text of the stacks.
    pub text: String,
    /// The stack with the most time. The others differ from it in parts that the text omits.
    pub first: &'a CodeTime,
    /// The sum of the times of all stacks.
    pub total_ns: i64,
    /// The number of samples of all stacks.
    pub samples: u64,
}

impl<'a> CodeLine<'a> {
    /// Merges those stacks in a list, sorted by time in descending order, for which `text` returns the same. The line
    /// with the most time comes first.
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
    /// Returns the text of the stack.
    pub fn name(&self) -> String {
        match self.frames.is_empty() {
            true => "a stack that could not be read".to_owned(),
            false => text(&self.frames),
        }
    }
}

impl CauseCode {
    /// Returns the code of a cause in a few words, such as `train.py:41 load_batch > resize 71 %`: the two lines with
    /// the most time, or, where none could be read, the most frequent line that hooks saw. The shares are left out
    /// where there are few samples.
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

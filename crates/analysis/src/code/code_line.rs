//! Merges the stacks of one line of code, for lists of the code behind idle time.

use super::idle_code::{CauseCode, CodeTime};
use crate::stacks::{line_text, text, text_of_line};
use gapscope_timeline::quantity::{ratio, share_of};
use gapscope_timeline::thresholds::REASON_SHARE;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The stacks of one line of code.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeLine<'a> {
    /// The line, with the functions that it calls.
    pub text: String,
    /// The stack with the most time.
    pub first: &'a CodeTime,
    /// The sum of the times of all stacks.
    pub total_ns: i64,
    /// The number of samples of all stacks.
    pub samples: u64,
}

impl<'a> CodeLine<'a> {
    /// Merges those stacks in a list, sorted by time in descending order, that have the same line. The line with the
    /// most time comes first.
    pub fn from_times(times: &'a [CodeTime]) -> Vec<CodeLine<'a>> {
        let mut lines: Vec<Vec<&CodeTime>> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for time in times {
            let place = *places.entry(line_text(&time.frames)).or_insert(lines.len());
            match lines.get_mut(place) {
                Some(line) => line.push(time),
                None => lines.push(vec![time]),
            }
        }
        let mut lines: Vec<CodeLine<'a>> = (lines.into_iter())
            .map(|times| CodeLine {
                text: match times[0].frames.is_empty() {
                    true => times[0].name(),
                    false => {
                        let stacks: Vec<_> = times.iter().map(|time| &time.frames[..]).collect();
                        text_of_line(&stacks)
                    }
                },
                first: times[0],
                total_ns: times.iter().map(|time| time.total_ns).sum(),
                samples: times.iter().map(|time| time.samples).sum(),
            })
            .collect();
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
    /// the most time, or, where none could be read, the most frequent line that hooks saw. Shares are of `whole_ns`, the idle time
    /// of the cause, and are left out where there are few samples. `None` where submitting threads account for too
    /// little of that time.
    pub fn in_short(&self, whole_ns: i64) -> Option<String> {
        if ratio(self.total_ns, whole_ns) < REASON_SHARE {
            return None;
        }
        let lines = self.lines().into_iter().take(2);
        let lines: Vec<String> = lines
            .map(|line| match self.has_shares() {
                true => format!("{} {}", line.text, share_of(line.total_ns, whole_ns)),
                false => line.text,
            })
            .collect();
        match lines.is_empty() {
            true => Some(text(&self.exact.first()?.frames)),
            false => Some(lines.join(", ")),
        }
    }
}

//! Merges the stacks of one line of code, for lists of the code behind idle time.

use super::MIN_SAMPLES_FOR_SHARES;
use super::idle_code::{CauseCode, CodeSource, CodeTime};
use super::loading::loads_data;
use crate::stacks::{line_text, text, text_of_line};
use gapscope_timeline::quantity::{ratio, share_of};
use gapscope_timeline::thresholds::{MOST_OF_CALLS_SHARE, REASON_SHARE};
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
    /// Returns what the thread mostly did, as the end of a sentence; `None` where too few samples say it. Ranges say it in place of
    /// calls, for a thread whose calls are not in the trace for `without_calls_ns`.
    pub fn thread_was(&self, without_calls_ns: i64) -> Option<String> {
        let is_most = |ns: i64| ratio(ns, self.total_ns) >= MOST_OF_CALLS_SHARE;
        match self.mostly_slept_for() {
            Some(sleep) => Some(format!("asleep, waiting for {}", sleep.words())),
            None if self.samples >= MIN_SAMPLES_FOR_SHARES => {
                Some("in code of the program".to_owned())
            }
            None if self.source == CodeSource::Ranges && is_most(without_calls_ns) => {
                let most = self.lines().into_iter().next()?;
                Some(match is_most(most.total_ns) {
                    true => format!("in {}", most.text),
                    false => "in code of the program".to_owned(),
                })
            }
            None => None,
        }
    }

    /// Returns the lines of code whose stacks could be read, the one with most time first.
    pub fn lines(&self) -> Vec<CodeLine<'_>> {
        let mut lines = CodeLine::from_times(&self.code);
        lines.retain(|line| !line.first.frames.is_empty());
        lines
    }

    /// Returns the code without that of a gap, line by line. The lists of both are sorted by time in descending order.
    pub(super) fn without(&self, gap: &[CodeTime]) -> CauseCode {
        let mut inside: HashMap<String, (i64, u64)> = HashMap::new();
        for time in gap.iter().filter(|time| time.cause == self.cause) {
            let (ns, samples) = inside.entry(line_text(&time.frames)).or_default();
            *ns = ns.saturating_add(time.total_ns);
            *samples += time.samples;
        }
        let mut code = self.code.clone();
        for time in &mut code {
            if let Some((ns, samples)) = inside.get_mut(&line_text(&time.frames)) {
                let taken_ns = time.total_ns.min(*ns);
                let taken = time.samples.min(*samples);
                time.total_ns -= taken_ns;
                time.samples -= taken;
                *ns -= taken_ns;
                *samples -= taken;
            }
        }
        code.retain(|time| time.total_ns > 0);
        code.sort_by_key(|time| Reverse((time.total_ns, time.samples)));
        let total = |times: &[CodeTime]| {
            let times = times.iter();
            times.map(|time| time.total_ns).fold(0, i64::saturating_add)
        };
        let gone_ns = total(&self.code).saturating_sub(total(&code));
        CauseCode {
            total_ns: self.total_ns.saturating_sub(gone_ns),
            samples: code.iter().map(|time| time.samples).sum(),
            code,
            ..self.clone()
        }
    }

    /// Returns true where the thread mostly loaded data, by the names in its stacks.
    pub fn mostly_loads_data(&self) -> bool {
        let loading = self.code.iter().filter(|time| loads_data(&time.frames));
        let loading_ns = loading.fold(0, |sum: i64, time| sum.saturating_add(time.total_ns));
        self.has_shares() && ratio(loading_ns, self.total_ns) >= MOST_OF_CALLS_SHARE
    }

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

//! Makes the sections of a report, one module each: findings go in, blocks come out; no blocks where the findings
//! have nothing to show. A parameter `top` is the number of rows that a table shows.

pub(crate) mod accuracy;
mod actions;
pub(crate) mod code;
pub(crate) mod command_buffers;
pub(crate) mod counters;
pub(crate) mod do_first;
pub(crate) mod equal_work;
pub(crate) mod gains;
pub(crate) mod gaps;
pub(crate) mod instructions;
pub(crate) mod kernels;
pub(crate) mod labels;
pub(crate) mod launch_latency;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod operators;
pub(crate) mod profiled;
pub(crate) mod steps;
pub(crate) mod timeline;
pub(crate) mod transfers;
pub(crate) mod unread;
pub(crate) mod verdict;

use crate::document::{Block, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_timeline::unknown_counts::Count;
use gapscope_trace::ids::ThreadId;
use gapscope_trace::manifest::SamplingMode;

/// Returns `text`, which says a number of rows of `table`, marked as a lower bound where rows could not be read or were not
/// recorded, or with `an unknown number of` in place of the number.
pub(crate) fn rows(findings: &Findings, table: &str, text: String) -> String {
    let unrecorded = Count::of_table(table).and_then(|count| findings.unknown_count(count));
    let recorded_some = unrecorded.is_none_or(|unknown| unknown.at_least.is_some());
    match (findings.knows_rows(table), recorded_some) {
        (true, true) if unrecorded.is_none() => text,
        (_, true) if findings.knows_some(&[table]) => format!("at least {text}"),
        _ => match text.split_once(' ') {
            Some((_, what)) => format!("an unknown number of {what}"),
            None => "unknown".to_owned(),
        },
    }
}

/// Returns a number of dispatches, or `None` where it is not known: passes do not say which dispatches are in them.
pub(crate) fn dispatches(findings: &Findings, count: u64) -> Option<u64> {
    (findings.sampling_mode != SamplingMode::Pass || count > 0).then_some(count)
}

/// Formats a value, or `unknown` in its place.
pub(crate) fn or_unknown<T>(value: Option<T>, show: impl Fn(T) -> String) -> Text {
    match value {
        Some(value) => show(value).into(),
        None => Text::new().faint("unknown"),
    }
}

/// Names a thread by its name and number. Profilers put the number into the name, too.
pub(crate) fn thread_text(name: Option<&str>, thread: ThreadId) -> String {
    let number = thread.to_string();
    match name {
        Some(name)
            if name
                .split(|c: char| !c.is_ascii_digit())
                .any(|part| part == number) =>
        {
            name.to_owned()
        }
        Some(name) => format!("{name} ({number})"),
        None => format!("thread {number}"),
    }
}

/// Formats moments of a recording as times from its start.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    /// The start of the recording.
    pub(crate) origin_ns: i64,
    /// The length of the time that is shown: moments have at least three digits of it.
    pub(crate) span_ns: i64,
}

impl Places {
    /// Formats a moment, given on the host's clock.
    pub(crate) fn at(&self, ns: i64) -> String {
        number::place(ns.saturating_sub(self.origin_ns), self.span_ns)
    }
}

/// Returns `–` instead of a time where nothing ran.
pub(crate) fn unless_none(nothing_ran: bool, text: Text) -> Text {
    match nothing_ran {
        true => Text::new().faint("–"),
        false => text,
    }
}

/// Formats a duration, or `unknown` in its place.
pub(crate) fn duration(ns: Option<i64>) -> Text {
    or_unknown(ns, number::duration)
}

pub(crate) fn mean(ns: Option<f64>) -> Text {
    or_unknown(ns, number::duration_f64)
}

pub(crate) fn count(count: u64) -> Text {
    number::count(count).into()
}

/// Draws a bar in eighths of a column; a share of 1 takes `columns`.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    // A column by eighths: nothing to seven eighths.
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

/// Returns the indices of the `top` rows with the greatest values, in the order of the rows.
pub(crate) fn most<T>(rows: &[T], top: usize, value: impl Fn(&T) -> i64) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..rows.len()).collect();
    shown.sort_by_key(|at| std::cmp::Reverse(value(&rows[*at])));
    shown.truncate(top);
    shown.sort_unstable();
    shown
}

/// Appends a note on how many rows of a table were left out, if any were.
pub(crate) fn rest(blocks: &mut Vec<Block>, all: usize, shown: usize, what: &str) {
    if all > shown {
        let text = format!(
            "and {} more {what} (--top 0 shows all)",
            number::count((all - shown) as u64)
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
}

//! Makes the section on a framework's operators (such as PyTorch's), those that launched work.

use super::{count, duration, rest};
use crate::document::{Block, Table, Text};
use gapscope_analysis::Findings;

/// Makes the section; none where no operator launched work.
pub(crate) fn blocks(findings: &Findings, top: usize) -> Vec<Block> {
    // Most operators launch nothing; JSON has all of them.
    let all = findings.operators.iter();
    let operators: Vec<_> = all.filter(|row| row.inclusive.timed_count > 0).collect();
    if operators.is_empty() {
        return Vec::new();
    }
    let shown = &operators[..operators.len().min(top)];
    // An operator that launched nothing took no time of a device.
    let time = |ns: Option<i64>| duration(Some(ns.unwrap_or(0)));
    let mut blocks = Table::with_rows(shown)
        .name("operator", |row| Text::new().strong(row.name.as_str()))
        .number("calls", |row| count(row.call_count))
        .number("own work", |row| count(row.own.timed_count))
        .spare(1)
        .number("own time", |row| time(row.own.total_ns))
        .number("with others", |row| time(row.inclusive.total_ns))
        .under(
            "Operators",
            "sums of device times: own, and with the operators inside",
        );
    rest(
        &mut blocks,
        operators.len(),
        shown.len(),
        "operators with work",
    );
    blocks
}

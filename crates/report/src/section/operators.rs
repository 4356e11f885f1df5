//! Makes the section on a framework's operators.

use super::{count, duration, rest};
use crate::document::{Block, Column, Table, Text};
use gapscope_analysis::Findings;

pub(crate) fn blocks(findings: &Findings, top: usize) -> Vec<Block> {
    // Most operators launch nothing; JSON has all of them.
    let all = findings.operators.iter();
    let operators: Vec<_> = all.filter(|row| row.inclusive.timed_count > 0).collect();
    if operators.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        Column::name("operator"),
        Column::number("calls"),
        Column::number("own work").spare(1),
        Column::number("own time"),
        Column::number("with others"),
    ]);
    let shown = &operators[..operators.len().min(top)];
    for operator in shown {
        // An operator that launched nothing took no time of a device.
        let time = |ns: Option<i64>| duration(Some(ns.unwrap_or(0)));
        table.row([
            Text::new().strong(operator.name.clone()),
            count(operator.call_count),
            count(operator.own.timed_count),
            time(operator.own.total_ns),
            time(operator.inclusive.total_ns),
        ]);
    }
    let aside = "sums of device times: own, and with the operators inside";
    let mut blocks = vec![
        Block::Heading("Operators".into(), aside.to_owned()),
        Block::Table(table),
    ];
    rest(
        &mut blocks,
        operators.len(),
        shown.len(),
        "operators with work",
    );
    blocks
}

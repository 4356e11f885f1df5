//! The label table.

use super::{count, dispatches, duration, mean, or_unknown, rest};
use crate::document::{Block, Column, Table, Text};
use crate::number;
use gapscope_analysis::Findings;

pub(crate) fn blocks(findings: &Findings, top: usize) -> Vec<Block> {
    let labels = &findings.labels;
    if labels.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        Column::name("label"),
        Column::number("times"),
        Column::number("dispatches"),
        Column::number("transfers").spare(1),
        Column::number("busy"),
        Column::number("share"),
        Column::number("mean").spare(2),
    ]);
    let shown = &labels[..labels.len().min(top)];
    for label in shown {
        let work = &label.inclusive;
        let busy = findings.gpu_busy_ns.filter(|ns| *ns > 0).zip(work.busy_ns);
        let indent = "  ".repeat(label.depth as usize);
        table.row([
            Text::new().strong(format!("{indent}{}", label.text)),
            or_unknown(label.instances, number::count),
            or_unknown(dispatches(findings, work.dispatch_count), number::count),
            count(work.transfer_count),
            duration(work.busy_ns),
            or_unknown(busy, |(all, part)| number::share_of(part, all)),
            mean(work.durations.mean_ns),
        ]);
    }
    let aside = "with the labels inside".to_owned();
    let mut blocks = vec![Block::Heading("Labels".into(), aside), Block::Table(table)];
    rest(&mut blocks, labels.len(), shown.len(), "labels");
    blocks
}

//! Makes the section on labels: a table of the work under each label.

use super::{count, dispatches, duration, mean, or_unknown, rest, unless_none};
use crate::document::{Block, Column, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::labels::{FoldedLabel, LabelRow};

/// Makes the section; with `each_layer` equal modules of a model are not folded into one row.
pub(crate) fn blocks(findings: &Findings, top: usize, each_layer: bool) -> Vec<Block> {
    let (labels, folded) = (&findings.labels, &findings.folded_labels);
    if !folded.is_empty() && !each_layer {
        return folded_blocks(findings, folded, top);
    }
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
        let of_work = |text: Text| unless_none(nothing_ran(findings, label), text);
        table.row([
            name(label),
            or_unknown(label.instances, number::count),
            or_unknown(
                dispatches(findings, label.inclusive.dispatch_count),
                number::count,
            ),
            count(label.inclusive.transfer_count),
            of_work(duration(label.inclusive.busy_ns)),
            of_work(share(findings, label)),
            of_work(mean(label.inclusive.durations.mean_ns)),
        ]);
    }
    under_heading(table, labels.len(), shown.len())
}

fn folded_blocks(findings: &Findings, labels: &[FoldedLabel], top: usize) -> Vec<Block> {
    let mut table = Table::new([
        Column::name("label"),
        Column::number("layers"),
        Column::number("times").spare(1),
        Column::number("dispatches").spare(2),
        Column::number("busy"),
        Column::number("share"),
        Column::number("a layer"),
        Column::number("least"),
        Column::number("most"),
    ]);
    let shown = &labels[..labels.len().min(top)];
    for label in shown {
        let row = &label.row;
        let is_folded = label.layer_count > 1;
        let of_work = |text: Text| unless_none(nothing_ran(findings, row), text);
        let of_layers = |text: Text| if is_folded { text } else { Text::new() };
        table.row([
            name(row),
            of_layers(count(label.layer_count)),
            or_unknown(row.instances, number::count),
            or_unknown(
                dispatches(findings, row.inclusive.dispatch_count),
                number::count,
            ),
            of_work(duration(row.inclusive.busy_ns)),
            of_work(share(findings, row)),
            of_layers(of_work(mean(label.layer_mean_busy_ns))),
            of_layers(of_work(duration(label.layer_min_busy_ns))),
            of_layers(of_work(duration(label.layer_max_busy_ns))),
        ]);
    }
    let mut blocks = under_heading(table, labels.len(), shown.len());
    let text = "* stands for the layers of a model: --each-layer shows them by themselves";
    blocks.push(Block::Sentence(Text::new().faint(text)));
    blocks
}

fn name(label: &LabelRow) -> Text {
    let indent = "  ".repeat(label.depth as usize);
    Text::new().strong(format!("{indent}{}", label.text))
}

/// Returns true where no work was launched under a label: its time is then known to be none.
fn nothing_ran(findings: &Findings, label: &LabelRow) -> bool {
    let work = &label.inclusive;
    work.busy_ns.is_none()
        && work.transfer_count == 0
        && dispatches(findings, work.dispatch_count) == Some(0)
}

fn share(findings: &Findings, label: &LabelRow) -> Text {
    let all = findings.gpu_busy_ns.filter(|ns| *ns > 0);
    let busy = all.zip(label.inclusive.busy_ns);
    or_unknown(busy, |(all, part)| number::share_of(part, all))
}

fn under_heading(table: Table, all: usize, shown: usize) -> Vec<Block> {
    let aside = "with the labels inside".to_owned();
    let mut blocks = vec![Block::Heading("Labels".into(), aside), Block::Table(table)];
    rest(&mut blocks, all, shown, "labels");
    blocks
}

//! Makes the section on labels (names that the program gives to parts of its work): a table of the work under each
//! label.

use super::{count, dispatches, duration, mean, or_unknown, rest, unless_none};
use crate::document::{Block, Table, Text};
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
    let shown = &labels[..labels.len().min(top)];
    let of_work = |row: &LabelRow, text: Text| unless_none(nothing_ran(findings, row), text);
    let table = Table::with_rows(shown)
        .name("label", name)
        .number("times", |row| or_unknown(row.instances, number::count))
        .number("dispatches", |row| dispatch_count(findings, row))
        .number("transfers", |row| count(row.inclusive.transfer_count))
        .spare(1)
        .number("busy", |row| of_work(row, duration(row.inclusive.busy_ns)))
        .number("share", |row| of_work(row, share(findings, row)))
        .number("mean", |row| {
            of_work(row, mean(row.inclusive.durations.mean_ns))
        })
        .spare(2)
        .build();
    let aside = "with the labels inside; mean: of a dispatch";
    let mut blocks = under_heading(table, aside, labels.len(), shown.len());
    blocks.extend(in_graphs(labels.iter()));
    blocks
}

/// Makes the section with equal modules (layers) of a model in one row, named with `*`.
fn folded_blocks(findings: &Findings, labels: &[FoldedLabel], top: usize) -> Vec<Block> {
    let shown = &labels[..labels.len().min(top)];
    let of_work = |row: &LabelRow, text: Text| unless_none(nothing_ran(findings, row), text);
    let of_layers = |label: &FoldedLabel, text: Text| match label.layer_count > 1 {
        true => text,
        false => Text::new(),
    };
    let of_layer = |label: &FoldedLabel, text| of_layers(label, of_work(&label.row, text));
    let table = Table::with_rows(shown)
        .name("label", |label| name(&label.row))
        .number("layers", |label| of_layers(label, count(label.layer_count)))
        .number("times", |label| {
            or_unknown(label.row.instances, number::count)
        })
        .spare(1)
        .number("dispatches", |label| dispatch_count(findings, &label.row))
        .spare(2)
        .number("busy", |label| {
            of_work(&label.row, duration(label.row.inclusive.busy_ns))
        })
        .number("share", |label| {
            of_work(&label.row, share(findings, &label.row))
        })
        .number("a layer", |label| {
            of_layer(label, mean(label.layer_mean_busy_ns))
        })
        .number("least", |label| {
            of_layer(label, duration(label.layer_min_busy_ns))
        })
        .number("most", |label| {
            of_layer(label, duration(label.layer_max_busy_ns))
        })
        .build();
    let mut blocks = under_heading(table, "with the labels inside", labels.len(), shown.len());
    let text = "* stands for the layers of a model: --each-layer shows them by themselves";
    blocks.push(Block::Sentence(Text::new().faint(text)));
    blocks.extend(in_graphs(labels.iter().map(|label| &label.row)));
    blocks
}

/// Says how many dispatches have the labels of the making of their graphs.
fn in_graphs<'a>(rows: impl Iterator<Item = &'a LabelRow>) -> Option<Block> {
    let outermost = rows.filter(|row| row.depth == 0);
    let dispatches: u64 = outermost.map(|row| row.in_graphs).sum();
    let text = format!(
        "{} dispatches ran in CUDA graphs; their labels are those in which the graphs were captured, inside those of the launches",
        number::count(dispatches)
    );
    (dispatches > 0).then(|| Block::Sentence(Text::new().faint(text)))
}

/// Returns the label's text, indented by its depth.
fn name(label: &LabelRow) -> Text {
    let indent = "  ".repeat(label.depth as usize);
    Text::new().strong(format!("{indent}{}", label.text))
}

fn dispatch_count(findings: &Findings, label: &LabelRow) -> Text {
    let count = dispatches(findings, label.inclusive.dispatch_count);
    or_unknown(count, number::count)
}

/// Returns true where no work was launched under a label: its time is then known to be none.
fn nothing_ran(findings: &Findings, label: &LabelRow) -> bool {
    let work = &label.inclusive;
    work.busy_ns.is_none()
        && work.transfer_count == 0
        && dispatches(findings, work.dispatch_count) == Some(0)
}

/// Returns the share of the GPU's busy time that is under the label.
fn share(findings: &Findings, label: &LabelRow) -> Text {
    let all = findings.gpu_busy_ns.filter(|ns| *ns > 0);
    let busy = all.zip(label.inclusive.busy_ns);
    or_unknown(busy, |(all, part)| number::share_of(part, all))
}

/// Puts the table under its heading, with a note on rows that were left out.
fn under_heading(table: Table, aside: &str, all: usize, shown: usize) -> Vec<Block> {
    let mut blocks = table.under("Labels", aside);
    rest(&mut blocks, all, shown, "labels");
    blocks
}

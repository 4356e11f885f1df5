//! The same work done in two ways.

use crate::document::{Block, Column, Table, Text};
use crate::{fit, number};
use gapscope_analysis::equal_work::{Figure, Ratio, WorkComparison};

pub(crate) fn blocks(comparison: &WorkComparison) -> Vec<Block> {
    let before = fit::clean(&comparison.before.name);
    let after = fit::clean(&comparison.after.name);
    let aside = if comparison.per_evaluation {
        "for each evaluation"
    } else {
        "in all"
    };
    let mut table = Table::new([
        Column::text("equal work"),
        Column::number(&before),
        Column::number(&after),
        Column::number("ratio"),
    ]);
    for ratio in &comparison.ratios {
        table.row([
            name(ratio.figure).into(),
            value(ratio, ratio.before),
            value(ratio, ratio.after),
            super::or_unknown(ratio.ratio, |r| format!("{r:.2} ×")),
        ]);
    }
    let mut blocks = vec![
        Block::Heading(format!("{before} against {after}"), aside.into()),
        Block::Table(table),
    ];
    for sentence in &comparison.sentences {
        blocks.push(Block::Sentence(fit::clean(sentence).into()));
    }
    blocks
}

/// Its name; the value carries the unit.
fn name(figure: Figure) -> &'static str {
    match figure {
        Figure::Dispatches => "dispatches",
        Figure::BoundBytes => "bytes bound",
        Figure::TransferBytes => "transfer bytes",
        Figure::GpuBusy => "GPU busy",
        Figure::Wall => "wall",
    }
}

fn value(ratio: &Ratio, value: Option<f64>) -> Text {
    super::or_unknown(value, |value| match ratio.figure {
        Figure::GpuBusy | Figure::Wall => number::duration_f64(value),
        Figure::BoundBytes | Figure::TransferBytes => number::bytes(value.round() as u64),
        Figure::Dispatches if value.fract() == 0.0 => number::count(value as u64),
        Figure::Dispatches => format!("{value:.2}"),
    })
}

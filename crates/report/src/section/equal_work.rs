//! The same work done in two ways.

use crate::document::{Block, Column, Table, Text};
use crate::{fit, number};
use gapscope_analysis::work::{Ratio, WorkComparison};

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
            what(ratio).into(),
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

/// The name without its unit, which the value carries.
fn what(ratio: &Ratio) -> String {
    ratio
        .what
        .strip_suffix(" ns")
        .unwrap_or(ratio.what)
        .to_owned()
}

fn value(ratio: &Ratio, value: Option<f64>) -> Text {
    super::or_unknown(value, |value| {
        if ratio.what.ends_with(" ns") {
            number::duration_f64(value)
        } else if ratio.what.contains("bytes") {
            number::bytes(value.round() as u64)
        } else if value.fract() == 0.0 {
            number::count(value as u64)
        } else {
            format!("{value:.2}")
        }
    })
}

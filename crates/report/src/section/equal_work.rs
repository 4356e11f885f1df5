//! The same work done in two ways.

use super::or_unknown;
use crate::document::{Block, Column, Table, Text};
use crate::{fit, number};
use gapscope_analysis::equal_work::{Figure, Ratio, WorkComparison};
use gapscope_analysis::samples::Spread;
use gapscope_analysis::vocabulary::Words;

/// Columns for the name of a side over its figures; the heading has it whole.
const TITLE_COLUMNS: usize = 16;

pub(crate) fn blocks(comparison: &WorkComparison, words: &Words) -> Vec<Block> {
    let (before, after) = (&comparison.before.name, &comparison.after.name);
    let (aside, title) = match comparison.per_evaluation {
        true => ("medians of evaluations", "one evaluation"),
        false => ("all of the work", "in all"),
    };
    let mut table = Table::new([
        Column::word(title),
        Column::number(&fit::clip(before, TITLE_COLUMNS)),
        Column::number(&fit::clip(after, TITLE_COLUMNS)),
        Column::number("ratio"),
        Column::number("95 % of it").spare(1),
    ]);
    let sides = [&comparison.before, &comparison.after];
    if comparison.per_evaluation {
        let [of_before, of_after] = sides.map(|work| super::count(work.counted_evaluations));
        table.row([
            "evaluations".into(),
            of_before,
            of_after,
            Text::new(),
            Text::new(),
        ]);
    }
    for ratio in &comparison.ratios {
        table.row([
            name(ratio.figure, words).into(),
            value(ratio.figure, ratio.before),
            value(ratio.figure, ratio.after),
            quotient(ratio),
            interval(ratio),
        ]);
    }
    let [bound_before, bound_after] = sides.map(|work| work.verdict.as_str().into());
    table.row([
        "verdict".into(),
        bound_before,
        bound_after,
        Text::new(),
        Text::new(),
    ]);
    let mut blocks = vec![
        Block::Heading(format!("{before} against {after}"), aside.into()),
        Block::Table(table),
    ];
    for sentence in &comparison.sentences {
        blocks.push(Block::Sentence(sentence.as_str().into()));
    }
    blocks.extend(spreads(comparison, words));
    blocks
}

/// How much evaluations differ.
fn spreads(comparison: &WorkComparison, words: &Words) -> Vec<Block> {
    let mut table = Table::new([
        Column::word("time"),
        Column::text("of"),
        Column::number("count"),
        Column::number("min"),
        Column::number("p25"),
        Column::number("median"),
        Column::number("p75"),
        Column::number("max"),
        Column::number("mean").spare(1),
    ]);
    for ratio in (comparison.ratios.iter()).filter(|ratio| ratio.figure.is_time()) {
        let sides = [
            (&comparison.before, ratio.before_spread),
            (&comparison.after, ratio.after_spread),
        ];
        let mut title = name(ratio.figure, words);
        for (work, spread) in sides {
            let Some(spread) = spread.filter(|spread| spread.count > 1) else {
                continue;
            };
            let Spread {
                count,
                mean,
                median,
                p25,
                p75,
                min,
                max,
            } = spread;
            let time = |ns: f64| Text::from(number::duration_f64(ns));
            table.row([
                std::mem::take(&mut title).into(),
                work.name.as_str().into(),
                super::count(count),
                time(min),
                time(p25),
                time(median),
                time(p75),
                time(max),
                time(mean),
            ]);
        }
    }
    match table.rows.is_empty() {
        true => Vec::new(),
        false => vec![
            Block::Heading("Spread".into(), "of the evaluations".into()),
            Block::Table(table),
        ],
    }
}

/// Its name; the value carries the unit.
fn name(figure: Figure, words: &Words) -> String {
    match figure {
        Figure::Dispatches => words.dispatch.many.to_owned(),
        Figure::CommandBuffers => words.command_buffer.many.to_owned(),
        Figure::Submissions => words.submission.many.to_owned(),
        Figure::BoundBytes => "bytes bound".to_owned(),
        Figure::TransferBytes => "transfer bytes".to_owned(),
        Figure::GpuBusy => "GPU busy".to_owned(),
        Figure::Wall => "first to last".to_owned(),
        Figure::Pace => "start to start".to_owned(),
    }
}

fn value(figure: Figure, value: Option<f64>) -> Text {
    or_unknown(value, |value| match figure {
        Figure::GpuBusy | Figure::Wall | Figure::Pace => number::duration_f64(value),
        Figure::BoundBytes | Figure::TransferBytes => number::bytes(value.round() as u64),
        Figure::Dispatches | Figure::CommandBuffers | Figure::Submissions => {
            number::mean_count(value)
        }
    })
}

/// Nothing is less than nothing, and no factor makes something of it.
fn quotient(ratio: &Ratio) -> Text {
    match (ratio.before, ratio.after) {
        (Some(0.0), Some(0.0)) => "the same".into(),
        (Some(_), Some(0.0)) => "none after".into(),
        _ => or_unknown(ratio.ratio, |known| format!("{known:.2} ×")),
    }
}

/// The interval of a ratio that varies.
fn interval(ratio: &Ratio) -> Text {
    match (ratio.low.zip(ratio.high), ratio.within_noise) {
        (Some((low, high)), _) if low == high => Text::new(),
        (Some((low, high)), Some(true)) => format!("{low:.2} to {high:.2}, noise").into(),
        (Some((low, high)), _) => format!("{low:.2} to {high:.2}").into(),
        (None, _) => Text::new(),
    }
}

//! Makes the section that compares two parts of a trace, or two traces, which do equal work in different ways: a
//! table of figures, and sentences.

use super::or_unknown;
use crate::document::{Block, Column, Table, Text};
use crate::{fit, number};
use gapscope_analysis::equal_work::{Figure, Ratio, WorkComparison};
use gapscope_analysis::samples::Spread;
use gapscope_timeline::vocabulary::Words;

/// The maximum number of columns for the name of a side above its figures. The heading has the whole name.
const TITLE_COLUMNS: usize = 16;

/// Makes the section. Works that cannot be compared are shown side by side, without changes.
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
        Column::number(match comparison.basis.is_unlike() {
            true => "not compared",
            false => "after takes",
        }),
        Column::number("95 % of it").spare(1),
    ]);
    let sides = [&comparison.before, &comparison.after];
    if comparison.per_evaluation {
        let [of_before, of_after] = sides.map(|work| super::count(work.counted_evaluations));
        let evaluations = ["evaluations".into(), of_before, of_after];
        table.row(padded(evaluations));
    }
    for ratio in &comparison.ratios {
        let (change, interval) = match comparison.basis.is_unlike() {
            true => ("–".into(), Text::new()),
            false => (change(ratio), interval(ratio)),
        };
        table.row([
            name(ratio.figure, words).into(),
            value(ratio.figure, ratio.before),
            value(ratio.figure, ratio.after),
            change,
            interval,
        ]);
    }
    let [bound_before, bound_after] = sides.map(|work| work.verdict.as_str().into());
    table.row(padded(["verdict".into(), bound_before, bound_after]));
    let mut blocks = table.under(format!("{before} against {after}"), aside);
    let sentences = comparison.sentences.iter();
    blocks.extend(sentences.map(|sentence| Block::Sentence(sentence.as_str().into())));
    blocks.extend(spreads(comparison, words));
    blocks
}

/// Returns the cells of a row that has no change.
fn padded([title, before, after]: [Text; 3]) -> [Text; 5] {
    [title, before, after, Text::new(), Text::new()]
}

/// Returns a table of how much evaluations (repetitions of the work) differ from each other.
fn spreads(comparison: &WorkComparison, words: &Words) -> Vec<Block> {
    let mut rows: Vec<(String, &str, Spread)> = Vec::new();
    for ratio in (comparison.ratios.iter()).filter(|ratio| ratio.figure.is_time()) {
        let mut title = name(ratio.figure, words);
        for (work, spread) in [
            (&comparison.before, ratio.before_spread),
            (&comparison.after, ratio.after_spread),
        ] {
            if let Some(spread) = spread.filter(|spread| spread.count > 1) {
                rows.push((std::mem::take(&mut title), &work.name, spread));
            }
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    Table::with_rows(&rows)
        .word("time", |(title, ..)| title.as_str())
        .text("of", |(_, side, _)| *side)
        .number("count", |(.., spread)| super::count(spread.count))
        .number("min", |(.., spread)| number::duration_f64(spread.min))
        .number("p25", |(.., spread)| number::duration_f64(spread.p25))
        .number("median", |(.., spread)| number::duration_f64(spread.median))
        .number("p75", |(.., spread)| number::duration_f64(spread.p75))
        .number("max", |(.., spread)| number::duration_f64(spread.max))
        .number("mean", |(.., spread)| number::duration_f64(spread.mean))
        .spare(1)
        .under("Spread", "of the evaluations")
}

/// Returns the name of a figure; its value carries the unit.
fn name(figure: Figure, words: &Words) -> String {
    match figure {
        Figure::Dispatches => words.dispatch.many.to_owned(),
        Figure::Workgroups => "workgroups".to_owned(),
        Figure::Threads => "threads".to_owned(),
        Figure::CommandBuffers => words.command_buffer.many.to_owned(),
        Figure::Submissions => words.submission.many.to_owned(),
        Figure::BoundBytes => "bytes bound".to_owned(),
        Figure::TransferBytes => "transfer bytes".to_owned(),
        Figure::GpuBusy => "GPU busy".to_owned(),
        Figure::Wall => "first to last".to_owned(),
        Figure::Pace => "start to start".to_owned(),
    }
}

/// Formats the value of a figure with its unit.
fn value(figure: Figure, value: Option<f64>) -> Text {
    or_unknown(value, |value| match figure {
        Figure::GpuBusy | Figure::Wall | Figure::Pace => number::duration_f64(value),
        Figure::BoundBytes | Figure::TransferBytes => number::bytes(value.round() as u64),
        Figure::Dispatches
        | Figure::Workgroups
        | Figure::Threads
        | Figure::CommandBuffers
        | Figure::Submissions => number::mean_count(value),
    })
}

/// Returns how much more or less the work takes after the change, in the words of the page
/// (`web/src/panels/compare.ts`).
fn change(ratio: &Ratio) -> Text {
    let (Some(before), Some(after)) = (ratio.before, ratio.after) else {
        return or_unknown(None::<f64>, number::factor);
    };
    if before == after {
        return "the same".into();
    }
    if ratio.within_noise == Some(true) {
        return "within noise".into();
    }
    if after == 0.0 {
        return "none".into();
    }
    if before == 0.0 {
        return "new".into();
    }
    let text = number::factor(after / before);
    if text == number::factor(1.0) {
        return "about the same".into();
    }
    format!("{text} as {}", much(ratio.figure)).into()
}

/// Returns the word for an amount: `many` for counts, `much` for times and bytes.
fn much(figure: Figure) -> &'static str {
    match figure {
        Figure::Dispatches
        | Figure::Workgroups
        | Figure::Threads
        | Figure::CommandBuffers
        | Figure::Submissions => "many",
        _ => "much",
    }
}

/// Returns the interval in which the true change lies, as after divided by before (the ratio has before divided by
/// after).
fn interval(ratio: &Ratio) -> Text {
    match ratio.low.zip(ratio.high) {
        Some((low, high)) if low != high && low > 0.0 => {
            let [least, most] = [1.0 / high, 1.0 / low].map(number::factor);
            let least = least.trim_end_matches(" ×");
            format!("{least} to {most}").into()
        }
        _ => Text::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_in_the_words_of_the_page_both_ways() {
        let said = |figure: Figure, before: f64, after: f64| {
            change(&Ratio {
                figure,
                before: Some(before),
                after: Some(after),
                ..Ratio::default()
            })
        };
        for (figure, before, after, text) in [
            (Figure::Dispatches, 211.0, 1.0, "0.0047 × as many"),
            (Figure::Dispatches, 1.0, 211.0, "211 × as many"),
            (Figure::GpuBusy, 100.0, 185.0, "1.85 × as much"),
            (Figure::GpuBusy, 180.0, 100.0, "0.56 × as much"),
            (Figure::GpuBusy, 1000.0, 1001.0, "about the same"),
            (Figure::Submissions, 3.0, 3.0, "the same"),
            (Figure::TransferBytes, 9.0, 0.0, "none"),
            (Figure::TransferBytes, 0.0, 9.0, "new"),
        ] {
            assert_eq!(said(figure, before, after), text.into());
        }
        let noise = Ratio {
            before: Some(2.0),
            after: Some(3.0),
            low: Some(0.5),
            high: Some(1.25),
            within_noise: Some(true),
            ..Ratio::default()
        };
        assert_eq!(change(&noise), "within noise".into());
        assert_eq!(interval(&noise), "0.80 to 2.00 ×".into());
        assert_eq!(
            change(&Ratio::default()),
            or_unknown(None::<f64>, number::factor)
        );
    }
}

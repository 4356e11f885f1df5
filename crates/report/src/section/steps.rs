//! Makes the section on the steps of the program: the median step first, then the slow ones with the reasons, then the others.

use super::{Places, count, duration, rest};
use crate::document::{Block, Table, Text, Tone};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::steps::{Step, StepSummary, slow_text};
use gapscope_timeline::quantity::ratio;

/// Makes the section; none without steps.
pub(crate) fn blocks(findings: &Findings, top: usize, places: Places) -> Vec<Block> {
    let Some(summary) = &findings.step_summary else {
        return Vec::new();
    };
    let mut blocks = head(summary);
    let steps = &findings.steps;
    let first = std::iter::once(&summary.median).chain(&summary.slow);
    let is_other = |at: &usize| *at != summary.median && !steps[*at].is_slow;
    let others = (0..steps.len()).filter(is_other);
    let order: Vec<usize> = first.copied().chain(others).collect();
    let shown: Vec<&Step> = order
        .iter()
        .take(top.max(1))
        .map(|at| &steps[*at])
        .collect();
    let part = |step: &Step, what: &str| {
        let part = step.parts.iter().find(|part| part.what == what);
        part.map_or(Text::new(), |part| number::duration(part.total_ns).into())
    };
    let mut table = Table::with_rows(&shown)
        .number("step", |step| count(step.number))
        .number("from", |step| places.at(step.start_ns))
        .spare(9)
        .number("length", |step| duration(Some(step.duration_ns)))
        .number("of median", |step| {
            number::factor(ratio(step.duration_ns, summary.median_ns))
        });
    const PARTS: [&str; 9] = [
        "compute",
        "host",
        "sync",
        "launch",
        "transfer",
        "communication",
        "peers",
        "imbalance",
        "unknown",
    ];
    for (place, what) in PARTS.into_iter().enumerate() {
        table = table
            .number(what, |step| part(step, what))
            .spare(place as u8);
    }
    let table = table.notes("because", |step| {
        let is_median = std::ptr::eq(*step, &steps[summary.median]);
        match (is_median, step.is_left_out) {
            (true, _) => Some("the median step".into()),
            (_, true) => Some("outside of the judged time, such as warm-up".into()),
            _ => step.because.as_deref().map(Text::from),
        }
    });
    blocks.push(Block::Table(table.build()));
    rest(&mut blocks, steps.len(), shown.len(), "steps");
    blocks.push(Block::Sentence(Text::new().faint(summary.found.as_str())));
    blocks
}

/// Makes the part for the first screen: the median step, how many are slow, and why the slowest are.
pub(crate) fn first(findings: &Findings) -> Vec<Block> {
    let Some(summary) = &findings.step_summary else {
        return Vec::new();
    };
    let slowest = slowest(findings, summary)
        .map(|(name, text)| Block::Item(Text::new().strong(format!("{name}: ")).and(text)));
    head(summary).into_iter().chain(slowest).collect()
}

/// Returns the same as sentences.
pub(crate) fn sentences(findings: &Findings) -> Vec<String> {
    let Some(summary) = &findings.step_summary else {
        return Vec::new();
    };
    let slowest = slowest(findings, summary).map(|(name, text)| format!("{name}: {text}"));
    summary.sentences.iter().cloned().chain(slowest).collect()
}

/// Returns the name of each of the slowest steps, and why it is slow.
fn slowest(findings: &Findings, summary: &StepSummary) -> impl Iterator<Item = (String, String)> {
    const NAMED: usize = 2;
    let slowest = summary.slow.iter().take(NAMED);
    slowest.map(|at| {
        let step = &findings.steps[*at];
        let because = match &step.because {
            Some(because) => format!("; {because}"),
            None => String::new(),
        };
        let text = format!("{}{because}.", slow_text(step, summary.median_ns));
        (format!("Step {}", number::count(step.number)), text)
    })
}

/// Returns the heading, and the sentences on all steps.
fn head(summary: &StepSummary) -> Vec<Block> {
    let tone = match summary.slow.is_empty() {
        true => Tone::Plain,
        false => Tone::Warning,
    };
    let mut text = Text::new();
    for (at, sentence) in summary.sentences.iter().enumerate() {
        let blank = if at > 0 { " " } else { "" };
        let tone = if at == 1 { tone } else { Tone::Plain };
        text = text.and(blank).with(tone, sentence.as_str());
    }
    vec![
        Block::Heading("Steps".to_owned(), String::new()),
        Block::Sentence(text),
    ]
}

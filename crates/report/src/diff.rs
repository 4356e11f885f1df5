//! Turns a comparison of two sets of runs into terminal text, Markdown, JSON and JUnit.

mod junit;
mod tables;

pub use junit::text as junit;

use crate::document::{Block, Column, Document, Table, Text, Tone};
use crate::{fit, markdown as page};
use gapscope_comparison::diff::{Diff, GateStatus, SamplesOf, Verdict, WorkFigure, value};
use schemars::JsonSchema;
use serde::Serialize;

/// The maximum number of columns for the name of each side in the title.
const NAME_COLUMNS: usize = 24;
/// The maximum number of columns for the device's name.
const DEVICE_COLUMNS: usize = 32;
/// The number of rows above which Markdown folds a table.
const LONG_ROWS: usize = 12;

/// A comparison and how much of it is shown.
#[derive(Debug, Clone, Copy)]
pub struct DiffReport<'a> {
    /// The comparison.
    pub diff: &'a Diff,
    /// The number of rows in each table.
    pub top: usize,
}

/// A comparison as JSON.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Json<'a> {
    /// The version of gapscope that compared.
    gapscope: &'static str,
    /// The comparison.
    #[serde(flatten)]
    diff: &'a Diff,
}

impl DiffReport<'_> {
    /// Returns the comparison as a document: verdict, unlike conditions, gates, work, times, idle time, kernels, counts, and
    /// the basis.
    pub fn document(&self) -> Document {
        let mut blocks = self.head();
        for table in tables::all(self.diff, self.top) {
            blocks.extend(table);
        }
        blocks.extend(self.tail());
        Document { blocks }
    }

    /// Returns the comparison as Markdown for a pull request: long tables are folded.
    pub fn markdown(&self) -> String {
        let mut text = page::draw(&Document {
            blocks: self.head(),
        });
        for blocks in tables::all(self.diff, self.top) {
            let rows = |block: &Block| match block {
                Block::Table(table) => table.rows.len(),
                _ => 0,
            };
            let is_long = blocks.iter().map(rows).sum::<usize>() > LONG_ROWS;
            text.push('\n');
            match blocks.split_first() {
                Some((Block::Heading(title, aside), rest)) if is_long => {
                    let rest = page::draw(&Document {
                        blocks: rest.to_vec(),
                    });
                    text.push_str(&format!(
                        "<details>\n<summary><b>{title}</b>: {aside}</summary>\n\n{rest}\n</details>\n"
                    ));
                }
                _ => text.push_str(&page::draw(&Document { blocks })),
            }
        }
        let tail = page::draw(&Document {
            blocks: self.tail(),
        });
        format!("{text}\n{tail}")
    }

    /// Returns the comparison as JSON, whose keys are stable.
    ///
    /// # Errors
    ///
    /// Fails where JSON cannot be written.
    pub fn json(&self) -> serde_json::Result<String> {
        let mut text = serde_json::to_string_pretty(&Json {
            gapscope: env!("CARGO_PKG_VERSION"),
            diff: self.diff,
        })?;
        text.push('\n');
        Ok(text)
    }

    fn head(&self) -> Vec<Block> {
        let diff = self.diff;
        let mut blocks = vec![Block::Title(self.title(), self.aside())];
        let (word, tone) = match diff.verdict {
            Verdict::Slower => ("SLOWER", Tone::Warning),
            Verdict::Faster => ("FASTER", Tone::Good),
            Verdict::Changed => ("CHANGED", Tone::Warning),
            Verdict::NoDifference => ("NO DIFFERENCE", Tone::Good),
            Verdict::Unknown => ("UNKNOWN", Tone::Warning),
        };
        let verdict = Text::new().with(tone, word).and("  ").and(&diff.sentence);
        blocks.push(Block::Sentence(verdict));
        for sentence in &diff.unlike {
            blocks.push(Block::Item(
                Text::new().with(Tone::Warning, "Unlike: ").and(sentence),
            ));
        }
        blocks.extend(self.gates());
        blocks.extend(self.work());
        blocks
    }

    fn title(&self) -> String {
        let name = |runs: &[String]| match runs {
            [] => String::new(),
            [only] => fit::clip(base(only), NAME_COLUMNS),
            [first, rest @ ..] => format!(
                "{} and {} more",
                fit::clip(base(first), NAME_COLUMNS),
                rest.len()
            ),
        };
        format!(
            "{} → {}",
            name(&self.diff.before.runs),
            name(&self.diff.after.runs)
        )
    }

    fn aside(&self) -> String {
        let devices = &self.diff.after.devices;
        let device = match devices.as_slice() {
            [] => String::new(),
            [only] => only.clone(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
        };
        fit::clip(&device, DEVICE_COLUMNS)
    }

    fn gates(&self) -> Vec<Block> {
        let gates = &self.diff.gates;
        if gates.is_empty() {
            return Vec::new();
        }
        let broken = gates
            .iter()
            .filter(|gate| gate.status == GateStatus::Broken);
        let unjudged = gates.iter().any(|gate| gate.status == GateStatus::Unlike);
        let aside = match (broken.count(), gates.len()) {
            (_, all) if unjudged => format!("{all} of {all} not judged"),
            (0, all) => format!("{all} of {all} not broken"),
            (broken, all) => format!("{broken} of {all} broken"),
        };
        let mut table = Table::new([
            Column::name("gate"),
            Column::word(""),
            Column::text("figure"),
        ]);
        for gate in gates {
            let status = match gate.status {
                GateStatus::Held => Text::new().with(Tone::Good, "held"),
                GateStatus::Noise => Text::new().with(Tone::Good, "held (noise)"),
                GateStatus::Broken => Text::new().with(Tone::Warning, "BROKEN"),
                GateStatus::Unknown => Text::new().with(Tone::Warning, "UNKNOWN"),
                GateStatus::Unlike => Text::new().with(Tone::Warning, "NOT JUDGED"),
                GateStatus::UnknownAllowed => Text::new().faint("unknown, allowed"),
            };
            table.row([
                Text::new().strong(&gate.gate),
                status,
                gate.sentence.as_str().into(),
            ]);
        }
        vec![Block::Heading("Gates".into(), aside), Block::Table(table)]
    }

    fn work(&self) -> Vec<Block> {
        let work = &self.diff.equal_work;
        let each = match &work.evaluation {
            Some(label) => format!("one evaluation: an instance of the label {label}"),
            None => "of a run".to_owned(),
        };
        let title = match work.equal {
            Some(true) => "Equal work",
            Some(false) => "Work: not equal",
            None => "Work: unknown",
        };
        let mut table = Table::new([
            Column::word("work"),
            Column::number("before"),
            Column::number("after"),
            Column::word(""),
        ]);
        let known = |figure: &&WorkFigure| figure.before.is_some() || figure.after.is_some();
        for figure in work.figures.iter().filter(known) {
            let equal = match figure.equal {
                Some(true) => Text::new().with(Tone::Good, "equal"),
                Some(false) => Text::new().with(Tone::Warning, "not equal"),
                None => Text::new().faint("unknown"),
            };
            table.row([
                figure.what.as_str().into(),
                tables::value_of(figure.before, figure.unit),
                tables::value_of(figure.after, figure.unit),
                equal,
            ]);
        }
        let mut blocks = vec![Block::Heading(title.into(), each), Block::Table(table)];
        let unknown: Vec<&str> = (work.figures.iter())
            .filter(|figure| !known(figure))
            .map(|figure| figure.what.as_str())
            .collect();
        if !unknown.is_empty() {
            let text = format!("Not known on either side: {}.", unknown.join(", "));
            blocks.push(Block::Sentence(Text::new().faint(text)));
        }
        for sentence in &work.sentences {
            blocks.push(Block::Sentence(sentence.as_str().into()));
        }
        blocks
    }

    fn tail(&self) -> Vec<Block> {
        let diff = self.diff;
        let aside = match diff.method.samples {
            SamplesOf::Runs => "runs",
            SamplesOf::RunsInTurns => "runs, in turns",
            SamplesOf::OneRun => "one run a side",
        };
        let mut blocks = vec![Block::Heading("What it rests on".into(), aside.into())];
        blocks.push(Block::Item(diff.method.sentence.as_str().into()));
        let corrected = format!(
            "p is the chance that noise alone makes so great a difference, corrected for {} comparisons; intervals are of 95 %, each for \
             itself.",
            diff.method.comparisons
        );
        blocks.push(Block::Item(corrected.into()));
        let matched = diff.matched.iter().take(self.top);
        blocks.extend(matched.map(|sentence| Block::Item(sentence.as_str().into())));
        if diff.matched.len() > self.top {
            let more = format!(
                "{} more kernels were matched so; --top 0 shows all.",
                diff.matched.len() - self.top
            );
            blocks.push(Block::Item(Text::new().faint(more)));
        }
        if !diff.next.is_empty() {
            blocks.push(Block::Heading("Next".into(), String::new()));
            blocks.extend(
                diff.next
                    .iter()
                    .map(|sentence| Block::Item(sentence.as_str().into())),
            );
        }
        blocks
    }
}

fn base(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".gapscope").unwrap_or(name)
}

/// Formats a value with its unit for a gate's message.
pub(crate) fn shown(number: Option<f64>, unit: gapscope_comparison::diff::Unit) -> String {
    number.map_or_else(|| "unknown".to_owned(), |number| value(number, unit))
}

//! Turns a comparison of two sets of runs (recordings before and after a change) into terminal text,
//! Markdown, JSON and JUnit.

mod junit;
mod tables;

pub use junit::text as junit;

use crate::document::{Block, Document, Table, Text, Tone};
use crate::stable_json::pretty;
use crate::{fit, markdown as page};
use gapscope_comparison::diff::{
    Diff, GateResult, GateStatus, SamplesOf, Verdict, WorkFigure, value,
};
use gapscope_timeline::quantity::count_of;
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
    /// The number of rows in each table of causes and of kernels; tables of times and counts have all.
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
    /// Returns the comparison as a document: verdict, unlike conditions, gates, work, times, idle time, kernels,
    /// counts, and the basis.
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
        let drawn = |blocks| page::draw(&Document { blocks });
        let mut text = drawn(self.head());
        for blocks in tables::all(self.diff, self.top) {
            let rows = |block: &Block| match block {
                Block::Table(table) => table.rows.len(),
                _ => 0,
            };
            let is_long = blocks.iter().map(rows).sum::<usize>() > LONG_ROWS;
            text.push('\n');
            match blocks.split_first() {
                Some((Block::Heading(title, aside), rest)) if is_long => {
                    let rest = drawn(rest.to_vec());
                    text.push_str(&format!(
                        "<details>\n<summary><b>{title}</b>: {aside}</summary>\n\n{rest}\n</details>\n"
                    ));
                }
                _ => text.push_str(&drawn(blocks)),
            }
        }
        format!("{text}\n{}", drawn(self.tail()))
    }

    /// Returns the comparison as JSON, whose keys are stable.
    ///
    /// # Errors
    ///
    /// Fails where JSON cannot be written.
    pub fn json(&self) -> serde_json::Result<String> {
        pretty(&Json {
            gapscope: env!("CARGO_PKG_VERSION"),
            diff: self.diff,
        })
    }

    /// Returns the title, the verdict, what is unlike about the two sides, the gates (limits that the user sets on
    /// figures), and the section on equal work.
    fn head(&self) -> Vec<Block> {
        let diff = self.diff;
        let mut blocks = vec![Block::Title(self.title(), self.aside())];
        let (word, tone) = match diff.verdict {
            Verdict::Slower => ("SLOWER", Tone::Warning),
            Verdict::Faster => ("FASTER", Tone::Good),
            Verdict::Changed => ("CHANGED", Tone::Warning),
            Verdict::NoDifference => ("NOT TOLD APART", Tone::Good),
            Verdict::Unknown => ("UNKNOWN", Tone::Warning),
        };
        let is_judged = matches!(diff.verdict, Verdict::Slower | Verdict::Faster);
        let (word, tone) = match diff.equal_work.equal {
            Some(false) if is_judged => (format!("{word}, OTHER WORK"), Tone::Warning),
            None if is_judged && diff.equal_work.is_in_doubt() => {
                (format!("{word}, PERHAPS OTHER WORK"), Tone::Warning)
            }
            _ => (word.to_owned(), tone),
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

    /// Returns the names of both sides with an arrow between them.
    fn title(&self) -> String {
        let [before, after] = [&self.diff.before, &self.diff.after]
            .map(|side| first_of(&side.runs, |run| fit::clip(base(run), NAME_COLUMNS)));
        format!("{before} → {after}")
    }

    /// Returns the devices of the side after the change.
    fn aside(&self) -> String {
        let devices = &self.diff.after.devices;
        fit::clip(&first_of(devices, str::to_owned), DEVICE_COLUMNS)
    }

    /// Returns the table of gates; nothing without gates.
    fn gates(&self) -> Vec<Block> {
        let gates = &self.diff.gates;
        if gates.is_empty() {
            return Vec::new();
        }
        Table::with_rows(gates)
            .name("gate", |gate| Text::new().strong(&gate.gate))
            .word("", |gate| match gate.status {
                GateStatus::Held => Text::new().with(Tone::Good, "held"),
                GateStatus::Broken => Text::new().with(Tone::Warning, "BROKEN"),
                GateStatus::Unknown => Text::new().with(Tone::Warning, "UNKNOWN"),
                GateStatus::Noise | GateStatus::Undecided | GateStatus::Unlike => {
                    Text::new().with(Tone::Warning, "NOT JUDGED")
                }
                GateStatus::UnknownAllowed => Text::new().faint("unknown, allowed"),
            })
            .notes("figure", |gate| Some(gate.sentence.as_str().into()))
            .under("Gates", outcomes(gates))
    }

    /// Returns the table of the amounts of work on both sides, which must be equal for times to be comparable. An
    /// evaluation is one repetition of the work.
    fn work(&self) -> Vec<Block> {
        let work = &self.diff.equal_work;
        let each = match &work.evaluation {
            Some(label) => format!("one evaluation: an instance of the label {label}"),
            None => "of a run".to_owned(),
        };
        let title = match work.equal {
            Some(true) if work.is_size_unknown() => "Work: equal as far as it is known",
            Some(true) => "Equal work",
            Some(false) => "Work: not equal",
            None if work.is_nothing() => "Work: none",
            None if work.is_in_doubt() => "Work: may not be equal",
            None => "Work: unknown",
        };
        let known = |figure: &&WorkFigure| figure.before.is_some() || figure.after.is_some();
        let (known, unknown): (Vec<_>, Vec<_>) = work.figures.iter().partition(known);
        let mut blocks = Table::with_rows(&known)
            .word("work", |figure| figure.what.as_str())
            .number("before", |figure| {
                tables::value_of(figure.before, figure.unit, figure.at_least[0])
            })
            .number("after", |figure| {
                tables::value_of(figure.after, figure.unit, figure.at_least[1])
            })
            .word("", |figure| match figure.equal {
                Some(true) => Text::new().with(Tone::Good, "equal"),
                Some(false) => Text::new().with(Tone::Warning, "not equal"),
                None => Text::new().faint("unknown"),
            })
            .under(title, each);
        let unknown: Vec<&str> = unknown.iter().map(|figure| figure.what.as_str()).collect();
        if !unknown.is_empty() {
            let text = format!("Not known on either side: {}.", unknown.join(", "));
            blocks.push(Block::Sentence(Text::new().faint(text)));
        }
        for sentence in &work.sentences {
            blocks.push(Block::Sentence(sentence.as_str().into()));
        }
        blocks
    }

    /// Returns the basis of the comparison, how kernels were matched, and advice on what to do next.
    fn tail(&self) -> Vec<Block> {
        let diff = self.diff;
        let aside = match diff.method.samples {
            SamplesOf::Runs => "runs",
            SamplesOf::RunsInTurns => "runs, in turns",
            SamplesOf::OneRun => "one run a side",
        };
        let mut blocks = vec![Block::Heading("What it rests on".into(), aside.into())];
        let text = match diff.method.comparisons {
            0 => "No difference of times was tested for noise: there are none, or how much they vary is not known.".to_owned(),
            comparisons => {
                blocks.push(Block::Item(diff.method.sentence.as_str().into()));
                format!(
                    "p is the chance that noise alone makes so great a difference, corrected for {}; intervals are of 95 %, each for itself.",
                    count_of(comparisons, "comparison", "comparisons")
                )
            }
        };
        blocks.push(Block::Item(text.into()));
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
            let next = diff.next.iter();
            blocks.extend(next.map(|sentence| Block::Item(sentence.as_str().into())));
        }
        blocks
    }
}

/// Counts the gates that held and those that did not, such as `1 of 3 held, 1 broken, 1 unknown`.
fn outcomes(gates: &[GateResult]) -> String {
    let count = |statuses: &[GateStatus]| {
        (gates.iter())
            .filter(|gate| statuses.contains(&gate.status))
            .count()
    };
    let mut text = format!("{} of {} held", count(&[GateStatus::Held]), gates.len());
    for (statuses, word) in [
        (&[GateStatus::Broken][..], "broken"),
        (
            &[GateStatus::Noise, GateStatus::Undecided, GateStatus::Unlike],
            "not judged",
        ),
        (&[GateStatus::Unknown], "unknown"),
        (&[GateStatus::UnknownAllowed], "unknown, allowed"),
    ] {
        let count = count(statuses);
        if count > 0 {
            text.push_str(&format!(", {count} {word}"));
        }
    }
    text
}

/// Returns the first of several names, and how many more there are.
fn first_of(names: &[String], shown: impl Fn(&str) -> String) -> String {
    match names {
        [] => String::new(),
        [only] => shown(only),
        [first, rest @ ..] => format!("{} and {} more", shown(first), rest.len()),
    }
}

/// Returns the name of a trace: the last part of its path, without `.gapscope`.
fn base(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".gapscope").unwrap_or(name)
}

/// Formats a value with its unit for a gate's message; `None` is `unknown`.
pub(crate) fn shown(number: Option<f64>, unit: gapscope_comparison::diff::Unit) -> String {
    number.map_or_else(|| "unknown".to_owned(), |number| value(number, unit))
}

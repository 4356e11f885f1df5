//! Puts the sections of a report on one trace together, in their order: head, what cannot be read, verdict, the
//! sections of the list below, accuracy. A report that compares equal work has the comparison in place of verdict and
//! list.

use crate::document::{Block, Document, Text, Tone};
use crate::section::unread::{self, Section};
use crate::section::*;
use gapscope_analysis::Findings;
use gapscope_analysis::activity::Activity;
use gapscope_analysis::unread::{
    CAUSES, CODE, COMMAND_BUFFERS, COUNTERS, KERNELS, LABELS, MEMORY, PROFILED, SAMPLED, TRANSFERS,
};
use gapscope_timeline::Vocabulary;
use gapscope_timeline::vocabulary::file_name;
use gapscope_trace::Manifest;
use gapscope_trace::manifest::Exit;

/// The input of a report on one trace.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The name of the trace.
    pub trace: &'a str,
    /// The manifest of the trace.
    pub manifest: &'a Manifest,
    /// The findings on the trace.
    pub findings: &'a Findings,
    /// The timeline in slices.
    pub activity: &'a Activity,
    /// The text of the labels that the findings are limited to; `None` where they are of all work.
    pub label: Option<&'a str>,
    /// The remarks of the trace's reader, in sentences.
    pub remarks: &'a [String],
    /// The number of rows that each table shows.
    pub top: usize,
    /// True to show each module of a model in a row of its own instead of folding equal modules into one.
    pub each_layer: bool,
}

impl Report<'_> {
    /// Returns the report as a document.
    pub fn document(&self) -> Document {
        let findings = self.findings;
        let names = Vocabulary::new(self.manifest);
        let sections = self.sections(&names);
        let mut blocks = self.head();
        blocks.extend(unread::head(findings, &sections));
        if let Some(comparison) = &findings.equal_work {
            blocks.extend(equal_work::blocks(comparison, names.words()));
            blocks.extend(accuracy::blocks(findings, self.remarks));
            return Document { blocks };
        }
        blocks.extend(verdict::blocks(findings, names.words()));
        for section in sections {
            blocks.extend(section.known(findings));
        }
        blocks.extend(accuracy::blocks(findings, self.remarks));
        Document { blocks }
    }

    /// Returns the sections between verdict and accuracy, in their order.
    fn sections(&self, names: &Vocabulary) -> Vec<Section> {
        // Times of the recording are printed from its start.
        let places = Places {
            origin_ns: self.manifest.start_ns,
            span_ns: self.activity.window.length_ns(),
        };
        let timeline = Section {
            title: "the timeline",
            rests_on: CAUSES,
            counts: false,
            blocks: timeline::blocks(self.findings, names, self.activity, self.top, places),
        };
        let tables = Tables {
            top: self.top,
            each_layer: self.each_layer,
        };
        let sections = sections(self.manifest, self.findings, names, places, tables);
        [timeline].into_iter().chain(sections).collect()
    }

    /// Returns the title, how the program ended if badly, and to which labels the report is limited.
    fn head(&self) -> Vec<Block> {
        let command = short_command(self.manifest);
        let mut blocks = vec![Block::Title(command, accuracy::short(self.findings))];
        let sentence = |text: String| Block::Sentence(text.into());
        if let Some(text) = ended_badly(self.manifest) {
            blocks.push(Block::Sentence(Text::new().with(Tone::Warning, text)));
        }
        if let Some(label) = self.label {
            blocks.push(sentence(format!(
                "Only work under labels that contain \"{}\"; gaps and verdict are from its first to its last work.",
                label
            )));
        }
        blocks
    }
}

/// What the tables of a report show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tables {
    /// The number of rows that each shows.
    pub(crate) top: usize,
    /// True to show each module of a model in a row of its own.
    pub(crate) each_layer: bool,
}

/// Returns the sections between the timeline and accuracy, in their order. Explanations have the same.
pub(crate) fn sections(
    manifest: &Manifest,
    findings: &Findings,
    names: &Vocabulary,
    places: Places,
    tables: Tables,
) -> Vec<Section> {
    let (words, top) = (names.words(), tables.top);
    // A section rests on tables: where they cannot be read, it is left out, or its counts become lower bounds.
    let section = |title, rests_on, blocks| Section {
        title,
        rests_on,
        counts: false,
        blocks,
    };
    let counts = |title, rests_on, blocks| Section {
        counts: true,
        ..section(title, rests_on, blocks)
    };
    let has_stacks = manifest.stack_rate_hz.is_some() || findings.code.is_some();
    let code = has_stacks.then(|| {
        section(
            "the code behind the idle time",
            CODE,
            code::blocks(findings, words, top),
        )
    });
    let mut sections = vec![
        section(
            "idle time by cause",
            CAUSES,
            gaps::blocks(findings, words, top, places),
        ),
        counts("kernels", KERNELS, kernels::blocks(findings, top)),
        section("limits of kernels", KERNELS, limits::blocks(findings, top)),
        section("kernels in depth", PROFILED, profiled::blocks(findings)),
        section(
            "hot instructions",
            SAMPLED,
            instructions::blocks(findings, top),
        ),
        counts(
            "labels",
            LABELS,
            labels::blocks(findings, top, tables.each_layer),
        ),
        counts("operators", LABELS, operators::blocks(findings, top)),
        counts(
            "command buffers",
            COMMAND_BUFFERS,
            command_buffers::blocks(findings, words, top, places),
        ),
        counts("transfers", TRANSFERS, transfers::blocks(findings)),
        section("memory", MEMORY, memory::blocks(findings, places)),
        section("counters", COUNTERS, counters::blocks(findings, names, top)),
        section(
            "launch latency",
            CAUSES,
            launch_latency::blocks(findings, names, top),
        ),
    ];
    // The code comes after the causes of idle time.
    sections.splice(1..1, code);
    sections
}

/// Returns the command as a person would type it.
pub fn command_line(command: &[String]) -> String {
    let words = command.iter().map(|word| {
        let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the recorded command without the folder that the program is in; `gapscope info` shows it.
pub(crate) fn short_command(manifest: &Manifest) -> String {
    let mut command = manifest.command.clone();
    if let Some(program) = command.first_mut() {
        *program = file_name(program).to_owned();
    }
    command_line(&command)
}

/// Returns a sentence on the program's end, unless that was orderly or the trace is an import.
pub(crate) fn ended_badly(manifest: &Manifest) -> Option<String> {
    // Imported traces do not say how the program ended.
    let is_import = manifest.complete && manifest.host.system.is_empty();
    match manifest.exit {
        Some(Exit::Code(0)) => None,
        Some(Exit::Code(code)) => Some(format!("The program ended with exit code {code}.")),
        Some(Exit::Signal(signal)) => Some(format!("The program was ended by signal {signal}.")),
        None if is_import => None,
        None => Some("How the program ended is not known.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_where_a_shell_needs_it() {
        let command = ["python", "-c", "print('a b')", ""].map(str::to_owned);
        assert_eq!(command_line(&command), r"python -c 'print('\''a b'\'')' ''");
    }
}

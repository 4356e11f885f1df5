//! Puts the sections of a report on one trace together, in their order: all of them, what is on the first screen, or those that are
//! asked for by name. Before them come the head and what cannot be read.

use crate::document::{Block, Document, Text, Tone};
use crate::number;
use crate::ranks::RanksReport;
use crate::section::unread::{self, Section};
use crate::section::*;
use gapscope_analysis::Findings;
use gapscope_analysis::activity::Activity;
use gapscope_analysis::headline::HeadlineKind;
use gapscope_analysis::unread::{
    CAUSES, CODE, COMMAND_BUFFERS, COUNTERS, KERNELS, LABELS, MEMORY, PROFILED, SAMPLED, STEPS,
    TRANSFERS,
};
use gapscope_timeline::Vocabulary;
use gapscope_timeline::command::short_command;
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
    /// The comparison of the ranks in the trace; `None` where it has one, or where they are not compared.
    pub ranks: Option<RanksReport<'a>>,
}

/// The names of all sections, in the order of the report.
pub const SECTIONS: [&str; 21] = [
    "verdict",
    "do-first",
    "comparison",
    "timeline",
    "gains",
    "steps",
    "idle",
    "code",
    "kernels",
    "limits",
    "profiles",
    "instructions",
    "labels",
    "operators",
    "command-buffers",
    "transfers",
    "memory",
    "counters",
    "latency",
    "ranks",
    "accuracy",
];

impl Report<'_> {
    /// Returns the whole report as a document.
    pub fn document(&self) -> Document {
        let findings = self.findings;
        let sections = self.sections();
        let names = Vocabulary::new(self.manifest);
        let mut blocks = self.head(accuracy::short(findings, names.words()));
        blocks.extend(unread::head(findings, &sections));
        for mut section in sections {
            blocks.extend(section.known(findings));
        }
        Document { blocks }
    }

    /// Returns what a reader needs first, as a document: the verdict, what to do first, the timeline, and the greatest costs.
    /// Its last line says which other sections there are.
    pub fn first_screen(&self) -> Document {
        let findings = self.findings;
        let sections = self.sections();
        // A verdict on a part of the run says how long that was.
        let mut notes = findings.headline.iter();
        let is_said = notes.any(|note| note.kind == HeadlineKind::Scope);
        let length = findings.wall_ns.filter(|_| !is_said);
        let length = length.map(|ns| format!("{} recorded", number::duration(ns)));
        let mut blocks = self.head(length.unwrap_or_default());
        blocks.extend(unread::head(findings, &sections));
        let mut others = Vec::new();
        for mut section in sections {
            if section.first.is_empty() && !section.blocks.is_empty() {
                others.push(section.name);
            }
            blocks.extend(section.first_screen(findings));
        }
        let others = match others.is_empty() {
            true => String::new(),
            false => format!(", --section NAME one of {}", others.join(", ")),
        };
        let text = format!("More: gapscope report --full prints all{others}.");
        blocks.push(Block::Sentence(Text::new().faint(text)));
        Document { blocks }
    }

    /// Returns some sections of the report, by their names, as a document. A section that has nothing to show says so.
    pub fn some_sections(&self, names: &[String]) -> Document {
        let findings = self.findings;
        let mut sections = self.sections();
        let mut blocks = Vec::new();
        for name in names {
            let section = sections.iter_mut().find(|section| section.name == name);
            let is_left_out = section.as_ref().is_some_and(|of| of.is_left_out(findings));
            let shown = section.map_or(Vec::new(), |section| section.known(findings));
            if is_left_out {
                let text =
                    format!("The section {name} is unknown: the trace cannot be read whole.");
                blocks.push(Block::Apart(Text::new().with(Tone::Warning, text)));
            } else if shown.is_empty() {
                let text = format!("The trace has nothing for the section {name}.");
                blocks.push(Block::Apart(text.into()));
            }
            blocks.extend(shown);
        }
        if !findings.unread.is_empty() {
            blocks.splice(0..0, unread::head(findings, &[]));
        }
        Document { blocks }
    }

    /// Returns all sections, in their order. A report that compares equal work has the comparison in place of most.
    fn sections(&self) -> Vec<Section> {
        let findings = self.findings;
        let names = Vocabulary::new(self.manifest);
        let words = names.words();
        let accuracy = Section {
            name: "accuracy",
            title: "accuracy",
            blocks: accuracy::blocks(findings, words, self.remarks),
            first: accuracy::first(findings, words, self.remarks),
            ..Section::default()
        };
        if let Some(comparison) = &findings.equal_work {
            let blocks = equal_work::blocks(comparison, words);
            let comparison = Section {
                name: "comparison",
                title: "the comparison",
                first: blocks.clone(),
                blocks,
                ..Section::default()
            };
            return vec![comparison, accuracy];
        }
        // Times of the recording are printed from its start.
        let places = Places {
            origin_ns: self.manifest.start_ns,
            span_ns: self.activity.window.length_ns(),
        };
        let of_ranks = || self.ranks.as_ref().and_then(RanksReport::headline);
        let mut first = verdict::first(findings, of_ranks());
        first.extend(self.ranks.iter().flat_map(|ranks| ranks.beside_verdict()));
        // A late rank, for which the others wait, comes before what is slow on each rank.
        let late_rank = self.ranks.as_ref().and_then(RanksReport::do_first);
        let do_first = match late_rank {
            Some(block) => vec![block],
            None => do_first::blocks(findings, words),
        };
        let head = [
            Section {
                name: "verdict",
                title: "the verdict",
                blocks: verdict::blocks(findings, words, of_ranks()),
                first,
                ..Section::default()
            },
            Section {
                name: "do-first",
                title: "what to do first",
                rests_on: CAUSES,
                first: do_first.clone(),
                blocks: do_first,
                ..Section::default()
            },
            Section {
                name: "timeline",
                title: "the timeline",
                rests_on: CAUSES,
                blocks: timeline::blocks(findings, &names, self.activity, self.top, places),
                first: timeline::first(findings, &names, self.activity, places),
                ..Section::default()
            },
        ];
        let tables = Tables {
            top: self.top,
            each_layer: self.each_layer,
        };
        let ranks = self.ranks.map(|ranks| Section {
            name: "ranks",
            title: "the ranks",
            blocks: ranks.within(),
            ..Section::default()
        });
        let tables = sections(self.manifest, findings, &names, places, tables);
        let sections = head.into_iter().chain(tables).chain(ranks);
        sections.chain([accuracy]).collect()
    }

    /// Returns the title with an aside, how the program ended if badly, and to which labels the report is limited.
    fn head(&self, aside: String) -> Vec<Block> {
        // Files of other tools do not always have the command.
        let title = match self.manifest.command.is_empty() {
            true => self.trace.to_owned(),
            false => short_command(self.manifest),
        };
        let mut blocks = vec![Block::Title(title, aside)];
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
    let section = |name, title, rests_on, blocks| Section {
        name,
        title,
        rests_on,
        blocks,
        ..Section::default()
    };
    let counts = |name, title, rests_on, blocks| Section {
        counts: true,
        ..section(name, title, rests_on, blocks)
    };
    let has_stacks = manifest.stack_rate_hz.is_some() || findings.code.is_some();
    let code = has_stacks.then(|| {
        section(
            "code",
            "the code behind the idle time",
            CODE,
            code::blocks(findings, words, top),
        )
    });
    let mut sections = vec![
        section(
            "gains",
            "what would help most",
            CAUSES,
            gains::blocks(findings),
        ),
        Section {
            first: steps::first(findings),
            ..section(
                "steps",
                "the steps",
                STEPS,
                steps::blocks(findings, top, places),
            )
        },
        Section {
            first: gaps::first(findings, words),
            ..section(
                "idle",
                "idle time by cause",
                CAUSES,
                gaps::blocks(findings, words, top, places),
            )
        },
        Section {
            first: kernels::first(findings, words),
            ..counts(
                "kernels",
                "kernels",
                KERNELS,
                kernels::blocks(findings, words, top),
            )
        },
        section(
            "limits",
            "limits of kernels",
            KERNELS,
            limits::blocks(findings, top),
        ),
        section(
            "profiles",
            "kernels in depth",
            PROFILED,
            profiled::blocks(findings),
        ),
        section(
            "instructions",
            "hot instructions",
            SAMPLED,
            instructions::blocks(findings, top),
        ),
        counts(
            "labels",
            "labels",
            LABELS,
            labels::blocks(findings, top, tables.each_layer),
        ),
        counts(
            "operators",
            "operators",
            LABELS,
            operators::blocks(findings, top),
        ),
        counts(
            "command-buffers",
            "command buffers",
            COMMAND_BUFFERS,
            command_buffers::blocks(findings, words, top, places),
        ),
        counts(
            "transfers",
            "transfers",
            TRANSFERS,
            transfers::blocks(findings),
        ),
        section(
            "memory",
            "memory",
            MEMORY,
            memory::blocks(findings, top, places),
        ),
        section(
            "counters",
            "counters",
            COUNTERS,
            counters::blocks(findings, names, top),
        ),
        section(
            "latency",
            "launch latency",
            CAUSES,
            launch_latency::blocks(findings, names, top),
        ),
    ];
    // The code comes after the causes of idle time.
    sections.splice(2..2, code);
    sections
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

//! The whole report: which sections, in which order.

use crate::document::{Block, Document, Text, Tone};
use crate::fit;
use crate::section::{self, *};
use gapscope_analysis::activity::Activity;
use gapscope_analysis::vocabulary::file_name;
use gapscope_analysis::{Findings, Vocabulary};
use gapscope_trace::Manifest;
use gapscope_trace::manifest::Exit;

/// What a report is made of.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The trace's name.
    pub trace: &'a str,
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// What it shows.
    pub findings: &'a Findings,
    /// Its picture.
    pub activity: &'a Activity,
    /// Only the work under labels with this text was looked at.
    pub label: Option<&'a str>,
    /// Sentences about reading the trace.
    pub remarks: &'a [String],
    /// Rows in each table.
    pub top: usize,
}

impl Report<'_> {
    /// The report as a document.
    pub fn document(&self) -> Document {
        let findings = self.findings;
        let names = Vocabulary::of(self.manifest);
        let words = names.words();
        let mut blocks = self.head();
        if let Some(comparison) = &findings.equal_work {
            blocks.extend(equal_work::blocks(comparison, words));
            blocks.extend(accuracy::blocks(findings, self.remarks));
            return Document { blocks };
        }
        blocks.extend(verdict::blocks(findings, words));
        // Times of the recording are printed from its start.
        let origin_ns = self.manifest.start_ns;
        blocks.extend(timeline::blocks(findings, &names, self.activity, origin_ns));
        blocks.extend(gaps::blocks(findings, words, self.top, origin_ns));
        blocks.extend(kernels::blocks(findings, self.top));
        blocks.extend(labels::blocks(findings, self.top));
        blocks.extend(command_buffers::blocks(
            findings, words, self.top, origin_ns,
        ));
        blocks.extend(transfers::blocks(findings));
        blocks.extend(memory::blocks(findings, origin_ns));
        blocks.extend(counters::blocks(findings, &names));
        blocks.extend(launch_latency::blocks(findings, &names));
        blocks.extend(section::accuracy::blocks(findings, self.remarks));
        Document { blocks }
    }

    fn head(&self) -> Vec<Block> {
        let mut command = self.manifest.command.clone();
        if let Some(program) = command.first_mut() {
            // Where the program lies is in `info`; what it was told to do matters more.
            *program = file_name(program).to_owned();
        }
        let command = fit::clean(&command_line(&command));
        let mut blocks = vec![Block::Title(command, accuracy::short(self.findings))];
        let sentence = |text: String| Block::Sentence(text.into());
        if let Some(text) = ended_badly(self.manifest.exit) {
            blocks.push(Block::Sentence(Text::new().with(Tone::Warning, text)));
        }
        if let Some(label) = self.label {
            blocks.push(sentence(format!(
                "Only work under labels that contain \"{}\"; gaps and verdict are from its first to its last work.",
                fit::clean(label)
            )));
        }
        blocks
    }
}

/// The command as a person would type it.
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

fn ended_badly(exit: Option<Exit>) -> Option<String> {
    match exit {
        Some(Exit::Code(0)) => None,
        Some(Exit::Code(code)) => Some(format!("The program ended with exit code {code}.")),
        Some(Exit::Signal(signal)) => Some(format!("The program was ended by signal {signal}.")),
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

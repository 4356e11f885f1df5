//! Makes the section on tables that could not be read, and on what is unknown because of that. The section comes
//! before all others.

use crate::document::{Block, Text, Tone};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_trace::UnreadTable;

/// A section of a report, and the tables that it rests on.
#[derive(Default)]
pub(crate) struct Section {
    /// The name by which the section is asked for, one of `SECTIONS`.
    pub name: &'static str,
    /// The name of the section in a sentence.
    pub title: &'static str,
    /// The names of the tables that the section rests on.
    pub rests_on: &'static [&'static str],
    /// True where the section counts rows and their times, which are lower bounds where rows are missing.
    pub counts: bool,
    /// The content of the section for the case that all tables can be read.
    pub blocks: Vec<Block>,
    /// The part of it that is on the first screen; empty where nothing is.
    pub first: Vec<Block>,
}

impl Section {
    /// Returns whether what the section rests on is not known, not even as a lower bound.
    pub fn is_left_out(&self, findings: &Findings) -> bool {
        let known = findings.knows(self.rests_on);
        !(known || self.counts && findings.knows_some(self.rests_on))
    }

    /// Returns the content of the section as far as it is known.
    pub fn known(&mut self, findings: &Findings) -> Vec<Block> {
        let blocks = std::mem::take(&mut self.blocks);
        self.as_far_as_known(blocks, findings)
    }

    /// Returns the part of the section that is on the first screen, as far as it is known.
    pub fn first_screen(&mut self, findings: &Findings) -> Vec<Block> {
        let blocks = std::mem::take(&mut self.first);
        self.as_far_as_known(blocks, findings)
    }

    fn as_far_as_known(&self, mut blocks: Vec<Block>, findings: &Findings) -> Vec<Block> {
        if self.is_left_out(findings) {
            return Vec::new();
        }
        if !findings.knows(self.rests_on) && !blocks.is_empty() {
            let text = Text::new().with(Tone::Warning, "At least: some rows could not be read.");
            blocks.insert(1, Block::Sentence(text));
        }
        blocks
    }
}

/// Returns the section on what cannot be read, and what is unknown because of that.
pub(crate) fn head(findings: &Findings, sections: &[Section]) -> Vec<Block> {
    let warning = |text: String| Block::Sentence(Text::new().with(Tone::Warning, text));
    // Where all files were rewritten, they have one reason in common.
    let mut whole: Vec<(&str, Vec<String>)> = Vec::new();
    let mut blocks = Vec::new();
    for table in &findings.unread {
        if table.column.is_some() {
            blocks.push(warning(sentence(table)));
            continue;
        }
        let file = table.file.clone();
        match whole.iter_mut().find(|(reason, _)| *reason == table.reason) {
            Some((_, files)) => files.push(file),
            None => whole.push((&table.reason, vec![file])),
        }
    }
    blocks.extend(whole.iter().map(|(reason, files)| {
        let rows = if files.len() == 1 {
            "its rows are"
        } else {
            "their rows are"
        };
        let files = number::listed(files);
        warning(format!(
            "{files} cannot be read ({reason}): {rows} unknown."
        ))
    }));
    let unknown = sections.iter().filter(|s| s.is_left_out(findings));
    let unknown: Vec<&str> = unknown.map(|section| section.title).collect();
    if !unknown.is_empty() {
        let list = number::listed(&unknown);
        blocks.push(warning(format!("Unknown because of that: {list}.")));
    }
    blocks
}

/// Describes rows or values that cannot be read.
fn sentence(unread: &UnreadTable) -> String {
    let what = unread;
    match unread.rows_missing {
        Some(missing) if missing > 0 => format!(
            "{what}: {} of {} are missing.",
            number::count(missing),
            number::count_of(unread.rows_read.saturating_add(missing), "row", "rows")
        ),
        _ => format!("{what}."),
    }
}

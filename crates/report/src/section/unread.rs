//! What could not be read, and what is unknown because of it: before everything else.

use crate::document::{Block, Text, Tone};
use crate::{fit, number};
use gapscope_analysis::Findings;
use gapscope_trace::UnreadTable;

/// A section, and the tables on which it rests.
pub(crate) struct Section {
    /// What it is about.
    pub title: &'static str,
    /// The tables.
    pub rests_on: &'static [&'static str],
    /// It is about numbers of rows and their times, which are lower bounds where rows are missing.
    pub counts: bool,
    /// It, if all can be read.
    pub blocks: Vec<Block>,
}

impl Section {
    fn is_left_out(&self, findings: &Findings) -> bool {
        let known = findings.knows(self.rests_on);
        !known && !(self.counts && findings.knows_some(self.rests_on))
    }

    /// The section as far as it is known.
    pub fn known(mut self, findings: &Findings) -> Vec<Block> {
        if self.is_left_out(findings) {
            return Vec::new();
        }
        if !findings.knows(self.rests_on) && !self.blocks.is_empty() {
            let text = Text::new().with(Tone::Warning, "At least: some rows could not be read.");
            self.blocks.insert(1, Block::Sentence(text));
        }
        self.blocks
    }
}

/// What cannot be read, and what that takes away.
pub(crate) fn head(findings: &Findings, sections: &[Section]) -> Vec<Block> {
    let warning = |text: String| Block::Sentence(Text::new().with(Tone::Warning, text));
    let mut blocks: Vec<Block> = (findings.unread.iter())
        .map(|table| warning(sentence(table)))
        .collect();
    let unknown = sections.iter().filter(|s| s.is_left_out(findings));
    let unknown: Vec<&str> = unknown.map(|section| section.title).collect();
    if let Some((last, others)) = unknown.split_last() {
        let list = match others {
            [] => (*last).to_owned(),
            others => format!("{} and {last}", others.join(", ")),
        };
        blocks.push(warning(format!("Unknown because of that: {list}.")));
    }
    blocks
}

fn sentence(unread: &UnreadTable) -> String {
    let what = fit::clean(&unread.to_string());
    match unread.rows_missing {
        Some(0) => format!("{what}."),
        Some(missing) if unread.rows_read > 0 => format!(
            "{what}: {} of {} are missing.",
            number::count(missing),
            number::of(unread.rows_read.saturating_add(missing), "row", "rows")
        ),
        _ => format!("{what}: its rows are unknown."),
    }
}

//! Makes claims of what the sections of a report say: input are the findings and the claims that there are, output a claim for each
//! further sentence, and one for each row of a table, in the report's order.

use super::{Claim, ClaimKind};
use crate::document::{Block, Row, Table};
use crate::page::{Tables, sections};
use crate::ranks::RanksReport;
use crate::section::{Places, accuracy, unread};
use gapscope_analysis::Findings;
use gapscope_timeline::{Timeline, Vocabulary};

/// The tables have the rows of a report without options.
const TABLES: Tables = Tables {
    top: 10,
    each_layer: false,
};
/// The sections whose sentences are about idle time. Those of the others are about work.
const OF_IDLE_TIME: [&str; 2] = ["idle time by cause", "the code behind the idle time"];

/// Returns claims of what a report says and `claims` do not.
pub(super) fn sentences(timeline: &Timeline, findings: &Findings, claims: &[Claim]) -> Vec<Claim> {
    let manifest = &timeline.trace.manifest;
    let names = Vocabulary::new(manifest);
    let places = Places {
        origin_ns: manifest.start_ns,
        span_ns: timeline
            .work_window()
            .map_or(0, |window| window.length_ns()),
    };
    let sections = sections(manifest, findings, &names, places, TABLES);
    let mut texts = Texts {
        claims,
        texts: Vec::new(),
    };
    let unread = unread::head(findings, &sections);
    for mut section in sections {
        let kind = match OF_IDLE_TIME.contains(&section.title) {
            true => ClaimKind::Idle,
            false => ClaimKind::Work,
        };
        // Sentences claim something; rows of which some are missing are lower bounds, as the report says above them.
        let is_whole = findings.knows(section.rests_on);
        let kind = match is_whole {
            true => kind,
            false => ClaimKind::Figures,
        };
        texts.add(kind, section.known(findings));
    }
    texts.add(
        ClaimKind::Unknown,
        accuracy::blocks(findings, names.words(), &[]),
    );
    texts.add(ClaimKind::Unknown, unread);
    texts.into_claims()
}

/// Returns claims of what a report on a folder of ranks says.
pub(super) fn of_folder(report: &RanksReport) -> Vec<Claim> {
    let mut texts = Texts {
        claims: &[],
        texts: Vec::new(),
    };
    texts.add(ClaimKind::Verdict, report.head());
    texts.add(ClaimKind::Work, report.tables());
    texts.add(ClaimKind::Unknown, report.accuracy());
    let mut claims = texts.into_claims();
    claims.sort_by_key(|claim| claim.kind.place());
    claims
}

/// The texts of further claims, each with its kind.
struct Texts<'a> {
    claims: &'a [Claim],
    texts: Vec<(ClaimKind, String)>,
}

impl Texts<'_> {
    /// Adds what blocks of one section say: sentences with a kind, rows of tables as figures.
    fn add(&mut self, kind: ClaimKind, blocks: Vec<Block>) {
        let mut heading = String::new();
        for block in blocks {
            match block {
                Block::Heading(title, aside) => {
                    if !aside.is_empty() && kind != ClaimKind::Unknown {
                        self.figures(format!("{title}: {aside}."));
                    }
                    heading = title;
                }
                Block::Table(table) => {
                    for row in &table.rows {
                        self.figures(format!("{heading}: {}.", row_text(&table, row)));
                    }
                }
                Block::Sentence(text) | Block::Apart(text) | Block::Item(text) => {
                    let text = text.plain_text();
                    // A footnote, which begins with a small letter, means nothing without its table.
                    let is_footnote = text.starts_with(char::is_lowercase);
                    match is_footnote || kind == ClaimKind::Figures {
                        true => self.figures(format!("{heading}: {}.", text.trim_end_matches('.'))),
                        false => self.sentence(kind, text),
                    }
                }
                Block::Title(..) | Block::Picture(_) => {}
            }
        }
    }

    fn into_claims(self) -> Vec<Claim> {
        let claim = |(kind, text)| Claim {
            kind,
            text,
            ..Claim::default()
        };
        self.texts.into_iter().map(claim).collect()
    }

    fn figures(&mut self, text: String) {
        self.texts.push((ClaimKind::Figures, text));
    }

    /// Adds a sentence, unless a claim says the same, perhaps after another word at the beginning.
    fn sentence(&mut self, kind: ClaimKind, text: String) {
        let mut beginnings = ["Lost: ", "Condition: ", "Note: "].into_iter();
        let rest = beginnings.find_map(|beginning| text.strip_prefix(beginning));
        let words = rest.unwrap_or(&text).trim_end_matches('.');
        let mut claims = self.claims.iter().map(|claim| &claim.text);
        let mut texts = self.texts.iter().map(|(_, text)| text);
        if !claims.any(|text| text.contains(words)) && !texts.any(|text| text.contains(words)) {
            self.texts.push((kind, text));
        }
    }
}

/// Returns the cells of a row in one text, each behind the title of its column: `kernel gemm, count 20, total 1.20 ms`.
fn row_text(table: &Table, row: &Row) -> String {
    let columns = table.columns.iter().zip(&row.cells);
    let cells = columns.filter(|(column, _)| !column.picture);
    let cells = cells.filter_map(|(column, cell)| {
        let cell = cell.plain_text();
        let cell = cell.trim();
        (!cell.is_empty()).then(|| format!("{} {cell}", column.title).trim().to_owned())
    });
    let mut text = cells.collect::<Vec<_>>().join(", ");
    if let Some(note) = &row.note {
        text.push_str(&format!("; {}", note.plain_text().trim_end_matches('.')));
    }
    text
}

//! Lays an explanation out as a document: verdict, program, what takes the time, what is not known, the rows of
//! the report's tables, and a shell command for the rows that the claims name.

use super::{Claim, ClaimKind, Explanation, Row};
use crate::document::{Block, Document, Text};
use std::collections::BTreeMap;

impl Explanation {
    /// Returns the explanation as a document; `path` is the trace, quoted for a shell.
    pub fn document(&self, path: &str) -> Document {
        let of = |kind| self.claims.iter().filter(move |claim| claim.kind == kind);
        let mut blocks = vec![Block::Title(self.trace.clone(), self.verdict.clone())];
        for claim in of(ClaimKind::Verdict).chain(of(ClaimKind::Program)) {
            let text = Text::new();
            blocks.push(Block::Sentence(match claim.kind {
                ClaimKind::Verdict => text.strong(claim.text.as_str()),
                _ => text.and(claim.text.as_str()),
            }));
        }
        let causes: Vec<&Claim> = (self.claims.iter())
            .filter(|claim| matches!(claim.kind, ClaimKind::Idle | ClaimKind::Work))
            .collect();
        if !causes.is_empty() {
            blocks.push(Block::Heading("What takes the time".into(), String::new()));
        }
        for claim in causes {
            let mut text = Text::new().and(claim.text.as_str());
            if let Some(advice) = &claim.advice {
                text = text.strong(" What to do: ").and(format!("{advice}."));
            }
            blocks.push(Block::Item(text));
        }
        blocks.push(Block::Heading("What is not known".into(), String::new()));
        for claim in of(ClaimKind::Unknown) {
            blocks.push(Block::Item(claim.text.as_str().into()));
        }
        let mut figures = of(ClaimKind::Figures).peekable();
        if figures.peek().is_some() {
            blocks.push(Block::Heading("All figures".into(), String::new()));
        }
        blocks.extend(figures.map(|claim| Block::Item(claim.text.as_str().into())));
        let queries = self.queries(path);
        if !queries.is_empty() {
            blocks.push(Block::Heading("Rows that are named".into(), String::new()));
        }
        for query in queries {
            blocks.push(Block::Item(Text::new().faint(query)));
        }
        Document { blocks }
    }

    /// Returns a shell command for each table of which the claims name rows.
    fn queries(&self, path: &str) -> Vec<String> {
        let mut ids: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for row in self.claims.iter().flat_map(|claim| &claim.rows) {
            let of = ids.entry(row.table.as_str()).or_default();
            if !of.contains(&row.id) {
                of.push(row.id);
            }
        }
        let each = ids.into_iter().map(|(table, ids)| {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            format!(
                "gapscope query {path} 'select * from {table} where {} in ({})'",
                Row::column(table),
                ids.join(", ")
            )
        });
        each.collect()
    }
}

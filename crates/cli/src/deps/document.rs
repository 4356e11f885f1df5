//! Draws dependencies as a document for the terminal: what was found goes in, headings, sentences and tables (blocks)
//! come out.

mod traffic;

use crate::page;
use gapscope_dependencies::{Dependencies, Edge, Need, Node, NodeKind, Order};
use gapscope_report::document::{Block, Column, Table, Text, Tone};
use gapscope_report::{Document, fit};
use gapscope_timeline::quantity as number;
use std::collections::BTreeMap;

/// Returns the document for a number of columns. Each table has at most `top` rows.
pub fn document(
    name: &str,
    found: &Dependencies,
    remarks: &[String],
    top: usize,
    columns: usize,
) -> Document {
    // Two names, a kind, bytes and the order fit into this width.
    let name_columns = (columns.saturating_sub(34) / 2).max(20);
    let drawn = Page {
        found,
        top,
        name_columns,
    };
    let mut blocks = vec![Block::Title(name.to_owned(), "dependencies".to_owned())];
    blocks.extend(drawn.summary());
    blocks.extend(page::items(remarks));
    blocks.extend(drawn.hazards());
    blocks.extend(drawn.critical_path());
    blocks.extend(drawn.barriers());
    blocks.extend(drawn.edges());
    blocks.extend(drawn.traffic());
    blocks.extend(drawn.fusions());
    blocks.extend(drawn.bounds());
    Document { blocks }
}

/// The dependencies, and the limits of the document that is drawn of them: each table has at most `top` rows. Most
/// methods below draw a section. A node is a dispatch or transfer.
struct Page<'a> {
    found: &'a Dependencies,
    top: usize,
    /// Columns for a command's name.
    name_columns: usize,
}

impl Page<'_> {
    fn nodes(&self) -> &[Node] {
        &self.found.graph.nodes
    }

    /// Returns a node's number and name, cut to fit.
    fn called(&self, node: usize) -> String {
        let name = format!("{node} {}", self.nodes()[node].name);
        fit::clip(&fit::clean(&name), self.name_columns)
    }

    fn summary(&self) -> Vec<Block> {
        let nodes = self.nodes();
        let is_dispatch = |node: &&Node| node.kind == Some(NodeKind::Dispatch);
        let dispatches = nodes.iter().filter(is_dispatch).count();
        let exact = nodes
            .iter()
            .filter(is_dispatch)
            .filter(|n| n.is_exact())
            .count();
        let count = |n: usize, one: &str, many: &str| number::count_of(n as u64, one, many);
        let mut text = Text::new()
            .strong(count(dispatches, "dispatch", "dispatches"))
            .and(", ")
            .strong(count(nodes.len() - dispatches, "transfer", "transfers"))
            .and(format!(
                ", {}.",
                count(self.found.graph.edges.len(), "dependency", "dependencies")
            ));
        if dispatches > 0 {
            let which = match exact {
                0 => "none is exact".to_owned(),
                all if all == dispatches => "all are exact".to_owned(),
                some => format!("those of {some} are exact"),
            };
            text.push(
                Tone::Plain,
                format!(" Bytes that dispatches read and write: {which}."),
            );
        }
        let mut blocks = vec![Block::Sentence(text)];
        if let Some(at) = self.found.graph.cut_at {
            let text = format!(
                "There are too many dependencies: only those of the first {at} commands are listed."
            );
            blocks.push(Block::Item(Text::new().with(Tone::Warning, text)));
        }
        blocks
    }

    fn hazards(&self) -> Vec<Block> {
        let found = self.found;
        let mut blocks = vec![Block::Heading(
            "Hazards".to_owned(),
            "dependencies that nothing orders".to_owned(),
        )];
        if !found.hazards.is_empty() {
            blocks.push(Block::Table(self.table(&found.hazards, false)));
            blocks.extend(self.rest(found.hazards.len(), "hazards"));
        } else if let Some(reason) = &found.unknown {
            blocks.push(Block::Sentence(format!("Unknown: {reason}.").into()));
        } else {
            let text = Text::new().with(Tone::Good, "None found.");
            blocks.push(Block::Sentence(text));
        }
        if !found.possible_hazards.is_empty() {
            let text = format!(
                "It is not known whether {} more are hazards: what the dispatches reach is only bounded.",
                number::count_of(
                    found.possible_hazards.len() as u64,
                    "dependency",
                    "dependencies"
                )
            );
            blocks.push(Block::Item(text.into()));
        }
        blocks
    }

    /// Returns the blocks about the longest chain of dependent commands.
    fn critical_path(&self) -> Vec<Block> {
        let Some(path) = self.found.graph.critical_path() else {
            return Vec::new();
        };
        let length = |value: u64| match path.timed {
            true => number::duration(i64::try_from(value).unwrap_or(i64::MAX)),
            false => number::count_of(value, "command", "commands"),
        };
        let mut text = Text::new()
            .and("The longest chain takes ")
            .strong(length(path.length))
            .and(format!(" of {}", length(path.work)));
        if let Some(parallelism) = path.parallelism() {
            text = text
                .and("; without other limits, on average ")
                .strong(format!("{parallelism:.2}"))
                .and(" could run at the same time");
        }
        let mut blocks = vec![
            Block::Heading("Critical path".to_owned(), String::new()),
            Block::Sentence(text.and(".")),
        ];
        let mut table = Table::new([Column::number("node"), Column::name("command")]);
        for node in path.nodes.iter().take(self.top) {
            let name = self.nodes()[*node].name.as_str();
            table.row([node.to_string().into(), name.into()]);
        }
        blocks.push(Block::Table(table));
        blocks.extend(self.rest(path.nodes.len(), "commands of the chain"));
        blocks
    }

    /// Returns the blocks about barriers: how many are needed, and for what.
    fn barriers(&self) -> Vec<Block> {
        let found = self.found;
        let mut blocks = vec![Block::Heading("Barriers".to_owned(), String::new())];
        if let (Some(reason), true) = (&found.unknown, found.barriers.is_empty()) {
            blocks.push(Block::Sentence(format!("Unknown: {reason}.").into()));
            return blocks;
        }
        let count = |need: Need| found.barriers.iter().filter(|b| b.need == need).count() as u64;
        let mut text = Text::new()
            .strong(number::count_of(
                found.barriers.len() as u64,
                "barrier",
                "barriers",
            ))
            .and(format!(": {} needed", count(Need::Needed)));
        let needless = count(Need::Needless);
        if needless > 0 {
            text = text.and(", ").with(
                Tone::Warning,
                format!("{needless} that nothing in the window needs"),
            );
        }
        for (need, why) in [
            (
                Need::Outside,
                "at the edge of a submission, for other work that is not known",
            ),
            (Need::Host, "for the host"),
            (Need::Unknown, "unknown"),
        ] {
            if count(need) > 0 {
                text = text.and(format!(", {} {why}", count(need)));
            }
        }
        blocks.push(Block::Sentence(text.and(".")));
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for reason in found.barriers.iter().filter_map(|b| b.reason.as_deref()) {
            *reasons.entry(reason).or_default() += 1;
        }
        for (reason, count) in reasons {
            let text = Text::new()
                .strong(number::count_of(count as u64, "barrier", "barriers"))
                .and(format!(" unknown: {reason}."));
            blocks.push(Block::Item(text));
        }
        if needless > 0 {
            let mut table = Table::new([
                Column::number("submission"),
                Column::number("command"),
                Column::word("after"),
                Column::word("before"),
            ]);
            let all = found.barriers.iter().filter(|b| b.need == Need::Needless);
            for barrier in all.take(self.top) {
                let node = |at: Option<usize>| match at {
                    Some(at) if at < self.nodes().len() => self.called(at),
                    _ => String::new(),
                };
                table.row([
                    barrier.submission.to_string().into(),
                    barrier.index.to_string().into(),
                    node(barrier.position.checked_sub(1)).into(),
                    node(Some(barrier.position)).into(),
                ]);
            }
            blocks.push(Block::Table(table));
            blocks.extend(self.rest(needless as usize, "needless barriers"));
        }
        blocks
    }

    fn edges(&self) -> Vec<Block> {
        let edges = &self.found.graph.edges;
        if edges.is_empty() {
            return Vec::new();
        }
        let mut order: Vec<usize> = (0..edges.len()).collect();
        order.sort_by_key(|number| std::cmp::Reverse(edges[*number].bytes));
        vec![
            Block::Heading("Largest dependencies".to_owned(), "~ at most".to_owned()),
            Block::Table(self.table(&order, true)),
        ]
    }

    /// Returns a table of the edges (dependencies between two nodes) of these numbers, with what orders them if
    /// `ordered`.
    fn table(&self, numbers: &[usize], ordered: bool) -> Table {
        let mut columns = vec![
            Column::word("first"),
            Column::word("then"),
            Column::word("kind"),
            Column::number("bytes"),
        ];
        if ordered {
            columns.push(Column::word("ordered by").spare(1));
        }
        columns.push(Column::word("buffer").spare(2));
        let mut table = Table::new(columns);
        for number in numbers.iter().take(self.top) {
            let edge = &self.found.graph.edges[*number];
            let mut cells: Vec<Text> = vec![
                self.called(edge.from).into(),
                self.called(edge.to).into(),
                edge.kind.as_str().into(),
                sized(edge).into(),
            ];
            if ordered {
                let order = self.found.orders[*number];
                let tone = match order {
                    Order::Nothing => Tone::Warning,
                    _ => Tone::Plain,
                };
                cells.push(Text::new().with(tone, order.as_str()));
            }
            let more = match edge.buffers.len() {
                0 | 1 => String::new(),
                many => format!(" +{}", many - 1),
            };
            let buffer = edge.buffers.first().map_or("", |buffer| buffer);
            let buffer = fit::clip(&fit::clean(buffer), self.name_columns);
            cells.push(format!("{buffer}{more}").into());
            table
                .rows
                .push(gapscope_report::document::Row { cells, note: None });
        }
        table
    }

    /// Returns the blocks about pairs of dispatches that could be merged.
    fn fusions(&self) -> Vec<Block> {
        let fusions = self.found.graph.fusions();
        if fusions.is_empty() {
            return Vec::new();
        }
        let mut blocks = vec![Block::Heading(
            "Dispatches that could be one".to_owned(),
            "the second reads what the first wrote, element by element".to_owned(),
        )];
        let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
        let mut possible = Vec::new();
        for fusion in &fusions {
            match fusion.saving {
                Ok(saving) => possible.push((saving, fusion)),
                Err(refusal) => *refused.entry(refusal.as_str()).or_default() += 1,
            }
        }
        possible.sort_by_key(|(saving, fusion)| (std::cmp::Reverse(saving.bytes), fusion.first));
        if !possible.is_empty() {
            let mut table = Table::new([
                Column::word("first"),
                Column::word("then"),
                Column::number("saves"),
                Column::word("result").spare(1),
            ]);
            for (saving, fusion) in possible.iter().take(self.top) {
                let result = match saving.store_needed {
                    true => "still stored",
                    false => "not needed",
                };
                table.row([
                    self.called(fusion.first).into(),
                    self.called(fusion.second).into(),
                    number::bytes(saving.bytes).into(),
                    result.into(),
                ]);
            }
            blocks.push(Block::Table(table));
            blocks.extend(self.rest(possible.len(), "pairs"));
        }
        for (reason, count) in refused {
            let text = Text::new()
                .strong(number::count_of(count as u64, "pair", "pairs"))
                .and(format!(" cannot: {reason}."));
            blocks.push(Block::Item(text));
        }
        blocks
    }

    /// Returns the blocks that list why the bytes of some commands are only bounded.
    fn bounds(&self) -> Vec<Block> {
        let mut reasons: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (id, node) in self.nodes().iter().enumerate() {
            let mut of: Vec<&str> = (node.accesses.iter())
                .filter_map(|access| access.bound.as_deref())
                .chain(node.beyond.as_deref())
                .collect();
            of.sort_unstable();
            of.dedup();
            for reason in of {
                let (count, _) = reasons.entry(reason.to_owned()).or_insert((0, id));
                *count += 1;
            }
        }
        if reasons.is_empty() {
            return Vec::new();
        }
        let mut blocks = vec![Block::Heading(
            "Why bytes are not exact".to_owned(),
            "then everything that is bound counts".to_owned(),
        )];
        let mut sorted: Vec<_> = reasons.into_iter().collect();
        sorted.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (reason, (count, first)) in sorted.into_iter().take(self.top) {
            let text = Text::new()
                .strong(number::count_of(count as u64, "command", "commands"))
                .and(format!(": {reason} "))
                .faint(format!("(first: {})", self.called(first)));
            blocks.push(Block::Item(text));
        }
        blocks
    }

    /// Returns a sentence about the rows that a table leaves out; `None` if it has all `of` them.
    fn rest(&self, of: usize, what: &str) -> Option<Block> {
        let more = of.checked_sub(self.top).filter(|more| *more > 0)?;
        let text = format!("{more} more {what}: --top 0 shows all");
        Some(Block::Sentence(Text::new().faint(text)))
    }
}

/// Returns the bytes of a dependency, with `~` if they are only bounded.
fn sized(edge: &Edge) -> String {
    let mark = if edge.exact { "" } else { "~ " };
    format!("{mark}{}", number::bytes(edge.bytes))
}

//! The ranks of a distributed program, compared.

use crate::document::{Block, Column, Document, Table, Text, Tone};
use crate::page::command_line;
use crate::{fit, number};
use gapscope_analysis::ranks::{CollectiveKind, RankFindings};
use gapscope_analysis::vocabulary::file_name;
use gapscope_trace::Manifest;
use serde::Serialize;

/// What a report on ranks is made of.
#[derive(Debug, Clone, Copy)]
pub struct RanksReport<'a> {
    /// The folder's name.
    pub folder: &'a str,
    /// The manifest of any of the ranks.
    pub manifest: &'a Manifest,
    /// What the comparison shows.
    pub findings: &'a RankFindings,
    /// Sentences about reading the traces.
    pub remarks: &'a [String],
    /// Rows in each table.
    pub top: usize,
}

impl RanksReport<'_> {
    /// The report as a document.
    pub fn document(&self) -> Document {
        let findings = self.findings;
        let mut command = self.manifest.command.clone();
        if let Some(program) = command.first_mut() {
            *program = file_name(program).to_owned();
        }
        let aside = match findings.world_size {
            Some(size) if size as usize != findings.ranks.len() => {
                format!("{} of {size} ranks", findings.ranks.len())
            }
            _ => number::of(findings.ranks.len() as u64, "rank", "ranks"),
        };
        let mut blocks = vec![Block::Title(fit::clean(&command_line(&command)), aside)];
        for (at, sentence) in findings.sentences.iter().enumerate() {
            let text = Text::new();
            blocks.push(Block::Sentence(match at {
                0 => text.strong(fit::clean(sentence)),
                _ => text.and(fit::clean(sentence)),
            }));
        }
        blocks.extend(self.ranks());
        blocks.extend(collectives(
            "Collectives on the devices",
            &findings.collectives,
            self.top,
        ));
        blocks.extend(collectives(
            "Calls of collectives on the hosts",
            &findings.collective_calls,
            self.top,
        ));
        blocks.extend(self.longest());
        blocks.extend(self.accuracy());
        Document { blocks }
    }

    fn ranks(&self) -> Vec<Block> {
        let mut table = Table::new([
            Column::number("rank"),
            Column::word("verdict"),
            Column::number("GPU busy"),
            Column::number("of recording"),
            Column::number("collectives"),
            Column::number("waited"),
            Column::number("last").spare(2),
            Column::number("last by").spare(1),
        ]);
        let known = |ns: Option<i64>| match ns {
            Some(ns) => Text::from(number::duration(ns)),
            None => Text::new().faint("unknown"),
        };
        let straggler = self.findings.straggler.map(|s| s.rank);
        for rank in &self.findings.ranks {
            let busy = match (rank.gpu_busy_ns, rank.wall_ns) {
                (Some(busy), Some(wall)) => number::share_of(busy, wall).into(),
                _ => Text::new().faint("unknown"),
            };
            let tone = match straggler == Some(rank.rank) {
                true => Tone::Warning,
                false => Tone::Plain,
            };
            table.row([
                Text::new().with(tone, rank.rank.to_string()),
                rank.verdict.as_str().into(),
                known(rank.gpu_busy_ns),
                busy,
                known(rank.collective_ns),
                known(rank.waited_ns),
                match rank.last_count {
                    Some(count) => number::count(count).into(),
                    None => Text::new().faint("unknown"),
                },
                known(rank.last_skew_ns),
            ]);
        }
        let text = "waited: from the rank's arrivals at collectives to the last ones; last by: what the first waited \
                    for it where it was last.";
        vec![
            Block::Heading("Ranks".into(), String::new()),
            Block::Table(table),
            Block::Sentence(Text::new().faint(text)),
        ]
    }

    fn longest(&self) -> Vec<Block> {
        let longest = &self.findings.longest;
        if longest.is_empty() {
            return Vec::new();
        }
        let mut table = Table::new([
            Column::number("skew"),
            Column::number("at"),
            Column::name("collective"),
            Column::number("first"),
            Column::number("last"),
        ]);
        for one in &longest[..longest.len().min(self.top.min(5))] {
            table.row([
                number::duration(one.skew_ns).into(),
                number::duration(one.first_ns - self.manifest.start_ns).into(),
                format!("{} {}", one.kind, one.number).into(),
                format!("rank {}", one.first_rank).into(),
                format!("rank {}", one.last_rank).into(),
            ]);
        }
        vec![
            Block::Heading("Greatest skews".into(), String::new()),
            Block::Table(table),
        ]
    }

    fn accuracy(&self) -> Vec<Block> {
        let mut blocks = vec![Block::Heading("Accuracy".into(), String::new())];
        let clock = match self.findings.clock_error_ns {
            Some(ns) => format!(
                "times of two ranks compare within {}.",
                number::duration(ns)
            ),
            None => "within what times of two ranks compare is not known.".to_owned(),
        };
        blocks.push(Block::Item(Text::new().strong("Clock: ").and(clock)));
        blocks.push(Block::Item(Text::new().strong("Match: ").and(
            "the n-th collective of a kind on one rank is the n-th of that kind on every other.",
        )));
        for remark in self.remarks {
            blocks.push(Block::Item(
                Text::new().with(Tone::Warning, fit::clean(remark)),
            ));
        }
        let text = format!(
            "Each rank has a report of its own: gapscope report {}/rank=N",
            self.folder
        );
        blocks.push(Block::Sentence(Text::new().faint(fit::clean(&text))));
        blocks
    }

    /// The findings as JSON; the text ends with a line feed.
    ///
    /// # Errors
    /// None is known.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        #[derive(Serialize)]
        struct Json<'a> {
            report_version: u32,
            gapscope_version: &'a str,
            trace: &'a str,
            command: &'a [String],
            #[serde(flatten)]
            findings: &'a RankFindings,
            notes: &'a [String],
        }
        let mut text = serde_json::to_string_pretty(&Json {
            report_version: crate::json::VERSION,
            gapscope_version: &self.manifest.gapscope_version,
            trace: self.folder,
            command: &self.manifest.command,
            findings: self.findings,
            notes: self.remarks,
        })?;
        text.push('\n');
        Ok(text)
    }
}

fn collectives(title: &str, kinds: &[CollectiveKind], top: usize) -> Vec<Block> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        Column::name("kind"),
        Column::number("matched"),
        Column::number("skew in all"),
        Column::number("mean"),
        Column::number("p50"),
        Column::number("p99"),
        Column::number("max").spare(1),
    ]);
    let known = |ns: Option<i64>| ns.map_or("unknown".to_owned(), number::duration);
    for kind in &kinds[..kinds.len().min(top)] {
        let skew = &kind.skew;
        table.row([
            kind.kind.into(),
            number::count(kind.matched_count).into(),
            known(skew.total_ns).into(),
            skew.mean_ns
                .map_or("unknown".to_owned(), number::duration_f64)
                .into(),
            known(skew.p50_ns).into(),
            known(skew.p99_ns).into(),
            known(skew.max_ns).into(),
        ]);
    }
    let aside = "skew: from the first arrival to the last".to_owned();
    vec![Block::Heading(title.to_owned(), aside), Block::Table(table)]
}

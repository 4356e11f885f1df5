//! Turns a comparison of the ranks of a distributed program into a document and into JSON.

use crate::document::{Block, Column, Document, Table, Text, Tone};
use crate::number;
use crate::page::command_line;
use gapscope_analysis::verdict::Bound;
use gapscope_comparison::ranks::{CollectiveKind, RankFindings, RankRow, Unlike, list};
use gapscope_timeline::vocabulary::file_name;
use gapscope_trace::Manifest;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;

/// The input of a report on ranks.
#[derive(Debug, Clone, Copy)]
pub struct RanksReport<'a> {
    /// The name of the folder with the traces.
    pub folder: &'a str,
    /// The manifest of one of the ranks.
    pub manifest: &'a Manifest,
    /// The findings of the comparison.
    pub findings: &'a RankFindings,
    /// The remarks of the traces' reader, in sentences.
    pub remarks: &'a [String],
    /// The number of rows that each table shows.
    pub top: usize,
}

impl RanksReport<'_> {
    /// Returns the report as a document.
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
            _ => number::count_of(findings.ranks.len() as u64, "rank", "ranks"),
        };
        let mut blocks = vec![Block::Title(command_line(&command), aside)];
        blocks.extend(self.verdict());
        for (at, sentence) in findings.sentences.iter().enumerate() {
            let text = Text::new();
            blocks.push(Block::Sentence(match at {
                0 => text.strong(sentence),
                _ => text.and(sentence),
            }));
        }
        blocks.extend(self.tables());
        blocks.extend(self.accuracy());
        Document { blocks }
    }

    /// Returns the section of a report on one trace that describes the ranks in it.
    pub fn within(&self) -> Document {
        let findings = self.findings;
        let count = number::count_of(findings.ranks.len() as u64, "rank", "ranks");
        let mut blocks = vec![Block::Heading("Ranks in this trace".into(), count)];
        blocks.extend(self.verdict());
        let sentences = findings.sentences.iter();
        blocks.extend(sentences.map(|text| Block::Sentence(text.as_str().into())));
        blocks.extend(self.tables());
        Document { blocks }
    }

    /// Returns a sentence on what bounds the speed of all ranks together.
    fn verdict(&self) -> Option<Block> {
        let findings = self.findings;
        let tone = match findings.verdict {
            Bound::Unknown => return None,
            Bound::DeviceBound => Tone::Good,
            _ => Tone::Warning,
        };
        let text = Text::new().with(tone, findings.verdict.as_str().to_uppercase());
        let text = text.and("  ").strong(findings.verdict_sentence.as_str());
        Some(Block::Sentence(text))
    }

    fn tables(&self) -> Vec<Block> {
        let findings = self.findings;
        let mut blocks = self.ranks();
        blocks.extend(collectives(
            "Collectives on the devices",
            &findings.collectives,
            self.top,
        ));
        blocks.extend(self.bandwidth());
        blocks.extend(self.communicators());
        blocks.extend(collectives(
            "Calls of collectives on the hosts",
            &findings.collective_calls,
            self.top,
        ));
        blocks.extend(self.longest());
        blocks
    }

    fn ranks(&self) -> Vec<Block> {
        let mut table = Table::new([
            Column::number("rank"),
            Column::word("verdict"),
            Column::number("GPU busy").spare(3),
            Column::number("idle"),
            Column::number("collectives"),
            Column::number("waited"),
            Column::number("last").spare(2),
            Column::number("last by").spare(1),
        ]);
        let known = |ns: Option<i64>| match ns {
            Some(ns) => Text::from(number::duration(ns)),
            None => Text::new().faint("unknown"),
        };
        let straggler = self.findings.straggler.as_ref().map(|s| s.rank);
        let (shown, others) = self.shown();
        for rank in &shown {
            let idle = match rank.idle {
                Some(idle) => number::share_of(idle.total_ns, idle.window_ns).into(),
                None => Text::new().faint("unknown"),
            };
            let unlike = straggler == Some(rank.rank) || self.outlies(rank);
            let tone = match unlike {
                true => Tone::Warning,
                false => Tone::Plain,
            };
            table.row([
                Text::new().with(tone, rank.rank.to_string()),
                rank.verdict.as_str().into(),
                known(rank.gpu_busy_ns),
                idle,
                known(rank.collective_ns),
                known(rank.waited_ns),
                match rank.last_count {
                    Some(count) => number::count(count).into(),
                    None => Text::new().faint("unknown"),
                },
                known(rank.last_skew_ns),
            ]);
        }
        let text = "idle: of the analysed time; collectives: time in them; waited: from the rank's arrivals at \
                    them to the last ones; last by: what the first waited for it where it was last.";
        let mut blocks = self.unlike();
        let aside = match others.is_empty() {
            true => String::new(),
            false => format!("{} of {}", shown.len(), self.findings.ranks.len()),
        };
        blocks.push(Block::Heading("Ranks".into(), aside));
        blocks.push(Block::Table(table));
        blocks.extend(alike(&others));
        blocks.push(Block::Sentence(Text::new().faint(text)));
        blocks
    }

    /// Returns the ranks with a row in the table, then those without. Of many ranks, unlike ones and those that
    /// others waited for come first.
    fn shown(&self) -> (Vec<&RankRow>, Vec<&RankRow>) {
        let ranks = &self.findings.ranks;
        let mut rows: Vec<&RankRow> = ranks.iter().collect();
        if ranks.len() <= MAX_RANK_ROWS.max(self.top) {
            return (rows, Vec::new());
        }
        let straggler = self.findings.straggler.as_ref().map(|s| s.rank);
        rows.sort_by_key(|rank| {
            let first = straggler == Some(rank.rank);
            let last_ns = rank.last_skew_ns.unwrap_or(0);
            (Reverse((first, self.outlies(rank), last_ns)), rank.rank)
        });
        let others = rows.split_off(self.top);
        (rows, others)
    }

    fn outlies(&self, rank: &RankRow) -> bool {
        let mut all = self.findings.outliers.iter();
        all.any(|outlier| outlier.ranks.contains(&rank.rank))
    }

    /// Describes ranks that are unlike the others.
    fn unlike(&self) -> Vec<Block> {
        let rows = &self.findings.outliers;
        if rows.is_empty() {
            return Vec::new();
        }
        let mut table = Table::new([
            Column::name("ranks"),
            Column::name("of"),
            Column::number("time"),
            Column::number("median rank"),
            Column::number("ratio"),
            Column::number("costs").spare(1),
        ]);
        for row in &rows[..rows.len().min(self.top)] {
            let of = match (row.what, &row.kernel) {
                (Unlike::Computes, _) => "computing",
                (Unlike::Idles, _) => "idle",
                (Unlike::Awaited, _) => "in collectives",
                (Unlike::Kernel, None) => "a kernel",
                (Unlike::Kernel, Some(name)) => name,
            };
            let machine = if row.machine.is_some() {
                ", a machine"
            } else {
                ""
            };
            table.row([
                Text::new().with(Tone::Warning, format!("{}{machine}", list(&row.ranks))),
                of.into(),
                number::duration(row.value_ns).into(),
                number::duration(row.usual_ns).into(),
                format!("{:.2}", row.ratio).into(),
                number::duration(row.cost_ns).into(),
            ]);
        }
        let text =
            "Of a kernel: its mean time. costs: the worst of these ranks, over the recording.";
        vec![
            Block::Heading("Unlike the other ranks".into(), String::new()),
            Block::Table(table),
            Block::Sentence(Text::new().faint(text)),
        ]
    }

    fn bandwidth(&self) -> Vec<Block> {
        let rows = &self.findings.bandwidth;
        if rows.is_empty() {
            return Vec::new();
        }
        let mut table = Table::new([
            Column::name("kind"),
            Column::number("size"),
            Column::number("ranks"),
            Column::number("count"),
            Column::number("p50 time"),
            Column::number("algorithm"),
            Column::number("bus"),
        ]);
        for row in &rows[..rows.len().min(self.top)] {
            let ns = row.time.p50_ns;
            table.row([
                row.kind.into(),
                number::bytes(row.bytes).into(),
                number::count(row.ranks.into()).into(),
                number::count(row.time.timed_count).into(),
                ns.map_or("unknown".to_owned(), number::duration).into(),
                bandwidth(row.algorithm_bytes_per_s).into(),
                bandwidth(row.bus_bytes_per_s).into(),
            ]);
        }
        let text = "Time: from the last arrival to the end, where the clocks tell; else the shortest kernel's. Size and \
                    bandwidths are those of nccl-tests.";
        vec![
            Block::Heading("Bandwidth of collectives".into(), String::new()),
            Block::Table(table),
            Block::Sentence(Text::new().faint(text)),
        ]
    }

    fn communicators(&self) -> Vec<Block> {
        let rows = &self.findings.communicators;
        // A single communicator of all ranks says nothing new.
        if rows.len() < 2 && rows.iter().all(|row| row.complete) {
            return Vec::new();
        }
        let mut table = Table::new([
            Column::name("communicator"),
            Column::number("size"),
            Column::text("ranks with a trace"),
            Column::number("matched"),
        ]);
        for row in &rows[..rows.len().min(self.top)] {
            table.row([
                row.communicator.to_string().into(),
                match row.size {
                    Some(size) => number::count(size.into()).into(),
                    None => Text::new().faint("unknown"),
                },
                list(&row.ranks).into(),
                number::count(row.matched_count).into(),
            ]);
        }
        vec![
            Block::Heading("Communicators".into(), String::new()),
            Block::Table(table),
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
                number::duration(one.first_ns.saturating_sub(self.manifest.start_ns)).into(),
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
                "times of any two ranks compare within {}; what is within the error of two counts for nothing.",
                number::duration(ns)
            ),
            None => "within what times of two ranks compare is not known.".to_owned(),
        };
        blocks.push(Block::Item(Text::new().strong("Clock: ").and(clock)));
        blocks.push(Block::Item(Text::new().strong("Match: ").and(
            match &self.findings.not_matched_because {
                None => "the n-th collective of a kind on a communicator on one rank is the n-th of that kind there on \
                         its others."
                    .to_owned(),
                Some(reason) => format!("not all collectives were matched: {}.", reason),
            },
        )));
        for remark in self.remarks {
            blocks.push(Block::Item(Text::new().with(Tone::Warning, remark)));
        }
        let text = format!(
            "Each rank has a report of its own: gapscope report {}/rank=N",
            self.folder
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
        blocks
    }

    /// Returns the findings as JSON text, which ends with a line feed.
    ///
    /// # Errors
    ///
    /// Fails where JSON cannot be written.
    pub fn json(&self) -> Result<String, serde_json::Error> {
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

/// What `gapscope report --json` prints of a folder of ranks.
///
/// Times are integer nanoseconds, sizes integer bytes, shares from 0 to 1. What is not known is null.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ranks")]
pub struct Json<'a> {
    /// Version of the keys' meaning. Keys may be added without a new one; none is renamed or taken away.
    report_version: u32,
    /// Version of the gapscope that wrote the traces.
    gapscope_version: &'a str,
    /// Name of the folder.
    trace: &'a str,
    /// The command that was recorded, as the first rank has it.
    command: &'a [String],
    #[serde(flatten)]
    findings: &'a RankFindings,
    /// Sentences about reading the traces, and the notes of each trace.
    notes: &'a [String],
}

/// The number of ranks up to which each rank has a row.
const MAX_RANK_ROWS: usize = 16;

/// Describes the ranks without a row.
fn alike(others: &[&RankRow]) -> Option<Block> {
    let range = |values: &mut dyn Iterator<Item = i64>, shown: &dyn Fn(i64) -> String| {
        let (mut least, mut most) = (i64::MAX, i64::MIN);
        for value in values {
            (least, most) = (least.min(value), most.max(value));
        }
        match least <= most {
            true => format!("{} to {}", shown(least), shown(most)),
            false => "unknown".to_owned(),
        }
    };
    let busy = range(
        &mut others.iter().filter_map(|rank| rank.gpu_busy_ns),
        &number::duration,
    );
    let shares = others.iter().filter_map(|rank| rank.idle);
    let mut shares = shares.map(|idle| idle.total_ns.saturating_mul(1_000) / idle.window_ns.max(1));
    let idle = range(&mut shares, &|share| number::share(share as f64 / 1_000.0));
    let count = number::count_of(others.len() as u64, "rank", "ranks");
    let text = format!("{count} more: GPU busy {busy}, idle {idle}. --top 0 shows all.");
    (!others.is_empty()).then(|| Block::Sentence(text.into()))
}

/// Formats a bandwidth in units of 10^9 bytes, as nccl-tests do.
fn bandwidth(bytes_per_s: f64) -> String {
    let value = bytes_per_s / 1e9;
    match value {
        100.0.. => format!("{value:.0} GB/s"),
        10.0.. => format!("{value:.1} GB/s"),
        0.1.. => format!("{value:.2} GB/s"),
        _ => format!("{value:.4} GB/s"),
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
    for kind in &kinds[..kinds.len().min(top)] {
        let skew = &kind.skew;
        let none = match kind.uncertain_count {
            Some(_) => "",
            None => "unknown",
        };
        let known = |ns: Option<i64>| ns.map_or(none.to_owned(), number::duration);
        table.row([
            kind.kind.into(),
            number::count(kind.matched_count).into(),
            match (kind.uncertain_count, skew.timed_count) {
                // The ranks were compared, and no skew is above the error.
                (Some(_), 0) => "none".to_owned(),
                _ => known(skew.total_ns),
            }
            .into(),
            (skew.mean_ns)
                .map_or(none.to_owned(), number::duration_f64)
                .into(),
            known(skew.p50_ns).into(),
            known(skew.p99_ns).into(),
            known(skew.max_ns).into(),
        ]);
    }
    let aside = "skew: first arrival to last".to_owned();
    vec![Block::Heading(title.to_owned(), aside), Block::Table(table)]
}

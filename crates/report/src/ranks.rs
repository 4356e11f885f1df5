//! Turns a comparison of the ranks (numbered members) of a distributed program into a document and into JSON. A
//! collective is an operation that all ranks of a communicator take part in; its skew is the time from the first
//! rank's arrival to the last one's. The straggler is the rank that the others wait for most.

use crate::document::{Block, Document, Table, Text, Tone};
use crate::number;
use crate::rank_first_step::{first_step, without_late_rank};
use crate::section::{duration, or_unknown};
use crate::stable_json::pretty;
use gapscope_analysis::verdict::Bound;
use gapscope_comparison::ranks::{CollectiveKind, RankFindings, RankRow, Unlike, list};
use gapscope_timeline::command::short_command;
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

/// The number of ranks on the first screen: all, where they are no more, else those that the table of ranks has first.
const FIRST_RANKS: usize = 8;

impl RanksReport<'_> {
    /// Returns the report as a document.
    pub fn document(&self) -> Document {
        let mut blocks = self.head();
        blocks.extend(self.tables());
        blocks.extend(self.accuracy());
        Document { blocks }
    }

    /// Returns what a reader needs first, as a document: the verdict, and the ranks.
    pub fn first_screen(&self) -> Document {
        let mut blocks = self.head();
        let few = RanksReport {
            top: self.top.min(FIRST_RANKS),
            ..*self
        };
        blocks.extend(few.ranks());
        let clock = match self.findings.clock_error_ns {
            Some(ns) => format!(
                "times of any two ranks compare within {}",
                number::duration(ns)
            ),
            None => "within what times of two ranks compare is not known".to_owned(),
        };
        let mut text = Text::new().strong("Accuracy: ").and(format!("{clock}."));
        if !self.remarks.is_empty() {
            let remarks = number::count_of(self.remarks.len() as u64, "remark", "remarks");
            text.push(
                Tone::Warning,
                format!(" {remarks} on what is not known: --section accuracy."),
            );
        }
        blocks.push(Block::Apart(text));
        let text = format!(
            "More: gapscope report --full; of one rank: gapscope report {}/rank=N.",
            self.folder
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
        Document { blocks }
    }

    /// Returns some sections of the report, by their names, as a document. A name that only reports on one rank have says so.
    pub fn some_sections(&self, names: &[String]) -> Document {
        let shown = names.iter().flat_map(|name| match name.as_str() {
            "verdict" => self.head(),
            "ranks" => self.tables(),
            "accuracy" => self.accuracy(),
            name => {
                let text = format!(
                    "A folder of ranks has the sections verdict, ranks and accuracy; for {name}: gapscope report --section {name} {}/rank=N",
                    self.folder
                );
                vec![Block::Apart(text.into())]
            }
        });
        Document {
            blocks: shown.collect(),
        }
    }

    /// Returns the title, the verdict and the sentences on the ranks.
    pub(crate) fn head(&self) -> Vec<Block> {
        let findings = self.findings;
        let aside = match findings.world_size {
            Some(size) if size as usize != findings.ranks.len() => {
                format!("{} of {size} ranks", findings.ranks.len())
            }
            _ => number::count_of(findings.ranks.len() as u64, "rank", "ranks"),
        };
        let mut blocks = vec![Block::Title(short_command(self.manifest), aside)];
        blocks.extend(self.verdict());
        let instead = || without_late_rank(findings, self.folder).map(do_first);
        blocks.extend(self.do_first().or_else(instead));
        for (at, sentence) in findings.sentences.iter().enumerate() {
            let text = Text::new();
            blocks.push(Block::Sentence(match at {
                0 => text.strong(sentence),
                _ => text.and(sentence),
            }));
        }
        blocks
    }

    /// Returns the section of a report on one trace that describes the ranks in it.
    pub(crate) fn within(&self) -> Vec<Block> {
        let findings = self.findings;
        let count = number::count_of(findings.ranks.len() as u64, "rank", "ranks");
        let mut blocks = vec![Block::Heading("Ranks in this trace".into(), count)];
        blocks.extend(self.verdict());
        let sentences = findings.sentences.iter();
        blocks.extend(sentences.map(|text| Block::Sentence(text.as_str().into())));
        blocks.extend(self.tables());
        blocks
    }

    /// Returns the verdict on the ranks in a trace where it is the verdict on the whole: where the critical path through them could be followed.
    pub(crate) fn headline(&self) -> Option<(Bound, Text)> {
        let findings = self.findings;
        let known = findings.critical_path.is_some() && findings.verdict != Bound::Unknown;
        match self.verdict()? {
            Block::Sentence(text) if known => Some((findings.verdict, text)),
            _ => None,
        }
    }

    /// Returns the sentences on ranks that belong to the verdict on a trace with several.
    pub(crate) fn beside_verdict(&self) -> Vec<Block> {
        let count = number::count_of(self.findings.ranks.len() as u64, "rank", "ranks");
        let lead = format!("{count} are in this trace, and its figures are of all of them: ");
        let text = Text::new().strong(lead);
        vec![Block::Sentence(text.and(self.findings.sentences.join(" ")))]
    }

    /// Returns what to do first about a late rank.
    pub(crate) fn do_first(&self) -> Option<Block> {
        first_step(self.findings).map(do_first)
    }

    /// Returns a sentence on what bounds the speed of all ranks together.
    fn verdict(&self) -> Option<Block> {
        let findings = self.findings;
        let tone = match findings.verdict {
            // Without work that was timed there is nothing to say; an open verdict has its reason.
            Bound::Unknown if findings.verdict_evidence.is_empty() => return None,
            Bound::DeviceBound => Tone::Good,
            _ => Tone::Warning,
        };
        let text = Text::new().with(tone, findings.verdict.as_str().to_uppercase());
        let text = text.and("  ").strong(findings.verdict_sentence.as_str());
        Some(Block::Sentence(text))
    }

    /// Returns all tables, in their order.
    pub(crate) fn tables(&self) -> Vec<Block> {
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

    /// Returns the table of ranks, after that of unlike ones.
    fn ranks(&self) -> Vec<Block> {
        let straggler = self.findings.straggler.as_ref().map(|s| s.rank);
        let (shown, others) = self.shown();
        let table = Table::with_rows(&shown)
            .number("rank", |rank| {
                let tone = match straggler == Some(rank.rank) || self.outlies(rank) {
                    true => Tone::Warning,
                    false => Tone::Plain,
                };
                Text::new().with(tone, rank.rank.to_string())
            })
            .word("verdict", |rank| rank.verdict.as_str())
            .number("GPU busy", |rank| duration(rank.gpu_busy_ns))
            .spare(3)
            .number("idle", |rank| {
                or_unknown(rank.idle, |idle| {
                    number::share_of(idle.total_ns, idle.window_ns)
                })
            })
            .number("collectives", |rank| duration(rank.collective_ns))
            .number("waited", |rank| duration(rank.waited_ns))
            .number("last", |rank| or_unknown(rank.last_count, number::count))
            .spare(2)
            .number("last by", |rank| duration(rank.last_skew_ns))
            .spare(1)
            .build();
        let text = "idle: of the analysed time; collectives: time in them; waited: from the rank's arrivals at \
                    them to the last ones; last by: what the first waited for it where it was last.";
        let mut blocks = self.unlike();
        let aside = match others.is_empty() {
            true => String::new(),
            false => format!("{} of {}", shown.len(), self.findings.ranks.len()),
        };
        blocks.extend(table.under("Ranks", aside));
        blocks.extend(alike(&others));
        blocks.push(Block::Sentence(Text::new().faint(text)));
        blocks
    }

    /// Returns the ranks with a row in the table, then those without. Up to [`MAX_RANK_ROWS`] ranks, or `top` of
    /// them, all have a row; of more the first `top`: the straggler, then unlike ranks, then those that
    /// others waited for longest.
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

    /// Returns whether a rank is unlike the others.
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
        let mut blocks = Table::with_rows(&rows[..rows.len().min(self.top)])
            .name("ranks", |row| {
                let machine = row.machine.as_ref().map_or("", |_| ", a machine");
                Text::new().with(Tone::Warning, format!("{}{machine}", list(&row.ranks)))
            })
            .name("of", |row| match (row.what, &row.kernel) {
                (Unlike::Computes, _) => "work outside of collectives",
                (Unlike::Idles, _) => "idle",
                (Unlike::Awaited, _) => "in collectives",
                (Unlike::Kernel, None) => "a kernel",
                (Unlike::Kernel, Some(name)) => name,
            })
            .number("time", |row| number::duration(row.value_ns))
            .number("median rank", |row| number::duration(row.usual_ns))
            .number("ratio", |row| format!("{:.2}", row.ratio))
            .number("costs", |row| number::duration(row.cost_ns))
            .spare(1)
            .under("Unlike the other ranks", "");
        let text =
            "Of a kernel: its mean time. costs: the worst of these ranks, over the recording.";
        blocks.push(Block::Sentence(Text::new().faint(text)));
        blocks
    }

    /// Returns the table of the bandwidths that collectives reached.
    fn bandwidth(&self) -> Vec<Block> {
        let rows = &self.findings.bandwidth;
        if rows.is_empty() {
            return Vec::new();
        }
        let mut blocks = Table::with_rows(&rows[..rows.len().min(self.top)])
            .name("kind", |row| row.kind)
            .number("size", |row| number::bytes(row.bytes))
            .number("ranks", |row| number::count(row.ranks.into()))
            .number("count", |row| number::count(row.time.timed_count))
            .number("p50 time", |row| {
                row.time
                    .p50_ns
                    .map_or("unknown".to_owned(), number::duration)
            })
            .number("algorithm", |row| bandwidth(row.algorithm_bytes_per_s))
            .number("bus", |row| bandwidth(row.bus_bytes_per_s))
            .under("Bandwidth of collectives", "");
        let text = "Time: from the last arrival to the end, where the clocks tell; else the shortest kernel's. Size and \
                    bandwidths are those of nccl-tests.";
        blocks.push(Block::Sentence(Text::new().faint(text)));
        blocks
    }

    /// Returns the table of communicators (groups of ranks), where there are several or one is not complete.
    fn communicators(&self) -> Vec<Block> {
        let rows = &self.findings.communicators;
        // A single communicator of all ranks says nothing new.
        if rows.len() < 2 && rows.iter().all(|row| row.complete) {
            return Vec::new();
        }
        Table::with_rows(&rows[..rows.len().min(self.top)])
            .name("communicator", |row| row.communicator.to_string())
            .number("size", |row| {
                or_unknown(row.size, |size| number::count(size.into()))
            })
            .text("ranks with a trace", |row| list(&row.ranks))
            .number("matched", |row| number::count(row.matched_count))
            .under("Communicators", "")
    }

    /// Returns the table of the collectives with the greatest skews, five at most.
    fn longest(&self) -> Vec<Block> {
        let longest = &self.findings.longest;
        if longest.is_empty() {
            return Vec::new();
        }
        let start_ns = self.manifest.start_ns;
        Table::with_rows(&longest[..longest.len().min(self.top.min(5))])
            .number("skew", |row| number::duration(row.skew_ns))
            .number("at", |row| {
                number::duration(row.first_ns.saturating_sub(start_ns))
            })
            .name("collective", |row| format!("{} {}", row.kind, row.number))
            .number("first", |row| format!("rank {}", row.first_rank))
            .number("last", |row| format!("rank {}", row.last_rank))
            .under("Greatest skews", "")
    }

    /// Returns the section on the clocks' error, on how collectives were matched, and remarks.
    pub(crate) fn accuracy(&self) -> Vec<Block> {
        let mut blocks = vec![Block::Heading("Accuracy".into(), String::new())];
        let clock = match self.findings.clock_error_ns {
            Some(ns) => format!(
                "times of any two ranks compare within {}; what is within the error of two counts for nothing.",
                number::duration(ns)
            ),
            None => "within what times of two ranks compare is not known.".to_owned(),
        };
        blocks.push(Block::Item(Text::new().strong("Clock: ").and(clock)));
        let matched = match &self.findings.not_matched_because {
            None => "collectives are matched by their numbers where the trace has them, and else in their order on a communicator, by kind, \
                     size and time."
                .to_owned(),
            Some(reason) => format!("not all collectives were matched: {reason}."),
        };
        blocks.push(Block::Item(Text::new().strong("Match: ").and(matched)));
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
        pretty(&Json {
            report_version: crate::stable_json::VERSION,
            gapscope_version: &self.manifest.gapscope_version,
            trace: self.folder,
            command: &self.manifest.command,
            ranks: JudgedRanks::new(self.findings),
            notes: self.remarks,
        })
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
    ranks: JudgedRanks<'a>,
    /// Sentences about reading the traces, and the notes of each trace.
    notes: &'a [String],
}

/// The findings on ranks with what to do first, in a folder of ranks as in one trace.
#[derive(Debug, Serialize, JsonSchema)]
pub struct JudgedRanks<'a> {
    /// What to do first about a late rank, in sentences; null where no rank is late, or where that costs less than advice is given for.
    first_step: Option<String>,
    #[serde(flatten)]
    findings: &'a RankFindings,
}

impl<'a> JudgedRanks<'a> {
    pub(crate) fn new(findings: &'a RankFindings) -> JudgedRanks<'a> {
        JudgedRanks {
            first_step: first_step(findings).map(|[action, bound]| action + &bound),
            findings,
        }
    }
}

/// Draws an action and the rest of what is said of it.
fn do_first([action, rest]: [String; 2]) -> Block {
    let text = Text::new().strong(format!("Do first: {action}"));
    Block::Apart(text.and(rest))
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

/// Returns a table of the skews of each kind of collective.
fn collectives(title: &str, kinds: &[CollectiveKind], top: usize) -> Vec<Block> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let none = |kind: &CollectiveKind| match kind.uncertain_count {
        Some(_) => "",
        None => "unknown",
    };
    let known =
        |kind: &CollectiveKind, ns: Option<i64>| ns.map_or(none(kind).to_owned(), number::duration);
    Table::with_rows(&kinds[..kinds.len().min(top)])
        .name("kind", |kind| kind.kind)
        .number("matched", |kind| number::count(kind.matched_count))
        .number("skew in all", |kind| {
            match (kind.uncertain_count, kind.skew.timed_count) {
                // The ranks were compared, and no skew is above the error.
                (Some(_), 0) => "none".to_owned(),
                _ => known(kind, kind.skew.total_ns),
            }
        })
        .number("mean", |kind| {
            kind.skew
                .mean_ns
                .map_or(none(kind).to_owned(), number::duration_f64)
        })
        .number("p50", |kind| known(kind, kind.skew.p50_ns))
        .number("p99", |kind| known(kind, kind.skew.p99_ns))
        .number("max", |kind| known(kind, kind.skew.max_ns))
        .spare(1)
        .under(title, "skew: first arrival to last")
}

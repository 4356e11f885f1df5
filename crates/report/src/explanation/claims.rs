//! Makes the claims of an explanation (texts with their figures, rows and queries) from the findings on a trace.

use super::ranks::RanksInTrace;
use super::sentences::sentences;
use super::{Claim, ClaimKind, Figure, MAX_WORKS, Row};
use crate::head::HeadSentences;
use crate::number;
use crate::section::{accuracy, do_first, instructions, limits, thread_text, verdict};
use gapscope_analysis::Findings;
use gapscope_analysis::gaps::{Cause, Gap, GapTotal, gap_numbers};
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::transfers::TransferRow;
use gapscope_analysis::unread::{CAUSES, KERNELS, TRANSFERS};
use gapscope_timeline::thresholds::ADVICE_SHARE;
use gapscope_timeline::vocabulary::{Words, capitalized};
use gapscope_timeline::{Timeline, Vocabulary};
use gapscope_trace::lookup::LabelPaths;
use gapscope_trace::tables::{CommandBuffers, Dispatches, Table, Transfers};
use std::cmp::Reverse;

/// The maximum number of kernel ids that are listed for one name.
const MAX_VARIANTS: usize = 3;

/// Returns all claims, in the order in which they are read: what the program did, the verdict (what bounds its
/// speed), the largest costs, all else that the report says, what is unknown.
pub(super) fn claims(
    timeline: &Timeline,
    findings: &Findings,
    remarks: &[String],
    ranks: Option<RanksInTrace>,
) -> Vec<Claim> {
    let vocabulary = Vocabulary::new(&timeline.trace.manifest);
    let teller = Teller {
        timeline,
        findings,
        words: vocabulary.words(),
        ranks,
    };
    let mut claims = vec![teller.program()];
    claims.extend(teller.command());
    let head = HeadSentences::new(&timeline.trace.manifest, findings, teller.words);
    claims.extend(Teller::beside_verdict(head.before));
    claims.extend(teller.ranks.iter().flat_map(RanksInTrace::claims));
    claims.push(teller.verdict());
    claims.extend(Teller::beside_verdict(head.notes));
    let devices = verdict::devices(findings).map(|text| text.plain_text());
    claims.extend(Teller::beside_verdict(devices.collect()));
    // As in the report, a late rank comes before what is slow on each rank.
    let of_ranks = teller.ranks.as_ref().and_then(RanksInTrace::do_first);
    let do_first = of_ranks.or_else(|| do_first::plain_text(findings, teller.words));
    let do_first = do_first.filter(|_| findings.knows(CAUSES));
    claims.extend(Teller::beside_verdict(do_first.into_iter().collect()));
    claims.extend(Teller::beside_verdict(head.details));
    claims.extend(teller.largest_costs());
    claims.extend(teller.unknown(remarks));
    // What the report says besides comes after the costs, and what is unknown after it; rows of tables come last.
    claims.extend(sentences(timeline, findings, &claims));
    claims.sort_by_key(|claim| claim.kind.place());
    claims
}

/// A part of a program's time that an explanation may name as costly.
enum Cost<'a> {
    Idle(&'a GapTotal),
    Kernel(&'a Kernel),
    Transfers(&'a TransferRow),
}

/// Makes claims from the findings on a trace, in the words of its API.
struct Teller<'a> {
    timeline: &'a Timeline<'a>,
    findings: &'a Findings,
    words: &'a Words,
    /// The ranks in the trace; `None` where it has one.
    ranks: Option<RanksInTrace<'a>>,
}

impl Teller<'_> {
    /// Tells what the program did: how much work it gave the GPU, and for how long.
    fn program(&self) -> Claim {
        let findings = self.findings;
        let counts = [
            (Dispatches::NAME, "dispatch_count", &findings.dispatch_count),
            (Transfers::NAME, "transfer_count", &findings.transfer_count),
            (
                CommandBuffers::NAME,
                "command_buffer_count",
                &findings.command_buffer_count,
            ),
        ];
        let (mut figures, mut columns) = (Vec::new(), Vec::new());
        for (table, name, value) in counts {
            if let Some(value) = value.known() {
                figures.push(figure(name, *value as i64));
                columns.push(format!("(select count(*) from {table}) as {name}"));
            }
        }
        let of_report = [
            ("wall_ns", findings.wall_ns),
            ("gpu_busy_ns", findings.gpu_busy_ns),
        ];
        for (name, value) in of_report {
            figures.extend(value.map(|value| reported(name, value, format!("/{name}"))));
        }
        Claim {
            kind: ClaimKind::Program,
            text: verdict::totals(findings, self.words).plain_text(),
            query: (!columns.is_empty()).then(|| format!("select {}", columns.join(", "))),
            figures,
            ..Claim::default()
        }
    }

    /// Tells which command was recorded.
    fn command(&self) -> Option<Claim> {
        let command = gapscope_timeline::command::short_command(&self.timeline.trace.manifest);
        (!command.is_empty()).then(|| Claim {
            kind: ClaimKind::Program,
            text: format!("The command was {command}."),
            ..Claim::default()
        })
    }

    /// Makes claims of sentences that stand beside the verdict.
    fn beside_verdict(texts: Vec<String>) -> impl Iterator<Item = Claim> {
        texts.into_iter().map(|text| Claim {
            kind: ClaimKind::Verdict,
            text,
            ..Claim::default()
        })
    }

    /// Tells what bounds the speed of the program, and by which parts of its time.
    fn verdict(&self) -> Claim {
        let evidence = &self.findings.verdict_evidence;
        let mut text = match evidence.sentence.is_empty() {
            true => "What bounds the program is unknown.".to_owned(),
            false => format!(
                "{} ({}).",
                evidence.sentence.trim_end_matches('.'),
                self.findings.verdict
            ),
        };
        for part in &evidence.parts {
            let what = capitalized(part.what);
            text.push_str(&format!(" {what}: {}", part.sentence));
        }
        let mut figures = Vec::new();
        if let Some(ns) = evidence.window_ns {
            let name = "verdict_window_ns";
            figures.push(reported(name, ns, format!("/{name}")));
        }
        for (place, part) in evidence.parts.iter().enumerate() {
            let name = format!("{}_ns", part.what);
            let pointer = format!("/verdict_evidence/{place}/total_ns");
            figures.push(reported(&name, part.total_ns, pointer));
        }
        let paths = [
            ("critical_paths", &self.findings.critical_paths),
            ("joint_critical_paths", &self.findings.joint_critical_paths),
        ];
        for (key, paths) in paths {
            for (place, path) in paths.iter().enumerate() {
                let name = format!("{key}_{place}_{}_ns", path.what);
                figures.push(reported(
                    &name,
                    path.path_ns,
                    format!("/{key}/{place}/path_ns"),
                ));
            }
        }
        let known = self.findings.knows(CAUSES) && evidence.window_ns.is_some();
        if known {
            figures.push(figure("idle_ns", self.findings.idle_time.total_ns));
        }
        Claim {
            kind: ClaimKind::Verdict,
            text,
            figures,
            query: known.then(|| {
                "select coalesce(sum(duration_ns), 0) as idle_ns from gaps where not warm_up"
                    .to_owned()
            }),
            ..Claim::default()
        }
    }

    /// Explains what costs most: idle time by cause, kernels, transfers. A cost is left out below the share of the
    /// time from which advice is given.
    fn largest_costs(&self) -> Vec<Claim> {
        let findings = self.findings;
        let window_ns = findings.verdict_evidence.window_ns.unwrap_or(0);
        let mut costs: Vec<(i64, Cost)> = Vec::new();
        if findings.knows(CAUSES) {
            let gaps = findings.idle_time.causes.iter();
            costs.extend(gaps.map(|gap| (gap.total_ns, Cost::Idle(gap))));
        }
        if findings.knows(KERNELS) {
            let kernels = findings.kernels.iter();
            costs.extend(kernels.filter_map(|row| Some((row.busy_ns?, Cost::Kernel(row)))));
        }
        if findings.knows(TRANSFERS) {
            let transfers = findings.transfers.iter();
            costs.extend(transfers.filter_map(|row| Some((row.busy_ns?, Cost::Transfers(row)))));
        }
        costs.sort_by_key(|(ns, _)| Reverse(*ns));
        let least_ns = (window_ns as f64 * ADVICE_SHARE) as i64;
        let large = (costs.into_iter()).filter(|(ns, _)| *ns > 0 && *ns >= least_ns);
        let mut works = 0;
        let large = large.filter(|(_, cost)| {
            works += usize::from(!matches!(cost, Cost::Idle(_)));
            matches!(cost, Cost::Idle(_)) || works <= MAX_WORKS
        });
        let claims = large.map(|(_, cost)| match cost {
            Cost::Idle(gap) => self.idle(gap, window_ns),
            Cost::Kernel(row) => self.kernel(row),
            Cost::Transfers(row) => self.transfers(row),
        });
        claims.collect()
    }

    /// Explains the idle time of a cause, and names the gap with most of that time.
    fn idle(&self, total: &GapTotal, window_ns: i64) -> Claim {
        let facts = total.cause.facts(self.words.api);
        let gaps = number::count_of(total.count, "gap", "gaps");
        let share = number::share_of(total.total_ns, window_ns);
        let part = match total.cause {
            Cause::Recording => "left out of the verdict".to_owned(),
            _ => format!("{share} of the time"),
        };
        let mut text = format!(
            "The GPU was idle for {} ({part}) in {gaps}: {}.",
            number::duration(total.total_ns),
            facts.name,
        );
        let mut rows = Vec::new();
        let mut figures = vec![
            figure("total_ns", total.total_ns),
            figure("gap_count", total.count as i64),
        ];
        let cause = total.cause.as_str();
        let mut more = String::new();
        let longest = &self.findings.idle_time.longest;
        let part_ns = |gap: &&Gap| {
            let mine = gap.parts.iter().filter(|part| part.cause == total.cause);
            mine.map(|part| part.duration_ns).sum::<i64>()
        };
        // Of several gaps with the same part the first is taken, which is the longest.
        let longest = longest.iter().rev().max_by_key(part_ns);
        let longest = longest.filter(|gap| part_ns(gap) > 0);
        if let Some(ranks) = &self.ranks {
            let devices = idle_by_gpu(self.findings, total.cause);
            text.push_str(&ranks.shares(devices));
        }
        if let Some((gap, row)) = longest.and_then(|gap| Some((gap, self.row_of(gap)?))) {
            more = format!(
                ", (select max(gap_ns) from gaps where gap = {}) as gap_ns",
                row.id
            );
            figures.push(figure("gap_ns", gap.duration_ns));
            text.push_str(&self.place(gap, part_ns(&gap), row, &mut rows));
        }
        let code = self.findings.code.as_ref();
        let code = code.and_then(|code| code.of_cause(total.cause)?.in_short(total.total_ns));
        if let Some(code) = code {
            text.push_str(&format!(
                " Meanwhile the submitting threads were in {code}."
            ));
        }
        Claim {
            kind: ClaimKind::Idle,
            text,
            advice: self.findings.advice_on(total.cause).map(str::to_owned),
            figures,
            rows,
            query: Some(format!(
                "select sum(duration_ns) as total_ns, count(distinct gap) as gap_count{more} from gaps where cause = '{cause}' and not warm_up"
            )),
        }
    }

    /// Returns a text that says where the gap with most of a cause's time is, and adds the rows that the text names
    /// to `rows`. `part_ns` is the cause's share of the gap.
    fn place(&self, gap: &Gap, part_ns: i64, row: Row, rows: &mut Vec<Row>) -> String {
        let length = match gap.duration_ns - part_ns {
            0 => number::duration(part_ns),
            _ => format!(
                "{} of {}",
                number::duration(part_ns),
                number::duration(gap.duration_ns)
            ),
        };
        let mut text = format!(
            " The most in one, {length} {}, is between {} and {}",
            row.mark(),
            gap.before.name,
            gap.after.name,
        );
        let rank = self.ranks.as_ref();
        if let Some(rank) = rank.and_then(|ranks| ranks.of_gpu(gap.device as usize)) {
            text.push_str(&format!(" on {rank}"));
        }
        rows.push(row);
        if let Some(path) = &gap.after.label {
            text.push_str(&format!(", under the label {path}"));
            if let Some(row) = self.label(path) {
                text.push_str(&format!(" {}", row.mark()));
                rows.push(row);
            }
        }
        if let Some(submission) = gap.submission {
            let row = Row::new("submissions", submission.0);
            text.push_str(&format!("; what ended it came with {}", row.mark()));
            rows.push(row);
        }
        if let Some(thread) = gap.thread {
            let name = thread_text(gap.thread_name.as_deref(), thread);
            text.push_str(&format!(" from {name}"));
        }
        text.push('.');
        text
    }

    /// Returns the row of a gap, or `None` for a gap that does not begin where some work ends: that gap reaches into
    /// the warm-up (the left-out start), and its row has more time than is explained here.
    fn row_of(&self, gap: &Gap) -> Option<Row> {
        let device = gap.device as usize;
        let mut works = self.timeline.gpus.get(device)?.works.iter();
        works.find(|work| work.interval.end_ns == gap.start_ns)?;
        let number = gap_numbers(self.timeline, &[(device, gap.start_ns)]);
        Some(Row::new("gaps", number[0]?))
    }

    /// Returns the row of the first label with a path.
    fn label(&self, path: &str) -> Option<Row> {
        let labels = &self.timeline.trace.tables.labels;
        let paths = LabelPaths::new(labels);
        let mut ids = labels.id.iter();
        let id = ids.find(|id| paths.get(**id) == Some(path))?;
        Some(Row::new("labels", id.0.into()))
    }

    /// Explains the time of a kernel (all pipelines of its name), with its limit and its hottest instruction.
    fn kernel(&self, kernel: &Kernel) -> Claim {
        let names = &self.timeline.kernel_names;
        let table = &self.timeline.trace.tables.kernels;
        let mine = (0..table.len()).filter(|row| {
            let named = names.index_of_row(*row);
            named.is_some_and(|named| names.all()[named].name == kernel.name)
        });
        let rows = mine.map(|row| Row::new("kernels", table.id[row].0.into()));
        let rows: Vec<Row> = rows.take(MAX_VARIANTS).collect();
        let marks: Vec<String> = rows.iter().map(Row::mark).collect();
        let mut text = format!(
            "The kernel {} {} ran {} times",
            kernel.name,
            marks.join(" "),
            number::count(kernel.count),
        );
        if let Some(ns) = kernel.busy_ns {
            let share = kernel.busy_share;
            let share = share.map_or("an unknown share".to_owned(), number::share);
            text.push_str(&format!(
                " and kept the GPU busy for {} ({share} of its busy time)",
                number::duration(ns)
            ));
        }
        text.push('.');
        if let Some(ranks) = &self.ranks {
            text.push_str(&ranks.of_kernel(self.timeline, &kernel.name));
        }
        if kernel.untimed_count > 0 {
            let runs = number::count_of(kernel.untimed_count, "run", "runs");
            text.push_str(&format!(" The times of {runs} are unknown and not in it."));
        }
        let fill = self.findings.fill.iter().flat_map(|fill| &fill.kernels);
        if let Some(fill) = fill.into_iter().find(|fill| fill.name == kernel.name) {
            text.push_str(&format!(
                " For {} of that it left most of the GPU unused, with {} in the median launch that did so.",
                number::duration(fill.underfilled_ns),
                self.words.workgroup.count(u64::from(fill.groups_p50)),
            ));
        }
        if let Some(limit) = limits::sentence(kernel) {
            text.push_str(&format!(" {limit}"));
        }
        let sampled = instructions::most_samples(self.findings, &kernel.name);
        if let Some(most) = &sampled {
            text.push_str(&format!(" {}", most.sentence));
        }
        let mut figures = vec![figure("dispatch_count", kernel.count as i64)];
        let mut sum = String::new();
        if let Some(total_ns) = kernel.durations.total_ns {
            figures.push(figure("total_ns", total_ns));
            sum = ", sum(duration_ns) as total_ns".to_owned();
        }
        let mut kernels = self.findings.kernels.iter();
        let place = kernels.position(|other| other.name == kernel.name);
        for (name, ns) in [
            ("busy_ns", kernel.busy_ns),
            ("winnable_ns", kernel.winnable_ns),
        ] {
            if let (Some(ns), Some(place)) = (ns, place) {
                figures.push(reported(name, ns, format!("/kernels/{place}/{name}")));
            }
        }
        if let Some(most) = &sampled {
            let pointer = format!("/sampled_kernels/{}/samples", most.place);
            figures.push(reported("sample_count", most.samples as i64, pointer));
        }
        Claim {
            kind: ClaimKind::Work,
            text,
            advice: sampled.and_then(|most| most.advice.map(str::to_owned)),
            figures,
            rows,
            query: Some(format!(
                "select count(*) as dispatch_count{sum} from dispatches where kernel_name = {}",
                literal(&kernel.name)
            )),
        }
    }

    /// Explains the transfers of a kind.
    fn transfers(&self, row: &TransferRow) -> Claim {
        let kind = row.kind.as_str();
        let mut text = format!(
            "{} of kind {kind} kept the GPU busy for {}",
            number::count_of(row.count, "transfer", "transfers"),
            row.busy_ns
                .map_or("an unknown time".to_owned(), number::duration),
        );
        match (row.unknown_bytes_count, row.bytes) {
            (_, None) => text.push_str("; how much they wrote is unknown."),
            (0, Some(bytes)) => text.push_str(&format!(" and wrote {}.", number::bytes(bytes))),
            (count, Some(bytes)) => text.push_str(&format!(
                "; the size of {} is unknown, the others wrote {}.",
                number::count(count),
                number::bytes(bytes)
            )),
        }
        Claim {
            kind: ClaimKind::Work,
            text,
            figures: [figure("transfer_count", row.count as i64)]
                .into_iter()
                .chain(row.bytes.map(|bytes| figure("written_bytes", bytes as i64)))
                .collect(),
            query: Some(format!(
                "select count(*) as transfer_count{} from transfers where kind = {}",
                match row.bytes {
                    Some(_) => ", sum(bytes) as written_bytes",
                    None => "",
                },
                literal(kind)
            )),
            ..Claim::default()
        }
    }

    /// Returns claims on what is not known, and on how far the figures can be trusted. `remarks` are sentences about
    /// the reading of the trace.
    fn unknown(&self, remarks: &[String]) -> Vec<Claim> {
        let findings = self.findings;
        let plain = |text: String| Claim {
            text,
            ..Claim::default()
        };
        let mut claims = vec![plain(format!(
            "How exact the figures are: {}.",
            accuracy::short(findings, self.words)
        ))];
        let tables = findings.unread.iter().map(|table| format!("{table}."));
        claims.extend(tables.map(plain));
        for loss in &findings.losses {
            claims.push(Claim {
                text: format!("Not recorded: {}: {}.", number::loss(loss), loss.reason),
                figures: vec![figure("count", loss.count as i64)],
                query: Some(format!(
                    "select sum(count) as count from losses where what = {} and reason = {}",
                    literal(loss.kind.as_str()),
                    literal(&loss.reason)
                )),
                ..Claim::default()
            });
        }
        let conditions = findings.conditions.iter().filter(|note| !note.is_usual);
        claims.extend(conditions.map(|note| plain(note.sentence.clone())));
        let unmeasured = self.timeline.trace.manifest.unmeasured.iter();
        claims.extend(
            unmeasured.map(|of| plain(format!("Not measured: {}: {}.", of.what, of.reason))),
        );
        claims.extend(findings.notes.iter().chain(remarks).cloned().map(plain));
        claims
    }
}

/// Returns the idle time of each GPU that a cause has.
fn idle_by_gpu(findings: &Findings, cause: Cause) -> impl Iterator<Item = (usize, i64)> {
    let devices = findings.idle_time.devices.iter();
    devices.map(move |device| {
        let causes = device.causes.iter().filter(|total| total.cause == cause);
        let ns = causes.fold(0i64, |sum, total| sum.saturating_add(total.total_ns));
        (device.device as usize, ns)
    })
}

/// Returns a figure that the report has at a JSON pointer.
fn reported(name: &str, value: i64, pointer: String) -> Figure {
    Figure {
        report: Some(pointer),
        ..figure(name, value)
    }
}

/// Returns a figure that the claim's query has as a column.
fn figure(name: &str, value: i64) -> Figure {
    Figure {
        name: name.to_owned(),
        value,
        report: None,
    }
}

/// Quotes a text for SQL.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

//! Makes the section on the verdict (what bounds the speed of the program) and its evidence, for all devices and for
//! each.

use super::transfers::all_written;
use super::{dispatches, rows};
use crate::document::{Block, Text, Tone};
use crate::{fit, number};
use gapscope_analysis::Findings;
use gapscope_analysis::fill::KernelFill;
use gapscope_analysis::headline::{HeadlineKind, HeadlineNote};
use gapscope_analysis::verdict::Bound;
use gapscope_timeline::busy;
use gapscope_timeline::quantity::Percent;
use gapscope_timeline::thresholds::ADVICE_SHARE;
use gapscope_timeline::unknown_counts::Count;
use gapscope_timeline::vocabulary::Words;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{CommandBuffers, Dispatches, Submissions, Table, Transfers};
use std::cmp::Reverse;

/// Makes the section: the verdict, its evidence, kernels that fill little of the GPU, each device, and the totals.
///
/// `of_ranks` is the verdict on ranks in the trace, where that is the verdict on all.
pub(crate) fn blocks(
    findings: &Findings,
    words: &Words,
    of_ranks: Option<(Bound, Text)>,
) -> Vec<Block> {
    let mut blocks = verdict(findings, String::new(), of_ranks);
    for part in &findings.verdict_evidence.parts {
        blocks.push(Block::Item(Text::new().and(part.sentence.as_str())));
    }
    blocks.extend(underfilled(findings, words).map(Block::Item));
    blocks.extend(devices(findings).map(Block::Item));
    blocks.push(Block::Sentence(totals(findings, words)));
    if !findings.warm_up.reason.is_empty() {
        let reason = findings.warm_up.reason.as_str();
        blocks.push(Block::Sentence(Text::new().faint(reason)));
    }
    blocks
}

/// Makes the part for the first screen: the verdict, what the rest of the time was, and the verdicts on several devices.
pub(crate) fn first(findings: &Findings, of_ranks: Option<(Bound, Text)>) -> Vec<Block> {
    let mut blocks = verdict(findings, rest_of_time(findings), of_ranks);
    blocks.extend(devices_by_verdict(findings).into_iter().map(Block::Item));
    blocks
}

/// Returns a sentence on the parts of the time that the verdict does not name, as far as they count; empty where none does.
fn rest_of_time(findings: &Findings) -> String {
    let evidence = &findings.verdict_evidence;
    // What is not known is what an unknown verdict is about.
    let is_told = |what| what == "unknown" && findings.verdict == Bound::Unknown;
    let parts = evidence
        .parts
        .iter()
        .filter(|part| part.share >= ADVICE_SHARE && !is_told(part.what));
    let parts = parts.map(|part| (part, Percent(part.share).to_string()));
    let others = parts.filter(|(_, share)| !evidence.sentence.contains(share.as_str()));
    let others: Vec<String> = others
        .map(|(part, share)| format!("for {share} {}", part.clause))
        .collect();
    match others.is_empty() {
        true => String::new(),
        false => format!(" F{}.", &others.join(", ")[1..]),
    }
}

/// Returns for each verdict the devices that have it, where there are several devices.
fn devices_by_verdict(findings: &Findings) -> Vec<Text> {
    let names = busy::names(&findings.devices);
    let devices = &findings.idle_time.devices;
    let mut groups: Vec<(Bound, Vec<&str>)> = Vec::new();
    for device in devices {
        let name = names[device.device as usize].as_str();
        match groups
            .iter_mut()
            .find(|(bound, _)| *bound == device.verdict)
        {
            Some((_, of)) => of.push(name),
            None => groups.push((device.verdict, vec![name])),
        }
    }
    let group = |(bound, of): &(Bound, Vec<&str>)| {
        let text = match of.len() {
            all if all == devices.len() => format!("Each of the {all} GPUs is {bound}."),
            1 => format!("{} is {bound}.", of[0]),
            several => format!(
                "{several} of {} GPUs are {bound}: {}.",
                devices.len(),
                number::listed(of)
            ),
        };
        text.into()
    };
    match devices.len() {
        0 | 1 => Vec::new(),
        _ => groups.iter().map(group).collect(),
    }
}

/// Makes the verdict, with `more` behind its sentence, and the notes that belong to it. Where it is that on ranks, the sums of the devices' times
/// are told after it.
fn verdict(findings: &Findings, more: String, of_ranks: Option<(Bound, Text)>) -> Vec<Block> {
    let bound = findings.verdict;
    let tone = match bound {
        Bound::DeviceBound => Tone::Good,
        _ => Tone::Warning,
    };
    let evidence = &findings.verdict_evidence;
    let mut text = Text::new().with(tone, bound.as_str().to_uppercase());
    if !evidence.sentence.is_empty() {
        text = text.and("  ").strong(evidence.sentence.as_str());
    }
    text = text.and(more.as_str());
    let mut sums = None;
    if let Some((of_ranks, headline)) = of_ranks {
        text = headline;
        sums = by_sums(findings, of_ranks, &more);
    }
    // Times that contradict each other come before the verdict, which they may make wrong.
    let (before, after): (Vec<_>, Vec<_>) =
        (findings.headline.iter()).partition(|note| note.kind == HeadlineKind::Contradiction);
    let sentence = |note: &HeadlineNote| {
        let tone = match note.kind {
            HeadlineKind::JoinedFile | HeadlineKind::Scope | HeadlineKind::Phase => Tone::Plain,
            _ => Tone::Warning,
        };
        Block::Sentence(Text::new().with(tone, note.sentence.as_str()))
    };
    let mut blocks: Vec<Block> = before.into_iter().map(sentence).collect();
    blocks.push(Block::Sentence(text));
    blocks.extend(sums.map(Block::Sentence));
    blocks.extend(after.into_iter().map(sentence));
    blocks
}

/// Returns what the times of all devices together say, where that is not what the verdict on the ranks is.
fn by_sums(findings: &Findings, of_ranks: Bound, more: &str) -> Option<Text> {
    let evidence = &findings.verdict_evidence;
    (findings.verdict != of_ranks && !evidence.sentence.is_empty()).then(|| {
        Text::new().and(format!(
            "The times of all devices together, in which ranks that wait for each other communicate, would say {}: {}{more}",
            findings.verdict, evidence.sentence
        ))
    })
}

/// Returns a sentence on the kernels that leave most of a device idle, where that costs enough.
pub(crate) fn underfilled(findings: &Findings, words: &Words) -> Option<Text> {
    const NAMED: usize = 3;
    const COLUMNS: usize = 40;
    let window_ns = findings.verdict_evidence.window_ns? as f64;
    let underfilled_ns: i64 = (findings.fill.iter())
        .filter_map(|fill| fill.underfilled_ns)
        .sum();
    if (underfilled_ns as f64) < ADVICE_SHARE * window_ns {
        return None;
    }
    let mut kernels: Vec<&KernelFill> = findings.fill.iter().flat_map(|f| &f.kernels).collect();
    kernels.sort_by_key(|kernel| Reverse(kernel.underfilled_ns));
    let named: Vec<String> = (kernels.iter().take(NAMED))
        .map(|kernel| {
            format!(
                "{} ({}, {})",
                fit::clip(&fit::clean(&kernel.name), COLUMNS),
                words.workgroup.count(u64::from(kernel.groups_p50)),
                number::duration(kernel.underfilled_ns)
            )
        })
        .collect();
    let text = format!(
        "Kernels that filled little of the GPU: {}.",
        named.join(", ")
    );
    (!named.is_empty()).then(|| text.into())
}

/// Returns the verdict on each device, where there are several.
pub(crate) fn devices(findings: &Findings) -> impl Iterator<Item = Text> {
    let names = busy::names(&findings.devices);
    let devices = &findings.idle_time.devices;
    let several = devices.len() > 1;
    devices.iter().filter(move |_| several).map(move |device| {
        let name = &names[device.device as usize];
        Text::new()
            .strong(format!("{name}: {}. ", device.verdict))
            .and(device.verdict_sentence.as_str())
    })
}

/// Returns wall time, busy time and counts in one line.
pub(crate) fn totals(findings: &Findings, words: &Words) -> Text {
    let known = |ns: Option<i64>| ns.map_or("unknown".to_owned(), number::duration);
    let mut text = Text::new().and("Recorded ").strong(known(findings.wall_ns));
    if let Some(window) = findings.work_window {
        let work = number::duration(window.length_ns());
        text = text.and(format!(", {work} from the first GPU work to the last"));
    }
    // Inside of work that is timed as a whole the GPU may have idled.
    let counted_whole = findings
        .devices
        .iter()
        .filter_map(|device| device.counted_whole_ns);
    let most = match counted_whole.max() {
        Some(1..) => "at most ",
        _ => "",
    };
    text = (text.and("; GPU busy ").and(most)).strong(known(findings.gpu_busy_ns));
    if let (Some(busy), Some(wall)) = (findings.gpu_busy_ns, findings.wall_ns) {
        text = text.and(format!(
            " ({} of the recording)",
            number::share_of(busy, wall)
        ));
    }
    text.and(format!(": {}.", counts_of_work(findings, words)))
}

/// Returns what ran, and in what it was submitted. Work whose submissions the trace lacks was not submitted in none.
fn counts_of_work(findings: &Findings, words: &Words) -> String {
    let (dispatched, transferred) = (*findings.dispatch_count, *findings.transfer_count);
    let (buffers, submitted) = (*findings.command_buffer_count, *findings.submission_count);
    let tables = [
        Dispatches::NAME,
        Transfers::NAME,
        CommandBuffers::NAME,
        Submissions::NAME,
    ];
    let knows_all = tables.iter().all(|table| findings.knows_rows(table));
    if knows_all && dispatched + transferred + buffers + submitted == 0 {
        return match findings.gpu_busy_ns {
            Some(1..) => "all of it work that is timed as a whole".to_owned(),
            _ => "no GPU work is in the trace".to_owned(),
        };
    }
    // Most CUDA programs launch no graphs.
    let graphless = matches!(words.api, Api::Cuda | Api::Hip) && buffers == 0;
    let known_rows = |table, text| rows(findings, table, text);
    let is_unrecorded = |count| {
        let unknown = findings.unknown_count(count);
        unknown.is_some_and(|unknown| unknown.at_least.is_none())
    };
    let dispatched = match dispatches(findings, dispatched) {
        Some(count) => known_rows(Dispatches::NAME, words.dispatch.count(count)),
        None => format!("an unknown number of {}", words.dispatch.many),
    };
    let command_buffers = words.command_buffer.count(buffers);
    let command_buffers = match graphless && findings.knows_rows(CommandBuffers::NAME) {
        true => String::new(),
        false => known_rows(CommandBuffers::NAME, command_buffers) + " and ",
    };
    let submissions = words.submission.count(submitted);
    let submissions = known_rows(Submissions::NAME, submissions);
    let transfers = match transferred {
        0 if is_unrecorded(Count::Transfers) => "an unknown number of transfers".to_owned(),
        0 if findings.knows_rows(Transfers::NAME) => "no transfers".to_owned(),
        count => {
            let count = number::count_of(count, "transfer", "transfers");
            let size = all_written(findings).unwrap_or("unknown size".to_owned());
            known_rows(Transfers::NAME, format!("{count} of {size}"))
        }
    };
    let submitters = match (buffers, submitted) {
        (_, 1..) => format!("in {command_buffers}{submissions}"),
        _ if !knows_all => format!("in {command_buffers}{submissions}"),
        (0, 0) => format!("of unknown {}", words.submission.many),
        (_, 0) => format!(
            "in {} of unknown {}",
            words.command_buffer.count(buffers),
            words.submission.many
        ),
    };
    format!("{dispatched} {submitters}, {transfers}")
}

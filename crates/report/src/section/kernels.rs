//! Makes the section on kernels: a table of their counts and times. Without any times it says why there are none.

use super::{count, duration, mean, or_unknown, rest, rows};
use crate::document::{Block, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::limits::{BytesEvidence, NoPeakShare};
use gapscope_timeline::vocabulary::Words;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Dispatches, Table as _};

/// The number of kernels on the first screen.
const FIRST_KERNELS: usize = 5;

/// Returns the heading, in the words of the API, which may call a dispatch a kernel.
fn heading(findings: &Findings, words: &Words) -> Block {
    let dispatched = words.dispatch.count(*findings.dispatch_count);
    let dispatched = rows(findings, Dispatches::NAME, dispatched);
    let all = findings.kernels.len() as u64;
    let aside = match words.dispatch.one {
        "kernel" => format!("{dispatched}, {} different", number::count(all)),
        _ => format!(
            "{dispatched} of {}",
            number::count_of(all, "kernel", "kernels")
        ),
    };
    Block::Heading("Kernels".into(), aside)
}

/// Makes the part for the first screen: the kernels that take most time.
pub(crate) fn first(findings: &Findings, words: &Words) -> Vec<Block> {
    let kernels = &findings.kernels;
    if kernels.is_empty() {
        return Vec::new();
    }
    let shown = &kernels[..kernels.len().min(FIRST_KERNELS)];
    let table = Table::with_rows(shown)
        .name("kernel", |kernel| Text::new().strong(kernel.name.as_str()))
        .number("count", |kernel| count(kernel.count));
    let timed: u64 = kernels.iter().map(|k| k.durations.timed_count).sum();
    if timed == 0 {
        return vec![
            heading(findings, words),
            Block::Table(table.brief().build()),
            Block::Sentence(Text::new().faint(why_untimed(findings))),
        ];
    }
    let table = table
        .number("total", |kernel| duration(kernel.durations.total_ns))
        .number("of busy time", |kernel| {
            or_unknown(kernel.busy_share, number::share)
        })
        .number("mean", |kernel| mean(kernel.durations.mean_ns));
    let mut blocks = vec![
        heading(findings, words),
        Block::Table(table.brief().build()),
    ];
    blocks.extend(untimed(findings));
    blocks
}

/// Says why no dispatch has a time.
fn why_untimed(findings: &Findings) -> &'static str {
    match findings.sampling_mode {
        SamplingMode::CommandBuffer => {
            "No times of dispatches: they were recorded in command-buffer mode; --mode dispatch has them."
        }
        SamplingMode::Pass => "No times of dispatches: passes were timed as a whole.",
        _ => "No times of dispatches: see what was lost, below.",
    }
}

/// Says how many dispatches have no known times; `None` where all have.
fn untimed(findings: &Findings) -> Option<Block> {
    let untimed: u64 = findings.kernels.iter().map(|k| k.untimed_count).sum();
    let text = format!(
        "{} have no known times and are in the counts only.",
        number::count_of(untimed, "dispatch", "dispatches")
    );
    (untimed > 0).then(|| Block::Sentence(Text::new().faint(text)))
}

/// Makes the section; none without kernels.
pub(crate) fn blocks(findings: &Findings, words: &Words, top: usize) -> Vec<Block> {
    let kernels = &findings.kernels;
    if kernels.is_empty() {
        return Vec::new();
    }
    let timed: u64 = kernels.iter().map(|k| k.durations.timed_count).sum();
    let mut blocks = vec![heading(findings, words)];
    let shown = &kernels[..kernels.len().min(top)];
    if timed == 0 {
        let table = Table::with_rows(shown)
            .name("kernel", |kernel| kernel.name.as_str())
            .number("count", |kernel| count(kernel.count));
        blocks.push(Block::Table(table.build()));
        rest(&mut blocks, kernels.len(), shown.len(), "kernels");
        blocks.extend(variants(shown));
        blocks.push(Block::Sentence(Text::new().faint(why_untimed(findings))));
        return blocks;
    }
    let has_bytes = shown.iter().any(|kernel| kernel.bytes_at_least.is_some());
    let has_peak =
        (shown.iter()).any(|kernel| kernel.no_peak_share != Some(NoPeakShare::NotMeasured));
    let mut table = Table::with_rows(shown)
        .name("kernel", |kernel| Text::new().strong(kernel.name.as_str()))
        .number("count", |kernel| count(kernel.count))
        .spare(4)
        .number("total", |kernel| duration(kernel.durations.total_ns))
        .number("share", |kernel| {
            or_unknown(kernel.busy_share, number::share)
        })
        .spare(1)
        .number("mean", |kernel| mean(kernel.durations.mean_ns))
        .spare(7)
        .number("p50", |kernel| duration(kernel.durations.p50_ns))
        .spare(6)
        .number("p99", |kernel| duration(kernel.durations.p99_ns))
        .spare(8)
        .number("min", |kernel| duration(kernel.durations.min_ns))
        .spare(10)
        .number("max", |kernel| duration(kernel.durations.max_ns))
        .spare(9);
    if has_bytes {
        table = table
            .number("bytes ≥", |kernel| {
                or_unknown(kernel.bytes_at_least, |bytes| {
                    format!("{}{}", number::bytes(bytes), assumed(kernel))
                })
            })
            .spare(5)
            .number("a second", |kernel| {
                or_unknown(kernel.bytes_per_s, |bytes| number::bytes(bytes) + "/s")
            })
            .spare(3);
        if has_peak {
            table = table.number("of peak", peak).spare(2);
        }
    }
    blocks.push(Block::Table(table.build()));
    rest(&mut blocks, kernels.len(), shown.len(), "kernels");
    blocks.extend(variants(shown));
    blocks.extend(bytes_note(shown));
    blocks.extend(untimed(findings));
    let sum: f64 = kernels.iter().filter_map(|k| k.busy_share).sum();
    let overlaps = |k: &Kernel| k.durations.total_ns > k.busy_ns;
    let overlap = match () {
        () if sum > 1.001 => "; some ran at the same time, so that it sums to more than 100 %",
        () if kernels.iter().any(overlaps) => "; what ran at the same time counts once",
        () => "",
    };
    let shortened = shown.iter().any(|kernel| kernel.full_name.is_some());
    let names = match shortened {
        true => " The names in the code: full_name in --json.",
        false => "",
    };
    let text = format!("share: of the GPU's busy time{overlap}.{names}");
    blocks.push(Block::Sentence(Text::new().faint(text)));
    blocks
}

/// Returns the mark of bytes that are moved only if the kernel touches all that is bound.
fn assumed(kernel: &Kernel) -> &'static str {
    match kernel.bytes_evidence {
        Some(BytesEvidence::BoundRanges) => " *",
        _ => "",
    }
}

/// Returns the share of the measured bandwidth.
fn peak(kernel: &Kernel) -> Text {
    match (kernel.share_of_peak, kernel.no_peak_share) {
        (None, Some(NoPeakShare::AbovePeak)) => "> 100 %".into(),
        (share, _) => or_unknown(share, number::share),
    }
}

/// Says what the bytes of the table are, and why some have no share of the peak.
fn bytes_note(shown: &[Kernel]) -> Option<Block> {
    let estimated = || (shown.iter()).filter(|kernel| kernel.bytes_at_least.is_some());
    estimated().next()?;
    let has = |evidence| estimated().any(|kernel| kernel.bytes_evidence == Some(evidence));
    let lacks = |reason| estimated().any(|kernel| kernel.no_peak_share == Some(reason));
    let mut text = "bytes ≥: an estimate of what the dispatches must move to and from memory at least, each byte that one reads or writes once".to_owned();
    text.push_str(match (has(BytesEvidence::Code), has(BytesEvidence::BoundRanges)) {
        (true, false) => "; the code touches them in every case.",
        (_, true) => {
            ". *: all that is bound, as far as the invocations reach: the kernel moves as much only if it touches all of it."
        }
        _ => ".",
    });
    match estimated().any(|kernel| kernel.share_of_peak.is_some()) {
        true => text.push_str(" of peak: of the bandwidth that `gapscope bench device` measured."),
        false if lacks(NoPeakShare::NotMeasured) => text.push_str(
            " The device's bandwidth is unknown: run `gapscope bench device` once, then record again, for the share of the peak.",
        ),
        false => {}
    }
    if lacks(NoPeakShare::AbovePeak) {
        text.push_str(" Above 100 % of the measured bandwidth: caches served a part of the bytes");
        text.push_str(match has(BytesEvidence::BoundRanges) {
            true => ", or the kernel did not touch all that is bound.",
            false => ".",
        });
    }
    Some(Block::Sentence(Text::new().faint(text)))
}

/// Notes which rows stand for several pipelines, which differ in their specialisation, or also in their code where the name says so.
fn variants(shown: &[Kernel]) -> Option<Block> {
    const MAX_NAMED: usize = 3;
    let several = || shown.iter().filter(|kernel| kernel.variants > 1);
    let listed: Vec<String> = several()
        .take(MAX_NAMED)
        .map(|kernel| {
            format!(
                "{} ({})",
                kernel.name,
                number::count(kernel.variants.into())
            )
        })
        .collect();
    let more = match several().count().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let text = format!(
        "Of several pipelines, specialised in different ways: {}{more}.",
        listed.join(", ")
    );
    (!listed.is_empty()).then(|| Block::Sentence(Text::new().faint(text)))
}

//! Makes the section on kernels: a table of their counts, times and limits.

use super::{count, duration, mean, or_unknown, rest, rows};
use crate::document::{Block, Column, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::kernels::Kernel;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Dispatches, Table as _};

pub(crate) fn blocks(findings: &Findings, top: usize) -> Vec<Block> {
    let kernels = &findings.kernels;
    if kernels.is_empty() {
        return Vec::new();
    }
    let timed: u64 = kernels.iter().map(|k| k.durations.timed_count).sum();
    let aside = format!(
        "{} of {}",
        rows(
            findings,
            Dispatches::NAME,
            number::count_of(*findings.dispatch_count, "dispatch", "dispatches")
        ),
        number::count_of(kernels.len() as u64, "kernel", "kernels"),
    );
    let mut blocks = vec![Block::Heading("Kernels".into(), aside)];
    let shown = &kernels[..kernels.len().min(top)];
    if timed == 0 {
        let mut table = Table::new([Column::name("kernel"), Column::number("count")]);
        for kernel in shown {
            table.row([kernel.name.as_str().into(), count(kernel.count)]);
        }
        blocks.push(Block::Table(table));
        rest(&mut blocks, kernels.len(), shown.len(), "kernels");
        blocks.extend(variants(shown));
        let why = match findings.sampling_mode {
            SamplingMode::CommandBuffer => {
                "No times of dispatches: they were recorded in command-buffer mode; --mode dispatch has them."
            }
            SamplingMode::Pass => "No times of dispatches: passes were timed as a whole.",
            _ => "No times of dispatches: see what was lost, below.",
        };
        blocks.push(Block::Sentence(Text::new().faint(why)));
        return blocks;
    }
    let mut table = Table::new([
        Column::name("kernel"),
        Column::number("count").spare(2),
        Column::number("total"),
        Column::number("share").spare(1),
        Column::number("mean").spare(4),
        Column::number("p50").spare(3),
        Column::number("p99").spare(5),
        Column::number("min").spare(7),
        Column::number("max").spare(6),
    ]);
    for kernel in shown {
        let times = &kernel.durations;
        table.row([
            Text::new().strong(kernel.name.as_str()),
            count(kernel.count),
            duration(times.total_ns),
            or_unknown(kernel.busy_share, number::share),
            mean(times.mean_ns),
            duration(times.p50_ns),
            duration(times.p99_ns),
            duration(times.min_ns),
            duration(times.max_ns),
        ]);
    }
    blocks.push(Block::Table(table));
    rest(&mut blocks, kernels.len(), shown.len(), "kernels");
    blocks.extend(variants(shown));
    let untimed: u64 = kernels.iter().map(|k| k.untimed_count).sum();
    if untimed > 0 {
        let text = format!(
            "{} have no known times and are in the counts only.",
            number::count_of(untimed, "dispatch", "dispatches")
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
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

//! Makes the section on kernels: a table of their counts and times. Without any times it says why there are none.

use super::{count, duration, mean, or_unknown, rest, rows};
use crate::document::{Block, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::kernels::Kernel;
use gapscope_trace::manifest::SamplingMode;
use gapscope_trace::tables::{Dispatches, Table as _};

/// Makes the section; none without kernels.
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
        let table = Table::with_rows(shown)
            .name("kernel", |kernel| kernel.name.as_str())
            .number("count", |kernel| count(kernel.count));
        blocks.push(Block::Table(table.build()));
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
    let table = Table::with_rows(shown)
        .name("kernel", |kernel| Text::new().strong(kernel.name.as_str()))
        .number("count", |kernel| count(kernel.count))
        .spare(2)
        .number("total", |kernel| duration(kernel.durations.total_ns))
        .number("share", |kernel| {
            or_unknown(kernel.busy_share, number::share)
        })
        .spare(1)
        .number("mean", |kernel| mean(kernel.durations.mean_ns))
        .spare(4)
        .number("p50", |kernel| duration(kernel.durations.p50_ns))
        .spare(3)
        .number("p99", |kernel| duration(kernel.durations.p99_ns))
        .spare(5)
        .number("min", |kernel| duration(kernel.durations.min_ns))
        .spare(7)
        .number("max", |kernel| duration(kernel.durations.max_ns))
        .spare(6);
    blocks.push(Block::Table(table.build()));
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

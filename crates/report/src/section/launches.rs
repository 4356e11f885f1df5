//! What limits kernels by the shape of their launches.

use super::rest;
use crate::document::{Block, Column, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::kernels::Kernel;
use gapscope_analysis::launches::KernelLimit;
use gapscope_analysis::thresholds::ADVICE_SHARE;
use std::cmp::Reverse;

pub(crate) fn blocks(findings: &Findings, top: usize) -> Vec<Block> {
    let kernels = &findings.kernels;
    let all_ns: i64 = (kernels.iter())
        .filter_map(|kernel| kernel.durations.total_ns)
        .fold(0, i64::saturating_add);
    let counts = |ns: i64| ns as f64 >= ADVICE_SHARE * all_ns as f64;
    let mut won: Vec<(&Kernel, i64)> = (kernels.iter())
        .filter_map(|kernel| Some((kernel, kernel.winnable_ns?)))
        .filter(|(_, ns)| counts(*ns))
        .collect();
    won.sort_by_key(|(_, ns)| Reverse(*ns));
    let short = short(kernels).filter(|short| counts(short.total_ns));
    let mut blocks = Vec::new();
    if won.is_empty() && short.is_none() {
        return blocks;
    }
    blocks.push(Block::Heading(
        "Limits of kernels".into(),
        "by the shape of their launches; no counters".into(),
    ));
    let shown = &won[..won.len().min(top)];
    if !shown.is_empty() {
        let mut table = Table::new([
            Column::name("kernel"),
            Column::number("could save"),
            Column::text("limit"),
            Column::number("multiprocessors").spare(1),
            Column::number("waves").spare(2),
            Column::number("occupancy").spare(3),
        ]);
        for (kernel, ns) in shown {
            table.row([
                Text::new().strong(kernel.name.as_str()),
                format!("≤ {}", number::duration(*ns)).into(),
                limit(kernel).into(),
                multiprocessors(kernel).into(),
                waves(kernel),
                occupancy(kernel),
            ]);
        }
        blocks.push(Block::Table(table));
        rest(&mut blocks, won.len(), shown.len(), "kernels");
        let text = "could save: at most, if the same work had workgroups for all multiprocessors, or filled its last wave.";
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks.extend(short.map(|short| Block::Sentence(short.sentence().into())));
    blocks
}

fn limit(kernel: &Kernel) -> &'static str {
    match kernel.limit {
        Some(KernelLimit::TooSmall) => "too small",
        Some(KernelLimit::Tail) => "tail",
        Some(KernelLimit::Latency) => "latency",
        None => "unknown",
    }
}

fn multiprocessors(kernel: &Kernel) -> String {
    kernel.launches.map_or(String::new(), |launches| {
        format!(
            "{:.0} of {}",
            launches.mean_multiprocessors.max(1.0),
            launches.multiprocessors
        )
    })
}

fn waves(kernel: &Kernel) -> Text {
    super::or_unknown(
        kernel.launches.and_then(|launches| launches.waves),
        |waves| match waves < 0.1 {
            true => "< 0.1".to_owned(),
            false => format!("{waves:.1}"),
        },
    )
}

fn occupancy(kernel: &Kernel) -> Text {
    super::or_unknown(
        kernel.launches.and_then(|launches| launches.occupancy),
        number::share,
    )
}

/// The kernels that take hardly longer than the shortest one.
struct Short {
    kernels: u64,
    dispatches: u64,
    total_ns: i64,
    mean_ns: f64,
}

fn short(kernels: &[Kernel]) -> Option<Short> {
    let of = || (kernels.iter()).filter(|kernel| kernel.limit == Some(KernelLimit::Latency));
    let dispatches = of().map(|kernel| kernel.durations.timed_count).sum();
    let total_ns = of()
        .filter_map(|kernel| kernel.durations.total_ns)
        .fold(0, i64::saturating_add);
    (dispatches > 0).then(|| Short {
        kernels: of().count() as u64,
        dispatches,
        total_ns,
        mean_ns: total_ns as f64 / dispatches as f64,
    })
}

impl Short {
    fn sentence(&self) -> String {
        format!(
            "{} of {}, {} each on average ({} in all), take hardly longer than the shortest kernel does: fewer of them gain more than better ones.",
            number::of(self.dispatches, "dispatch", "dispatches"),
            number::of(self.kernels, "kernel", "kernels"),
            number::duration_f64(self.mean_ns),
            number::duration(self.total_ns),
        )
    }
}

//! Makes the section on launches that were profiled one by one: each was run again and again, in several passes, with
//! hardware counters. Of several launches of a kernel the last is shown.

use super::or_unknown;
use crate::document::{Block, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::profiled::{ProfiledKernel, StallShare};
use gapscope_timeline::thresholds::STALL_TOLD;
use gapscope_trace::kernel_profile::metric_name as name;

/// The units whose busy share the report lists, each with the name of its metric.
const PIPES: [(&str, &str); 6] = [
    ("tensor cores", name::TENSOR),
    ("multiply-add", name::FMA),
    ("integer and logic", name::ALU),
    ("double precision", name::FP64),
    ("special functions", name::XU),
    ("loads and stores", name::LSU),
];

/// Makes the section; none where no launch was profiled.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let all = &findings.profiled_kernels;
    let is_last = |at: usize| {
        let later = &all[at + 1..];
        !later.iter().any(|other| other.kernel == all[at].kernel)
    };
    let mut blocks: Vec<Block> = (all.iter().enumerate())
        .filter(|(at, _)| is_last(*at))
        .flat_map(|(_, profiled)| {
            let same = all.iter().filter(|other| other.kernel == profiled.kernel);
            of_kernel(profiled, same.count() as u64)
        })
        .collect();
    if !blocks.is_empty() {
        let text = "Measured by hardware counters while the launch was run again and again, alone: caches hold what the run before \
                    left, and clocks are not locked. All metrics: profiled_kernels in --json.";
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks
}

/// Describes one launch; `launches` is the number of profiled launches of its kernel.
fn of_kernel(profiled: &ProfiledKernel, launches: u64) -> Vec<Block> {
    let passes = number::count_of(profiled.passes.into(), "pass", "passes");
    let of = match launches {
        1 => String::new(),
        launches => format!("the last of {launches} profiled, "),
    };
    let aside = match profiled.duration_ns {
        Some(ns) => format!("{of}{}, {passes}", number::duration_f64(ns)),
        None => format!("{of}{passes}"),
    };
    let mut blocks = vec![
        Block::Heading(format!("{} in depth", profiled.kernel), aside),
        Block::Sentence(profiled.sentence.as_str().into()),
        Block::Table(memory(profiled)),
    ];
    blocks.extend(occupancy(profiled));
    blocks.extend(units(profiled));
    let told = (profiled.stalls.iter()).filter(|stall| stall.share >= STALL_TOLD);
    blocks.extend(told.map(|stall| Block::Item(says(stall))));
    blocks
}

/// Returns a text on what warps waited for, and on what to do about it.
fn says(stall: &StallShare) -> Text {
    let reason = stall.reason.replace('_', " ");
    let share = number::share(stall.share);
    let text = Text::new()
        .strong(format!("{reason} {share}: "))
        .and(stall.meaning);
    match stall.advice {
        Some(advice) => text.faint(format!(" To do: {advice}.")),
        None => text,
    }
}

/// Returns the table of how far each level of memory was used.
fn memory(profiled: &ProfiledKernel) -> Table {
    let share = |share: Option<f64>| or_unknown(share, number::share);
    let bytes = |bytes: Option<u64>| or_unknown(bytes, number::bytes);
    let moved = (profiled.dram_read_bytes).zip(profiled.dram_written_bytes);
    let moved = or_unknown(moved, |(read, written)| {
        let [read, written] = [read, written].map(number::bytes);
        format!("{read} read, {written} written")
    });
    let (l1_hits, l2_hits) = (share(profiled.l1_hit_rate), share(profiled.l2_hit_rate));
    let rows = [
        (
            "L1 and shared",
            profiled.l1,
            l1_hits,
            bytes(profiled.l1_bytes),
        ),
        ("L2", profiled.l2, l2_hits, bytes(profiled.l2_bytes)),
        ("device memory", profiled.dram, Text::new(), moved),
    ];
    Table::with_rows(&rows)
        .word("memory", |(name, ..)| *name)
        .number("throughput", |(_, throughput, ..)| share(*throughput))
        .number("hit rate", |(_, _, hits, _)| hits.clone())
        .number("bytes", |(.., bytes)| bytes.clone())
        .build()
}

/// Says how many of the possible warps were active, and what limits that.
fn occupancy(profiled: &ProfiledKernel) -> Option<Block> {
    let achieved = profiled.achieved_occupancy?;
    let mut text = format!("Occupancy: {} achieved", number::share(achieved));
    match (
        profiled.theoretical_occupancy,
        profiled.occupancy_limited_by,
    ) {
        (Some(most), Some(by)) => {
            let by = by.replace('-', " ");
            text += &format!(" of {} possible, which {by} limit.", number::share(most));
        }
        _ => text += "; how much its launch allows is unknown.",
    }
    Some(Block::Sentence(text.into()))
}

/// Names the three busiest units.
fn units(profiled: &ProfiledKernel) -> Option<Block> {
    let value = |metric: &str| {
        let found = profiled.metrics.iter().find(|m| &*m.metric == metric)?;
        Some(found.value / 100.0).filter(|share| share.is_finite() && *share > 0.0)
    };
    let mut busy: Vec<(&str, f64)> = (PIPES.iter())
        .filter_map(|(unit, metric)| Some((*unit, value(metric)?)))
        .collect();
    busy.sort_by(|a, b| b.1.total_cmp(&a.1));
    busy.truncate(3);
    let busy: Vec<String> = (busy.iter())
        .map(|(unit, share)| format!("{unit} {}", number::share(*share)))
        .collect();
    (!busy.is_empty())
        .then(|| Block::Sentence(format!("Busiest units: {}.", busy.join(", ")).into()))
}

//! Kernels in depth: launches that were profiled.

use super::or_unknown;
use crate::document::{Block, Column, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::profiled::{ProfiledKernel, StallShare};
use gapscope_analysis::thresholds::STALL_TOLD;
use gapscope_trace::kernel_profile::metric_name as name;

/// Units of which the report tells how busy they were, with their metrics.
const PIPES: [(&str, &str); 6] = [
    ("tensor cores", name::TENSOR),
    ("multiply-add", name::FMA),
    ("integer and logic", name::ALU),
    ("double precision", name::FP64),
    ("special functions", name::XU),
    ("loads and stores", name::LSU),
];

pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    let mut blocks: Vec<Block> = (findings.profiled_kernels.iter())
        .flat_map(of_kernel)
        .collect();
    if !blocks.is_empty() {
        let text = "Measured by hardware counters while the launch was run again and again, alone: caches hold what the run before \
                    left, and clocks are not locked. All metrics: profiled_kernels in --json.";
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks
}

fn of_kernel(profiled: &ProfiledKernel) -> Vec<Block> {
    let passes = number::of(profiled.passes.into(), "pass", "passes");
    let aside = match profiled.duration_ns {
        Some(ns) => format!("{}, {passes}", number::duration_f64(ns)),
        None => passes,
    };
    let mut blocks = vec![
        Block::Heading(format!("{} in depth", profiled.kernel), aside),
        Block::Sentence(profiled.sentence.as_str().into()),
        Block::Table(memory(profiled)),
    ];
    blocks.extend(occupancy(profiled));
    blocks.extend(units(profiled));
    let told: Vec<&StallShare> = (profiled.stalls.iter())
        .filter(|stall| stall.share >= STALL_TOLD)
        .collect();
    if !told.is_empty() {
        let mut table = Table::new([
            Column::word("its warps"),
            Column::number("share"),
            Column::text("which means"),
        ]);
        for stall in &told {
            table.row([
                stall.reason.replace('_', " ").into(),
                number::share(stall.share).into(),
                stall.meaning.trim_end_matches('.').into(),
            ]);
        }
        blocks.push(Block::Table(table));
    }
    let advice = told.iter().find_map(|stall| Some((stall, stall.advice?)));
    blocks.extend(advice.map(|(stall, advice)| {
        let reason = stall.reason.replace('_', " ");
        Block::Sentence(format!("Against {reason}: {advice}.").into())
    }));
    blocks
}

fn memory(profiled: &ProfiledKernel) -> Table {
    let mut table = Table::new([
        Column::word("memory"),
        Column::number("throughput"),
        Column::number("hit rate"),
        Column::number("bytes"),
    ]);
    let share = |share: Option<f64>| or_unknown(share, number::share);
    let bytes = |bytes: Option<u64>| or_unknown(bytes, number::bytes);
    table.row([
        "L1 and shared".into(),
        share(profiled.l1),
        share(profiled.l1_hit_rate),
        bytes(profiled.l1_bytes),
    ]);
    table.row([
        "L2".into(),
        share(profiled.l2),
        share(profiled.l2_hit_rate),
        bytes(profiled.l2_bytes),
    ]);
    let moved = (profiled.dram_read_bytes).zip(profiled.dram_written_bytes);
    let moved = or_unknown(moved, |(read, written)| {
        format!(
            "{} read, {} written",
            number::bytes(read),
            number::bytes(written)
        )
    });
    table.row([
        "device memory".into(),
        share(profiled.dram),
        Text::new(),
        moved,
    ]);
    table
}

fn occupancy(profiled: &ProfiledKernel) -> Option<Block> {
    let achieved = profiled.achieved_occupancy?;
    let mut text = format!("Occupancy: {} achieved", number::share(achieved));
    match (profiled.theoretical_occupancy, profiled.occupancy_limited_by) {
        (Some(most), Some(by)) => {
            let by = by.replace('-', " ");
            text += &format!(" of {} possible, which {by} limit.", number::share(most));
        }
        _ => text += "; how much its launch allows is unknown.",
    }
    Some(Block::Sentence(text.into()))
}

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
    (!busy.is_empty()).then(|| Block::Sentence(format!("Busiest units: {}.", busy.join(", ")).into()))
}

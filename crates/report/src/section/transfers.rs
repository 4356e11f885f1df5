//! Makes the section on transfers.

use super::{count, duration, mean, or_unknown};
use crate::document::{Block, Column, Table, Text};
use crate::number;
use gapscope_analysis::Findings;

/// Formats the bytes of all transfers; `None` where no size is known.
pub(super) fn all_written(findings: &Findings) -> Option<String> {
    written(
        *findings.transfer_bytes,
        *findings.transfer_unknown_bytes_count,
        *findings.transfer_count,
    )
}

/// Formats the bytes of `count` transfers, of which `unknown` have an unknown size.
fn written(bytes: u64, unknown: u64, count: u64) -> Option<String> {
    let at_least = if unknown > 0 { "≥" } else { "" };
    (unknown < count).then(|| format!("{at_least}{}", number::bytes(bytes)))
}

pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    if findings.transfers.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        Column::text("transfer"),
        Column::number("count"),
        Column::number("bytes"),
        Column::number("busy"),
        Column::number("rate"),
        Column::number("mean"),
        Column::number("p99").spare(2),
        Column::number("max").spare(1),
    ]);
    for row in &findings.transfers {
        table.row([
            row.kind.as_str().into(),
            count(row.count),
            or_unknown(
                written(row.bytes, row.unknown_bytes_count, row.count),
                |b| b,
            ),
            duration(row.busy_ns),
            or_unknown(row.bytes_per_second, |rate| {
                format!("{}/s", number::bytes(rate as u64))
            }),
            mean(row.durations.mean_ns),
            duration(row.durations.p99_ns),
            duration(row.durations.max_ns),
        ]);
    }
    let aside = all_written(findings).map_or(String::new(), |bytes| format!("{bytes} written"));
    let mut blocks = vec![
        Block::Heading("Transfers".into(), aside),
        Block::Table(table),
    ];
    if *findings.transfer_unknown_bytes_count > 0 {
        let text = format!(
            "{} of unknown size are not in the bytes.",
            number::count_of(
                *findings.transfer_unknown_bytes_count,
                "transfer",
                "transfers"
            )
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks
}

//! Makes the section on transfers (copies and fills by the GPU): a row for each kind, with the bytes that it wrote.

use super::{count, duration, mean, or_unknown};
use crate::document::{Block, Table, Text};
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

/// Makes the section; none without transfers.
pub(crate) fn blocks(findings: &Findings) -> Vec<Block> {
    if findings.transfers.is_empty() {
        return Vec::new();
    }
    let aside = all_written(findings).map_or(String::new(), |bytes| format!("{bytes} written"));
    let mut blocks = Table::with_rows(&findings.transfers)
        .text("transfer", |row| row.kind.as_str())
        .number("count", |row| count(row.count))
        .number("bytes", |row| {
            let bytes = written(row.bytes, row.unknown_bytes_count, row.count);
            or_unknown(bytes, |bytes| bytes)
        })
        .number("busy", |row| duration(row.busy_ns))
        .number("rate", |row| {
            let bytes = row.bytes_per_second.map(|rate| number::bytes(rate as u64));
            or_unknown(bytes, |bytes| format!("{bytes}/s"))
        })
        .number("mean", |row| mean(row.durations.mean_ns))
        .number("p99", |row| duration(row.durations.p99_ns))
        .spare(2)
        .number("max", |row| duration(row.durations.max_ns))
        .spare(1)
        .under("Transfers", aside);
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

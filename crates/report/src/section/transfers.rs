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
            let bytes = row.bytes.unwrap_or(0);
            let bytes = written(bytes, row.unknown_bytes_count, row.count);
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
    let gpus = findings
        .devices
        .iter()
        .filter(|device| device.busy_ns > Some(0));
    if gpus.count() > 1 {
        let text = "busy: time in which one of them ran on any GPU; rate: of one GPU, the mean of those that copied; mean, p99 and max: of \
                    single transfers.";
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks.extend(page_moves(findings));
    blocks
}

/// Says what moves of managed memory's pages took, and what to do about them; `None` where there are none.
fn page_moves(findings: &Findings) -> Option<Block> {
    let moves = || findings.transfers.iter().filter_map(|row| row.page_moves);
    let moved: u64 = moves().map(|moves| moves.count).sum();
    let bytes = moves().fold(0u64, |sum, moves| sum.saturating_add(moves.bytes));
    let beside_ns: i64 = moves().map(|moves| moves.beside_kernels_ns).sum();
    let waited = match beside_ns {
        0 => String::new(),
        ns => format!(
            ", {} of it while kernels ran, which may have waited for the pages",
            number::duration(ns)
        ),
    };
    let busy_ns: i64 = moves().map(|moves| moves.busy_ns).sum();
    let text = format!(
        "Managed memory: {} of pages moved {} in {}{waited}. To move less, prefetch the memory or keep it where it is used.",
        number::count_of(moved, "move", "moves"),
        number::bytes(bytes),
        number::duration(busy_ns),
    );
    (moved > 0).then(|| Block::Sentence(Text::new().and(text)))
}

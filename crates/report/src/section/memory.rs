//! Makes the section on device memory.

use super::{Places, count, or_unknown};
use crate::document::{Block, Column, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_timeline::vocabulary::UNKNOWN_DEVICE;

pub(crate) fn blocks(findings: &Findings, places: Places) -> Vec<Block> {
    if findings.memory.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new([
        Column::text("memory"),
        Column::number("peak"),
        Column::number("of"),
        Column::number("at"),
        Column::number("allocated in all"),
        Column::number("allocations").spare(1),
        Column::number("live at end").spare(2),
    ]);
    for row in &findings.memory {
        let name = match row.heap {
            Some(heap) => format!("  heap {heap}"),
            None => match findings.devices.get(row.device as usize) {
                Some(device) => device.name.clone(),
                None => UNKNOWN_DEVICE.to_owned(),
            },
        };
        table.row([
            name.into(),
            Text::new().strong(number::bytes(row.peak_bytes)),
            or_unknown(row.heap_bytes, number::bytes),
            or_unknown(row.peak_at_ns, |ns| places.at(ns)),
            number::bytes(row.total_bytes).into(),
            count(row.allocation_count),
            number::bytes(row.live_bytes).into(),
        ]);
    }
    let mut blocks = vec![
        Block::Heading("Device memory".into(), "as the program allocated it".into()),
        Block::Table(table),
    ];
    let unmatched: u64 = findings
        .memory
        .iter()
        .filter(|row| row.heap.is_none())
        .map(|row| row.unmatched_free_count)
        .sum();
    if unmatched > 0 {
        let text = format!(
            "{} of memory whose allocation is not in the trace: the figures may lack that.",
            number::count_of(unmatched, "free", "frees")
        );
        blocks.push(Block::Sentence(Text::new().faint(text)));
    }
    blocks
}

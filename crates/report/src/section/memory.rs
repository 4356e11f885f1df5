//! Makes the section on device memory: a row for each device, and one for each of its heaps, with the peak and the
//! sum of what was allocated.

use super::{Places, count, or_unknown};
use crate::document::{Block, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::memory_timeline::MemoryRow;
use gapscope_timeline::vocabulary::UNKNOWN_DEVICE;

/// Makes the section; none where no memory was allocated.
pub(crate) fn blocks(findings: &Findings, places: Places) -> Vec<Block> {
    if findings.memory.is_empty() {
        return Vec::new();
    }
    let name = |row: &MemoryRow| match row.heap {
        Some(heap) => format!("  heap {heap}"),
        None => match findings.devices.get(row.device as usize) {
            Some(device) => device.name.clone(),
            None => UNKNOWN_DEVICE.to_owned(),
        },
    };
    let mut blocks = Table::with_rows(&findings.memory)
        .text("memory", name)
        .number("peak", |row| {
            Text::new().strong(number::bytes(row.peak_bytes))
        })
        .number("of", |row| or_unknown(row.heap_bytes, number::bytes))
        .number("at", |row| or_unknown(row.peak_at_ns, |ns| places.at(ns)))
        .number("allocated in all", |row| number::bytes(row.total_bytes))
        .number("allocations", |row| count(row.allocation_count))
        .spare(1)
        .number("live at end", |row| number::bytes(row.live_bytes))
        .spare(2)
        .under("Device memory", "as the program allocated it");
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

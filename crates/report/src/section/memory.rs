//! Makes the section on device memory: a row for each device, and one for each of its heaps, with the peak and the sum
//! of what was allocated; then, where the history of the program's own allocator is in the trace, who holds its memory
//! at the peak.

use super::{Places, count, or_unknown, rest};
use crate::document::{Block, Table, Text};
use crate::number;
use gapscope_analysis::Findings;
use gapscope_analysis::memory_owners::{AllocatorPeak, MemoryOwner};
use gapscope_analysis::memory_timeline::MemoryRow;
use gapscope_timeline::vocabulary::UNKNOWN_DEVICE;

/// Makes the section; none where no memory was allocated.
pub(crate) fn blocks(findings: &Findings, top: usize, places: Places) -> Vec<Block> {
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
    for row in &findings.memory {
        if let Some(peak) = &row.allocator {
            blocks.push(allocator_sentence(&name(row), peak, places));
            blocks.extend(owners(&row.owners, top));
            if row.owners.iter().any(|owner| owner.is_before_history) {
                let text = "Some blocks are older than the allocator's history: whether more memory was held before it began is not known.";
                blocks.push(Block::Sentence(Text::new().faint(text)));
            }
        }
    }
    blocks
}

/// Says how much the allocator's blocks took at their peak, and what was reserved beyond.
fn allocator_sentence(device: &str, peak: &AllocatorPeak, places: Places) -> Block {
    let at = match peak.at_ns {
        Some(at_ns) => format!(" at {}", places.at(at_ns)),
        None => " before its history began".to_owned(),
    };
    let blocks = number::count_of(peak.block_count, "block", "blocks");
    let text = Text::new()
        .and(format!(
            "The program's own allocator gave out the most memory on {device}"
        ))
        .and(at)
        .and(": ")
        .strong(number::bytes(peak.bytes))
        .and(format!(" in {blocks}; "));
    Block::Sentence(match (peak.reserved_bytes, peak.unused_bytes) {
        (Some(reserved), Some(unused)) => text
            .and(format!(
                "it had reserved {}, of which ",
                number::bytes(reserved)
            ))
            .strong(number::bytes(unused))
            .and(" were not used (rounding, free blocks that it keeps, and holes)."),
        _ => text.and("what it had reserved is unknown."),
    })
}

/// Makes the table of who holds the memory at the peak.
fn owners(owners: &[MemoryOwner], top: usize) -> Vec<Block> {
    let shown = &owners[..owners.len().min(top)];
    let line = |owner: &MemoryOwner| match (&owner.line, &owner.operation, owner.is_before_history)
    {
        (Some(line), ..) => line.clone(),
        (None, Some(operation), _) => operation.clone(),
        (None, None, true) => "allocated before the history began".to_owned(),
        (None, None, false) => "unknown".to_owned(),
    };
    let table = Table::with_rows(shown)
        .text("held at the peak by", line)
        .number("memory", |owner| number::bytes(owner.bytes))
        .number("share", |owner| number::share(owner.share))
        .number("blocks", |owner| count(owner.block_count))
        .spare(1)
        .text("phase", |owner| {
            owner.phase.map_or("", |phase| phase.as_str()).to_owned()
        })
        .text("label", |owner| owner.label.clone().unwrap_or_default())
        .build();
    let mut blocks = vec![Block::Table(table)];
    rest(&mut blocks, owners.len(), shown.len(), "owners");
    blocks
}

//! Splits the memory that a launch reaches into cells, each with the hash that it must have after the launch.

use gapscope_capture::cuda::CudaCapture;
use gapscope_capture::model::MemoryId;
use gapscope_capture::{Hash, pieces};

use crate::known::KnownHashes;
use crate::plan::Stage;
use crate::transfer::Range;

/// A piece of memory that is compared after a launch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    pub range: Range,
    /// The hash after the launch; `None`: the piece is as it was before.
    pub changed: Option<Hash>,
}

/// Returns the hashes of the pieces that a launch changed when it was captured.
pub fn changed(stage: &Stage<'_>) -> KnownHashes {
    let mut changed = KnownHashes::default();
    for outcome in &stage.outcomes {
        let places = pieces(outcome.offset, outcome.bytes);
        for ((offset, bytes), hash) in places.zip(&outcome.hashes) {
            changed.insert(outcome.memory, offset, bytes, *hash);
        }
    }
    changed
}

/// Returns the cells of a launch in order. Together they are all memory that the launch reaches, or that an outcome names.
pub fn cells(capture: &CudaCapture, stage: &Stage<'_>) -> Vec<Cell> {
    let changed = changed(stage);
    let mut memories = stage.launch.reached.clone();
    memories.extend(stage.outcomes.iter().map(|outcome| outcome.memory));
    memories.sort_unstable();
    memories.dedup();
    let mut all = Vec::new();
    let mut of_outcomes = changed.all().peekable();
    for memory in memories {
        let size = capture
            .memories
            .get(&memory)
            .map_or(0, |memory| memory.bytes);
        let mut at = 0;
        while let Some((_, offset, bytes, hash)) = of_outcomes.next_if(|(of, ..)| *of == memory) {
            unchanged(&mut all, memory, at, offset);
            all.push(Cell {
                range: Range {
                    memory,
                    offset,
                    bytes,
                },
                changed: Some(hash),
            });
            at = offset + bytes;
        }
        unchanged(&mut all, memory, at, size);
    }
    all
}

/// Adds cells for the bytes between two outcomes.
fn unchanged(all: &mut Vec<Cell>, memory: MemoryId, from: u64, to: u64) {
    let between = pieces(from, to.saturating_sub(from));
    all.extend(between.map(|(offset, bytes)| Cell {
        range: Range {
            memory,
            offset,
            bytes,
        },
        changed: None,
    }));
}

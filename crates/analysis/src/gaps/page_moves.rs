//! Finds the next submitted work after each move of managed memory's pages. The driver makes such moves where the host
//! or a kernel touches pages, so that nothing submits them, and the gap before one lasts until the next submitted work.

use gapscope_timeline::{Timeline, Work, WorkKind};
use std::collections::HashMap;

/// The next submitted work of the same GPU after each move of pages.
pub(super) struct PageMoves {
    /// By the move's row in `transfers`.
    launched: HashMap<usize, Work>,
}

impl PageMoves {
    pub(super) fn new(timeline: &Timeline) -> PageMoves {
        let mut launched = HashMap::new();
        let rows = timeline.trace.tables.transfers.queue.len();
        if (0..rows).any(|row| timeline.is_page_move(row)) {
            for gpu in &timeline.gpus {
                let mut moves = Vec::new();
                for work in gpu.works.iter() {
                    if work.kind() == WorkKind::Transfer && timeline.is_page_move(work.row()) {
                        moves.push(work.row());
                    } else {
                        launched.extend(moves.drain(..).map(|row| (row, work)));
                    }
                }
            }
        }
        PageMoves { launched }
    }

    /// Returns the next submitted work after a piece of work that is a move of pages; `None` for other work and where
    /// nothing follows.
    pub(super) fn launched_after(&self, work: &Work) -> Option<&Work> {
        match work.kind() {
            WorkKind::Transfer => self.launched.get(&work.row()),
            _ => None,
        }
    }
}

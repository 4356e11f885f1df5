//! Orders passes among the dispatches of their command buffer, and says which passes become rows of work.

use crate::kernel_profile::contents::ProfileContents;
use crate::kernel_profile::rows::PassRow;
use crate::kernel_profile::{CommandBufferId, Sampling};
use rustc_hash::{FxHashMap, FxHashSet};

/// The position of a pass in its command buffer. An empty pass has the first dispatch of the next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PassOrder {
    first_dispatch: u32,
    /// The order in which passes were recorded, for those with the same first dispatch.
    sequence: u64,
}

impl PassOrder {
    pub fn new(row: &PassRow) -> PassOrder {
        PassOrder {
            first_dispatch: row.entry.first_dispatch,
            sequence: row.sequence,
        }
    }
}

/// The passes that become rows of work, in order. If only passes are timed, these are all passes but those whose only
/// dispatch has the pass's time, because the dispatch has the row.
#[derive(Default)]
pub(super) struct PassesAsWork(FxHashMap<CommandBufferId, Vec<PassOrder>>);

impl PassesAsWork {
    /// Chooses the passes that become rows; none unless only passes are timed.
    pub fn collect(contents: &ProfileContents) -> PassesAsWork {
        let mut work = PassesAsWork::default();
        if contents.info.sampling != Sampling::Pass {
            return work;
        }
        let merged = &contents.merged;
        let timed = merged.dispatches.iter();
        let timed = timed.filter(|dispatch| dispatch.duration_ns().is_some());
        let timed: FxHashSet<_> = timed
            .filter_map(|d| Some((d.command_buffer?, d.dispatch_index)))
            .collect();
        for row in &merged.passes {
            let entry = &row.entry;
            let Some(id) = entry.command_buffer else {
                continue;
            };
            if entry.dispatches != 1 || !timed.contains(&(id, entry.first_dispatch)) {
                work.0.entry(id).or_default().push(PassOrder::new(row));
            }
        }
        for passes in work.0.values_mut() {
            passes.sort_unstable();
        }
        work
    }

    /// Returns the passes of a command buffer that are work, in order.
    fn passes(&self, command_buffer: CommandBufferId) -> &[PassOrder] {
        self.0.get(&command_buffer).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of passes of the command buffer that are work before this one; `None` if it is no work
    /// itself.
    pub fn index(&self, command_buffer: CommandBufferId, row: &PassRow) -> Option<u32> {
        let index = self
            .passes(command_buffer)
            .binary_search(&PassOrder::new(row));
        index.ok().map(|index| index as u32)
    }

    /// Returns the number of passes of the command buffer that are work before a dispatch.
    pub fn before_dispatch(&self, command_buffer: CommandBufferId, dispatch_index: u32) -> u32 {
        let passes = self.passes(command_buffer);
        passes.partition_point(|pass| pass.first_dispatch <= dispatch_index) as u32
    }
}

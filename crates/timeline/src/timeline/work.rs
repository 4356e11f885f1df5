//! The type of a piece of work: an interval in which a GPU ran something, and the table row that it stands for.

use crate::intervals::Interval;

/// A piece of work with known times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// The time in which the work ran.
    pub interval: Interval,
    /// The row of the work's command buffer, or [`NONE`](gapscope_trace::lookup::NONE).
    pub command_buffer: u32,
    /// The row with the kind of its table, as [`Work::source`] packs them.
    source: u32,
}

/// The table that a piece of work is a row of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// The work is a row of the table `dispatches`.
    Dispatch,
    /// The work is a row of the table `transfers`.
    Transfer,
    /// The work is a row of the table `opaque_work`: it is timed as a whole, such as a render pass.
    Opaque,
    /// The work is a row of the table `command_buffers`.
    CommandBuffer,
}

impl WorkKind {
    /// The number of kinds.
    pub(super) const COUNT: usize = 4;
}

/// The number of bits of `Work::source` that hold the row. The other two bits hold the kind. No table has 2^30 rows
/// in memory.
const ROW_BITS: u32 = 30;

impl Work {
    pub(super) fn new(interval: Interval, command_buffer: u32, kind: WorkKind, row: usize) -> Work {
        let source = Work::source(kind as u32, row as u32);
        Work::from_source(interval, command_buffer, source)
    }

    /// Makes a piece of work whose row and kind [`Work::source`] has packed.
    #[inline]
    pub(super) fn from_source(interval: Interval, command_buffer: u32, source: u32) -> Work {
        Work {
            interval,
            command_buffer,
            source,
        }
    }

    /// Packs a row and the kind of its table (the number of a [`WorkKind`]).
    #[inline]
    pub(super) fn source(kind: u32, row: u32) -> u32 {
        kind << ROW_BITS | (row & ((1 << ROW_BITS) - 1))
    }

    /// Returns the kind of table that the work is a row of.
    #[inline]
    pub fn kind(&self) -> WorkKind {
        match self.source >> ROW_BITS {
            0 => WorkKind::Dispatch,
            1 => WorkKind::Transfer,
            2 => WorkKind::Opaque,
            _ => WorkKind::CommandBuffer,
        }
    }

    /// Returns the work's row in the table of its kind.
    #[inline]
    pub fn row(&self) -> usize {
        (self.source & ((1 << ROW_BITS) - 1)) as usize
    }
}

//! Pieces of work.

use crate::intervals::Interval;
use gapscope_trace::manifest::{Device, DeviceLimits};

/// A physical GPU and its work.
#[derive(Debug, Default)]
pub struct Gpu {
    /// Rows of its devices in the manifest.
    pub devices: Vec<usize>,
    /// Its work by start.
    pub works: Vec<Work>,
    pub(super) work_window: Option<Interval>,
    /// The longest that a piece of its work took.
    pub(super) longest_ns: i64,
}

impl Gpu {
    /// From the start of its first work to the end of its last.
    pub fn work_window(&self) -> Option<Interval> {
        self.work_window
    }

    /// What it can do, of `rows` of the manifest: a program may use it through an interface that tells more and one that tells less.
    pub(crate) fn limits<'rows>(&self, rows: &'rows [Device]) -> Option<&'rows DeviceLimits> {
        let all = (self.devices.iter()).filter_map(|row| rows[*row].limits.as_ref());
        all.min_by_key(|limits| {
            (
                limits.multiprocessors.is_none(),
                limits.compute_capability.is_none(),
            )
        })
    }

    /// Counts a piece of work, in order of start.
    #[inline]
    pub(super) fn reach(&mut self, work: Interval) {
        self.longest_ns = self.longest_ns.max(work.length_ns());
        let window = self.work_window.get_or_insert(work);
        window.end_ns = window.end_ns.max(work.end_ns);
    }
}

/// A piece of work with known times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// When it ran.
    pub interval: Interval,
    /// Row of its command buffer, or [`NONE`](gapscope_trace::lookup::NONE).
    pub(crate) command_buffer: u32,
    source: u32,
}

/// The table that a piece of work is a row of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// `dispatches`.
    Dispatch,
    /// `transfers`.
    Transfer,
    /// `opaque_work`.
    Opaque,
    /// `command_buffers`.
    CommandBuffer,
}

/// Two bits of [`Work::source`] say the table, the others the row: no table has 2^30 rows in memory.
const ROW_BITS: u32 = 30;

impl Work {
    pub(crate) fn new(interval: Interval, command_buffer: u32, kind: WorkKind, row: usize) -> Work {
        Work {
            interval,
            command_buffer,
            source: ((kind as u32) << ROW_BITS) | (row as u32 & ((1 << ROW_BITS) - 1)),
        }
    }

    /// The table that it is a row of.
    #[inline]
    pub fn kind(&self) -> WorkKind {
        match self.source >> ROW_BITS {
            0 => WorkKind::Dispatch,
            1 => WorkKind::Transfer,
            2 => WorkKind::Opaque,
            _ => WorkKind::CommandBuffer,
        }
    }

    /// The row.
    #[inline]
    pub fn row(&self) -> usize {
        (self.source & ((1 << ROW_BITS) - 1)) as usize
    }
}

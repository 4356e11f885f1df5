//! Pieces of work.

use super::works::Works;
use crate::intervals::{Busy, Interval};
use gapscope_trace::manifest::{Device, DeviceLimits};

/// A physical GPU and its work.
#[derive(Debug, Default)]
pub struct Gpu {
    /// Rows of its devices in the manifest.
    pub devices: Vec<usize>,
    /// Its work by start.
    pub works: Works,
    pub(super) reach: Reach,
}

/// How far the work of a GPU reaches.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reach {
    /// From the start of the first to the end of the last.
    pub(super) window: Option<Interval>,
    /// The longest that a piece took.
    pub(super) longest_ns: i64,
    /// Some of it is in no command buffer.
    pub(super) has_launched: bool,
    busy: Busy,
}

impl Reach {
    /// Adds a piece of work, in order of start.
    #[inline]
    pub(super) fn add(&mut self, work: Interval) {
        self.longest_ns = self.longest_ns.max(work.length_ns());
        let window = self.window.get_or_insert(work);
        window.end_ns = window.end_ns.max(work.end_ns);
        self.busy.add(work);
    }

    /// Time in which it ran something.
    pub(crate) fn busy_ns(&self) -> i64 {
        self.busy.length_ns
    }
}

impl Gpu {
    /// From the start of its first work to the end of its last.
    pub fn work_window(&self) -> Option<Interval> {
        self.reach.window
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

    /// Time in which it ran something.
    pub(crate) fn busy_ns(&self) -> i64 {
        self.reach.busy_ns()
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

impl WorkKind {
    /// How many there are.
    pub(super) const COUNT: usize = 4;
}

/// Two bits of `Work::source` say the table, the others the row: no table has 2^30 rows in memory.
const ROW_BITS: u32 = 30;

impl Work {
    pub(crate) fn new(interval: Interval, command_buffer: u32, kind: WorkKind, row: usize) -> Work {
        let source = Work::source(kind as u32, row as u32);
        Work::of_source(interval, command_buffer, source)
    }

    #[inline]
    pub(super) fn of_source(interval: Interval, command_buffer: u32, source: u32) -> Work {
        Work {
            interval,
            command_buffer,
            source,
        }
    }

    /// A row of the table of a kind.
    #[inline]
    pub(super) fn source(kind: u32, row: u32) -> u32 {
        kind << ROW_BITS | (row & ((1 << ROW_BITS) - 1))
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

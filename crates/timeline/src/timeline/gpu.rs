//! The work of one GPU.

use super::works::Works;
use crate::intervals::{Busy, Interval};
use gapscope_trace::manifest::{Device, DeviceProperties};

/// A physical GPU and its work.
#[derive(Debug, Default)]
pub struct Gpu {
    /// Rows of its devices in the manifest.
    pub devices: Vec<usize>,
    /// Its work by start.
    pub works: Works,
    pub(super) extent: WorkExtent,
}

/// What is added up of the work of a GPU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WorkExtent {
    /// From the start of the first work to the end of the last.
    pub(super) window: Option<Interval>,
    /// Length of the longest piece.
    pub(super) longest_ns: i64,
    /// Some of the work is in no command buffer.
    pub(super) has_launched: bool,
    busy: Busy,
}

impl WorkExtent {
    /// Adds a piece of work. Pieces come in order of start.
    #[inline]
    pub(super) fn add(&mut self, work: Interval) {
        self.longest_ns = self.longest_ns.max(work.length_ns());
        let window = self.window.get_or_insert(work);
        window.end_ns = window.end_ns.max(work.end_ns);
        self.busy.add(work);
    }

    /// Returns the time in which the GPU ran something.
    pub(super) fn busy_ns(&self) -> i64 {
        self.busy.length_ns
    }
}

impl Gpu {
    /// Returns the time from the start of its first work to the end of its last.
    pub fn work_window(&self) -> Option<Interval> {
        self.extent.window
    }

    /// Returns what the GPU can do, from the manifest's `rows`. A program may use a GPU through several interfaces: the one
    /// that tells most counts.
    pub fn limits<'rows>(&self, rows: &'rows [Device]) -> Option<&'rows DeviceProperties> {
        let all = (self.devices.iter()).filter_map(|row| rows[*row].limits.as_ref());
        all.min_by_key(|limits| {
            (
                limits.multiprocessors.is_none(),
                limits.compute_capability.is_none(),
            )
        })
    }

    /// Returns the time in which the GPU ran something.
    pub fn busy_ns(&self) -> i64 {
        self.extent.busy_ns()
    }
}

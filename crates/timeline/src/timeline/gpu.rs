//! The type of one GPU with its work, and the sums over that work: its extent in time and its busy time.

use super::works::Works;
use crate::intervals::{Busy, Interval};
use gapscope_trace::manifest::{Device, DeviceProperties};

/// A physical GPU and its work.
#[derive(Debug, Default)]
pub struct Gpu {
    /// The rows of the GPU's devices in the manifest. Several devices are one GPU where programs use it through
    /// several interfaces.
    pub devices: Vec<usize>,
    /// The GPU's work in order of start.
    pub works: Works,
    pub(super) extent: WorkExtent,
}

/// The sums over the work of a GPU.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WorkExtent {
    /// The interval from the start of the first work to the end of the last; `None` without work.
    pub(super) window: Option<Interval>,
    /// The length of the longest piece of work.
    pub(super) longest_ns: i64,
    /// True where some of the work is in no command buffer.
    pub(super) has_launched: bool,
    /// The length of the union of the work.
    busy: Busy,
}

impl WorkExtent {
    /// Adds a piece of work. Pieces must come in order of start.
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
    /// Returns the interval from the start of the GPU's first work to the end of its last.
    pub fn work_window(&self) -> Option<Interval> {
        self.extent.window
    }

    /// Returns the properties of the GPU, such as its size, from the manifest's `rows`. A program may use a GPU
    /// through several interfaces: the device row that tells the most properties counts.
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

//! The sums over the work of one side and of one evaluation, to which `measure.rs` adds the work of a trace piece by
//! piece. A comparison has two sides, such as two labels.

use super::figure::Figure;
use crate::copy_sizes::CopySizes;
use gapscope_timeline::intervals::{Busy, Interval};
use gapscope_timeline::launch_size::LaunchSize;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::TransferKind;
use std::collections::{BTreeMap, HashMap};

/// The sums over some pieces of work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    pub dispatches: u64,
    /// The workgroups and threads of the dispatches.
    pub size: LaunchSize,
    pub transfers: u64,
    /// The number of pieces that are timed as a whole, whatever runs inside them.
    pub wholes: u64,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub transfer_bytes: Option<u64>,
    pub busy: Busy,
    /// The interval from the first start to the last end.
    pub hull: Option<Interval>,
    /// The number of pieces whose times are not known.
    pub untimed: u64,
}

impl Default for Sum {
    fn default() -> Sum {
        Sum {
            dispatches: 0,
            size: LaunchSize::default(),
            transfers: 0,
            wholes: 0,
            read_bytes: Some(0),
            written_bytes: Some(0),
            transfer_bytes: Some(0),
            busy: Busy::default(),
            hull: None,
            untimed: 0,
        }
    }
}

/// Adds bytes to a sum. A sum with unknown bytes in it is unknown.
pub(super) fn add(sum: &mut Option<u64>, bytes: Option<u64>) {
    *sum = sum.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
}

impl Sum {
    /// Adds the time of a piece of work. Pieces come in order of start.
    pub(super) fn ran(&mut self, interval: Interval) {
        self.busy.add(interval);
        self.hull = Some(self.hull.map_or(interval, |hull| hull.hull(interval)));
    }
}

/// The sums over one evaluation: the work in one instance of a side's label.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Evaluation {
    pub sum: Sum,
    /// A command buffer that several evaluations share counts for each in part.
    pub command_buffers: f64,
    /// Submissions, counted likewise.
    pub submissions: f64,
    /// The time until the next evaluation of its side starts; `None` where other work begins in between, or the next
    /// evaluation begins before the end of this one.
    pub pace_ns: Option<i64>,
    /// True where some of the work may belong to another evaluation.
    pub unclear: bool,
}

impl Evaluation {
    /// Returns true where nothing was launched in the evaluation.
    pub(super) fn is_empty(&self) -> bool {
        let nothing = self.sum.dispatches + self.sum.transfers == 0 && self.sum.hull.is_none();
        nothing && self.command_buffers + self.submissions == 0.0
    }

    /// Returns a figure of the evaluation's own work, where it is known.
    pub(super) fn figure(&self, figure: Figure) -> Option<f64> {
        let sum = &self.sum;
        let hull = sum.hull.filter(|_| sum.untimed == 0);
        match figure {
            Figure::Dispatches => Some(sum.dispatches as f64),
            Figure::Workgroups => sum.size.groups.map(|count| count as f64),
            Figure::Threads => sum.size.threads.map(|count| count as f64),
            Figure::CommandBuffers => Some(self.command_buffers),
            Figure::Submissions => Some(self.submissions),
            Figure::BoundBytes => Some(sum.read_bytes?.saturating_add(sum.written_bytes?) as f64),
            Figure::TransferBytes => Some(sum.transfer_bytes? as f64),
            Figure::GpuBusy => hull.map(|_| sum.busy.length_ns as f64),
            Figure::Wall => hull.map(|hull| hull.length_ns() as f64),
            Figure::Pace => self.pace_ns.map(|ns| ns as f64),
        }
    }
}

/// The sums of one side.
#[derive(Debug, Clone)]
pub(super) struct Side {
    pub sum: Sum,
    /// The sum of the lengths of those stretches of this side's work that no work of the other side interrupts.
    pub wall_ns: i64,
    /// The index of the evaluation that started last; `None` once other work has begun since.
    pub last: Option<u32>,
    pub command_buffers: SharedHolders,
    pub submissions: SharedHolders,
    /// The runs of each kernel, by the kernel's row.
    pub kernels: HashMap<u32, Runs>,
    /// The sizes of single transfers.
    pub copies: CopySizes<TransferKind>,
}

impl Default for Side {
    fn default() -> Side {
        Side {
            sum: Sum::default(),
            wall_ns: 0,
            last: None,
            command_buffers: SharedHolders::default(),
            submissions: SharedHolders::default(),
            kernels: HashMap::new(),
            copies: Some(BTreeMap::new()),
        }
    }
}

/// The runs of a kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Runs {
    pub count: u64,
    /// The sum of the durations; `None` where one of them is not known.
    pub total_ns: Option<i64>,
    /// The workgroups and threads of all runs.
    pub size: LaunchSize,
}

impl Runs {
    /// Adds a run, whose time is `None` where it is not known.
    pub(super) fn add(&mut self, ns: Option<i64>, size: LaunchSize) {
        self.size.add(size);
        let before_ns = match self.count {
            0 => Some(0),
            _ => self.total_ns,
        };
        self.count += 1;
        self.total_ns = before_ns.zip(ns).map(|(sum, ns)| sum.saturating_add(ns));
    }

    /// Returns the sum of two: the total is unknown if one of them is.
    pub(super) fn plus(self, other: Runs) -> Runs {
        let mut size = self.size;
        size.add(other.size);
        Runs {
            size,
            count: self.count + other.count,
            total_ns: (self.total_ns.zip(other.total_ns)).map(|(a, b)| a.saturating_add(b)),
        }
    }
}

/// The command buffers or submissions that hold work of a side: all are added, then counted once.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedHolders {
    /// The row of a command buffer or submission, and the index of an evaluation whose work it holds or [`NONE`].
    pub pairs: Vec<(u32, u32)>,
    /// True where some work is in a command buffer or submission that the trace does not have.
    pub unknown: bool,
    /// The number of distinct rows, 0 before they are counted.
    count: u64,
}

impl SharedHolders {
    /// Notes that a command buffer or submission holds work of an evaluation, or of none ([`NONE`]).
    pub(super) fn add(&mut self, row: u32, evaluation: u32) {
        if row != NONE && self.pairs.last() != Some(&(row, evaluation)) {
            self.pairs.push((row, evaluation));
        }
    }

    /// Returns the number of distinct rows, or `None` where it is unknown.
    pub(super) fn known(&self) -> Option<u64> {
        (!self.unknown).then_some(self.count)
    }

    /// Counts the distinct rows, once all have been added. `share` receives, for each evaluation, the part of a row
    /// that belongs to the evaluation.
    pub(super) fn count(&mut self, mut share: impl FnMut(u32, f64)) {
        self.pairs.sort_unstable();
        self.pairs.dedup();
        for holders in self.pairs.chunk_by(|a, b| a.0 == b.0) {
            self.count += 1;
            let known = holders.iter().filter(|(_, evaluation)| *evaluation != NONE);
            let part = 1.0 / known.clone().count() as f64;
            known.for_each(|(_, evaluation)| share(*evaluation, part));
        }
    }
}

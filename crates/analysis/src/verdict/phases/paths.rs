//! Adds up, by slice and by label, what the critical path of the program runs through and what computing waited for.
//!
//! A walk over the critical path visits its moments; the [`PathSum`]s of slices and labels come out. Of several devices the joint path
//! counts, with the waits of the device that waited the longest.

use super::walk::{SLICES, Walk, bounds_ns};
use super::{PhaseLabels, Sum};
use crate::critical_path::{CriticalPath, NAMES, PathVisitor, Wait, visited_paths};
use crate::gaps::waits::WaitOrder;
use crate::slices::piece_of_slices;
use gapscope_timeline::busy::{self, DeviceBusy};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::{Timeline, Work};
use gapscope_trace::ids::QueueId;

/// The critical path of a slice or a label, by the kinds of work in [`NAMES`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PathSum {
    pub(super) path_ns: [i64; NAMES.len()],
    pub(super) waited_ns: [i64; NAMES.len()],
    pub(super) inferred_ns: [i64; NAMES.len()],
    pub(super) is_remote: [bool; NAMES.len()],
    /// The time in which kernels that communicate waited for another device.
    pub(super) peers_ns: i64,
}

impl PathSum {
    pub(super) fn plus(self, other: PathSum) -> PathSum {
        let sums = |a: [i64; NAMES.len()], b: [i64; NAMES.len()]| {
            std::array::from_fn(|kind| a[kind].saturating_add(b[kind]))
        };
        PathSum {
            path_ns: sums(self.path_ns, other.path_ns),
            waited_ns: sums(self.waited_ns, other.waited_ns),
            inferred_ns: sums(self.inferred_ns, other.inferred_ns),
            is_remote: std::array::from_fn(|kind| self.is_remote[kind] || other.is_remote[kind]),
            peers_ns: self.peers_ns.saturating_add(other.peers_ns),
        }
    }

    /// Returns the paths as the verdict takes them.
    pub(super) fn rows(&self, window_ns: i64) -> Vec<CriticalPath> {
        (0..NAMES.len())
            .filter(|kind| self.path_ns[*kind] > 0 && self.waited_ns[*kind] > 0)
            .map(|kind| CriticalPath {
                device: 0,
                what: NAMES[kind],
                queue_id: QueueId::default(),
                queue: String::new(),
                queue_device: None,
                is_remote: self.is_remote[kind],
                path_ns: self.path_ns[kind],
                waited_ns: self.waited_ns[kind],
                inferred_ns: self.inferred_ns[kind],
                wait_count: 0,
                window_ns,
            })
            .collect()
    }
}

/// The sums while the path is walked.
struct Paths<'a> {
    timeline: &'a Timeline<'a>,
    labels: &'a PhaseLabels,
    bounds: &'a [i64],
    window: Interval,
    slices: Vec<PathSum>,
    by_label: Vec<PathSum>,
    /// The waits of each device by slice and by label: of several devices one will count.
    waits: Vec<(u32, Waits)>,
}

/// The waits of a device: for each kind its total, then its sums by slice and by label.
#[derive(Default)]
struct Waits {
    total_ns: [i64; NAMES.len()],
    slices: Vec<PathSum>,
    by_label: Vec<PathSum>,
}

impl PathVisitor for Paths<'_> {
    fn on_path(&mut self, kind: usize, work: &Work, ran: Interval) {
        let ran = ran.intersection(self.window);
        let label = self.labels.index(self.timeline, work);
        self.by_label[label].path_ns[kind] += ran.length_ns();
        let slices = &mut self.slices;
        piece_of_slices(self.bounds, ran, |slice, piece| {
            slices[slice].path_ns[kind] += piece.length_ns();
        });
    }

    fn waited(&mut self, device: u32, wait: &Wait) {
        let waited = wait.interval.intersection(self.window);
        let label = self.labels.index(self.timeline, &wait.after);
        let at = match self.waits.iter().position(|(of, _)| *of == device) {
            Some(at) => at,
            None => {
                let waits = Waits {
                    slices: vec![PathSum::default(); SLICES],
                    by_label: vec![PathSum::default(); self.by_label.len()],
                    ..Waits::default()
                };
                self.waits.push((device, waits));
                self.waits.len() - 1
            }
        };
        let waits = &mut self.waits[at].1;
        let kind = wait.kind;
        let add = |sum: &mut PathSum, ns: i64| {
            sum.waited_ns[kind] += ns;
            sum.inferred_ns[kind] += if wait.is_inferred { ns } else { 0 };
            sum.is_remote[kind] |= wait.is_remote;
        };
        waits.total_ns[kind] += waited.length_ns();
        add(&mut waits.by_label[label], waited.length_ns());
        let slices = &mut waits.slices;
        piece_of_slices(self.bounds, waited, |slice, piece| {
            add(&mut slices[slice], piece.length_ns());
        });
    }

    fn waited_for_peer(&mut self, kernel: &Work, waited: Interval) {
        let waited = waited.intersection(self.window);
        let label = self.labels.index(self.timeline, kernel);
        self.by_label[label].peers_ns += waited.length_ns();
        let slices = &mut self.slices;
        piece_of_slices(self.bounds, waited, |slice, piece| {
            slices[slice].peers_ns += piece.length_ns();
        });
    }
}

/// Adds what the critical path says to the sums of slices and labels.
pub(super) fn add(
    timeline: &Timeline,
    order: &WaitOrder,
    window: Interval,
    labels: &PhaseLabels,
    walk: &mut Walk,
) {
    let (slices, by_label) = (&mut walk.slices, &mut walk.labels);
    let bounds = &bounds_ns(window, SLICES);
    let busy = Sum::new(slices.iter()).busy;
    if busy.communication_ns == 0 && busy.transfer_ns == 0 {
        return;
    }
    let devices: Vec<DeviceBusy> = busy::busy(timeline, Some(window));
    let mut paths = Paths {
        timeline,
        labels,
        bounds,
        window,
        slices: vec![PathSum::default(); slices.len()],
        by_label: vec![PathSum::default(); by_label.len()],
        waits: Vec::new(),
    };
    visited_paths(timeline, order, &devices, window, &mut paths);
    for kind in 0..NAMES.len() {
        // The device whose waits count for the whole counts in each part, so that the sums of the parts are those of the whole.
        let most = paths
            .waits
            .iter()
            .max_by_key(|(_, waits)| waits.total_ns[kind]);
        let Some((_, most)) = most else {
            continue;
        };
        let only = |sum: &mut PathSum, waits: &PathSum| {
            sum.waited_ns[kind] = waits.waited_ns[kind];
            sum.inferred_ns[kind] = waits.inferred_ns[kind];
            sum.is_remote[kind] = waits.is_remote[kind];
        };
        for (sum, waits) in paths.slices.iter_mut().zip(&most.slices) {
            only(sum, waits);
        }
        for (sum, waits) in paths.by_label.iter_mut().zip(&most.by_label) {
            only(sum, waits);
        }
    }
    for (sum, path) in slices.iter_mut().zip(paths.slices) {
        sum.path = path;
    }
    for (sum, path) in by_label.iter_mut().zip(paths.by_label) {
        sum.path = path;
    }
}

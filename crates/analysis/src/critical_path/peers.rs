//! Finds, for each kernel that communicates, the kernel of another device of the trace for which it waited: that of the device
//! which came last to the same collective or message.
//!
//! A kernel of a collective, or a receive, runs while it waits: nothing moves before the last device has come. Kernels of one kind
//! on several devices count as one operation where they end together: within [`HANDOVER_NS`] and the clocks' error, and messages
//! also within [`MESSAGE_END_SHARE`] of the kernel's length, as a sender may be done before its receiver. Times alone show this,
//! so that the verdict's sentence says so.
//!
//! A timeline goes in; out come pairs of work.

use gapscope_timeline::collectives::{SEND_RECV, kind_of};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::thresholds::{HANDOVER_NS, MESSAGE_END_SHARE};
use gapscope_timeline::{Timeline, WorkKind};
use std::collections::BTreeMap;

/// A piece of work: its device, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct WorkIndex {
    pub(super) gpu: u32,
    pub(super) at: u32,
}

/// So many kernels that end near another are looked at.
const NEAR: usize = 64;

/// The kernels that waited for another device.
#[derive(Debug, Default)]
pub(super) struct Peers {
    /// Pairs of a kernel and the one that came last, sorted by the first.
    pairs: Vec<(WorkIndex, WorkIndex)>,
    /// The times in which kernels of each device waited, by the index of the device, in order of start; each with the index of the
    /// kernel there.
    waits: Vec<Vec<(Interval, u32)>>,
    /// True where some kernel has one of another device that belongs to the same operation.
    has_operations: bool,
}

/// A kernel that communicates.
#[derive(Debug, Clone, Copy)]
struct Kernel {
    place: WorkIndex,
    interval: Interval,
}

impl Peers {
    /// Finds the pairs of a timeline, whose clocks agree within an error.
    pub(super) fn new(timeline: &Timeline, error_ns: i64) -> Peers {
        let names = &timeline.trace.tables.kernels.name;
        let kinds: Vec<Option<&'static str>> = names.iter().map(|name| kind_of(name)).collect();
        let mut peers = Peers {
            pairs: Vec::new(),
            waits: vec![Vec::new(); timeline.gpus.len()],
            has_operations: false,
        };
        if kinds.iter().all(Option::is_none) {
            return peers;
        }
        let mut by_kind: BTreeMap<&str, Vec<Kernel>> = BTreeMap::new();
        for (device, gpu) in timeline.gpus.iter().zip(0u32..) {
            for (work, at) in device.works.iter().zip(0u32..) {
                let kernel = (work.kind() == WorkKind::Dispatch)
                    .then(|| timeline.kernel_row(work.row()))
                    .flatten();
                if let Some(kind) = kernel.and_then(|row| kinds[row]) {
                    by_kind.entry(kind).or_default().push(Kernel {
                        place: WorkIndex { gpu, at },
                        interval: work.interval,
                    });
                }
            }
        }
        for (kind, mut kernels) in by_kind {
            kernels.sort_unstable_by_key(|kernel| kernel.interval.end_ns);
            for at in 0..kernels.len() {
                let kernel = kernels[at];
                let others = operation(&kernels, at, kind == SEND_RECV, error_ns);
                peers.has_operations |= !others.is_empty();
                if let Some(last) = last_arrival(&kernel, &others, error_ns) {
                    peers.pairs.push((kernel.place, last.place));
                    let wait = Interval::new(kernel.interval.start_ns, last.interval.start_ns);
                    peers.waits[kernel.place.gpu as usize].push((wait, kernel.place.at));
                }
            }
        }
        peers.pairs.sort_unstable();
        for waits in &mut peers.waits {
            waits.sort_unstable();
        }
        peers
    }

    /// Returns the kernel for which another kernel waited.
    pub(super) fn awaited(&self, place: WorkIndex) -> Option<WorkIndex> {
        let at = self
            .pairs
            .binary_search_by_key(&place, |pair| pair.0)
            .ok()?;
        Some(self.pairs[at].1)
    }

    /// Returns true where kernels of several devices belong to one operation.
    pub(super) fn has_operations(&self) -> bool {
        self.has_operations
    }

    /// Returns the times in which kernels of a device waited.
    pub(super) fn waits(&self, gpu: u32) -> &[(Interval, u32)] {
        &self.waits[gpu as usize]
    }
}

/// Returns the kernels of other devices that belong to the operation of the kernel at an index. The kernels are of one kind, in order
/// of their ends.
fn operation(kernels: &[Kernel], at: usize, is_message: bool, error_ns: i64) -> Vec<Kernel> {
    let kernel = kernels[at];
    let end_ns = kernel.interval.end_ns;
    let apart_ns = |other: &Kernel| other.interval.end_ns.abs_diff(end_ns);
    let share_ns = (MESSAGE_END_SHARE * kernel.interval.length_ns() as f64) as i64;
    let within_ns = HANDOVER_NS.max(if is_message { share_ns } else { 0 });
    let within_ns = within_ns.saturating_add(error_ns).unsigned_abs();
    let is_near = |other: &&Kernel| apart_ns(other) <= within_ns;
    let before = kernels[..at].iter().rev().take(NEAR).take_while(is_near);
    let after = kernels[at + 1..].iter().take(NEAR).take_while(is_near);
    let near = before.chain(after);
    let mut operation: Vec<Kernel> = Vec::new();
    for other in near.filter(|other| other.place.gpu != kernel.place.gpu) {
        // A message has two sides; a collective has one kernel on each device.
        let same = |kept: &&mut Kernel| is_message || kept.place.gpu == other.place.gpu;
        match operation.iter_mut().find(same) {
            Some(kept) if apart_ns(other) < apart_ns(kept) => *kept = *other,
            Some(_) => {}
            None => operation.push(*other),
        }
    }
    operation
}

/// Returns the kernel of an operation that came last, where a kernel waited for it.
fn last_arrival(kernel: &Kernel, others: &[Kernel], error_ns: i64) -> Option<Kernel> {
    let Interval { start_ns, end_ns } = kernel.interval;
    let came_later = |other: &&Kernel| {
        let arrived_ns = other.interval.start_ns;
        arrived_ns > start_ns.saturating_add(error_ns) && arrived_ns < end_ns
    };
    let later = others.iter().copied().filter(|other| came_later(&other));
    later.max_by_key(|other| other.interval.start_ns)
}

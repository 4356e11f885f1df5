//! Takes the work of a trace in the order in which it is read, and returns it in order of time, packed, with its
//! sums. Packed work is in the blocks of [`Works`]; the sums are those of each GPU and of each command buffer. Work
//! is ordered by start, and work with one start by `order`.

use super::gpu::WorkExtent;
use super::nearly_sorted;
use super::times::Ran;
use super::work::{Work, WorkKind};
use super::works::{BLOCK, Works};
use gapscope_trace::ids::CommandBufferId;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::vec::IntoIter;

/// The number of pieces of work that are sorted at once.
const SORTED_AT_ONCE: usize = 1 << 14;

/// The number of pieces that wait for work that belongs before them and is read later: rows are in the order of
/// submissions, of a few queues at a time.
const KEPT_WAITING: usize = 64 * BLOCK;

/// The number of waiting pieces beyond which some are packed. It is above [`KEPT_WAITING`], because the kept pieces
/// are moved then.
const MAX_WAITING: usize = 4 * KEPT_WAITING;

/// The number of sorted batches that may wait for the packing thread. The reader waits while there are as many.
const MAX_QUEUED_BATCHES: usize = 8;

/// The work of all GPUs while it is read. Sorted batches are packed and added up on a thread of its own.
pub(super) struct Packing<'scope, 'a> {
    /// The ids of all command buffers.
    ids: &'a [CommandBufferId],
    /// The work of each GPU that was not sent yet.
    incoming: Vec<Incoming>,
    /// The way to the packing thread: the index of a GPU with a sorted batch of its work.
    sorted: SyncSender<(usize, Vec<Work>)>,
    /// The packing thread, which returns the packed work.
    packed: ScopedJoinHandle<'scope, Packed>,
}

/// The work of all GPUs, packed in order, with its sums.
#[derive(Default)]
pub(super) struct Packed {
    /// The work and its sums by GPU. GPUs at the end that ran nothing are missing.
    pub gpus: Vec<(Works, WorkExtent)>,
    /// The times of each command buffer's work, by row.
    pub command_buffers: Vec<Ran>,
}

/// The work of a GPU that has not been sent to the packing thread.
#[derive(Default)]
struct Incoming {
    /// The work in the order in which it was read.
    unsorted: Vec<Work>,
    /// The transfers and opaque work, known before the dispatches, in order; `None` for a GPU that was found later.
    known: Option<Peekable<IntoIter<Work>>>,
}

impl<'scope, 'a: 'scope> Packing<'scope, 'a> {
    /// Starts the packing thread. `ids` are those of all command buffers.
    pub fn new<'env>(
        scope: &'scope Scope<'scope, 'env>,
        ids: &'a [CommandBufferId],
    ) -> Packing<'scope, 'a> {
        let (sorted, receiver) = sync_channel(MAX_QUEUED_BATCHES);
        Packing {
            ids,
            incoming: Vec::new(),
            sorted,
            packed: scope.spawn(move || Packer::new(ids).pack_all(receiver)),
        }
    }

    /// Adds the transfers and opaque work of each GPU, which are known before the dispatches, in any order.
    pub fn add_known(&mut self, known: Vec<Vec<Work>>) {
        let incoming = known.into_iter().map(|mut known| {
            sort(self.ids, &mut known);
            Incoming {
                unsorted: Vec::new(),
                known: Some(known.into_iter().peekable()),
            }
        });
        self.incoming = incoming.collect();
    }

    /// Adds a piece of work.
    #[inline]
    pub fn push(&mut self, gpu: usize, work: Work) {
        match self.incoming.get_mut(gpu) {
            Some(incoming) if incoming.unsorted.len() < SORTED_AT_ONCE => {
                incoming.unsorted.push(work);
            }
            _ => {
                self.send(gpu);
                self.incoming[gpu].unsorted.push(work);
            }
        }
    }

    /// Sorts the unsorted work, with the known work that belongs among it, and sends it to the packing thread.
    #[cold]
    fn send(&mut self, gpu: usize) {
        if gpu >= self.incoming.len() {
            self.incoming.resize_with(gpu + 1, Incoming::default);
        }
        let incoming = &mut self.incoming[gpu];
        let mut batch = std::mem::take(&mut incoming.unsorted);
        let Some(last_ns) = batch.iter().map(|work| work.interval.start_ns).max() else {
            return;
        };
        let until = |work: &Work| work.interval.start_ns <= last_ns;
        if let Some(known) = &mut incoming.known {
            batch.extend(std::iter::from_fn(|| known.next_if(until)));
        }
        sort(self.ids, &mut batch);
        // Sending fails only where the packing thread has panicked, and the panic is resumed when the thread is
        // joined.
        let _ = self.sorted.send((gpu, batch));
    }

    /// Waits for the packing thread and returns all work.
    pub fn finish(mut self) -> Packed {
        for gpu in 0..self.incoming.len() {
            self.send(gpu);
            let known = self.incoming[gpu].known.take();
            let _ = self
                .sorted
                .send((gpu, known.into_iter().flatten().collect()));
        }
        drop(self.sorted);
        let packed = self.packed.join();
        packed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// The packing thread's state: it merges sorted batches, packs them and adds them up.
struct Packer<'a> {
    /// The ids of all command buffers.
    ids: &'a [CommandBufferId],
    gpus: Vec<GpuPacker>,
    command_buffers: Vec<Ran>,
}

/// The work of a GPU, of which only the latest pieces are not packed yet.
#[derive(Default)]
struct GpuPacker {
    packed: Works,
    extent: WorkExtent,
    /// The piece that was packed last.
    passed: Option<Work>,
    /// The pieces that are not packed yet, in order.
    waiting: Vec<Work>,
    /// The pieces that came after their place had been passed.
    late: Vec<Work>,
}

impl<'a> Packer<'a> {
    fn new(ids: &'a [CommandBufferId]) -> Packer<'a> {
        Packer {
            ids,
            gpus: Vec::new(),
            command_buffers: vec![Ran::default(); ids.len()],
        }
    }

    /// Packs all batches until the sender is dropped, and returns the packed work.
    fn pack_all(mut self, sorted: Receiver<(usize, Vec<Work>)>) -> Packed {
        for (gpu, sorted) in sorted {
            if gpu >= self.gpus.len() {
                self.gpus.resize_with(gpu + 1, GpuPacker::default);
            }
            self.add(gpu, sorted);
        }
        (0..self.gpus.len()).for_each(|gpu| self.pack(gpu, 0));
        if self.gpus.iter().any(|gpu| !gpu.late.is_empty()) {
            self.place_late();
        }
        let gpus = self.gpus.into_iter().map(|gpu| (gpu.packed, gpu.extent));
        Packed {
            gpus: gpus.collect(),
            command_buffers: self.command_buffers,
        }
    }

    /// Merges a sorted batch of a GPU into the waiting work.
    fn add(&mut self, gpu: usize, mut sorted: Vec<Work>) {
        let ids = self.ids;
        let packer = &mut self.gpus[gpu];
        if let Some(passed) = &packer.passed {
            let late = sorted.partition_point(|work| order(ids, work, passed).is_lt());
            packer.late.extend(sorted.drain(..late));
        }
        let Some(first) = sorted.first() else { return };
        let waiting = &mut packer.waiting;
        let from = waiting.partition_point(|work| order(ids, work, first).is_lt());
        let overlaps = from < waiting.len();
        waiting.append(&mut sorted);
        if overlaps {
            // The sort is fast, since it finds two parts that are in order.
            waiting[from..].sort_by(|a, b| order(ids, a, b));
        }
        if waiting.len() >= MAX_WAITING {
            self.pack(gpu, KEPT_WAITING);
        }
    }

    /// Packs the waiting work except for its last `kept` pieces, and a few more where a block would not be full.
    fn pack(&mut self, gpu: usize, kept: usize) {
        let packer = &mut self.gpus[gpu];
        let mut ready = packer.waiting.len().saturating_sub(kept);
        if kept > 0 {
            ready -= ready % BLOCK;
        }
        let ready = packer.waiting.drain(..ready);
        let works = ready.as_slice();
        packer.packed.extend(works);
        packer.passed = works.last().copied().or(packer.passed);
        for work in works {
            sum(&mut packer.extent, &mut self.command_buffers, work);
        }
    }

    /// Puts late work in its place, and adds all work up again.
    #[cold]
    fn place_late(&mut self) {
        self.command_buffers.fill(Ran::default());
        for gpu in &mut self.gpus {
            let late = std::mem::take(&mut gpu.late);
            if !late.is_empty() {
                let packed = std::mem::take(&mut gpu.packed);
                gpu.packed = merged(self.ids, packed, late);
            }
            gpu.extent = WorkExtent::default();
            for work in &gpu.packed {
                sum(&mut gpu.extent, &mut self.command_buffers, &work);
            }
        }
    }
}

/// Adds a piece of work to the sums. Pieces come in order of start.
#[inline]
fn sum(extent: &mut WorkExtent, command_buffers: &mut [Ran], work: &Work) {
    extent.add(work.interval);
    match command_buffers.get_mut(work.command_buffer as usize) {
        Some(ran) => ran.add(work.interval, work.kind() != WorkKind::CommandBuffer),
        None => extent.has_launched = true,
    }
}

/// Returns the packed work with the late work at its places, block by block, so that memory does not hold both in
/// full.
fn merged(ids: &[CommandBufferId], packed: Works, mut late: Vec<Work>) -> Works {
    sort(ids, &mut late);
    let mut late = late.into_iter().peekable();
    let mut works = Works::default();
    let mut waiting = Vec::with_capacity(4 * BLOCK);
    for block in packed.into_blocks() {
        for work in &block {
            waiting.extend(std::iter::from_fn(|| {
                late.next_if(|late| order(ids, late, &work).is_lt())
            }));
            waiting.push(work);
        }
        let whole = waiting.len() - waiting.len() % BLOCK;
        works.extend(&waiting[..whole]);
        waiting.drain(..whole);
    }
    waiting.extend(late);
    works.extend(&waiting);
    works
}

/// Orders work by start, and work that starts together by everything else.
#[inline]
fn order(ids: &[CommandBufferId], a: &Work, b: &Work) -> Ordering {
    let starts = a.interval.start_ns.cmp(&b.interval.start_ns);
    starts.then_with(|| ties(ids, a, b))
}

/// Orders work that starts together: by end, command buffer's id, kind and row.
#[cold]
fn ties(ids: &[CommandBufferId], a: &Work, b: &Work) -> Ordering {
    let id = |work: &Work| ids.get(work.command_buffer as usize);
    let rest = |work: &Work| (work.interval.end_ns, id(work), work.kind(), work.row());
    rest(a).cmp(&rest(b))
}

/// Sorts work as [`order`] does.
fn sort(ids: &[CommandBufferId], works: &mut [Work]) {
    let start_ns = |work: &Work| work.interval.start_ns;
    nearly_sorted::sort(works, start_ns, |a, b| ties(ids, a, b));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intervals::{Interval, union_length_ns};
    use proptest::prelude::*;

    /// The number of command buffers; work with a higher row is in none.
    const BUFFERS: u64 = 7;

    fn work(start_ns: i64, row: usize, kind: WorkKind) -> Work {
        let interval = Interval::new(start_ns, start_ns + 5 + row as i64 % 3);
        Work::new(interval, (row as u64 % (BUFFERS + 1)) as u32, kind, row)
    }

    /// Compares packing with sorting all of the work.
    fn check(starts: impl Iterator<Item = i64>, known: impl Iterator<Item = i64>) {
        let ids: Vec<_> = (0..BUFFERS).map(|at| CommandBufferId(9 - at)).collect();
        let numbered = |kind| move |(row, start_ns)| work(start_ns, row, kind);
        let known = known.enumerate().map(numbered(WorkKind::Transfer));
        let known: Vec<Work> = known.collect();
        let rows = starts.enumerate().map(numbered(WorkKind::Dispatch));
        let rows: Vec<Work> = rows.collect();
        // The second GPU is found late.
        let of_second = |work: &Work| work.command_buffer % 5 == 4;
        let packed = std::thread::scope(|scope| {
            let first = known.iter().copied().filter(|work| !of_second(work));
            let mut packing = Packing::new(scope, &ids);
            packing.add_known(vec![first.collect()]);
            for work in &rows {
                packing.push(usize::from(of_second(work)), *work);
            }
            packing.finish()
        });
        let mut ran = vec![Vec::new(); ids.len()];
        for gpu in 0..2 {
            let known = known.iter().filter(|work| gpu == 0 && !of_second(work));
            let mine = rows.iter().filter(|work| of_second(work) == (gpu == 1));
            let mut expected: Vec<Work> = known.chain(mine).copied().collect();
            expected.sort_by(|a, b| order(&ids, a, b));
            for work in &expected {
                if let Some(ran) = ran.get_mut(work.command_buffer as usize) {
                    ran.push(work.interval);
                }
            }
            match packed.gpus.get(gpu) {
                None => assert!(expected.is_empty()),
                Some((works, extent)) => {
                    assert!(works.iter().eq(expected.iter().copied()));
                    let intervals = || expected.iter().map(|work| work.interval);
                    assert_eq!(extent.busy_ns(), union_length_ns(intervals()));
                    assert_eq!(extent.window, intervals().reduce(Interval::hull));
                    let longest_ns = intervals().map(Interval::length_ns).max();
                    assert_eq!(extent.longest_ns, longest_ns.unwrap_or(0));
                }
            }
        }
        for (mut intervals, ran) in ran.into_iter().zip(&packed.command_buffers) {
            let sum_ns: i64 = intervals.iter().map(|i: &Interval| i.length_ns()).sum();
            assert_eq!(ran.sum_ns, sum_ns);
            let first_ns = intervals.iter().map(|i| i.start_ns).min();
            assert_eq!(ran.first_start_ns, first_ns.unwrap_or(i64::MAX));
            let last_ns = intervals.iter().map(|i| i.end_ns).max();
            assert_eq!(ran.last_end_ns, last_ns.unwrap_or(i64::MIN));
            intervals.sort();
            assert_eq!(ran.union_ns, union_length_ns(intervals));
        }
    }

    #[test]
    fn work_is_in_order_however_late_it_comes() {
        let count = 3 * MAX_WAITING as i64 + 777;
        let scattered = |at: i64| (at.wrapping_mul(2_654_435_761) >> 7) & 0xffff_ffff;
        let others = || (0..count).step_by(91);
        check(0..count, others());
        check((0..count).map(|at| at / 3), others());
        check((0..count).rev(), others());
        for reach in [
            50,
            3000,
            KEPT_WAITING as i64,
            5 * KEPT_WAITING as i64,
            i64::MAX,
        ] {
            check((0..count).map(|at| at + scattered(at) % reach), others());
        }
        // Queue after queue.
        check((0..count).map(|at| at % (count / 3)), others());
        check(std::iter::empty(), others());
        check(0..count, std::iter::empty());
        check(std::iter::empty(), std::iter::empty());
    }

    proptest! {
        #[test]
        fn any_work_is_put_in_order(starts in prop::collection::vec(0i64..50, 0..200), known in prop::collection::vec(0i64..50, 0..20)) {
            check(starts.into_iter(), known.into_iter());
        }
    }
}

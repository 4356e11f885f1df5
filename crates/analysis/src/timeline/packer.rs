//! Putting work in order while it is read.

use super::nearly_sorted;
use super::times::Ran;
use super::work::{Reach, Work, WorkKind};
use super::works::{BLOCK, Works};
use gapscope_trace::ids::CommandBufferId;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::vec::IntoIter;

/// Pieces of work that are sorted at once.
const FRESH: usize = 1 << 14;

/// Pieces that wait for what belongs before them and comes later: rows are in the order of submissions, of a few queues at a time.
const WAITING: usize = 64 * BLOCK;

/// As many wait before some are packed: those that go on to wait are moved.
const FULL: usize = 4 * WAITING;

/// Sorted pieces of [`FRESH`] that are on their way.
const ON_THE_WAY: usize = 8;

/// The work of all GPUs while it comes. What is put in order is packed and added up on a thread of its own.
pub(super) struct Packing<'scope, 'a> {
    /// Of all command buffers.
    ids: &'a [CommandBufferId],
    /// By GPU.
    coming: Vec<Coming>,
    sorted: SyncSender<(usize, Vec<Work>)>,
    packed: ScopedJoinHandle<'scope, Packed>,
}

/// All work, in order.
#[derive(Default)]
pub(super) struct Packed {
    /// By GPU; of those at the end that ran nothing there is none.
    pub gpus: Vec<(Works, Reach)>,
    /// What ran of each command buffer, by row.
    pub command_buffers: Vec<Ran>,
}

/// The work of a GPU that comes next.
#[derive(Default)]
struct Coming {
    /// As it came.
    fresh: Vec<Work>,
    /// What is known beforehand, in order.
    known: Option<Peekable<IntoIter<Work>>>,
}

impl<'scope, 'a: 'scope> Packing<'scope, 'a> {
    /// `ids`: of all command buffers.
    pub fn begin<'env>(
        scope: &'scope Scope<'scope, 'env>,
        ids: &'a [CommandBufferId],
    ) -> Packing<'scope, 'a> {
        let (sorted, receiver) = sync_channel(ON_THE_WAY);
        Packing {
            ids,
            coming: Vec::new(),
            sorted,
            packed: scope.spawn(move || Packer::new(ids).pack_all(receiver)),
        }
    }

    /// Adds work that is there before all other, of each GPU, in any order.
    pub fn know(&mut self, known: Vec<Vec<Work>>) {
        let coming = known.into_iter().map(|mut known| {
            sort(self.ids, &mut known);
            Coming {
                fresh: Vec::new(),
                known: Some(known.into_iter().peekable()),
            }
        });
        self.coming = coming.collect();
    }

    /// Adds a piece of work.
    #[inline]
    pub fn push(&mut self, gpu: usize, work: Work) {
        match self.coming.get_mut(gpu) {
            Some(coming) if coming.fresh.len() < FRESH => coming.fresh.push(work),
            _ => {
                self.send(gpu);
                self.coming[gpu].fresh.push(work);
            }
        }
    }

    /// Sends what is fresh on, and what is known to belong among it.
    #[cold]
    fn send(&mut self, gpu: usize) {
        if gpu >= self.coming.len() {
            self.coming.resize_with(gpu + 1, Coming::default);
        }
        let coming = &mut self.coming[gpu];
        let mut fresh = std::mem::take(&mut coming.fresh);
        let Some(last_ns) = fresh.iter().map(|work| work.interval.start_ns).max() else {
            return;
        };
        let until = |work: &Work| work.interval.start_ns <= last_ns;
        if let Some(known) = &mut coming.known {
            fresh.extend(std::iter::from_fn(|| known.next_if(until)));
        }
        sort(self.ids, &mut fresh);
        // Where nobody takes it, the other thread has panicked, which is found when it is joined.
        let _ = self.sorted.send((gpu, fresh));
    }

    /// All work.
    pub fn finish(mut self) -> Packed {
        for gpu in 0..self.coming.len() {
            self.send(gpu);
            let known = self.coming[gpu].known.take();
            let _ = self
                .sorted
                .send((gpu, known.into_iter().flatten().collect()));
        }
        drop(self.sorted);
        let packed = self.packed.join();
        packed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Merges sorted work, packs and adds it up.
struct Packer<'a> {
    ids: &'a [CommandBufferId],
    gpus: Vec<OfGpu>,
    command_buffers: Vec<Ran>,
}

/// The work of a GPU, of which only what came last is not packed yet.
#[derive(Default)]
struct OfGpu {
    packed: Works,
    reach: Reach,
    /// The last piece that is packed.
    passed: Option<Work>,
    /// In order.
    waiting: Vec<Work>,
    /// What came when its place had been passed.
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

    fn pack_all(mut self, sorted: Receiver<(usize, Vec<Work>)>) -> Packed {
        for (gpu, sorted) in sorted {
            if gpu >= self.gpus.len() {
                self.gpus.resize_with(gpu + 1, OfGpu::default);
            }
            self.add(gpu, sorted);
        }
        (0..self.gpus.len()).for_each(|gpu| self.pack(gpu, 0));
        if self.gpus.iter().any(|gpu| !gpu.late.is_empty()) {
            self.place_late();
        }
        let gpus = self.gpus.into_iter().map(|gpu| (gpu.packed, gpu.reach));
        Packed {
            gpus: gpus.collect(),
            command_buffers: self.command_buffers,
        }
    }

    /// Gives the next work of a GPU its place.
    fn add(&mut self, gpu: usize, mut sorted: Vec<Work>) {
        let ids = self.ids;
        let of = &mut self.gpus[gpu];
        if let Some(passed) = &of.passed {
            let late = sorted.partition_point(|work| order(ids, work, passed).is_lt());
            of.late.extend(sorted.drain(..late));
        }
        let Some(first) = sorted.first() else { return };
        let waiting = &mut of.waiting;
        let from = waiting.partition_point(|work| order(ids, work, first).is_lt());
        let overlaps = from < waiting.len();
        waiting.append(&mut sorted);
        if overlaps {
            // It finds that these are two parts in order.
            waiting[from..].sort_by(|a, b| order(ids, a, b));
        }
        if waiting.len() >= FULL {
            self.pack(gpu, WAITING);
        }
    }

    /// Packs what waits but for so many pieces, and some more where blocks would not be full.
    fn pack(&mut self, gpu: usize, kept: usize) {
        let of = &mut self.gpus[gpu];
        let mut ready = of.waiting.len().saturating_sub(kept);
        if kept > 0 {
            ready -= ready % BLOCK;
        }
        let ready = of.waiting.drain(..ready);
        let works = ready.as_slice();
        of.packed.extend(works);
        of.passed = works.last().copied().or(of.passed);
        for work in works {
            sum(&mut of.reach, &mut self.command_buffers, work);
        }
    }

    /// Puts what came late among the rest, and adds all up again.
    #[cold]
    fn place_late(&mut self) {
        self.command_buffers.fill(Ran::default());
        for gpu in &mut self.gpus {
            let late = std::mem::take(&mut gpu.late);
            if !late.is_empty() {
                let packed = std::mem::take(&mut gpu.packed);
                gpu.packed = merged(self.ids, packed, late);
            }
            gpu.reach = Reach::default();
            for work in &gpu.packed {
                sum(&mut gpu.reach, &mut self.command_buffers, &work);
            }
        }
    }
}

/// Adds a piece of work up, in order of start.
#[inline]
fn sum(reach: &mut Reach, command_buffers: &mut [Ran], work: &Work) {
    reach.add(work.interval);
    match command_buffers.get_mut(work.command_buffer as usize) {
        Some(ran) => ran.add(work.interval, work.kind() != WorkKind::CommandBuffer),
        None => reach.has_launched = true,
    }
}

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

/// The order of work: by start, and of what starts together by all else.
#[inline]
fn order(ids: &[CommandBufferId], a: &Work, b: &Work) -> Ordering {
    let starts = a.interval.start_ns.cmp(&b.interval.start_ns);
    starts.then_with(|| ties(ids, a, b))
}

#[cold]
fn ties(ids: &[CommandBufferId], a: &Work, b: &Work) -> Ordering {
    let id = |work: &Work| ids.get(work.command_buffer as usize);
    let rest = |work: &Work| (work.interval.end_ns, id(work), work.kind(), work.row());
    rest(a).cmp(&rest(b))
}

fn sort(ids: &[CommandBufferId], works: &mut [Work]) {
    let start_ns = |work: &Work| work.interval.start_ns;
    nearly_sorted::sort(works, start_ns, |a, b| ties(ids, a, b));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intervals::{Interval, union_length_ns};
    use proptest::prelude::*;

    const BUFFERS: u64 = 7;

    fn work(start_ns: i64, row: usize, kind: WorkKind) -> Work {
        let interval = Interval::new(start_ns, start_ns + 5 + row as i64 % 3);
        Work::new(interval, (row as u64 % (BUFFERS + 1)) as u32, kind, row)
    }

    /// The same as sorting all of it.
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
            let mut packing = Packing::begin(scope, &ids);
            packing.know(vec![first.collect()]);
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
                Some((works, reach)) => {
                    assert!(works.iter().eq(expected.iter().copied()));
                    let intervals = || expected.iter().map(|work| work.interval);
                    assert_eq!(reach.busy_ns(), union_length_ns(intervals()));
                    assert_eq!(reach.window, intervals().reduce(Interval::hull));
                    let longest_ns = intervals().map(Interval::length_ns).max();
                    assert_eq!(reach.longest_ns, longest_ns.unwrap_or(0));
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
        let count = 3 * FULL as i64 + 777;
        let scattered = |at: i64| (at.wrapping_mul(2_654_435_761) >> 7) & 0xffff_ffff;
        let others = || (0..count).step_by(91);
        check(0..count, others());
        check((0..count).map(|at| at / 3), others());
        check((0..count).rev(), others());
        for reach in [50, 3000, WAITING as i64, 5 * WAITING as i64, i64::MAX] {
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

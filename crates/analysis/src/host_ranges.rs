//! Lays out the ranges (of NVTX, an operator or a function of Python) of host threads: input is the table of markers, output
//! the ranges of each thread, each with the range around it.
//!
//! What this cannot know: code that no range marks.

use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::nearby;
use gapscope_trace::ids::LabelId;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::{MarkerScope, Markers};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A range of a thread. Its times are in the table of markers, since a program may have set ten million.
#[derive(Debug, Clone, Copy)]
struct HostRange {
    /// The range's row in the table of markers.
    row: u32,
    /// The index of the latest range before this one that goes on when this one starts, or [`NONE`].
    outer: u32,
}

/// The ranges of a thread in order of their start, the outer before the inner. A *place* is the index of a range.
#[derive(Debug)]
pub(crate) struct ThreadRanges<'a> {
    markers: &'a Markers,
    ranges: Vec<HostRange>,
}

/// The ranges of threads.
pub(crate) type RangesByThread<'a> = FxHashMap<HostThread, ThreadRanges<'a>>;

/// Returns the ranges of the threads that `takes` chooses. Those of a thread are in order of their start, the outer before
/// the inner; of equal ranges the first in the trace is the outer.
pub(crate) fn by_thread<'a>(
    timeline: &Timeline<'a>,
    takes: impl Fn(&HostThread) -> bool,
) -> RangesByThread<'a> {
    let markers = &timeline.trace.tables.markers;
    let mut threads = RangesByThread::default();
    // An analysis that does not read when markers began has no ranges.
    let timed = 0..markers.start_ns.len().min(markers.scope.len());
    for row in timed.filter(|row| markers.scope[*row] == MarkerScope::Thread) {
        let thread = HostThread::from_row(markers.process[row], markers.thread.at(row));
        let interval = interval(markers, row as u32);
        if let Some(thread) = thread
            && !interval.is_empty()
            && takes(&thread)
        {
            let of_thread = threads.entry(thread).or_insert_with(|| ThreadRanges {
                markers,
                ranges: Vec::new(),
            });
            of_thread.ranges.push(HostRange {
                row: row as u32,
                outer: NONE,
            });
        }
    }
    threads.values_mut().for_each(ThreadRanges::nest);
    threads
}

/// Returns the time of a row of the table of markers; it is empty where the time is not known.
#[inline]
fn interval(markers: &Markers, row: u32) -> Interval {
    let row = row as usize;
    let interval = Interval::from_row(markers.start_ns.at(row), markers.duration_ns.at(row));
    interval.unwrap_or_default()
}

impl ThreadRanges<'_> {
    /// Sorts the ranges of a thread and finds the range around each.
    fn nest(&mut self) {
        let markers = self.markers;
        let order = |range: &HostRange| {
            let Interval { start_ns, end_ns } = interval(markers, range.row);
            (start_ns, Reverse(end_ns))
        };
        // The sort is stable.
        nearby::sort_by_key(&mut self.ranges, order);
        // The open ranges, with their ends.
        let mut open: Vec<(u32, i64)> = Vec::new();
        for (place, range) in (0..).zip(&mut self.ranges) {
            let Interval { start_ns, end_ns } = interval(markers, range.row);
            while open.pop_if(|(_, end_ns)| *end_ns <= start_ns).is_some() {}
            range.outer = open.last().map_or(NONE, |(place, _)| *place);
            open.push((place, end_ns));
        }
    }

    /// Returns the number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the time of a range.
    #[inline]
    pub(crate) fn interval(&self, place: u32) -> Interval {
        interval(self.markers, self.ranges[place as usize].row)
    }

    /// Returns the id of a range's label.
    pub(crate) fn label(&self, place: u32) -> LabelId {
        self.markers.label[self.ranges[place as usize].row as usize]
    }

    /// Returns the place of the latest range before this one that goes on when this one starts, or [`NONE`].
    pub(crate) fn outer(&self, place: u32) -> u32 {
        self.ranges[place as usize].outer
    }

    /// Returns the number of ranges that had begun at a moment: the first ones.
    pub(crate) fn begun(&self, at_ns: i64) -> u32 {
        let has_begun = |range: &HostRange| interval(self.markers, range.row).start_ns <= at_ns;
        nearby::partition_point(&self.ranges, has_begun) as u32
    }

    /// Returns for how long of an interval a thread is in a range.
    pub(crate) fn covered_ns(&self, interval: Interval) -> i64 {
        let begun = self.begun(interval.start_ns);
        let open = self.outwards(begun.wrapping_sub(1));
        let open_until_ns = open.map(|place| self.interval(place).end_ns).max();
        let open_until_ns = open_until_ns.unwrap_or(i64::MIN);
        let mut until_ns = open_until_ns.clamp(interval.start_ns, interval.end_ns);
        let mut covered_ns = until_ns - interval.start_ns;
        for place in begun..self.len() as u32 {
            let range = self.interval(place);
            if range.start_ns >= interval.end_ns {
                break;
            }
            let end_ns = range.end_ns.min(interval.end_ns);
            if end_ns > until_ns {
                covered_ns += end_ns - range.start_ns.max(until_ns);
                until_ns = end_ns;
            }
        }
        covered_ns
    }

    /// Returns the indices of a range and of the ranges around it, from the inside out.
    pub(crate) fn outwards(&self, from: u32) -> impl Iterator<Item = u32> {
        let first = ((from as usize) < self.len()).then_some(from);
        std::iter::successors(first, |place| {
            let outer = self.outer(*place);
            (outer != NONE).then_some(outer)
        })
    }
}

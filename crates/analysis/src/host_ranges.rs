//! Lays out the ranges (of NVTX, an operator or a function of Python) of host threads: input is the table of markers, output
//! the ranges of each thread, each with the range around it.
//!
//! What this cannot know: code that no range marks.

use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::MarkerScope;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A range of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostRange {
    pub(crate) interval: Interval,
    /// Its row in the table of markers.
    pub(crate) row: u32,
    /// The index of the latest range before this one that goes on when this one starts, or [`NONE`].
    pub(crate) outer: u32,
}

/// The ranges of threads.
pub(crate) type RangesByThread = FxHashMap<HostThread, Vec<HostRange>>;

/// Returns the ranges of the threads that `takes` chooses. Those of a thread are in order of their start, the outer before
/// the inner; of equal ranges the first in the trace is the outer.
pub(crate) fn by_thread(
    timeline: &Timeline,
    takes: impl Fn(&HostThread) -> bool,
) -> RangesByThread {
    let markers = &timeline.trace.tables.markers;
    let mut threads = RangesByThread::default();
    // An analysis that does not read when markers began has no ranges.
    let timed = 0..markers.start_ns.len().min(markers.scope.len());
    for row in timed.filter(|row| markers.scope[*row] == MarkerScope::Thread) {
        let thread = HostThread::from_row(markers.process[row], markers.thread.at(row));
        let interval = Interval::from_row(markers.start_ns.at(row), markers.duration_ns.at(row));
        if let (Some(thread), Some(interval)) = (thread, interval)
            && !interval.is_empty()
            && takes(&thread)
        {
            threads.entry(thread).or_default().push(HostRange {
                interval,
                row: row as u32,
                outer: NONE,
            });
        }
    }
    threads.values_mut().for_each(|ranges| nest(ranges));
    threads
}

/// Sorts the ranges of a thread and finds the range around each.
fn nest(ranges: &mut [HostRange]) {
    // The sort is stable.
    ranges.sort_by_key(|range| (range.interval.start_ns, Reverse(range.interval.end_ns)));
    let mut open: Vec<u32> = Vec::new();
    for place in 0..ranges.len() {
        let start_ns = ranges[place].interval.start_ns;
        let is_over = |at: &u32| ranges[*at as usize].interval.end_ns <= start_ns;
        while open.pop_if(|at| is_over(at)).is_some() {}
        ranges[place].outer = open.last().copied().unwrap_or(NONE);
        open.push(place as u32);
    }
}

/// Returns for how long of an interval a thread is in a range.
pub(crate) fn covered_ns(ranges: &[HostRange], interval: Interval) -> i64 {
    let end_ns = |place: u32| ranges[place as usize].interval.end_ns;
    let begun = ranges.partition_point(|range| range.interval.start_ns <= interval.start_ns);
    let open = outwards(ranges, (begun as u32).wrapping_sub(1));
    let open_until_ns = open.map(end_ns).max().unwrap_or(i64::MIN);
    let mut until_ns = open_until_ns.clamp(interval.start_ns, interval.end_ns);
    let mut covered_ns = until_ns - interval.start_ns;
    for range in &ranges[begun..] {
        if range.interval.start_ns >= interval.end_ns {
            break;
        }
        let end_ns = range.interval.end_ns.min(interval.end_ns);
        if end_ns > until_ns {
            covered_ns += end_ns - range.interval.start_ns.max(until_ns);
            until_ns = end_ns;
        }
    }
    covered_ns
}

/// Returns the indices of a range and of the ranges around it, from the inside out.
pub(crate) fn outwards(ranges: &[HostRange], from: u32) -> impl Iterator<Item = u32> {
    let first = ((from as usize) < ranges.len()).then_some(from);
    std::iter::successors(first, |place| {
        let outer = ranges[*place as usize].outer;
        (outer != NONE).then_some(outer)
    })
}

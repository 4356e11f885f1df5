//! Finds the range (of NVTX, an operator or a function of Python) in which a host thread was at a moment: input is the table of
//! markers, output the texts of the ranges around that moment.
//!
//! What this cannot know: code that no range marks.

use gapscope_timeline::Timeline;
use gapscope_timeline::host::HostThread;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::lookup::NONE;
use gapscope_trace::tables::MarkerScope;
use std::cmp::Reverse;
use std::collections::HashMap;

/// The ranges of each host thread.
pub(super) struct HostRanges<'a> {
    timeline: &'a Timeline<'a>,
    threads: HashMap<HostThread, Vec<Range>>,
}

/// A row of the table of markers, and the place of the range around it among the ranges of its thread, or [`NONE`].
struct Range {
    row: u32,
    around: u32,
}

impl<'a> HostRanges<'a> {
    pub(super) fn new(timeline: &'a Timeline<'a>) -> HostRanges<'a> {
        let markers = &timeline.trace.tables.markers;
        let mut threads: HashMap<HostThread, Vec<Range>> = HashMap::new();
        // An analysis that does not read when markers began has no ranges.
        for row in 0..markers.start_ns.len().min(markers.scope.len()) {
            let thread = HostThread::from_row(markers.process[row], markers.thread.at(row));
            let is_range = markers.scope[row] == MarkerScope::Thread
                && markers.start_ns.at(row).is_some()
                && markers.duration_ns.at(row).is_some_and(|ns| ns > 0);
            if let Some(thread) = thread.filter(|_| is_range) {
                let ranges = threads.entry(thread).or_default();
                ranges.push(Range {
                    row: row as u32,
                    around: NONE,
                });
            }
        }
        let mut ranges = HostRanges {
            timeline,
            threads: HashMap::new(),
        };
        for of_thread in threads.values_mut() {
            of_thread.sort_by_cached_key(|range| {
                let Interval { start_ns, end_ns } = ranges.interval(range);
                (start_ns, Reverse(end_ns))
            });
            let mut open: Vec<u32> = Vec::new();
            for place in 0..of_thread.len() {
                let start_ns = ranges.interval(&of_thread[place]).start_ns;
                let is_over =
                    |at: &u32| ranges.interval(&of_thread[*at as usize]).end_ns <= start_ns;
                while open.pop_if(|at| is_over(at)).is_some() {}
                of_thread[place].around = open.last().copied().unwrap_or(NONE);
                open.push(place as u32);
            }
        }
        ranges.threads = threads;
        ranges
    }

    /// Returns the threads that have ranges.
    pub(super) fn threads(&self) -> impl Iterator<Item = HostThread> {
        self.threads.keys().copied()
    }

    fn interval(&self, range: &Range) -> Interval {
        let markers = &self.timeline.trace.tables.markers;
        let row = range.row as usize;
        let interval = Interval::from_row(markers.start_ns.at(row), markers.duration_ns.at(row));
        interval.unwrap_or(Interval::new(0, 0))
    }

    /// Returns the texts of the ranges in which a thread was at a moment, the innermost first.
    pub(super) fn texts_at(&self, thread: HostThread, at_ns: i64) -> impl Iterator<Item = &'a str> {
        let ranges = self.threads.get(&thread).map_or(&[][..], Vec::as_slice);
        let begun = ranges.partition_point(|range| self.interval(range).start_ns <= at_ns);
        let first = begun.checked_sub(1).map(|place| place as u32);
        let around = |place: &u32| {
            let around = ranges.get(*place as usize)?.around;
            (around != NONE).then_some(around)
        };
        let places = std::iter::successors(first, around);
        let covers = move |place: &u32| self.interval(&ranges[*place as usize]).contains(at_ns);
        let tables = &self.timeline.trace.tables;
        places.filter(covers).filter_map(move |place| {
            let label = tables.markers.label[ranges[place as usize].row as usize];
            let row = self.timeline.label_ids.get(label)?;
            Some(&*tables.labels.text[row])
        })
    }
}

//! Makes the index from which a trace is first drawn: its tracks (lines of the page, such as one for each queue), its
//! first and last time, and for each track the share of equal slices of time in which a row ran. A first pass over
//! all tables sorts rows by track and sums up their times (`TrackParts`); a second one, over each track, computes its
//! busy shares.

use crate::chunks::chunks;
use crate::protocol::BINS;
use crate::time_bins::TimeBins;
use crate::track::{DrawnTable, TrackId, WholeCommandBuffers};
use gapscope_timeline::intervals::Interval;
use gapscope_timeline::submit_calls::SubmitCalls;
use gapscope_trace::Trace;
use gapscope_trace::parallel::each;
use gapscope_trace::tables::HostCallKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// The rows of one track, and its busy share over time.
#[derive(Debug, Clone, PartialEq)]
pub struct TrackDensity {
    pub id: TrackId,
    /// Number of rows with known times.
    pub rows: u64,
    /// Number of rows without known times.
    pub untimed: u64,
    /// The kinds of the track's rows, where they are host calls.
    pub calls: CallKinds,
    /// The share of each slice in which a row ran, times 255: 0 where nothing ran, 255 where something ran all the time.
    pub busy: Vec<u8>,
    /// All rows of the track, in the order of their tables.
    pub places: Arc<[TableRows]>,
}

/// Rows of one table in their order, as ranges: most rows of a track are neighbours.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRows {
    pub source: DrawnTable,
    pub rows: Vec<Range<u32>>,
}

/// The kinds of host calls among some rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallKinds {
    /// There are no host calls.
    #[default]
    None,
    /// All are of one kind.
    Only(HostCallKind),
    Several,
}

impl CallKinds {
    /// Returns the kinds among the rows of both.
    #[inline]
    fn and(self, other: CallKinds) -> CallKinds {
        match (self, other) {
            (CallKinds::None, one) | (one, CallKinds::None) => one,
            (one, same) if one == same => one,
            _ => CallKinds::Several,
        }
    }
}

/// The tracks of a trace and the time that they cover.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DensityIndex {
    /// The tracks in the order of their ids.
    pub tracks: Vec<TrackDensity>,
    /// The first and last time that is drawn, the recording included.
    pub extent: Interval,
}

/// The rows of one track among a chunk of a table.
struct TrackPart {
    id: TrackId,
    source: DrawnTable,
    /// The rows as ranges, because most are neighbours.
    rows: Vec<Range<u32>>,
    untimed: u64,
    calls: CallKinds,
    times: TimeSummary,
}

impl TrackPart {
    /// Returns the part's rows, and leaves the part without them.
    fn places(&mut self) -> TableRows {
        let (source, rows) = (self.source, std::mem::take(&mut self.rows));
        TableRows { source, rows }
    }
}

/// A summary of the times of rows, from which a second pass knows their extent and order.
#[derive(Clone, Copy)]
struct TimeSummary {
    rows: u64,
    /// The first time and the last.
    extent: Interval,
    /// Start of the first row and of the last one in the table's order.
    first_ns: i64,
    last_ns: i64,
    /// Whether a row starts before a row that precedes it in the table.
    unordered: bool,
}

impl TimeSummary {
    /// The summary of no rows.
    const NONE: TimeSummary = TimeSummary {
        rows: 0,
        extent: Interval {
            start_ns: i64::MAX,
            end_ns: i64::MIN,
        },
        first_ns: i64::MAX,
        last_ns: i64::MIN,
        unordered: false,
    };

    /// Adds the next row.
    #[inline]
    fn add(&mut self, interval: Interval) {
        self.and(TimeSummary {
            rows: 1,
            extent: interval,
            first_ns: interval.start_ns,
            last_ns: interval.start_ns,
            unordered: false,
        });
    }

    /// Adds the summary of rows that follow in the table.
    #[inline]
    fn and(&mut self, behind: TimeSummary) {
        if behind.rows == 0 {
            return;
        }
        self.unordered |= behind.unordered || behind.first_ns < self.last_ns;
        self.first_ns = match self.rows {
            0 => behind.first_ns,
            _ => self.first_ns,
        };
        self.last_ns = behind.last_ns;
        self.extent = Interval {
            start_ns: self.extent.start_ns.min(behind.extent.start_ns),
            end_ns: self.extent.end_ns.max(behind.extent.end_ns),
        };
        self.rows += behind.rows;
    }
}

/// Collects the parts of a chunk of a table. Neighbours mostly belong to one track.
#[derive(Default)]
struct TrackParts {
    all: Vec<TrackPart>,
    /// The index in `all` of each track's part.
    places: FxHashMap<TrackId, usize>,
    /// The track of the previous row, with its index in `all`.
    last: Option<(TrackId, usize)>,
}

impl TrackParts {
    /// Sorts the rows of a chunk of the table `source` by track.
    fn collect(
        trace: &Trace,
        whole: &WholeCommandBuffers,
        calls: &SubmitCalls,
        source: DrawnTable,
        rows: Range<usize>,
    ) -> Vec<TrackPart> {
        let mut parts = TrackParts::default();
        for row in rows.filter(|row| source.is_drawn(trace, *row, calls)) {
            let part = parts.part(source.track(trace, row, whole), source);
            // No table has as many as 2^32 rows.
            let at = row as u32;
            match part.rows.last_mut().filter(|rows| rows.end == at) {
                Some(rows) => rows.end += 1,
                None => part.rows.push(at..at + 1),
            }
            match source.times(trace, row) {
                Some(interval) => part.times.add(interval),
                None => part.untimed += 1,
            }
            if let Some(call) = source.call(trace, row) {
                part.calls = part.calls.and(CallKinds::Only(call));
            }
        }
        parts.all
    }

    /// Returns the part of a track, which is added where it is new.
    #[inline]
    fn part(&mut self, id: TrackId, source: DrawnTable) -> &mut TrackPart {
        let place = match self.last {
            Some((last, place)) if last == id => place,
            _ => {
                let all = &mut self.all;
                let place = *self.places.entry(id).or_insert_with(|| {
                    all.push(TrackPart {
                        id,
                        source,
                        rows: Vec::new(),
                        untimed: 0,
                        calls: CallKinds::None,
                        times: TimeSummary::NONE,
                    });
                    all.len() - 1
                });
                self.last = Some((id, place));
                place
            }
        };
        &mut self.all[place]
    }
}

impl DensityIndex {
    /// Indexes a trace; `whole` has the command buffers that are drawn as work because the work inside has no times,
    /// and `calls` the host calls of submissions.
    pub fn new(trace: &Trace, whole: &WholeCommandBuffers, calls: &SubmitCalls) -> DensityIndex {
        let stretches = DrawnTable::ALL
            .into_iter()
            .flat_map(|source| chunks(source.rows(trace)).map(move |rows| (source, rows)))
            .collect();
        let parts = each(stretches, |(source, rows)| {
            TrackParts::collect(trace, whole, calls, source, rows)
        });
        let mut parts_of: BTreeMap<TrackId, Vec<TrackPart>> = BTreeMap::new();
        for part in parts.into_iter().flatten() {
            parts_of.entry(part.id).or_default().push(part);
        }
        let timed = parts_of.values().flatten().map(|part| part.times);
        let extents = timed.filter(|times| times.rows > 0);
        let extent = extents.fold(moments(trace), |all, times| all.hull(times.extent));
        let bins = TimeBins::new(extent, BINS);
        let tracks = each(
            parts_of.into_iter().collect(),
            |(id, mut parts): (_, Vec<TrackPart>)| TrackDensity {
                id,
                rows: parts.iter().map(|part| part.times.rows).sum(),
                untimed: parts.iter().map(|part| part.untimed).sum(),
                calls: (parts.iter()).fold(CallKinds::None, |all, part| all.and(part.calls)),
                busy: bins.shares(in_order(trace, &parts), |_, _| {}),
                places: parts.iter_mut().map(TrackPart::places).collect(),
            },
        );
        DensityIndex { tracks, extent }
    }
}

/// Iterates over the times of a track's rows in order of their starts. Rows of a table that are in this order are read again; others are copied
/// and sorted. The parts come in the order of their tables and rows.
fn in_order<'a>(trace: &'a Trace, parts: &'a [TrackPart]) -> impl Iterator<Item = Interval> + 'a {
    let mut tables: Vec<_> = parts
        .chunk_by(|one, next| one.source == next.source)
        .map(|parts| {
            let mut times = TimeSummary::NONE;
            parts.iter().for_each(|part| times.and(part.times));
            let rows = RowTimes::new(trace, parts);
            let (rows, copied) = match times.unordered {
                false => (Some(rows), Vec::new()),
                true => {
                    let mut copied: Vec<Interval> = rows.collect();
                    // A stable sort is quick where long stretches are in order.
                    copied.sort_by_key(|interval| interval.start_ns);
                    (None, copied)
                }
            };
            rows.into_iter().flatten().chain(copied).peekable()
        })
        .collect();
    // The table whose next row is the first of all, and the time until which this holds.
    let (mut first, mut until_ns) = (0, None);
    std::iter::from_fn(move || {
        let head = tables.get_mut(first)?.peek();
        if head.is_none_or(|head| until_ns.is_none_or(|until_ns| head.start_ns > until_ns)) {
            let heads = tables.iter_mut().enumerate();
            let mut heads: Vec<_> = heads
                .filter_map(|(table, rows)| Some((rows.peek()?.start_ns, table)))
                .collect();
            heads.sort_unstable();
            first = heads.first()?.1;
            until_ns = Some(heads.get(1).map_or(i64::MAX, |(start_ns, _)| *start_ns));
        }
        tables[first].next()
    })
}

/// Iterates over the times of rows of one table.
struct RowTimes<'a> {
    trace: &'a Trace,
    source: DrawnTable,
    /// The ranges that iteration has not reached.
    left: std::iter::Flatten<std::vec::IntoIter<&'a [Range<u32>]>>,
    /// The rest of the range that iteration is in.
    run: Range<u32>,
}

impl<'a> RowTimes<'a> {
    /// Takes the parts of one table, of which there is at least one.
    fn new(trace: &'a Trace, parts: &'a [TrackPart]) -> RowTimes<'a> {
        let runs: Vec<&[Range<u32>]> = parts.iter().map(|part| part.rows.as_slice()).collect();
        RowTimes {
            trace,
            source: parts[0].source,
            left: runs.into_iter().flatten(),
            run: 0..0,
        }
    }
}

impl Iterator for RowTimes<'_> {
    type Item = Interval;

    #[inline]
    fn next(&mut self) -> Option<Interval> {
        loop {
            for row in self.run.by_ref() {
                let times = self.source.times(self.trace, row as usize);
                if times.is_some() {
                    return times;
                }
            }
            self.run = self.left.next()?.clone();
        }
    }
}

/// Returns the time that the recording, submissions, allocations and values of counters cover.
fn moments(trace: &Trace) -> Interval {
    let (manifest, tables) = (&trace.manifest, &trace.tables);
    let recording = Interval::new(manifest.start_ns, manifest.start_ns.max(manifest.end_ns));
    let moments = tables.submissions.start_ns.iter();
    let moments = moments
        .chain(&tables.memory.at_ns)
        .filter_map(|ns| Interval::from_row(Some(*ns), Some(0)));
    let values = &tables.counter_values;
    let values = values.start_ns.iter().zip(&values.duration_ns);
    let values = values.filter_map(|(start_ns, duration_ns)| {
        Interval::from_row(Some(*start_ns), Some(duration_ns.unwrap_or(0)))
    });
    moments.chain(values).fold(recording, Interval::hull)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::CHUNK_ROWS;
    use crate::track::ThreadKey;
    use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
    use gapscope_trace::tables::Table;
    use proptest::prelude::*;

    #[test]
    fn a_track_of_several_tables_is_in_order_of_all() {
        let index = density_index(
            "manifest start_ns=0 end_ns=2048000
            dispatch queue=1 kernel=1 start_ns=2000 duration_ns=1000
            dispatch queue=1 kernel=1 start_ns=0 duration_ns=1000
            dispatch queue=1 kernel=1 start_ns=4000 duration_ns=500
            transfer queue=1 kind=copy start_ns=500 duration_ns=1000
            transfer queue=1 kind=copy start_ns=4250 duration_ns=750",
        );
        let [track] = index.tracks.as_slice() else {
            panic!("one queue has one track");
        };
        assert_eq!(track.rows, 5);
        // Rows that run at the same time count once.
        assert_eq!(track.busy[..6], [255, 128, 255, 0, 255, 0]);
    }

    fn density_index(text: &str) -> DensityIndex {
        let trace = Trace::from_text(text).unwrap();
        DensityIndex::new(
            &trace,
            &WholeCommandBuffers::None,
            &SubmitCalls::new(&trace),
        )
    }

    #[test]
    fn tracks_have_their_rows_and_the_extent_is_of_all() {
        let index = density_index(
            "manifest start_ns=0 end_ns=2048000
            dispatch queue=1 kernel=1 start_ns=-100 duration_ns=50
            dispatch queue=2 kernel=1 start_ns=0 duration_ns=1000
            dispatch queue=2 kernel=1
            transfer queue=2 kind=copy start_ns=3000000 duration_ns=10
            host_call process=1 thread=7 start_ns=0 duration_ns=4000000",
        );
        let thread = ThreadKey {
            process: ProcessId(1),
            thread: Some(ThreadId(7)),
        };
        let found: Vec<_> = index
            .tracks
            .iter()
            .map(|t| (t.id, t.rows, t.untimed))
            .collect();
        assert_eq!(
            found,
            [
                (TrackId::Work(QueueId(1)), 1, 0),
                (TrackId::Work(QueueId(2)), 2, 1),
                (TrackId::Calls(thread), 1, 0),
            ]
        );
        assert_eq!(index.extent, Interval::new(-100, 4_000_000));
    }

    #[test]
    fn a_thread_that_calls_one_thing_only_is_told_apart() {
        let index = density_index(
            "host_call process=1 thread=7 call=submit start_ns=0 duration_ns=1
            host_call process=1 thread=8 call=create-pipelines start_ns=0 duration_ns=1
            host_call process=1 thread=8 call=create-pipelines start_ns=5 duration_ns=1
            host_call process=1 thread=7 call=wait-fences start_ns=2 duration_ns=1
            dispatch queue=1 kernel=1 start_ns=0 duration_ns=5",
        );
        let kinds: Vec<CallKinds> = index.tracks.iter().map(|track| track.calls).collect();
        let compiles = CallKinds::Only(HostCallKind::CreatePipelines);
        assert_eq!(kinds, [CallKinds::None, CallKinds::Several, compiles]);
    }

    #[test]
    fn a_slice_says_whether_nothing_something_or_all_of_it_was_busy() {
        let index = density_index(
            "manifest start_ns=0 end_ns=2048000
            dispatch queue=1 kernel=1 start_ns=1000 duration_ns=1000
            dispatch queue=1 kernel=1 start_ns=2000 duration_ns=1
            dispatch queue=1 kernel=1 start_ns=3999 duration_ns=1501
            dispatch queue=1 kernel=1 start_ns=4000 duration_ns=1499
            dispatch queue=1 kernel=1 start_ns=7000 duration_ns=0",
        );
        assert_eq!(index.tracks[0].busy[..8], [0, 255, 1, 1, 255, 128, 0, 1]);
    }

    #[test]
    fn rows_of_a_later_stretch_may_be_earlier() {
        let mut trace = Trace::default();
        let mut push = |start_ns: usize| {
            trace
                .tables
                .dispatches
                .push(gapscope_trace::tables::Dispatch {
                    queue: QueueId(1),
                    start_ns: Some(start_ns as i64),
                    duration_ns: Some(1),
                    ..Default::default()
                });
        };
        let hole = 1000..2000;
        (0..CHUNK_ROWS + 1000)
            .filter(|at| !hole.contains(at))
            .for_each(&mut push);
        hole.for_each(push);
        let index = DensityIndex::new(
            &trace,
            &WholeCommandBuffers::None,
            &SubmitCalls::new(&trace),
        );
        assert_eq!(index.tracks[0].rows, CHUNK_ROWS as u64 + 1000);
        assert_eq!(index.tracks[0].busy, [255; BINS]);
    }

    proptest! {
        #[test]
        fn shares_are_of_the_union_in_whatever_order_rows_come(times in proptest::collection::vec((0i64..4000, 0i64..600), 1..60)) {
            let mut trace = Trace::default();
            trace.manifest.end_ns = 4096 * 4;
            for (start_ns, ns) in &times {
                trace.tables.dispatches.push(gapscope_trace::tables::Dispatch {
                    queue: QueueId(1),
                    start_ns: Some(start_ns * 4),
                    duration_ns: Some(ns * 4),
                    ..Default::default()
                });
            }
            let index = DensityIndex::new(&trace, &WholeCommandBuffers::None, &SubmitCalls::new(&trace));
            let length = index.extent.length_ns();
            for (bin, share) in index.tracks[0].busy.iter().enumerate() {
                let from = length * bin as i64 / BINS as i64;
                let to = length * (bin as i64 + 1) / BINS as i64;
                let covered = (from..to).filter(|ns| times.iter().any(|(s, d)| s * 4 <= *ns && *ns < (s + d) * 4)).count() as i64;
                match covered {
                    0 => prop_assert!(*share <= 1, "an instant at most"),
                    all if all == to - from => prop_assert_eq!(*share, 255),
                    some => {
                        let exact = some as f64 * 255.0 / (to - from) as f64;
                        prop_assert!((f64::from(*share) - exact.clamp(1.0, 254.0)).abs() <= 0.5);
                    }
                }
            }
        }
    }
}

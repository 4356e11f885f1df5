//! The survey of a trace: which tracks it has, from when to when, and how busy each is in equal slices of time. It is all
//! that the first drawing needs.

use crate::chunks::chunks;
use crate::track::{Source, TrackId, Whole};
use gapscope_analysis::intervals::Interval;
use gapscope_trace::Trace;
use gapscope_trace::parallel::each;
use gapscope_trace::tables::HostCallKind;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::ops::Range;

/// Slices of time in which busy shares are given.
pub const BINS: usize = 2048;

/// What there is of one track.
#[derive(Debug, Clone, PartialEq)]
pub struct Surveyed {
    pub id: TrackId,
    /// Rows with known times.
    pub rows: u64,
    /// Rows without.
    pub untimed: u64,
    /// The kinds of its rows, where they are host calls.
    pub calls: Kinds,
    /// The share of each slice in which a row ran, times 255; 0 for nothing at all, 255 for all of it.
    pub busy: Vec<u8>,
}

/// Which kinds of host call there are among rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kinds {
    #[default]
    None,
    Only(HostCallKind),
    Several,
}

impl Kinds {
    /// Those of both.
    #[inline]
    fn and(self, other: Kinds) -> Kinds {
        match (self, other) {
            (Kinds::None, one) | (one, Kinds::None) => one,
            (one, same) if one == same => one,
            _ => Kinds::Several,
        }
    }
}

/// What there is of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    /// In the order of their ids.
    pub tracks: Vec<Surveyed>,
    /// From the first time that is drawn to the last, the recording included.
    pub extent: Interval,
}

/// What some rows of a table have of one track.
struct Part {
    id: TrackId,
    untimed: u64,
    calls: Kinds,
    /// In the order of the rows.
    intervals: Vec<Interval>,
}

/// The parts of some rows. Neighbours are mostly of one track.
#[derive(Default)]
struct Parts {
    all: Vec<Part>,
    places: FxHashMap<TrackId, usize>,
    last: Option<(TrackId, usize)>,
}

impl Parts {
    fn of(trace: &Trace, whole: &Whole, source: Source, rows: Range<usize>) -> Vec<Part> {
        let mut parts = Parts::default();
        for row in rows {
            let part = parts.part(source.track(trace, row, whole));
            match source.times(trace, row) {
                Some(interval) => part.intervals.push(interval),
                None => part.untimed += 1,
            }
            if let Some(call) = source.call(trace, row) {
                part.calls = part.calls.and(Kinds::Only(call));
            }
        }
        parts.all
    }

    #[inline]
    fn part(&mut self, id: TrackId) -> &mut Part {
        let place = match self.last {
            Some((last, place)) if last == id => place,
            _ => {
                let all = &mut self.all;
                let place = *self.places.entry(id).or_insert_with(|| {
                    all.push(Part {
                        id,
                        untimed: 0,
                        calls: Kinds::None,
                        intervals: Vec::new(),
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

impl Survey {
    /// Surveys a trace.
    pub fn of(trace: &Trace, whole: &Whole) -> Survey {
        let stretches = Source::ALL
            .into_iter()
            .flat_map(|source| chunks(source.rows(trace)).map(move |rows| (source, rows)))
            .collect();
        let parts = each(stretches, |(source, rows)| {
            Parts::of(trace, whole, source, rows)
        });
        let mut parts_of: BTreeMap<TrackId, Vec<Part>> = BTreeMap::new();
        for part in parts.into_iter().flatten() {
            parts_of.entry(part.id).or_default().push(part);
        }
        let tracks = each(
            parts_of.into_iter().collect(),
            |(id, parts): (_, Vec<Part>)| {
                let untimed = parts.iter().map(|part| part.untimed).sum();
                let calls = parts
                    .iter()
                    .fold(Kinds::None, |all, part| all.and(part.calls));
                let intervals = in_order(parts);
                let all = intervals.iter().flatten();
                let extent = all.copied().reduce(Interval::hull);
                (id, untimed, calls, intervals, extent)
            },
        );
        let extents = tracks.iter().filter_map(|(.., extent)| *extent);
        let extent = extents.fold(moments(trace), Interval::hull);
        let bins = Bins::of(extent);
        let tracks = each(tracks, |(id, untimed, calls, intervals, _)| Surveyed {
            id,
            rows: intervals.iter().map(|some| some.len() as u64).sum(),
            untimed,
            calls,
            busy: bins.shares(intervals.iter().flatten()),
        });
        Survey { tracks, extent }
    }
}

/// All intervals of a track by their starts, in one list or more. Ten million are copied only where they are not in order.
fn in_order(parts: Vec<Part>) -> Vec<Vec<Interval>> {
    let mut lists: Vec<Vec<Interval>> = parts.into_iter().map(|part| part.intervals).collect();
    let start = |interval: &Interval| interval.start_ns;
    if lists.iter().flatten().is_sorted_by_key(start) {
        return lists;
    }
    let mut intervals = lists.concat();
    lists.clear();
    // Stable, because it is quick where long stretches are in order.
    intervals.sort_by_key(start);
    vec![intervals]
}

/// The recording, what is drawn at one moment, and the values of counters.
fn moments(trace: &Trace) -> Interval {
    let (manifest, tables) = (&trace.manifest, &trace.tables);
    let recording = Interval::new(manifest.start_ns, manifest.start_ns.max(manifest.end_ns));
    let moments = tables.submissions.start_ns.iter();
    let moments = moments
        .chain(&tables.memory.at_ns)
        .filter_map(|ns| Interval::of_row(Some(*ns), Some(0)));
    let values = &tables.counter_values;
    let values = values.start_ns.iter().zip(&values.duration_ns);
    let values = values.filter_map(|(start_ns, duration_ns)| {
        Interval::of_row(Some(*start_ns), Some(duration_ns.unwrap_or(0)))
    });
    moments.chain(values).fold(recording, Interval::hull)
}

/// Set in a slice in which an instant lies: it has no length but is to be seen.
const INSTANT: u64 = 1 << 63;

/// Equal slices of a time.
struct Bins {
    /// Where each starts, and the end of the last.
    bounds_ns: Vec<i64>,
}

impl Bins {
    fn of(extent: Interval) -> Bins {
        let length = i128::from(extent.end_ns) - i128::from(extent.start_ns);
        let bound = |bin: usize| {
            let offset = length * bin as i128 / BINS as i128;
            (i128::from(extent.start_ns) + offset) as i64
        };
        Bins {
            bounds_ns: (0..=BINS).map(bound).collect(),
        }
    }

    /// The bin in which a moment lies, which is not before `bin`.
    #[inline]
    fn from(&self, mut bin: usize, ns: i64) -> usize {
        while bin + 1 < BINS && self.bounds_ns[bin + 1] <= ns {
            bin += 1;
        }
        bin
    }

    /// The busy share of each bin; the intervals are in order of their starts.
    fn shares<'i>(&self, intervals: impl Iterator<Item = &'i Interval>) -> Vec<u8> {
        let mut busy = [0u64; BINS];
        let (mut until_ns, mut instant, mut filled) = (i64::MIN, 0, 0);
        for interval in intervals {
            if interval.is_empty() {
                instant = self.from(instant, interval.start_ns);
                busy[instant] |= INSTANT;
            }
            // What is new in it.
            let (mut from_ns, end_ns) = (interval.start_ns.max(until_ns), interval.end_ns);
            if from_ns >= end_ns {
                continue;
            }
            until_ns = end_ns;
            filled = self.from(filled, from_ns);
            loop {
                let to_ns = match filled + 1 < BINS {
                    true => self.bounds_ns[filled + 1].min(end_ns),
                    false => end_ns,
                };
                busy[filled] += (to_ns - from_ns).max(0) as u64;
                if to_ns >= end_ns {
                    break;
                }
                from_ns = to_ns;
                filled += 1;
            }
        }
        let shares = busy
            .iter()
            .zip(self.bounds_ns.windows(2))
            .map(|(busy, bounds)| {
                let length = (bounds[1] - bounds[0]).max(0) as u64;
                match *busy & !INSTANT {
                    0 => u8::from(*busy == INSTANT),
                    busy if busy >= length => 255,
                    busy => (busy as f64 * 255.0 / length as f64)
                        .round()
                        .clamp(1.0, 254.0) as u8,
                }
            });
        shares.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::track::ThreadKey;
    use gapscope_trace::ids::{ProcessId, QueueId, ThreadId};
    use gapscope_trace::tables::Table;
    use proptest::prelude::*;

    fn survey(text: &str) -> Survey {
        let trace = Trace::from_text(text).unwrap();
        Survey::of(&trace, &Whole::None)
    }

    #[test]
    fn tracks_have_their_rows_and_the_extent_is_of_all() {
        let survey = survey(
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
        let found: Vec<_> = survey
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
        assert_eq!(survey.extent, Interval::new(-100, 4_000_000));
    }

    #[test]
    fn a_thread_that_calls_one_thing_only_is_told_apart() {
        let survey = survey(
            "host_call process=1 thread=7 call=submit start_ns=0 duration_ns=1
            host_call process=1 thread=8 call=create-pipelines start_ns=0 duration_ns=1
            host_call process=1 thread=8 call=create-pipelines start_ns=5 duration_ns=1
            host_call process=1 thread=7 call=wait-fences start_ns=2 duration_ns=1
            dispatch queue=1 kernel=1 start_ns=0 duration_ns=5",
        );
        let kinds: Vec<Kinds> = survey.tracks.iter().map(|track| track.calls).collect();
        let compiles = Kinds::Only(HostCallKind::CreatePipelines);
        assert_eq!(kinds, [Kinds::None, Kinds::Several, compiles]);
    }

    #[test]
    fn a_slice_says_whether_nothing_something_or_all_of_it_was_busy() {
        let survey = survey(
            "manifest start_ns=0 end_ns=2048000
            dispatch queue=1 kernel=1 start_ns=1000 duration_ns=1000
            dispatch queue=1 kernel=1 start_ns=2000 duration_ns=1
            dispatch queue=1 kernel=1 start_ns=3999 duration_ns=1501
            dispatch queue=1 kernel=1 start_ns=4000 duration_ns=1499
            dispatch queue=1 kernel=1 start_ns=7000 duration_ns=0",
        );
        assert_eq!(survey.tracks[0].busy[..8], [0, 255, 1, 1, 255, 128, 0, 1]);
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
            let survey = Survey::of(&trace, &Whole::None);
            let length = survey.extent.length_ns();
            for (bin, share) in survey.tracks[0].busy.iter().enumerate() {
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

//! The survey of a trace: which tracks it has, from when to when, and how busy each is in equal slices of time. It is all
//! that the first drawing needs.

use crate::track::{Source, TrackId, Whole};
use gapscope_analysis::intervals::Interval;
use gapscope_trace::Trace;
use rustc_hash::FxHashMap;

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
    /// The share of each slice in which a row ran, times 255; 0 for nothing at all, 255 for all of it.
    pub busy: Vec<u8>,
}

/// What there is of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Survey {
    /// In the order of their ids.
    pub tracks: Vec<Surveyed>,
    /// From the first time that is drawn to the last, the recording included.
    pub extent: Interval,
}

#[derive(Debug)]
struct Slot {
    id: TrackId,
    rows: u64,
    untimed: u64,
    /// Whether rows came in order of their starts so far.
    sorted: bool,
    last_start_ns: i64,
    /// While the bins are filled: the end of what was added.
    until_ns: i64,
    intervals: Vec<Interval>,
    busy: Vec<u64>,
}

impl Slot {
    fn new(id: TrackId) -> Slot {
        Slot {
            id,
            rows: 0,
            untimed: 0,
            sorted: true,
            last_start_ns: i64::MIN,
            until_ns: i64::MIN,
            intervals: Vec::new(),
            busy: Vec::new(),
        }
    }
}

/// Finds the slot of a track; neighbours are mostly of one track.
struct Slots {
    all: Vec<Slot>,
    places: FxHashMap<TrackId, usize>,
    last: Option<(TrackId, usize)>,
}

impl Slots {
    #[inline]
    fn of(&mut self, id: TrackId) -> &mut Slot {
        let place = match self.last {
            Some((last, place)) if last == id => place,
            _ => {
                let all = &mut self.all;
                let place = *self.places.entry(id).or_insert_with(|| {
                    all.push(Slot::new(id));
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
        let mut slots = Slots {
            all: Vec::new(),
            places: FxHashMap::default(),
            last: None,
        };
        let manifest = &trace.manifest;
        let mut extent = Interval::new(manifest.start_ns, manifest.start_ns.max(manifest.end_ns));
        for source in Source::ALL {
            for row in 0..source.rows(trace) {
                let slot = slots.of(source.track(trace, row, whole));
                let Some(interval) = source.times(trace, row) else {
                    slot.untimed += 1;
                    continue;
                };
                slot.rows += 1;
                slot.sorted &= slot.last_start_ns <= interval.start_ns;
                slot.last_start_ns = interval.start_ns;
                extent.start_ns = extent.start_ns.min(interval.start_ns);
                extent.end_ns = extent.end_ns.max(interval.end_ns);
            }
        }
        let tables = &trace.tables;
        for ns in tables
            .submissions
            .begin_ns
            .iter()
            .chain(&tables.memory.at_ns)
        {
            if Interval::of_row(Some(*ns), Some(0)).is_some() {
                extent = extent.hull(Interval::new(*ns, *ns));
            }
        }
        let bins = Bins::of(extent);
        for slot in &mut slots.all {
            slot.busy = vec![0; BINS];
            if !slot.sorted {
                slot.intervals.reserve_exact(slot.rows as usize);
            }
        }
        for source in Source::ALL {
            for row in 0..source.rows(trace) {
                let Some(interval) = source.times(trace, row) else {
                    continue;
                };
                let slot = slots.of(source.track(trace, row, whole));
                if slot.sorted {
                    bins.add(interval, &mut slot.until_ns, &mut slot.busy);
                } else {
                    slot.intervals.push(interval);
                }
            }
        }
        let mut tracks: Vec<Surveyed> = slots
            .all
            .into_iter()
            .map(|mut slot| {
                // Stable, because it is quick where long stretches are in order.
                slot.intervals.sort();
                for interval in &slot.intervals {
                    bins.add(*interval, &mut slot.until_ns, &mut slot.busy);
                }
                Surveyed {
                    id: slot.id,
                    rows: slot.rows,
                    untimed: slot.untimed,
                    busy: bins.shares(&slot.busy),
                }
            })
            .collect();
        tracks.sort_by_key(|track| track.id);
        Survey { tracks, extent }
    }
}

/// Set in a slice in which an instant lies: it has no length but is to be seen.
const INSTANT: u64 = 1 << 63;

/// Equal slices of a time.
struct Bins {
    extent: Interval,
    bins_per_ns: f64,
}

impl Bins {
    fn of(extent: Interval) -> Bins {
        Bins {
            extent,
            bins_per_ns: BINS as f64 / extent.length_ns().max(1) as f64,
        }
    }

    fn start_ns(&self, bin: usize) -> i64 {
        let offset = i128::from(self.extent.length_ns()) * bin as i128 / BINS as i128;
        self.extent.start_ns + offset as i64
    }

    /// The bin in which a moment lies.
    #[inline]
    fn of_ns(&self, ns: i64) -> usize {
        let near = ((ns - self.extent.start_ns) as f64 * self.bins_per_ns) as usize;
        let mut bin = near.min(BINS - 1);
        while bin > 0 && self.start_ns(bin) > ns {
            bin -= 1;
        }
        while bin + 1 < BINS && self.start_ns(bin + 1) <= ns {
            bin += 1;
        }
        bin
    }

    /// Adds what of `interval` is past `until_ns`; intervals come in order of start.
    #[inline]
    fn add(&self, interval: Interval, until_ns: &mut i64, busy: &mut [u64]) {
        let fresh = Interval::new(interval.start_ns.max(*until_ns), interval.end_ns);
        if interval.is_empty() {
            busy[self.of_ns(interval.start_ns)] |= INSTANT;
        }
        if fresh.is_empty() {
            return;
        }
        *until_ns = interval.end_ns;
        let mut bin = self.of_ns(fresh.start_ns);
        let mut from_ns = fresh.start_ns;
        loop {
            let to_ns = match bin + 1 < BINS {
                true => self.start_ns(bin + 1).min(fresh.end_ns),
                false => fresh.end_ns,
            };
            busy[bin] += (to_ns - from_ns).max(0) as u64;
            if to_ns >= fresh.end_ns {
                return;
            }
            from_ns = to_ns;
            bin += 1;
        }
    }

    fn shares(&self, busy: &[u64]) -> Vec<u8> {
        let shares = busy.iter().enumerate().map(|(bin, busy)| {
            let length = (self.start_ns(bin + 1) - self.start_ns(bin)).max(0) as u64;
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
        let found: Vec<_> = survey
            .tracks
            .iter()
            .map(|t| (t.id, t.rows, t.untimed))
            .collect();
        assert_eq!(
            found,
            [
                (TrackId::Work(1), 1, 0),
                (TrackId::Work(2), 2, 1),
                (TrackId::Calls(1, 7), 1, 0),
            ]
        );
        assert_eq!(survey.extent, Interval::new(-100, 4_000_000));
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
                    queue: 1,
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

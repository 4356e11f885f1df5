//! Answers queries of a track (a line of the page) for a range of time: with its rows, or with slices (equal parts of
//! the range) where there are too many rows.

use crate::frame::Frame;
use crate::protocol::{ColumnType, TrackHeader};
use crate::time_bins::{BinPart, TimeBins, within};
use gapscope_timeline::intervals::Interval;
use std::ops::Range;

/// Number of slices into which a range with too many rows is cut.
pub const SLICES: usize = 4096;

/// A range of a track that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RangeQuery {
    pub range: Interval,
    /// The most rows of an answer: where there are more, the answer has slices.
    pub most_rows: usize,
}

/// The rows of a track that are asked for.
#[derive(Debug, Clone, Copy)]
pub enum TrackRows {
    /// The rows that were added after a generation of a live trace; all rows after 0.
    After(u64),
    /// The rows that lie in a range of time.
    In(RangeQuery),
}

/// The rows of each lane in a range, or slices of each lane.
pub enum RangeRows {
    /// The rows of each lane, as there are few enough.
    Rows(Vec<Range<usize>>),
    /// The slices of each lane.
    Slices(Vec<LaneSlices>),
}

/// The slices of a lane.
pub struct LaneSlices {
    /// The share of each slice in which a row ran, times 255: 0 where nothing ran.
    busy: Vec<u8>,
    /// The row that ran longest in each slice; arbitrary where no row ran.
    longest: Vec<usize>,
}

impl RangeRows {
    /// Answers a query of lanes: lane N has the rows from `bounds[N]` to before `bounds[N + 1]`, in order of time,
    /// and none overlap. `times` returns the time of a row.
    pub fn new(
        bounds: &[usize],
        asked: RangeQuery,
        times: impl Fn(usize) -> Interval,
    ) -> RangeRows {
        let lanes = bounds.windows(2);
        let rows: Vec<Range<usize>> = lanes
            .map(|lane| within(lane[0]..lane[1], asked.range, &times))
            .collect();
        if rows.iter().map(Range::len).sum::<usize>() <= asked.most_rows {
            return RangeRows::Rows(rows);
        }
        let bins = TimeBins::new(asked.range, SLICES);
        let slices = |rows| LaneSlices::new(rows, &bins, asked.range, &times);
        RangeRows::Slices(rows.into_iter().map(slices).collect())
    }
}

impl LaneSlices {
    fn new(
        rows: Range<usize>,
        bins: &TimeBins,
        range: Interval,
        times: impl Fn(usize) -> Interval,
    ) -> LaneSlices {
        let mut longest = vec![(0, rows.start); SLICES];
        let seen = rows.clone().map(|row| match times(row) {
            instant if instant.is_empty() => instant,
            interval => interval.intersection(range),
        });
        let busy = bins.shares(seen, |number, BinPart { bin, ns }| {
            if ns > longest[bin].0 {
                longest[bin] = (ns, rows.start + number);
            }
        });
        LaneSlices {
            busy,
            longest: longest.into_iter().map(|(_, row)| row).collect(),
        }
    }
}

/// Makes the frame of slices; `name` returns the text that names a row.
pub fn frame(
    lanes: &[LaneSlices],
    range: Interval,
    header: TrackHeader,
    name: impl Fn(usize) -> u32,
) -> Vec<u8> {
    let header = TrackHeader {
        part: Some([range.start_ns, range.end_ns]),
        slices: Some(SLICES),
        lanes: (0..=lanes.len()).map(|lane| lane * SLICES).collect(),
        ..header
    };
    let columns = [("busy", ColumnType::U8), ("name", ColumnType::U32)];
    let mut frame = Frame::new(header, lanes.len() * SLICES, &columns);
    frame.u8(lanes.iter().flat_map(|lane| lane.busy.iter().copied()));
    let slices = (lanes.iter()).flat_map(|lane| lane.busy.iter().zip(&lane.longest));
    frame.u32(slices.map(|(busy, longest)| match busy {
        0 => 0,
        _ => name(*longest),
    }));
    frame.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Lanes of rows that do not overlap, from pauses and lengths; the bounds between them.
    fn lanes(lanes: &[Vec<(i64, i64)>]) -> (Vec<Interval>, Vec<usize>) {
        let (mut rows, mut bounds) = (Vec::new(), vec![0]);
        for lane in lanes {
            let mut at_ns = 0;
            for (pause_ns, ns) in lane {
                rows.push(Interval::new(at_ns + pause_ns, at_ns + pause_ns + ns));
                at_ns += pause_ns + ns;
            }
            bounds.push(rows.len());
        }
        (rows, bounds)
    }

    /// Whether a row has a part in a range.
    fn has_part(row: Interval, range: Interval) -> bool {
        let (start_ns, end_ns) = (range.start_ns, range.end_ns);
        match row.is_empty() {
            true => start_ns <= row.start_ns && row.start_ns < end_ns,
            false => !row.intersection(range).is_empty(),
        }
    }

    fn lengths() -> impl Strategy<Value = Vec<Vec<(i64, i64)>>> {
        let lane = proptest::collection::vec((0i64..30_000, 0i64..30_000), 0..40);
        proptest::collection::vec(lane, 1..4)
    }

    proptest! {
        #[test]
        fn rows_of_a_part_are_those_with_a_part_in_its_range(lengths in lengths(), start_ns in 0i64..1_000_000, ns in 1i64..500_000) {
            let (rows, bounds) = lanes(&lengths);
            let range = Interval::new(start_ns, start_ns + ns);
            let found: Vec<usize> = (0..rows.len()).filter(|row| has_part(rows[*row], range)).collect();
            let asked = |most_rows| RangeQuery { range, most_rows };
            let RangeRows::Rows(given) = RangeRows::new(&bounds, asked(found.len()), |row| rows[row]) else {
                return Err(TestCaseError::fail("they are not too many"));
            };
            prop_assert_eq!(given.len(), lengths.len());
            prop_assert_eq!(given.into_iter().flatten().collect::<Vec<_>>(), found.clone());
            if !found.is_empty() {
                prop_assert!(matches!(RangeRows::new(&bounds, asked(found.len() - 1), |row| rows[row]), RangeRows::Slices(_)));
            }
        }

        #[test]
        fn slices_say_how_busy_they_were_and_what_ran_longest(lengths in lengths(), start_ns in 0i64..300_000, width_ns in 1i64..100) {
            let (rows, bounds) = lanes(&lengths);
            let range = Interval::new(start_ns, start_ns + width_ns * SLICES as i64);
            let slices = LaneSlices::new(within(0..bounds[1], range, |row| rows[row]), &TimeBins::new(range, SLICES), range, |row| rows[row]);
            for (bin, (busy, longest)) in slices.busy.iter().zip(&slices.longest).enumerate() {
                let from_ns = start_ns + bin as i64 * width_ns;
                let slice = Interval::new(from_ns, from_ns + width_ns);
                let inside = |row: usize| rows[row].intersection(slice).length_ns();
                let busy_ns: i64 = (0..bounds[1]).map(inside).sum();
                let exact = busy_ns as f64 * 255.0 / width_ns as f64;
                match (0..bounds[1]).any(|row| has_part(rows[row], slice)) {
                    false => prop_assert_eq!(*busy, 0),
                    true => prop_assert!(*busy > 0 && (f64::from(*busy) - exact).abs() <= 1.0, "{} for {}", busy, exact),
                }
                if busy_ns > 0 {
                    prop_assert_eq!(Some(inside(*longest)), (0..bounds[1]).map(inside).max());
                }
            }
        }
    }
}

//! A part of a track: the rows in a range of time, or where those are too many, slices of it.

use crate::bins::{Bins, Piece, within};
use crate::frame::{Frame, Type};
use gapscope_timeline::intervals::Interval;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// Slices in which a range is told that has too many rows.
pub const SLICES: usize = 4096;

/// What is asked of a track.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    pub range: Interval,
    /// So many rows are given; more are told in slices.
    pub most_rows: usize,
}

/// The rows of each lane in a range.
pub enum Part {
    Rows(Vec<Range<usize>>),
    Slices(Vec<Slices>),
}

/// The slices of a lane.
pub struct Slices {
    /// The share of each in which a row ran, times 255: 0 for nothing at all.
    busy: Vec<u8>,
    /// The row that ran longest in each; any where none did.
    longest: Vec<usize>,
}

impl Part {
    /// Of lanes that lie between `bounds`: in each of them rows are in order, and none overlap.
    pub fn of(bounds: &[usize], asked: Asked, times: impl Fn(usize) -> Interval) -> Part {
        let lanes = bounds.windows(2);
        let rows: Vec<Range<usize>> = lanes
            .map(|lane| within(lane[0]..lane[1], asked.range, &times))
            .collect();
        if rows.iter().map(Range::len).sum::<usize>() <= asked.most_rows {
            return Part::Rows(rows);
        }
        let bins = Bins::of(asked.range, SLICES);
        Part::Slices(
            rows.into_iter()
                .map(|rows| Slices::of(rows, &bins, asked.range, &times))
                .collect(),
        )
    }
}

impl Slices {
    fn of(
        rows: Range<usize>,
        bins: &Bins,
        range: Interval,
        times: impl Fn(usize) -> Interval,
    ) -> Slices {
        let mut longest = vec![(0, rows.start); SLICES];
        let seen = rows.clone().map(|row| match times(row) {
            instant if instant.is_empty() => instant,
            interval => interval.intersection(range),
        });
        let busy = bins.shares(seen, |number, Piece { bin, ns }| {
            if ns > longest[bin].0 {
                longest[bin] = (ns, rows.start + number);
            }
        });
        Slices {
            busy,
            longest: longest.into_iter().map(|(_, row)| row).collect(),
        }
    }
}

/// Says in a frame's header which range it is of.
pub fn note(header: &mut Map<String, Value>, range: Interval) {
    header.insert("part".to_owned(), json!([range.start_ns, range.end_ns]));
}

/// The frame of slices; `name` is what a row is called.
pub fn frame(
    lanes: &[Slices],
    range: Interval,
    mut header: Map<String, Value>,
    name: impl Fn(usize) -> u32,
) -> Vec<u8> {
    note(&mut header, range);
    header.insert("slices".to_owned(), SLICES.into());
    let bounds: Vec<usize> = (0..=lanes.len()).map(|lane| lane * SLICES).collect();
    header.insert("lanes".to_owned(), json!(bounds));
    let columns = [("busy", Type::U8), ("name", Type::U32)];
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
            let asked = |most_rows| Asked { range, most_rows };
            let Part::Rows(given) = Part::of(&bounds, asked(found.len()), |row| rows[row]) else {
                return Err(TestCaseError::fail("they are not too many"));
            };
            prop_assert_eq!(given.len(), lengths.len());
            prop_assert_eq!(given.into_iter().flatten().collect::<Vec<_>>(), found.clone());
            if !found.is_empty() {
                prop_assert!(matches!(Part::of(&bounds, asked(found.len() - 1), |row| rows[row]), Part::Slices(_)));
            }
        }

        #[test]
        fn slices_say_how_busy_they_were_and_what_ran_longest(lengths in lengths(), start_ns in 0i64..300_000, width_ns in 1i64..100) {
            let (rows, bounds) = lanes(&lengths);
            let range = Interval::new(start_ns, start_ns + width_ns * SLICES as i64);
            let slices = Slices::of(within(0..bounds[1], range, |row| rows[row]), &Bins::of(range, SLICES), range, |row| rows[row]);
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

//! Cuts a range of time into equal slices, and computes the busy share of each slice (the part in which something
//! ran) from intervals.

use gapscope_timeline::intervals::Interval;
use std::ops::Range;

/// The mark of a slice with an instant, which has no length but has to be visible.
const INSTANT: u64 = 1 << 63;

/// The equal slices (bins) of a range of time.
pub struct TimeBins {
    /// The start of each slice, and the end of the last.
    bounds_ns: Vec<i64>,
}

/// The part of an interval that lies in one bin.
pub struct BinPart {
    /// The index of the bin.
    pub bin: usize,
    /// The length of the part; 0 for an instant.
    pub ns: u64,
}

impl TimeBins {
    /// Cuts a range of time into `count` slices, at least one.
    pub fn new(extent: Interval, count: usize) -> TimeBins {
        let length = i128::from(extent.end_ns) - i128::from(extent.start_ns);
        let bound = |bin: usize| {
            let offset = length * bin as i128 / count as i128;
            (i128::from(extent.start_ns) + offset) as i64
        };
        TimeBins {
            bounds_ns: (0..=count).map(bound).collect(),
        }
    }

    fn count(&self) -> usize {
        self.bounds_ns.len() - 1
    }

    /// Returns the bin of a moment that is not before `bin`.
    #[inline]
    fn from(&self, mut bin: usize, ns: i64) -> usize {
        while bin + 1 < self.count() && self.bounds_ns[bin + 1] <= ns {
            bin += 1;
        }
        bin
    }

    /// Returns the end of a bin; the last one has no end.
    #[inline]
    fn end_ns(&self, bin: usize) -> i64 {
        match bin + 1 < self.count() {
            true => self.bounds_ns[bin + 1],
            false => i64::MAX,
        }
    }

    /// Returns the busy share of each bin, from 0 (nothing ran) to 255. `intervals` are in order of their starts;
    /// `visit` gets the number of each interval with its part in each bin that earlier intervals do not cover.
    pub fn shares(
        &self,
        intervals: impl Iterator<Item = Interval>,
        mut visit: impl FnMut(usize, BinPart),
    ) -> Vec<u8> {
        let mut busy = vec![0u64; self.count()];
        let (mut until_ns, mut instant, mut filled) = (i64::MIN, 0, 0);
        for (number, interval) in intervals.enumerate() {
            if interval.is_empty() {
                instant = self.from(instant, interval.start_ns);
                busy[instant] |= INSTANT;
                let bin = instant;
                visit(number, BinPart { bin, ns: 0 });
            }
            // The part that earlier intervals do not cover.
            let (mut from_ns, end_ns) = (interval.start_ns.max(until_ns), interval.end_ns);
            if from_ns >= end_ns {
                continue;
            }
            until_ns = end_ns;
            filled = self.from(filled, from_ns);
            loop {
                let to_ns = self.end_ns(filled).min(end_ns);
                let ns = (to_ns - from_ns).max(0) as u64;
                busy[filled] += ns;
                visit(number, BinPart { bin: filled, ns });
                if to_ns >= end_ns {
                    break;
                }
                from_ns = to_ns;
                filled += 1;
            }
        }
        let bounds = self.bounds_ns.windows(2);
        let shares = busy.iter().zip(bounds).map(|(busy, bounds)| {
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

/// Returns the indices of the events that have a part in a time, of `events`, which are in order and do not overlap.
pub fn within(
    events: Range<usize>,
    time: Interval,
    interval: impl Fn(usize) -> Interval,
) -> Range<usize> {
    let first_where = |holds: &dyn Fn(Interval) -> bool| {
        let (mut low, mut high) = (events.start, events.end);
        while low < high {
            let middle = low + (high - low) / 2;
            match holds(interval(middle)) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        low
    };
    let from = first_where(&|event| {
        let start_ns = time.start_ns;
        event.end_ns > start_ns || (event.is_empty() && event.start_ns >= start_ns)
    });
    let to = first_where(&|event| event.start_ns >= time.end_ns);
    from..to.max(from)
}

//! Cuts the time of a window into slices, and adds up the work of a device in each.
//!
//! The bounds of slices are the start of each and the end of the last, in order. Slices do not overlap and leave no time out.

use gapscope_timeline::Content;
use gapscope_timeline::busy::BusyParts;
use gapscope_timeline::intervals::{Busy, Interval};

/// The unions of the work of one device in a slice or under a label. Each includes the one before it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Unions {
    pub(crate) compute: Busy,
    communication: Busy,
    transfers: Busy,
    /// The union that also includes work that is timed as a whole and may idle within.
    all: Busy,
}

impl Unions {
    /// Adds a piece of work. Pieces come in order of start.
    #[inline]
    pub(crate) fn add(&mut self, interval: Interval, content: Content) {
        self.all.add(interval);
        if matches!(content, Content::Whole { idle: true, .. }) {
            return;
        }
        self.transfers.add(interval);
        if content == Content::Transfer {
            return;
        }
        self.communication.add(interval);
        if content != Content::Communication {
            self.compute.add(interval);
        }
    }

    /// Returns the parts of busy time, as differences of the unions.
    pub(crate) fn parts(&self) -> BusyParts {
        BusyParts {
            compute_ns: self.compute.length_ns,
            communication_ns: self.communication.length_ns - self.compute.length_ns,
            transfer_ns: self.transfers.length_ns - self.communication.length_ns,
            whole_ns: self.all.length_ns - self.transfers.length_ns,
            doubtful_ns: 0,
            beside_compute_ns: 0,
            ..BusyParts::default()
        }
    }
}

/// Returns the slice that holds a moment of the window.
pub(crate) fn slice_of(bounds: &[i64], at_ns: i64) -> usize {
    let after = bounds.partition_point(|bound| *bound <= at_ns);
    after.saturating_sub(1).min(bounds.len().saturating_sub(2))
}

/// Calls `add` with the pieces of an interval in the window, by slice, in any order of intervals.
pub(crate) fn piece_of_slices(bounds: &[i64], inside: Interval, add: impl FnMut(usize, Interval)) {
    if !inside.is_empty() {
        let mut place = slice_of(bounds, inside.start_ns);
        cut(bounds, &mut place, inside, add);
    }
}

/// Calls `add` with the pieces of an interval in the window, by slice, and returns the slice in which the interval begins.
/// `place` is the slice of the interval before, and intervals come in order of start.
#[inline]
pub(crate) fn cut(
    bounds: &[i64],
    place: &mut usize,
    interval: Interval,
    mut add: impl FnMut(usize, Interval),
) -> usize {
    while *place + 2 < bounds.len() && bounds[*place + 1] <= interval.start_ns {
        *place += 1;
    }
    let mut slice = *place;
    let mut from_ns = interval.start_ns;
    while from_ns < interval.end_ns && slice + 1 < bounds.len() {
        let until_ns = bounds[slice + 1].min(interval.end_ns);
        add(slice, Interval::new(from_ns, until_ns));
        from_ns = until_ns;
        slice += 1;
    }
    *place
}

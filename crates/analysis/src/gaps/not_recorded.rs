//! Gives the time of gaps in which nothing was recorded, as between two windows of a profiler that records parts of a run, to
//! the recording: nobody knows what device and host did then, and no verdict may count it.

use super::Cause;
use super::explain::{Explanation, overlay, pieces};
use gapscope_timeline::intervals::Interval;

impl Explanation {
    /// Changes the cause of the parts of `gap` that lie in `times`, the times in which nothing was recorded.
    pub(super) fn leave_out(&mut self, times: &[Interval], gap: Interval) {
        let first = times.partition_point(|time| time.end_ns <= gap.start_ns);
        let first = times.get(first);
        if first.is_none_or(|time| time.start_ns >= gap.end_ns) {
            return;
        }
        self.parts = overlay(&self.parts, times, Cause::Recording);
        let outside = |time: Interval| {
            let pieces = pieces(time, times);
            pieces.filter_map(|(piece, inside)| (!inside && !piece.is_empty()).then_some(piece))
        };
        let unknown = std::mem::take(&mut self.unknown).into_iter();
        self.unknown = unknown
            .flat_map(|(time, reason)| outside(time).map(move |piece| (piece, reason)))
            .collect();
        let functions = std::mem::take(&mut self.untimed_functions).into_iter();
        self.untimed_functions = functions.flat_map(outside).collect();
    }
}

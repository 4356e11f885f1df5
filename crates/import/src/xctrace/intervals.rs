//! Joins GPU intervals into pieces of work, and computes the length of unions of intervals.
//!
//! Instruments' intervals nest and overlap: an encoder may have several rows, for the whole and for parts.
//! Overlapping intervals of one encoder and channel are one piece of work; sums of rows would count it twice.

use super::facts::records::{Channel, ExecutionPoint, GpuInterval, GpuSubmission};
use rustc_hash::FxHashMap;

/// An interval of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub start_ns: i64,
    pub end_ns: i64,
}

impl Span {
    pub fn new(start_ns: i64, duration_ns: i64) -> Span {
        Span {
            start_ns,
            end_ns: start_ns.saturating_add(duration_ns),
        }
    }
}

/// A piece of GPU work: an uninterrupted interval of one encoder on one channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub start_ns: i64,
    pub end_ns: i64,
    pub channel: Channel,
    pub command_buffer: Option<u64>,
    pub encoder: Option<u64>,
}

/// The pieces of a process's GPU work.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pieces {
    /// The pieces in the order of their starts.
    pub pieces: Vec<Piece>,
    /// The number of intervals with impossible times.
    pub refused: u64,
}

/// Returns the pieces of the intervals of `pid`: intervals of one command buffer, encoder and channel that overlap or
/// touch are one piece.
pub(crate) fn pieces(intervals: &[GpuInterval], pid: u32) -> Pieces {
    let mut refused = 0;
    let mut pieces: Vec<Piece> = Vec::new();
    for interval in intervals.iter().filter(|i| i.pid == Some(pid)) {
        match interval.start_ns.checked_add(interval.duration_ns) {
            Some(end_ns) => pieces.push(Piece {
                start_ns: interval.start_ns,
                end_ns,
                channel: interval.channel,
                command_buffer: interval.command_buffer,
                encoder: interval.encoder,
            }),
            None => refused += 1,
        }
    }
    pieces.sort_by_key(|piece| {
        (
            piece.command_buffer,
            piece.encoder,
            piece.channel,
            piece.start_ns,
            piece.end_ns,
        )
    });
    let mut merged: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match merged.last_mut() {
            Some(last)
                if (last.command_buffer, last.encoder, last.channel)
                    == (piece.command_buffer, piece.encoder, piece.channel)
                    && piece.start_ns <= last.end_ns =>
            {
                last.end_ns = last.end_ns.max(piece.end_ns);
            }
            _ => merged.push(piece),
        }
    }
    merged.sort_by_key(|piece| {
        (
            piece.start_ns,
            piece.end_ns,
            piece.command_buffer,
            piece.encoder,
        )
    });
    Pieces {
        pieces: merged,
        refused,
    }
}

/// Makes intervals from the starts and ends of work on the GPU's channels, for exports without `metal-gpu-intervals`.
/// Sorts `points` by time. Starts without an end, and work of no known command buffer, make none.
pub(crate) fn from_points(
    points: &mut [ExecutionPoint],
    submissions: &[GpuSubmission],
) -> Vec<GpuInterval> {
    let mut owners: FxHashMap<u64, GpuSubmission> = FxHashMap::default();
    for submission in submissions {
        owners
            .entry(submission.gpu_submission)
            .and_modify(|known| {
                if known.encoder != submission.encoder {
                    // The shares of coalesced encoders are unknown.
                    known.encoder = None;
                }
            })
            .or_insert(*submission);
    }
    points.sort_by_key(|point| (point.at_ns, point.is_start));
    let mut open: FxHashMap<u64, i64> = FxHashMap::default();
    let mut intervals = Vec::new();
    for point in points {
        if point.is_start {
            open.insert(point.gpu_submission, point.at_ns);
        } else if let Some(start_ns) = open.remove(&point.gpu_submission)
            && let Some(owner) = owners.get(&point.gpu_submission)
        {
            intervals.push(GpuInterval {
                start_ns,
                duration_ns: point.at_ns - start_ns,
                channel: Channel::Other,
                pid: owner.pid,
                command_buffer: Some(owner.command_buffer),
                encoder: owner.encoder,
            });
        }
    }
    intervals
}

/// Returns the length of the union of the spans.
pub(crate) fn union_ns(mut spans: Vec<Span>) -> i64 {
    spans.sort_unstable();
    let (mut total, mut reached) = (0i64, i64::MIN);
    for Span { start_ns, end_ns } in spans {
        let from = start_ns.max(reached);
        total = total.saturating_add(end_ns.saturating_sub(from).max(0));
        reached = reached.max(end_ns);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start_ns: i64, duration_ns: i64, encoder: u64) -> GpuInterval {
        GpuInterval {
            start_ns,
            duration_ns,
            channel: Channel::Compute,
            pid: Some(1),
            command_buffer: Some(7),
            encoder: Some(encoder),
        }
    }

    #[test]
    fn rows_of_one_encoder_that_overlap_are_one_piece() {
        let rows = [
            interval(0, 10, 1),
            interval(2, 3, 1),
            interval(5, 10, 1),
            interval(20, 5, 1),
            interval(3, 4, 2),
        ];
        let Pieces { pieces, refused } = pieces(&rows, 1);
        let times: Vec<_> = pieces
            .iter()
            .map(|p| (p.encoder, p.start_ns, p.end_ns))
            .collect();
        assert_eq!(
            times,
            [(Some(1), 0, 15), (Some(2), 3, 7), (Some(1), 20, 25)]
        );
        assert_eq!(refused, 0);
    }

    #[test]
    fn other_processes_and_impossible_times_are_left_out() {
        let mut other = interval(0, 10, 1);
        other.pid = Some(2);
        let found = pieces(&[other, interval(1, i64::MAX, 1)], 1);
        assert_eq!((found.pieces, found.refused), (vec![], 1));
    }

    #[test]
    fn a_union_counts_no_time_twice() {
        let spans = [(5, 5), (0, 7), (20, 1), (20, 1)];
        let spans = spans.map(|(start_ns, duration_ns)| Span::new(start_ns, duration_ns));
        assert_eq!(union_ns(spans.to_vec()), 11);
        assert_eq!(union_ns(vec![]), 0);
    }

    #[test]
    fn starts_and_ends_make_intervals_of_their_command_buffer() {
        let point = |at_ns, is_start, gpu_submission| ExecutionPoint {
            at_ns,
            is_start,
            gpu_submission,
        };
        let mut points = [
            point(5, true, 1),
            point(9, false, 1),
            point(9, true, 2),
            point(12, false, 3),
        ];
        let owner = |gpu_submission, encoder| GpuSubmission {
            gpu_submission,
            command_buffer: 7,
            encoder: Some(encoder),
            pid: Some(1),
        };
        let made = from_points(&mut points, &[owner(1, 3), owner(1, 4), owner(2, 5)]);
        assert_eq!(made.len(), 1);
        assert_eq!(
            (made[0].start_ns, made[0].duration_ns, made[0].encoder),
            (5, 4, None)
        );
    }
}

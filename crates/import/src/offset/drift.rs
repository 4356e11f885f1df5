//! Measures by how much the clocks of two files drift apart, from the offsets at which the launches of parts of the time
//! lie inside of ranges.

use super::{Fit, Launch, MAX_OFFSET_NS, MIN_SHARE, ThreadPair, fit};
use std::ops::Range;

/// The largest number of parts, and the smallest number of launches in each.
const MAX_PARTS: usize = 16;
const MIN_LAUNCHES: usize = 100;
/// The smallest number of parts whose offsets must lie on one line.
const MIN_ON_LINE: usize = 3;
/// The largest drift: as much as a daemon that sets the time corrects a clock.
const MAX_NS_PER_S: f64 = 500_000.0;
/// How far from the line the offset of a part may lie, beyond its own error.
const TOLERANCE_NS: f64 = 1_000.0;

/// By how much two clocks drift apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// What is added to times for each second after `zero_ns`, in nanoseconds; subtracted before it.
    pub ns_per_s: i64,
    /// The time at which nothing is added.
    pub zero_ns: i64,
}

impl Drift {
    /// Returns what is added to a time.
    pub fn at(self, ns: i64) -> i64 {
        let since_zero_ns = i128::from(ns) - i128::from(self.zero_ns);
        let added = since_zero_ns * i128::from(self.ns_per_s) / 1_000_000_000;
        added.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Returns the drift of the same times on a clock that is ahead by `ns`.
    pub fn shifted(self, ns: i64) -> Drift {
        Drift {
            zero_ns: self.zero_ns.saturating_add(ns),
            ..self
        }
    }

    /// Returns segments with what is added to their times.
    pub fn moved(self, segments: &[Range<i64>]) -> Vec<Range<i64>> {
        let moved = |ns: i64| ns.saturating_add(self.at(ns));
        let segments = segments.iter();
        segments
            .map(|segment| moved(segment.start)..moved(segment.end))
            .collect()
    }
}

/// The offset of the clocks at a time.
#[derive(Debug, Clone, Copy)]
struct Point {
    at_ns: f64,
    offset_ns: f64,
    error_ns: f64,
}

/// Returns the drift of the clocks, measured from one that is near it, and the number of parts of the time that show it; `None`
/// where they do not show one.
pub(super) fn measure(pairs: &[ThreadPair], tried_ns_per_s: i64) -> Option<(Drift, usize)> {
    let near: Vec<ThreadPair> = pairs.iter().filter_map(ThreadPair::near).collect();
    let launches = near.iter().flat_map(|pair| pair.launches);
    let mut starts: Vec<i64> = launches.map(|launch| launch.span.start_ns).collect();
    starts.sort_unstable();
    let parts = (starts.len() / MIN_LAUNCHES).min(MAX_PARTS);
    if parts < MIN_ON_LINE {
        return None;
    }
    let (first, last) = (*starts.first()?, *starts.last()?);
    let tried = Drift {
        ns_per_s: tried_ns_per_s,
        zero_ns: first.midpoint(last),
    };
    let segments: Vec<Vec<Range<i64>>> = (near.iter())
        .map(|pair| tried.moved(pair.segments))
        .collect();
    let near = near.iter().zip(&segments);
    let near: Vec<ThreadPair> = near
        .map(|(pair, segments)| ThreadPair { segments, ..*pair })
        .collect();
    let of_part = starts.len().div_ceil(parts);
    let points = starts.chunks(of_part).filter_map(|starts| {
        let (from_ns, to_ns) = (*starts.first()?, *starts.last()?);
        point(&near, from_ns..to_ns.saturating_add(1))
    });
    let points: Vec<Point> = points.collect();
    let on_line = most_on_a_line(&points);
    if on_line.len() < MIN_ON_LINE || on_line.len() * 2 < parts {
        return None;
    }
    let ns_per_s = tried_ns_per_s + (slope(&on_line)? * 1e9).round() as i64;
    let drift = Drift { ns_per_s, ..tried };
    (ns_per_s.unsigned_abs() as f64 <= MAX_NS_PER_S).then_some((drift, on_line.len()))
}

/// Returns the offset at which the launches of a part of the time lie inside of ranges; `None` where they do not show it.
fn point(pairs: &[ThreadPair], time: Range<i64>) -> Option<Point> {
    let part = pairs.iter().map(|pair| {
        let before = |launch: &Launch| launch.span.start_ns < time.start;
        let first = pair.launches.partition_point(before);
        let end = (pair.launches).partition_point(|launch| launch.span.start_ns < time.end);
        let from_ns = time.start.saturating_sub(2 * MAX_OFFSET_NS);
        let to_ns = time.end.saturating_add(2 * MAX_OFFSET_NS);
        let from = (pair.segments).partition_point(|segment| segment.end < from_ns);
        let to = (pair.segments).partition_point(|segment| segment.start <= to_ns);
        ThreadPair {
            launches: &pair.launches[first..end.max(first)],
            segments: &pair.segments[from..to.max(from)],
        }
    });
    let part: Vec<ThreadPair> = part.collect();
    let fit: Fit = fit(&part)?;
    let shows = fit.is_bounded && fit.share() >= MIN_SHARE;
    shows.then(|| Point {
        at_ns: time.start.midpoint(time.end) as f64,
        offset_ns: fit.middle_ns as f64,
        error_ns: fit.error_ns as f64,
    })
}

/// Returns the largest number of points that lie on one line.
fn most_on_a_line(points: &[Point]) -> Vec<Point> {
    let mut most: Vec<Point> = Vec::new();
    for (index, a) in points.iter().enumerate() {
        for b in &points[index + 1..] {
            let slope = (b.offset_ns - a.offset_ns) / (b.at_ns - a.at_ns);
            if !slope.is_finite() || (slope * 1e9).abs() > MAX_NS_PER_S {
                continue;
            }
            let is_on_line = |point: &&Point| {
                let line_ns = a.offset_ns + slope * (point.at_ns - a.at_ns);
                (point.offset_ns - line_ns).abs() <= point.error_ns + TOLERANCE_NS
            };
            let on_line: Vec<Point> = points.iter().filter(is_on_line).copied().collect();
            if on_line.len() > most.len() {
                most = on_line;
            }
        }
    }
    most
}

/// Returns the slope of the line with the smallest sum of squared distances from points.
fn slope(points: &[Point]) -> Option<f64> {
    let count = points.len() as f64;
    let middle_ns = points.iter().map(|point| point.at_ns).sum::<f64>() / count;
    let mean_ns = points.iter().map(|point| point.offset_ns).sum::<f64>() / count;
    let (products, squares) = points
        .iter()
        .fold((0.0, 0.0), |(products, squares), point| {
            let at_ns = point.at_ns - middle_ns;
            (
                products + at_ns * (point.offset_ns - mean_ns),
                squares + at_ns * at_ns,
            )
        });
    let slope = products / squares;
    slope.is_finite().then_some(slope)
}

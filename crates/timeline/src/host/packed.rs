//! Stores the segments of a thread in less than half of the memory: ten million calls are not rare, and a program makes
//! few different ones.

use super::segment::{Segment, WaitOutcome};
use crate::intervals::Interval;
use crate::nearby;
use gapscope_trace::tables::HostCallKind;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// The segments of one thread, in order of time.
#[derive(Debug, Default)]
pub(super) struct ThreadSegments {
    packed: Vec<Packed>,
    /// The different segments but for their times.
    kinds: Vec<Segment>,
    /// The place of each in `kinds`.
    places: FxHashMap<Kind, u32>,
    /// The segments that cannot be packed, by their index.
    whole: FxHashMap<u32, Segment>,
}

/// A segment that starts with its call and is shorter than four seconds.
#[derive(Debug, Clone, Copy)]
struct Packed {
    start_ns: i64,
    length_ns: u32,
    /// The place of its other fields in [`ThreadSegments::kinds`], or [`WHOLE`].
    kind: u32,
}

/// Stands for a segment that is not packed.
const WHOLE: u32 = u32::MAX;
/// The most kinds of segments. Rows of folded calls may each have another count.
const MAX_KINDS: usize = 1 << 16;

/// The fields of a segment but for its times.
type Kind = (HostCallKind, u32, u32, WaitOutcome, [bool; 3]);

impl ThreadSegments {
    /// Appends segments, which come after all others.
    pub(super) fn extend(&mut self, segments: &[Segment]) {
        self.packed.reserve(segments.len());
        for segment in segments {
            let index = self.packed.len() as u32;
            let packed = self.pack(segment).unwrap_or_else(|| {
                self.whole.insert(index, *segment);
                Packed {
                    start_ns: segment.interval.start_ns,
                    length_ns: 0,
                    kind: WHOLE,
                }
            });
            self.packed.push(packed);
        }
    }

    /// Packs a segment; returns `None` where it cannot be packed.
    fn pack(&mut self, segment: &Segment) -> Option<Packed> {
        let Interval { start_ns, end_ns } = segment.interval;
        let length_ns = u32::try_from(end_ns.checked_sub(start_ns)?).ok()?;
        if segment.since_ns != start_ns {
            return None;
        }
        let flags = [segment.waits, segment.continues_wait, segment.is_last];
        let kind = (
            segment.call,
            segment.function,
            segment.count,
            segment.outcome,
            flags,
        );
        let kind = match self.places.get(&kind) {
            Some(place) => *place,
            None if self.kinds.len() < MAX_KINDS => {
                let place = self.kinds.len() as u32;
                self.kinds.push(*segment);
                self.places.insert(kind, place);
                place
            }
            None => return None,
        };
        Some(Packed {
            start_ns,
            length_ns,
            kind,
        })
    }

    /// Gives back the memory that only more segments would need.
    pub(super) fn finish(&mut self) {
        self.packed.shrink_to_fit();
    }

    #[inline]
    pub(super) fn at(&self, index: usize) -> Segment {
        let Packed {
            start_ns,
            length_ns,
            kind,
        } = self.packed[index];
        match self.kinds.get(kind as usize) {
            Some(kind) => Segment {
                interval: Interval::new(start_ns, start_ns + i64::from(length_ns)),
                since_ns: start_ns,
                ..*kind
            },
            None => self.whole[&(index as u32)],
        }
    }

    #[inline]
    fn end_ns(&self, index: usize) -> i64 {
        let packed = self.packed[index];
        match packed.kind {
            WHOLE => self.whole[&(index as u32)].interval.end_ns,
            _ => packed.start_ns + i64::from(packed.length_ns),
        }
    }

    /// Returns the index of the first segment whose end `is_before` rejects.
    fn first(&self, is_before: impl Fn(i64) -> bool) -> usize {
        // Ends are in order, as segments do not overlap; where a segment has begun too late, so does its end.
        let begun = nearby::partition_point(&self.packed, |segment| is_before(segment.start_ns));
        match begun.checked_sub(1) {
            Some(last) if !is_before(self.end_ns(last)) => last,
            _ => begun,
        }
    }

    pub(super) fn all(&self) -> Segments<'_> {
        Segments {
            thread: Some(self),
            range: 0..self.packed.len(),
        }
    }

    /// Returns the segments that overlap `window`. The caller visits all of them, so their end is found by a walk too.
    pub(super) fn within(&self, window: Interval) -> Segments<'_> {
        let from = self.first(|end_ns| end_ns <= window.start_ns);
        let rest = self.packed[from..].iter();
        let begun = rest.take_while(|segment| segment.start_ns < window.end_ns);
        Segments {
            thread: Some(self),
            range: from..from + begun.count(),
        }
    }

    /// Returns the first segment that starts at `at_ns` or later.
    pub(super) fn starting_from(&self, at_ns: i64) -> Option<Segment> {
        let from = nearby::partition_point(&self.packed, |segment| segment.start_ns < at_ns);
        (from < self.packed.len()).then(|| self.at(from))
    }
}

/// Segments of a thread that follow each other.
#[derive(Debug, Clone, Default)]
pub struct Segments<'a> {
    /// `None` where there are no segments.
    thread: Option<&'a ThreadSegments>,
    range: Range<usize>,
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    #[inline]
    fn next(&mut self) -> Option<Segment> {
        let at = self.range.next()?;
        self.thread.map(|thread| thread.at(at))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}

impl DoubleEndedIterator for Segments<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Segment> {
        let at = self.range.next_back()?;
        self.thread.map(|thread| thread.at(at))
    }
}

impl ExactSizeIterator for Segments<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_as_they_were_given() {
        let segment = |start_ns: i64, end_ns: i64, count| {
            let interval = Interval::new(start_ns, end_ns);
            Segment::new(HostCallKind::Submit, 3, count, WaitOutcome::Done, interval)
        };
        let late = Segment {
            since_ns: 5,
            ..segment(30, 40, 1)
        };
        let long = segment(50, 50 + (1 << 33), 1);
        let given = [segment(0, 10, 1), segment(10, 20, 7), late, long];
        let mut thread = ThreadSegments::default();
        thread.extend(&given[..1]);
        thread.extend(&given[1..]);
        thread.finish();
        assert_eq!(thread.all().collect::<Vec<_>>(), given);
        assert_eq!(thread.whole.len(), 2);
        let within = |from, to| {
            let inside = thread.within(Interval::new(from, to));
            inside.map(|one| one.interval.start_ns).collect::<Vec<_>>()
        };
        assert_eq!(within(0, 100), [0, 10, 30, 50]);
        assert_eq!(within(10, 11), [10]);
        assert_eq!(within(20, 30), [0; 0]);
        assert_eq!(within(39, 51), [30, 50]);
        assert_eq!(within(1 << 32, 1 << 34), [50]);
        let starting = |at_ns| thread.starting_from(at_ns).map(|one| one.interval.start_ns);
        assert_eq!(starting(10), Some(10));
        assert_eq!(starting(11), Some(30));
        assert_eq!(starting(51), None);
    }
}

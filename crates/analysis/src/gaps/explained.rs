//! Explains the gaps of a device on all cores, and keeps their parts for the analyses that need nothing else of them. Ten million
//! gaps are not rare, so the parts are packed.

use super::{Cause, GapPart};
use gapscope_timeline::Gap;
use gapscope_timeline::intervals::Interval;
use gapscope_trace::parallel;
use rustc_hash::FxHashMap;

/// The number of gaps that are explained before the next ones are collected.
const BATCH: usize = 1 << 18;
/// The number of gaps of a job.
const JOB: usize = 1 << 14;

/// The parts of all gaps of a device, gap after gap.
#[derive(Debug, Default)]
pub(crate) struct ExplainedGaps {
    /// The number of parts of each gap, or [`WHOLE`].
    counts: Vec<u8>,
    /// The cause and the length of each part. A part starts where the one before it ends.
    causes: Vec<Cause>,
    lengths_ns: Vec<u32>,
    /// The parts of the gaps that cannot be packed, by the number of the gap.
    whole: FxHashMap<usize, Vec<GapPart>>,
}

/// Stands for the parts of a gap that are not packed.
const WHOLE: u8 = u8::MAX;

impl ExplainedGaps {
    /// Collects the parts of the gaps of a device. `explain` explains some of them, one after the other, calls
    /// [`ExplainedGaps::push`] for each, and returns their sums, which `add` gets in the order of the gaps.
    pub(super) fn new<S: Send>(
        mut gaps: impl Iterator<Item = Gap>,
        explain: impl Fn(&[Gap], &mut ExplainedGaps) -> S + Sync,
        mut add: impl FnMut(S),
    ) -> ExplainedGaps {
        let explain = |gaps: &[Gap]| {
            let mut explained = ExplainedGaps::default();
            let sums = explain(gaps, &mut explained);
            (explained, sums)
        };
        let mut all = ExplainedGaps::default();
        loop {
            let batch: Vec<Gap> = gaps.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return all;
            }
            for (explained, sums) in parallel::each(batch.chunks(JOB).collect(), explain) {
                all.append(explained);
                add(sums);
            }
        }
    }

    /// Adds the parts of the next gap.
    pub(super) fn push(&mut self, gap: Interval, parts: &[GapPart]) {
        let count = u8::try_from(parts.len()).unwrap_or(WHOLE);
        let mut next_ns = gap.start_ns;
        let fits = parts.iter().all(|part| {
            let follows = part.start_ns == next_ns;
            next_ns = part.interval().end_ns;
            follows && u32::try_from(part.duration_ns).is_ok()
        });
        if count == WHOLE || !fits {
            self.whole.insert(self.counts.len(), parts.to_vec());
            self.counts.push(WHOLE);
            return;
        }
        self.counts.push(count);
        self.causes.extend(parts.iter().map(|part| part.cause));
        let lengths_ns = parts.iter().map(|part| part.duration_ns as u32);
        self.lengths_ns.extend(lengths_ns);
    }

    /// Adds the gaps of `other`, which come after all others.
    fn append(&mut self, mut other: ExplainedGaps) {
        let before = self.counts.len();
        let whole = other.whole.into_iter();
        self.whole
            .extend(whole.map(|(gap, parts)| (before + gap, parts)));
        self.counts.append(&mut other.counts);
        self.causes.append(&mut other.causes);
        self.lengths_ns.append(&mut other.lengths_ns);
    }

    /// Begins a walk over the parts, gap by gap.
    pub(super) fn parts(&self) -> Parts<'_> {
        Parts {
            explained: self,
            gap: 0,
            at: 0,
            parts: Vec::new(),
        }
    }
}

/// A walk over the parts of gaps.
pub(super) struct Parts<'a> {
    explained: &'a ExplainedGaps,
    /// The number of the next gap, and the index of its first part.
    gap: usize,
    at: usize,
    parts: Vec<GapPart>,
}

impl Parts<'_> {
    /// Returns the parts of the next gap, which has this interval.
    pub(super) fn next(&mut self, gap: Interval) -> &[GapPart] {
        self.parts.clear();
        let count = self.explained.counts[self.gap];
        if count == WHOLE {
            let whole = self.explained.whole.get(&self.gap).into_iter();
            self.parts.extend(whole.flatten());
        } else {
            let range = self.at..self.at + usize::from(count);
            let mut start_ns = gap.start_ns;
            for at in range.clone() {
                let duration_ns = i64::from(self.explained.lengths_ns[at]);
                self.parts.push(GapPart {
                    cause: self.explained.causes[at],
                    start_ns,
                    duration_ns,
                });
                start_ns += duration_ns;
            }
            self.at = range.end;
        }
        self.gap += 1;
        &self.parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_they_were_given() {
        let part = |cause, start_ns, duration_ns| GapPart {
            cause,
            start_ns,
            duration_ns,
        };
        let (late, call) = (Cause::HostLate, Cause::SubmitCall);
        let given = [
            vec![part(late, 10, 5), part(call, 15, 1)],
            vec![],
            vec![part(call, 100, 1 << 40)],
            vec![part(late, 1 << 50, 7)],
            vec![part(late, 0, 1); 300],
        ];
        let interval = |parts: &[GapPart]| {
            let start_ns = parts.first().map_or(0, |part| part.start_ns);
            Interval::new(start_ns, start_ns)
        };
        let mut all = ExplainedGaps::default();
        for parts in &given {
            let mut one = ExplainedGaps::default();
            one.push(interval(parts), parts);
            all.append(one);
        }
        assert_eq!(all.whole.len(), 2);
        let mut walk = all.parts();
        for parts in &given {
            assert_eq!(walk.next(interval(parts)), parts);
        }
    }
}

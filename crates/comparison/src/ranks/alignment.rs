//! Finds which operations of two ranks on one communicator are the same, where the trace does not number them: the
//! operations of both ranks go in, in order of time, and pairs of their indices come out.
//!
//! Ranks call the operations of a communicator in one order, so that the n-th of one rank is the n-th of the other, unless one
//! rank's recording lacks some: it began later, or lost a part. Operations are therefore paired in order, and a pair must fit:
//! - both are of one kind, and of one size where both sizes are known;
//! - kernels of a kind that ends on all ranks together overlap within the clocks' error, and no neighbour's end is nearer by more
//!   than that error explains.
//!
//! Where the next two do not fit, the least number of operations is passed over, of one rank, after which two fit. Where there is no such
//! number, the two are paired even so, and the caller sees that they contradict each other.

use super::part::CollectivePart;
use gapscope_timeline::collectives::facts;

/// The maximum number of operations of one rank that are passed over at once.
const MAX_PASSED_OVER: usize = 256;

/// The operations of two ranks, with the error within which their times compare; `None` where they do not.
pub(super) struct Alignment<'a> {
    pub(super) first: &'a [&'a CollectivePart],
    pub(super) second: &'a [&'a CollectivePart],
    pub(super) error_ns: Option<i64>,
}

impl Alignment<'_> {
    /// Returns for each operation of the second rank the index of the first rank's same operation, if there is one.
    pub(super) fn pairs(&self) -> Vec<Option<usize>> {
        let mut pairs = vec![None; self.second.len()];
        let (mut at, mut other) = (0, 0);
        while at < self.first.len() && other < self.second.len() {
            if !self.fit(at, other) {
                let passed = (1..=MAX_PASSED_OVER).find_map(|count| {
                    if self.fit(at + count, other) {
                        Some((count, 0))
                    } else {
                        self.fit(at, other + count).then_some((0, count))
                    }
                });
                match passed {
                    Some((of_first, of_second)) => {
                        at += of_first;
                        other += of_second;
                    }
                    None if self.first[at].kind != self.second[other].kind => {
                        // Which of the two lacks its counterpart is not known.
                        at += 1;
                        other += 1;
                        continue;
                    }
                    None => {}
                }
            }
            pairs[other] = Some(at);
            at += 1;
            other += 1;
        }
        pairs
    }

    /// Returns true where an operation of the first rank and one of the second can be the same.
    fn fit(&self, at: usize, other: usize) -> bool {
        let (Some(first), Some(second)) = (self.first.get(at), self.second.get(other)) else {
            return false;
        };
        let one_size = match (first.bytes, second.bytes) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        if first.kind != second.kind || !one_size {
            return false;
        }
        let ends_together = facts(first.kind).is_some_and(|facts| !facts.may_end_early);
        let Some(error_ns) = self.error_ns.filter(|_| ends_together) else {
            return true;
        };
        let (a, b) = (first.interval, second.interval);
        let latest_start_ns = a.start_ns.max(b.start_ns);
        if latest_start_ns > a.end_ns.min(b.end_ns).saturating_add(error_ns) {
            return false;
        }
        let apart_ns = a.end_ns.abs_diff(b.end_ns);
        let is_nearer = |one: Option<&&CollectivePart>, end_ns: i64| {
            one.is_some_and(|next| {
                let next_ns = next.interval.end_ns.abs_diff(end_ns);
                next_ns.saturating_add(error_ns.unsigned_abs().saturating_mul(2)) < apart_ns
            })
        };
        !is_nearer(self.first.get(at + 1), b.end_ns)
            && !is_nearer(self.second.get(other + 1), a.end_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gapscope_timeline::intervals::Interval;

    fn operation(kind: &'static str, bytes: u64, [start, end]: [i64; 2]) -> CollectivePart {
        CollectivePart {
            interval: Interval::new(start, end),
            kind,
            communicator: None,
            bytes: Some(bytes),
            messages: Box::default(),
            before: None,
            queue: None,
            operation: None,
        }
    }

    fn pairs(
        first: &[CollectivePart],
        second: &[CollectivePart],
        error_ns: Option<i64>,
    ) -> Vec<Option<usize>> {
        let first: Vec<&CollectivePart> = first.iter().collect();
        let second: Vec<&CollectivePart> = second.iter().collect();
        let alignment = Alignment {
            first: &first,
            second: &second,
            error_ns,
        };
        alignment.pairs()
    }

    /// All-reduces of one size, a thousand nanoseconds apart; the rank arrives so much later than the start of each.
    fn reduces(numbers: std::ops::Range<i64>, late: i64) -> Vec<CollectivePart> {
        let reduce = |n: i64| operation("AllReduce", 64, [1_000 * n + late, 1_000 * n + 900]);
        numbers.map(reduce).collect()
    }

    #[test]
    fn a_rank_whose_recording_lacks_some_operations_is_paired_by_time() {
        let all = reduces(0..10, 0);
        let from = |first: usize| (first..10).map(Some).collect::<Vec<_>>();
        assert_eq!(pairs(&all, &all, Some(2)), from(0));
        // The recording of the second began late, or that of the first.
        assert_eq!(pairs(&all, &reduces(3..10, 800), Some(2)), from(3));
        let mut late: Vec<Option<usize>> = vec![None; 3];
        late.extend((0..7).map(Some));
        assert_eq!(pairs(&reduces(3..10, 0), &all, Some(2)), late);
        // Two are lost between.
        let mut lost = reduces(0..4, 10);
        lost.extend(reduces(6..10, 10));
        let expected = [0, 1, 2, 3, 6, 7, 8, 9].map(Some);
        assert_eq!(pairs(&all, &lost, Some(2)), expected);
        // Both lack another one at the start, and have equally many: the caller sees that the first two do not overlap.
        let mut first = reduces(0..1, 0);
        first.extend(reduces(2..10, 0));
        assert_eq!(
            pairs(&first, &reduces(1..10, 0), Some(2)),
            (0..9).map(Some).collect::<Vec<_>>()
        );
    }

    #[test]
    fn operations_back_to_back_are_told_apart_by_their_ends() {
        let back_to_back = |numbers: std::ops::Range<i64>| -> Vec<CollectivePart> {
            let reduce = |n: i64| operation("AllReduce", 64, [1_000 * n, 1_000 * n + 995]);
            numbers.map(reduce).collect()
        };
        let (all, late) = (back_to_back(0..6), back_to_back(1..6));
        let expected = [1, 2, 3, 4, 5].map(Some);
        assert_eq!(pairs(&all, &late, Some(20)), expected);
        // Within an error of more than half a period it cannot be told, and they are paired in their order.
        assert_eq!(pairs(&all, &late, Some(600)), [0, 1, 2, 3, 4].map(Some));
    }

    #[test]
    fn without_times_kinds_and_sizes_pair() {
        let step = |n: i64| {
            [
                operation("AllGather", 64, [n, n + 1]),
                operation("AllReduce", 128, [n + 2, n + 3]),
                operation("AllReduce", 256, [n + 4, n + 5]),
            ]
        };
        let all: Vec<_> = (0..4).flat_map(|n| step(10 * n)).collect();
        let late: Vec<_> = all[1..].to_vec();
        assert_eq!(
            pairs(&all, &late, None),
            (1..12).map(Some).collect::<Vec<_>>()
        );
        assert_eq!(pairs(&[], &late, None), vec![None; 11]);
    }
}

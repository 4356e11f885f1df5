//! Bounds the error of the GPU's times relative to the host's clock, from the times of command buffers.
//!
//! Instruments maps the GPU's clock itself and states no error. But a command buffer runs after its commit and
//! before it is seen finished. A GPU time that is late by more than the shortest wait between an end and its
//! notice, or early by more than the shortest wait between a commit and its start, would contradict this order for
//! some command buffer, so that these two waits bound the error. As the error may change over a recording, each
//! second is bounded by its own command buffers, and the greatest bound counts.

use std::collections::BTreeMap;

/// The length of a part of the recording whose error is bounded by its own command buffers.
const STRETCH_NS: i64 = 1_000_000_000;

/// The times at which a command buffer was committed, ran, and was seen finished, on Instruments' clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lifetime {
    pub committed_ns: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    /// `None` if the exports do not say when it was seen finished; then it bounds nothing.
    pub seen_ns: Option<i64>,
}

/// The bound of the error, and the number of command buffers behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bound {
    /// The greatest possible error; `None` if no second is bounded on both sides.
    pub error_ns: Option<i64>,
    pub samples: u32,
    /// The number of command buffers that seem to run before their commit or after they were seen finished.
    pub contradictions: u64,
}

/// Bounds the error by the lifetimes of command buffers: for each second the greater of its two shortest waits, and
/// of these, and of all contradictions, the greatest.
pub(crate) fn bound(lifetimes: impl Iterator<Item = Lifetime>) -> Bound {
    let mut stretches: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
    let mut bound = Bound::default();
    for lifetime in lifetimes {
        let Some(seen_ns) = lifetime.seen_ns else {
            continue;
        };
        let before = lifetime.start_ns.saturating_sub(lifetime.committed_ns);
        let after = seen_ns.saturating_sub(lifetime.end_ns);
        bound.samples = bound.samples.saturating_add(1);
        bound.contradictions += u64::from(before < 0 || after < 0);
        let stretch = lifetime.start_ns.div_euclid(STRETCH_NS);
        let least = stretches.entry(stretch).or_insert((i64::MAX, i64::MAX));
        // A contradiction is an error of at least its size.
        least.0 = least.0.min(before.saturating_abs());
        least.1 = least.1.min(after.saturating_abs());
        if before < 0 || after < 0 {
            let least_error = before.min(after).saturating_abs();
            bound.error_ns = Some(bound.error_ns.unwrap_or(0).max(least_error));
        }
    }
    let widest = stretches
        .values()
        .map(|(before, after)| *before.max(after))
        .max();
    bound.error_ns = match (widest, bound.error_ns) {
        (Some(widest), Some(contradiction)) => Some(widest.max(contradiction)),
        (widest, _) => widest,
    };
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetime(committed_ns: i64, start_ns: i64, end_ns: i64, seen_ns: i64) -> Lifetime {
        Lifetime {
            committed_ns,
            start_ns,
            end_ns,
            seen_ns: Some(seen_ns),
        }
    }

    #[test]
    fn the_shortest_waits_of_each_second_bound_the_error() {
        let second = 1_000_000_000;
        let bound = bound(
            [
                lifetime(0, 900, 1_000, 5_000),
                lifetime(10_000, 10_300, 11_000, 11_100),
                lifetime(second, second + 200, second + 300, second + 850),
            ]
            .into_iter(),
        );
        assert_eq!(bound.error_ns, Some(550));
        assert_eq!((bound.samples, bound.contradictions), (3, 0));
    }

    #[test]
    fn work_before_its_commit_widens_the_bound() {
        let found = bound(
            [
                lifetime(1_000, 400, 500, 600),
                lifetime(2_000, 2_010, 2_020, 2_030),
            ]
            .into_iter(),
        );
        assert_eq!(found.error_ns, Some(600));
        assert_eq!(found.contradictions, 1);
    }

    #[test]
    fn without_notices_the_error_is_unknown() {
        let mut unseen = lifetime(0, 1, 2, 3);
        unseen.seen_ns = None;
        assert_eq!(bound([unseen].into_iter()), Bound::default());
    }
}

//! Limits the time that the layer takes from the program's threads: each reports the time that it spends, and
//! learns how much is left.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// The share of the time that the layer may spend: one part in this many.
const SHARE: i64 = 100;
/// The most time that can be saved up by spending none. It is there from the start: a process that lives for a short
/// time may end without exit handlers.
const MAX_SAVED_NS: i64 = 2_000_000;

/// The time that the layer may spend. Threads that spend at once may together spend a little more.
#[derive(Default)]
pub struct OverheadBudget {
    /// Time at which nothing of the budget was left, from which on it grows; later than now where too much was spent.
    empty_at_ns: AtomicI64,
}

impl OverheadBudget {
    /// Returns the time that is left at `now_ns`.
    pub fn left(&self, now_ns: i64) -> i64 {
        let since_ns = now_ns.saturating_sub(self.empty_at_ns.load(Relaxed));
        (since_ns / SHARE).clamp(0, MAX_SAVED_NS)
    }

    /// Takes `spent_ns` from the time that was left at `now_ns`; more than was left may be spent.
    pub fn spend(&self, now_ns: i64, spent_ns: i64) {
        let left_ns = self.left(now_ns) - spent_ns;
        let empty_at_ns = now_ns.saturating_sub(left_ns.saturating_mul(SHARE));
        self.empty_at_ns.store(empty_at_ns, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_share_is_spent_beyond_what_was_saved() {
        let budget = OverheadBudget::default();
        let (start_ns, step_ns) = (5_000_000_000, 50_000);
        let mut now_ns = start_ns;
        let mut spent_ns = 0;
        while now_ns < start_ns + 1_000_000_000 {
            // Each look takes 30 µs, also past the budget.
            if budget.left(now_ns) > 0 {
                budget.spend(now_ns, 30_000);
                spent_ns += 30_000;
            }
            now_ns += step_ns;
        }
        let max_ns = MAX_SAVED_NS + (now_ns - start_ns) / SHARE + 30_000;
        assert!(
            (max_ns - 60_000..=max_ns).contains(&spent_ns),
            "{spent_ns} of {max_ns}"
        );
    }

    #[test]
    fn what_is_saved_has_a_limit() {
        let budget = OverheadBudget::default();
        assert_eq!(budget.left(i64::MAX), MAX_SAVED_NS);
        budget.spend(1_000_000_000, MAX_SAVED_NS + 1_000);
        assert_eq!(budget.left(1_000_000_000), 0);
        assert_eq!(budget.left(1_000_000_000 + 2_000 * SHARE), 1_000);
    }
}

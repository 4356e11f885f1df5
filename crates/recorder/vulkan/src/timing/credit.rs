//! How much time the program's threads spend for us.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};

/// One part in so many of the time that passes may be spent.
const SHARE: i64 = 100;
/// What is not spent is saved up to this, which is there from the start: a process that lives for a short time may end
/// without exit handlers.
const MOST_NS: i64 = 2_000_000;

/// Time that may be spent. Threads that spend at once may together spend a little more.
#[derive(Default)]
pub struct Credit {
    /// The credit was used up at this time, and grows from there.
    empty_at_ns: AtomicI64,
}

impl Credit {
    /// What is left at `now_ns`.
    pub fn left(&self, now_ns: i64) -> i64 {
        let since_ns = now_ns.saturating_sub(self.empty_at_ns.load(Relaxed));
        (since_ns / SHARE).clamp(0, MOST_NS)
    }

    /// Takes what was spent from what was left at `now_ns`.
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
        let credit = Credit::default();
        let (start_ns, step_ns) = (5_000_000_000, 50_000);
        let mut now_ns = start_ns;
        let mut spent_ns = 0;
        while now_ns < start_ns + 1_000_000_000 {
            // Each look takes 30 µs, also past the credit.
            if credit.left(now_ns) > 0 {
                credit.spend(now_ns, 30_000);
                spent_ns += 30_000;
            }
            now_ns += step_ns;
        }
        let most_ns = MOST_NS + (now_ns - start_ns) / SHARE + 30_000;
        assert!(
            (most_ns - 60_000..=most_ns).contains(&spent_ns),
            "{spent_ns} of {most_ns}"
        );
    }

    #[test]
    fn what_is_saved_has_a_limit() {
        let credit = Credit::default();
        assert_eq!(credit.left(i64::MAX), MOST_NS);
        credit.spend(1_000_000_000, MOST_NS + 1_000);
        assert_eq!(credit.left(1_000_000_000), 0);
        assert_eq!(credit.left(1_000_000_000 + 2_000 * SHARE), 1_000);
    }
}

//! Decides how often samples are taken: at the requested rate with jitter, and less often where that costs too much.
//! In each round the sampling thread calls [`Pace::tick`] and then [`Pace::next`] for the pause; [`Pace::rest`] when
//! it pauses.

use std::time::Duration;

/// The share of a core that the thread takes at most; the aim is a little below the documented twentieth.
const MAX_CORE_SHARE: f64 = 0.045;
/// How often the pace is adjusted.
const ADJUST_EVERY_NS: i64 = 100_000_000;
/// The largest factor by which the period becomes longer than requested.
const MAX_SLOWDOWN: f64 = 250.0;
/// The longest interval, in periods, that one sample may stand for. What is longer is no jitter: samples are missing.
const MAX_PERIODS: f64 = 1.5;
/// The weight of the newest interval in the mean.
const NEWEST_WEIGHT: f64 = 1.0 / 16.0;

/// The rate of samples.
#[derive(Debug)]
pub struct Pace {
    /// The requested period.
    asked_ns: f64,
    /// The factor by which the period is longer than requested.
    slowdown: f64,
    /// The mean interval between the last rounds, without the parts of intervals in which samples are missing.
    mean_ns: f64,
    /// The time of the last round; `None` before the first and after a rest.
    last_ns: Option<i64>,
    /// The time of the last adjustment, and the thread's processor time then.
    looked: Option<(i64, i64)>,
    /// The thread's processor time at the last round.
    worked_ns: i64,
    /// The thread worked for most of the time since the round before.
    worked_through: bool,
}

impl Pace {
    pub fn new(rate_hz: u32) -> Pace {
        let asked_ns = 1e9 / f64::from(rate_hz.clamp(1, 10_000));
        Pace {
            asked_ns,
            slowdown: 1.0,
            mean_ns: asked_ns,
            last_ns: None,
            looked: None,
            worked_ns: 0,
            worked_through: false,
        }
    }

    /// Notes that samples are taken now. `worked_ns` is the processor time of this thread so far.
    pub fn tick(&mut self, now_ns: i64, worked_ns: i64) {
        if let Some(last) = self.last_ns.replace(now_ns) {
            let interval_ns = (now_ns - last) as f64;
            self.worked_through = (worked_ns - self.worked_ns) as f64 > interval_ns / 2.0;
            let usual_ns = interval_ns.min(MAX_PERIODS * self.asked_ns * self.slowdown);
            self.mean_ns += (usual_ns - self.mean_ns) * NEWEST_WEIGHT;
        }
        self.worked_ns = worked_ns;
        let Some((looked_ns, had_worked_ns)) = self.looked else {
            self.looked = Some((now_ns, worked_ns));
            return;
        };
        let passed = now_ns - looked_ns;
        if passed >= ADJUST_EVERY_NS {
            let share = (worked_ns - had_worked_ns) as f64 / passed as f64;
            // Slower at once, faster step by step.
            let factor = (share / MAX_CORE_SHARE).clamp(0.8, 8.0);
            self.slowdown = (self.slowdown * factor).clamp(1.0, MAX_SLOWDOWN);
            self.looked = Some((now_ns, worked_ns));
        }
    }

    /// Notes that there was nothing to do for a while, which does not mean that the thread was late.
    pub fn rest(&mut self) {
        self.last_ns = None;
        self.looked = None;
    }

    /// Returns the time that a sample stands for: the mean time between two samples. A sample after a time in which
    /// this thread was not scheduled stands for no more: what happened in that time is not known from it.
    pub fn period_ns(&self) -> i64 {
        self.mean_ns.max(self.asked_ns * self.slowdown) as i64
    }

    /// Returns true where the thread itself worked for most of the time between the last two rounds.
    pub fn worked_through(&self) -> bool {
        self.worked_through
    }

    /// Returns the factor by which the period is longer than requested.
    pub fn slowdown(&self) -> f64 {
        self.slowdown
    }

    /// Returns the time to the next sample, with jitter, so that it does not beat with periodic work of the program.
    pub fn next(&self) -> Duration {
        let jitter = 0.5 + fastrand::f64();
        Duration::from_nanos((self.asked_ns * self.slowdown * jitter) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates samples that take `cost_ns` of processor time each and come `late_ns` late; returns the pace and its share of a core.
    fn after(seconds: i64, cost_ns: i64, late_ns: i64) -> (Pace, f64) {
        fastrand::seed(7);
        let mut pace = Pace::new(500);
        let (mut now, mut worked, mut from) = (0, 0, (0, 0));
        while now < seconds * 1_000_000_000 {
            pace.tick(now, worked);
            worked += cost_ns;
            now += i64::try_from(pace.next().as_nanos()).unwrap().max(cost_ns) + late_ns;
            if now < seconds * 500_000_000 {
                from = (now, worked);
            }
        }
        let share = (worked - from.1) as f64 / (now - from.0) as f64;
        (pace, share)
    }

    #[test]
    fn cheap_samples_are_taken_as_asked() {
        let (pace, share) = after(5, 30_000, 0);
        assert!((1_700_000..2_400_000).contains(&pace.period_ns()));
        assert!(share < 0.02, "{share}");
    }

    #[test]
    fn dear_samples_are_taken_less_often() {
        let (pace, share) = after(20, 1_000_000, 0);
        assert!((0.03..0.06).contains(&share), "{share}");
        assert!(pace.period_ns() > 15_000_000);
    }

    #[test]
    fn a_late_sample_stands_for_its_own_time_and_not_for_that_of_missing_ones() {
        for (late_ns, period) in [
            (500_000, 2_200_000..2_800_000),
            (6_000_000, 2_800_000..3_100_000),
        ] {
            let (pace, _) = after(5, 10_000, late_ns);
            assert!(period.contains(&pace.period_ns()), "{}", pace.period_ns());
        }
    }

    #[test]
    fn it_comes_back_to_what_was_asked() {
        let (mut pace, _) = after(5, 1_000_000, 0);
        let (mut now, worked) = (10_000_000_000, 0);
        for _ in 0..5000 {
            pace.tick(now, worked);
            now += i64::try_from(pace.next().as_nanos()).unwrap();
        }
        assert!(pace.period_ns() < 2_500_000, "{}", pace.period_ns());
    }
}

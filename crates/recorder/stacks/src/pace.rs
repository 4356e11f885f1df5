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
    /// The times at the last round; `None` before the first and after a rest.
    last: Option<OwnTimes>,
    /// The times at the last adjustment.
    looked: Option<OwnTimes>,
    /// The pause that was asked for after the last round.
    pause_ns: i64,
}

/// The clock, and the times of the sampling thread so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnTimes {
    pub now_ns: i64,
    /// On a processor.
    pub worked_ns: i64,
    /// Ready to run, and waiting for a processor.
    pub waited_ns: i64,
}

/// What delayed a round most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delay {
    /// The thread was not woken in time although it waited for no processor: the system's timers came late, or the processor itself was
    /// taken away from a virtual machine.
    #[default]
    LateWakeup,
    /// The thread waited for its turn on a processor.
    BusyProcessors,
    /// The thread waited for its turn while its control group had no CPU time left.
    Quota,
    /// The thread worked itself.
    OwnWork,
}

impl Delay {
    /// Returns why samples are missing, as the end of a sentence.
    pub fn reason(self) -> &'static str {
        match self {
            Delay::LateWakeup => {
                "the system woke the thread that takes them too late, although no busy processor kept it waiting, as in a virtual machine"
            }
            Delay::BusyProcessors => {
                "the thread that takes them waited for its turn on busy processors"
            }
            Delay::Quota => {
                "the CPU quota of a control group, as of a container, stopped the thread that takes them with all other threads in the group"
            }
            Delay::OwnWork => "the thread that takes them was reading libraries and their symbols",
        }
    }
}

impl Pace {
    pub fn new(rate_hz: u32) -> Pace {
        let asked_ns = 1e9 / f64::from(rate_hz.clamp(1, 10_000));
        Pace {
            asked_ns,
            slowdown: 1.0,
            mean_ns: asked_ns,
            last: None,
            looked: None,
            pause_ns: 0,
        }
    }

    /// Notes that samples are taken now, and returns what delayed them.
    pub fn tick(&mut self, own: OwnTimes) -> Delay {
        let mut delay = Delay::default();
        if let Some(last) = self.last.replace(own) {
            let late_ns = own.now_ns - last.now_ns - self.pause_ns;
            delay = if 2 * (own.worked_ns - last.worked_ns) > late_ns {
                Delay::OwnWork
            } else if 2 * (own.waited_ns - last.waited_ns) > late_ns {
                Delay::BusyProcessors
            } else {
                Delay::LateWakeup
            };
            let interval_ns = (own.now_ns - last.now_ns) as f64;
            let usual_ns = interval_ns.min(MAX_PERIODS * self.asked_ns * self.slowdown);
            self.mean_ns += (usual_ns - self.mean_ns) * NEWEST_WEIGHT;
        }
        let looked = *self.looked.get_or_insert(own);
        let passed = own.now_ns - looked.now_ns;
        if passed >= ADJUST_EVERY_NS {
            let share = (own.worked_ns - looked.worked_ns) as f64 / passed as f64;
            // Slower at once, faster step by step.
            let factor = (share / MAX_CORE_SHARE).clamp(0.8, 8.0);
            self.slowdown = (self.slowdown * factor).clamp(1.0, MAX_SLOWDOWN);
            self.looked = Some(own);
        }
        delay
    }

    /// Notes that there was nothing to do for a while, which does not mean that the thread was late.
    pub fn rest(&mut self) {
        self.last = None;
        self.looked = None;
    }

    /// Returns the time that a sample stands for: the mean time between two samples. A sample after a time in which
    /// this thread was not scheduled stands for no more: what happened in that time is not known from it.
    pub fn period_ns(&self) -> i64 {
        self.mean_ns.max(self.asked_ns * self.slowdown) as i64
    }

    /// Returns the factor by which the period is longer than requested.
    pub fn slowdown(&self) -> f64 {
        self.slowdown
    }

    /// Returns the time to the next sample, with jitter, so that it does not beat with periodic work of the program.
    pub fn next(&mut self) -> Duration {
        let jitter = 0.5 + fastrand::f64();
        let pause = Duration::from_nanos((self.asked_ns * self.slowdown * jitter) as u64);
        self.pause_ns = pause.as_nanos() as i64;
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(now_ns: i64, worked_ns: i64) -> OwnTimes {
        OwnTimes {
            now_ns,
            worked_ns,
            waited_ns: 0,
        }
    }

    /// Simulates samples that take `cost_ns` of processor time each and come `late_ns` late; returns the pace and its share of a core.
    fn after(seconds: i64, cost_ns: i64, late_ns: i64) -> (Pace, f64) {
        fastrand::seed(7);
        let mut pace = Pace::new(500);
        let (mut now, mut worked, mut from) = (0, 0, (0, 0));
        while now < seconds * 1_000_000_000 {
            pace.tick(at(now, worked));
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
            pace.tick(at(now, worked));
            now += i64::try_from(pace.next().as_nanos()).unwrap();
        }
        assert!(pace.period_ns() < 2_500_000, "{}", pace.period_ns());
    }

    #[test]
    fn a_delay_has_its_true_reason() {
        for (worked_ms, waited_ms, reason) in [
            (0, 0, Delay::LateWakeup),
            (1, 18, Delay::BusyProcessors),
            (15, 3, Delay::OwnWork),
            (3, 4, Delay::LateWakeup),
        ] {
            let mut pace = Pace::new(500);
            pace.tick(OwnTimes::default());
            let pause = pace.next();
            let delay = pace.tick(OwnTimes {
                now_ns: 20_000_000 + i64::try_from(pause.as_nanos()).unwrap(),
                worked_ns: worked_ms * 1_000_000,
                waited_ns: waited_ms * 1_000_000,
            });
            assert_eq!(delay, reason);
        }
    }
}

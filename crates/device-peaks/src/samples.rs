//! Repeats a measurement, first until the device's clocks are settled, then for the figure: a function that returns
//! nanoseconds goes in, median and spread come out.

use std::time::{Duration, Instant};

use crate::error::Error;

/// The limits of the time that a measurement may take.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// The greatest number of repetitions that count.
    max_repetitions: usize,
    /// The longest time of the repetitions before those that count, until clocks are settled.
    max_warm_up: Duration,
    /// The longest time of the repetitions that count, once there are three.
    max_time: Duration,
}

/// The smallest number of repetitions that count, however long they take.
const MIN_REPETITIONS: usize = 3;
/// Clocks are settled when this number of repetitions differ by no more than this share.
const SETTLED: (usize, f64) = (4, 0.01);

impl Effort {
    /// The effort for figures that are kept.
    pub const FULL: Effort = Effort {
        max_repetitions: 21,
        max_warm_up: Duration::from_millis(400),
        max_time: Duration::from_millis(600),
    };
    /// The effort for a first look.
    pub const QUICK: Effort = Effort {
        max_repetitions: 5,
        max_warm_up: Duration::from_millis(40),
        max_time: Duration::from_millis(100),
    };
    /// The effort for the shortest of eight repetitions.
    pub const SHORTEST: Effort = Effort {
        max_repetitions: 8,
        max_warm_up: Duration::from_millis(100),
        max_time: Duration::MAX,
    };
}

/// Statistics of the times of repetitions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Samples {
    /// The median in nanoseconds.
    pub median_ns: f64,
    /// The shortest time in nanoseconds.
    pub least_ns: f64,
    /// The distance of the quartiles, as a share of the median.
    pub spread: f64,
}

/// Repeats something that returns its time on the device in nanoseconds.
///
/// # Errors
/// The first repetition that fails, and times that are not positive.
pub fn repeat<E>(effort: Effort, mut once: impl FnMut() -> Result<f64, E>) -> Result<Samples, Error>
where
    Error: From<E>,
{
    let mut timed = || {
        let ns = once()?;
        match ns > 0.0 && ns.is_finite() {
            true => Ok(ns),
            false => Err(Error::Time(ns)),
        }
    };
    let started = Instant::now();
    let mut before = Vec::new();
    while started.elapsed() < effort.max_warm_up && !is_settled(&before) {
        before.push(timed()?);
    }
    let started = Instant::now();
    let mut counted = Vec::new();
    while counted.len() < effort.max_repetitions
        && (counted.len() < MIN_REPETITIONS || started.elapsed() < effort.max_time)
    {
        counted.push(timed()?);
    }
    Ok(Samples::from_times(counted))
}

/// Returns whether the last repetitions are nearly equal.
fn is_settled(before: &[f64]) -> bool {
    let (count, share) = SETTLED;
    let Some(last) = before.len().checked_sub(count).map(|at| &before[at..]) else {
        return false;
    };
    let least = last.iter().copied().fold(f64::INFINITY, f64::min);
    let most = last.iter().copied().fold(0.0, f64::max);
    most - least <= share * most
}

impl Samples {
    fn from_times(mut all: Vec<f64>) -> Samples {
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize];
        let median_ns = at(0.5);
        Samples {
            median_ns,
            least_ns: at(0.0),
            spread: (at(0.75) - at(0.25)) / median_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_quartiles_are_those_of_what_counts() {
        let samples = Samples::from_times(vec![5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((samples.median_ns, samples.spread), (3.0, 2.0 / 3.0));
    }

    #[test]
    fn times_before_the_clocks_are_settled_do_not_count() {
        let mut made = 0;
        let found = repeat::<Error>(Effort::FULL, || {
            made += 1;
            Ok(if made <= 10 {
                1_000.0 / f64::from(made)
            } else {
                50.0
            })
        });
        let found = found.unwrap();
        assert_eq!((found.median_ns, found.spread), (50.0, 0.0));
    }

    #[test]
    fn a_time_of_nothing_is_no_time() {
        let found = repeat::<Error>(Effort::QUICK, || Ok(0.0));
        assert!(matches!(found, Err(Error::Time(0.0))));
    }
}

//! Repetitions of one measurement.

use std::time::{Duration, Instant};

/// How much time is taken.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Repetitions that count, at most.
    repetitions: usize,
    /// At most this long before they begin, until clocks are settled.
    warm_up: Duration,
    /// At most this long for those that count, once there are three.
    counting: Duration,
}

/// Repetitions that count at least, however long they take.
const LEAST: usize = 3;
/// Clocks are settled when so many repetitions differ by no more than this share.
const SETTLED: (usize, f64) = (4, 0.01);

impl Effort {
    /// Measurements to keep.
    pub const FULL: Effort = Effort {
        repetitions: 21,
        warm_up: Duration::from_millis(400),
        counting: Duration::from_millis(600),
    };
    /// A first look.
    pub const QUICK: Effort = Effort {
        repetitions: 5,
        warm_up: Duration::from_millis(40),
        counting: Duration::from_millis(100),
    };
}

/// What repetitions said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Samples {
    /// The median, nanoseconds.
    pub median_ns: f64,
    /// The distance of the quartiles, as a share of the median.
    pub spread: f64,
}

/// Repeats something that answers with its time on the device in nanoseconds.
///
/// # Errors
/// The first repetition that fails, and times that are not positive.
pub fn repeat<E: From<String>>(
    effort: Effort,
    mut once: impl FnMut() -> Result<f64, E>,
) -> Result<Samples, E> {
    let mut timed = || {
        let ns = once()?;
        match ns > 0.0 && ns.is_finite() {
            true => Ok(ns),
            false => Err(E::from(format!("the device says that it took {ns} ns"))),
        }
    };
    let begun = Instant::now();
    let mut before = Vec::new();
    while begun.elapsed() < effort.warm_up && !is_settled(&before) {
        before.push(timed()?);
    }
    let begun = Instant::now();
    let mut counted = Vec::new();
    while counted.len() < effort.repetitions
        && (counted.len() < LEAST || begun.elapsed() < effort.counting)
    {
        counted.push(timed()?);
    }
    Ok(Samples::of(counted))
}

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
    fn of(mut all: Vec<f64>) -> Samples {
        all.sort_by(f64::total_cmp);
        let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize];
        let median_ns = at(0.5);
        Samples {
            median_ns,
            spread: (at(0.75) - at(0.25)) / median_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_and_the_quartiles_are_those_of_what_counts() {
        let samples = Samples::of(vec![5.0, 1.0, 3.0, 2.0, 4.0]);
        assert_eq!((samples.median_ns, samples.spread), (3.0, 2.0 / 3.0));
    }

    #[test]
    fn times_before_the_clocks_are_settled_do_not_count() {
        let mut made = 0;
        let found = repeat::<String>(Effort::FULL, || {
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
        let found = repeat::<String>(Effort::QUICK, || Ok(0.0));
        assert!(found.unwrap_err().contains("0 ns"));
    }
}

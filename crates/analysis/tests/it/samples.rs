//! Medians, their intervals, and how often they are wrong.

use gapscope_analysis::samples::{MedianRatio, Spread};

/// SplitMix64: the same numbers on every machine.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }
}

/// Times of evaluations, around 1 ms.
type Times = fn(&mut Random) -> f64;

const NARROW: Times = |random| 1e6 * (0.05 * random.normal()).exp();
const WIDE: Times = |random| 1e6 * (0.5 * random.normal()).exp();
/// One in ten waits for something else.
const OUTLIERS: Times = |random| {
    let late = if random.uniform() < 0.1 { 20.0 } else { 1.0 };
    late * NARROW(random)
};
/// A clock of 100 us.
const COARSE: Times = |random| (WIDE(random) / 1e5).round().max(1.0) * 1e5;
const ALL: [Times; 4] = [NARROW, WIDE, OUTLIERS, COARSE];

const TRIALS: u32 = 2_000;

/// The share of trials in which a difference is found between `before` and `after`.
fn share_that_differs(
    seed: u64,
    mut before: impl FnMut(&mut Random) -> Vec<f64>,
    mut after: impl FnMut(&mut Random) -> Vec<f64>,
) -> f64 {
    let mut random = Random(seed);
    let differs = (0..TRIALS).filter(|_| {
        let (before, after) = (before(&mut random), after(&mut random));
        let ratio = MedianRatio::from_samples(&before, &after).unwrap();
        let [low, high] = ratio.interval.unwrap();
        assert!(low <= ratio.ratio && ratio.ratio <= high);
        !ratio.is_within_noise().unwrap()
    });
    differs.count() as f64 / f64::from(TRIALS)
}

fn sampled(times: Times, count: usize) -> impl FnMut(&mut Random) -> Vec<f64> {
    move |random| (0..count).map(|_| times(random)).collect()
}

#[test]
fn a_program_differs_from_itself_in_at_most_5_of_100_comparisons() {
    for (kind, times) in ALL.into_iter().enumerate() {
        for (before, after) in [(6, 6), (7, 10), (12, 12), (30, 30), (10, 100)] {
            let wrong = share_that_differs(
                kind as u64 + 1,
                sampled(times, before),
                sampled(times, after),
            );
            assert!(wrong <= 0.05, "{kind}: {before} against {after}: {wrong}");
        }
    }
    let wrong = share_that_differs(8, sampled(OUTLIERS, 198), sampled(OUTLIERS, 198));
    assert!(wrong <= 0.05, "{wrong}");
}

#[test]
fn nor_do_programs_of_one_median_and_unequal_spread() {
    for (before, after) in [(6, 6), (8, 40), (40, 8)] {
        let wrong = share_that_differs(9, sampled(NARROW, before), sampled(WIDE, after));
        assert!(wrong <= 0.05, "{before} against {after}: {wrong}");
    }
}

#[test]
fn a_difference_of_5_per_cent_is_found() {
    let slower = |random: &mut Random| sampled(|random| 1.05 * NARROW(random), 60)(random);
    let seen = share_that_differs(5, slower, sampled(NARROW, 60));
    assert!(seen >= 0.95, "{seen}");
    let slower = |random: &mut Random| sampled(|random| 1.05 * OUTLIERS(random), 200)(random);
    let seen = share_that_differs(6, slower, sampled(OUTLIERS, 200));
    assert!(seen >= 0.95, "{seen}");
}

#[test]
fn the_interval_holds_a_ratio_that_is_not_1() {
    let mut random = Random(7);
    for (count, factor) in [(8, 1.5), (30, 4.0), (100, 0.7)] {
        let holds = (0..TRIALS).filter(|_| {
            let before: Vec<f64> = (0..count).map(|_| factor * WIDE(&mut random)).collect();
            let after = sampled(WIDE, count)(&mut random);
            let ratio = MedianRatio::from_samples(&before, &after).unwrap();
            let [low, high] = ratio.interval.unwrap();
            low <= factor && factor <= high
        });
        let share = holds.count() as f64 / f64::from(TRIALS);
        assert!(share >= 0.95, "{count}: {share}");
    }
}

#[test]
fn neighbours_that_resemble_each_other_are_not_taken_for_many_samples() {
    // Each evaluation is like the last one: clocks rise and fall.
    let wander = |count: usize| {
        move |random: &mut Random| {
            let mut state = random.normal();
            let mut next = || {
                state = 0.6 * state + 0.8 * random.normal();
                1e6 * (0.05 * state).exp()
            };
            (0..count).map(|_| next()).collect::<Vec<f64>>()
        }
    };
    let wrong = share_that_differs(11, wander(400), wander(400));
    assert!(wrong <= 0.07, "{wrong}");
}

#[test]
fn many_samples_are_taken_in_blocks() {
    // Samples that rise all the time are no independent ones.
    let width = |count: u32| {
        let rising: Vec<f64> = (1..=count).map(f64::from).collect();
        let ratio = MedianRatio::from_samples(&rising, &[1.0; 10]).unwrap();
        ratio.interval.map(|[low, high]| high - low).unwrap()
    };
    assert!(width(95) < 25.0, "{}", width(95));
    assert!(width(96) > 35.0, "{}", width(96));
}

#[test]
fn few_samples_have_a_ratio_and_no_interval() {
    let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let ratio = MedianRatio::from_samples(&six[..5], &six).unwrap();
    assert_eq!((ratio.ratio, ratio.interval), (3.0 / 3.5, None));
    assert_eq!(ratio.is_within_noise(), None);
    let same = MedianRatio::from_samples(&six, &six).unwrap();
    assert!(same.interval.is_some());
    assert_eq!(MedianRatio::from_samples(&[], &six), None);
    assert_eq!(MedianRatio::from_samples(&six, &[0.0; 6]), None);
}

#[test]
fn samples_that_are_all_the_same_have_an_interval_of_one_ratio() {
    let ratio = MedianRatio::from_samples(&[4.0; 10], &[1.0; 10]).unwrap();
    assert_eq!(ratio.interval, Some([4.0, 4.0]));
    assert_eq!(ratio.is_within_noise(), Some(false));
    let same = MedianRatio::from_samples(&[4.0; 10], &[4.0; 10]).unwrap();
    assert_eq!(same.is_within_noise(), Some(true));
}

#[test]
fn a_spread_has_quartiles() {
    let spread = Spread::from_samples(&[40.0, 10.0, 20.0, 30.0, 100.0]).unwrap();
    let Spread {
        count,
        mean,
        median,
        p25,
        p75,
        min,
        max,
    } = spread;
    assert_eq!((count, mean, median), (5, 40.0, 30.0));
    assert_eq!([p25, p75, min, max], [20.0, 40.0, 10.0, 100.0]);
    assert_eq!(Spread::from_samples(&[1.0, 2.0]).unwrap().median, 1.5);
    assert_eq!(Spread::from_samples(&[]), None);
}

//! Tests of estimates against known results.

use super::*;

fn samples(values: &[f64]) -> Vec<Sample<'static>> {
    let sample = |value: &f64| Sample {
        value: Some(*value),
        blocks: &[],
        spread: 0.01,
    };
    values.iter().map(sample).collect()
}

const APART: Design = Design {
    turns: None,
    spread: AssumedSpread::certain(0.01),
};

/// Against scipy: `ttest_ind(log(after), log(before), equal_var=False)` and its `confidence_interval`.
#[test]
fn runs_are_compared_by_welchs_test_on_logarithms() {
    let before = samples(&[100.0, 101.0, 99.0, 100.5, 99.5]);
    let after = samples(&[103.0, 104.0, 102.5, 103.5, 102.0]);
    let found = Estimate::from_times(&before, &after, &APART);
    let expected = [
        (found.p, 0.000_325_020_526_27),
        (found.ratio, 1.030_001_478_278),
        (found.low, 1.018_361_333_878),
        (found.high, 1.041_774_672_665),
    ];
    for (found, expected) in expected {
        let found = found.unwrap();
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn a_drift_of_all_runs_is_no_change_where_they_took_turns() {
    let before = samples(&[100.0, 104.1, 108.0, 111.9, 116.0]);
    let after = samples(&[102.0, 106.0, 110.1, 114.0, 118.1]);
    let places = |first: usize| (0..5).map(|n| (first + 2 * n) as f64).collect();
    let turns = Design {
        turns: Some([places(0), places(1)]),
        ..APART
    };
    let found = Estimate::from_times(&before, &after, &turns);
    assert!((found.ratio.unwrap() - 1.0).abs() < 0.003, "{found:?}");
    assert!(found.p.unwrap() > 0.05);
    let slower = samples(&[104.0, 108.1, 112.2, 116.3, 120.4]);
    assert!(Estimate::from_times(&before, &slower, &turns).p.unwrap() < 1e-3);
    assert!(Estimate::from_times(&before, &slower, &APART).p.unwrap() > 0.1);
}

#[test]
fn counts_that_do_not_vary_are_certain() {
    let same = Estimate::from_counts(&samples(&[10.0; 3]), &samples(&[10.0; 3]), &APART);
    assert_eq!((same.ratio, same.p, same.exact), (Some(1.0), None, true));
    let more = Estimate::from_counts(&samples(&[10.0; 3]), &samples(&[12.0; 3]), &APART);
    assert_eq!(more.ratio, Some(1.2));
    assert_eq!(more.low, Some(1.2));
    assert_eq!(more.p, Some(0.0));
    let once = Estimate::from_counts(&samples(&[10.0]), &samples(&[12.0]), &APART);
    assert_eq!((once.ratio, once.p, once.exact), (Some(1.2), None, true));
    let varying = Estimate::from_counts(&samples(&[10.0, 12.0]), &samples(&[11.0, 12.0]), &APART);
    assert!(varying.p.unwrap() > 0.3);
}

fn one_run(blocks: &[f64], spread: f64) -> Sample<'_> {
    Sample {
        value: Some(blocks.iter().sum()),
        blocks,
        spread,
    }
}

#[test]
fn what_slows_a_run_for_a_while_is_noise() {
    // A third of one run lies under a load that doubles its times. Were its 64 blocks samples of their own, p would be below 1e-5.
    let steady: Vec<f64> = (0..64).map(|n| 100.0 + f64::from(n % 3)).collect();
    let slowed = steady.iter().enumerate();
    let slowed: Vec<f64> = slowed
        .map(|(at, block)| block * if (20..42).contains(&at) { 2.0 } else { 1.0 })
        .collect();
    let estimate =
        Estimate::from_times(&[one_run(&steady, 0.01)], &[one_run(&slowed, 0.01)], &APART);
    assert!(estimate.p.unwrap() > 1e-3, "{estimate:?}");
}

#[test]
fn the_least_ratio_that_is_told_is_where_the_chance_is_the_level() {
    let before = samples(&[100.0, 101.0, 99.0, 100.5, 99.5]);
    let after = samples(&[103.0, 104.0, 102.5, 103.5, 102.0]);
    let estimate = Estimate::from_times(&before, &after, &APART);
    let least = estimate.noise.unwrap().least_ratio(estimate.p.unwrap());
    assert!((least - estimate.ratio.unwrap()).abs() < 1e-9, "{least}");
    let zero = Estimate::from_times(
        &samples(&[0.0, 1.0, 0.5]),
        &samples(&[4.0, 5.0, 4.5]),
        &APART,
    );
    assert!(zero.noise.unwrap().least_ratio(0.01) > 2.0);
}

#[test]
fn of_one_run_each_the_assumed_spread_is_in_the_interval() {
    let blocks: Vec<f64> = (0..32).map(|n| 100.0 + f64::from(n % 3)).collect();
    let slower: Vec<f64> = blocks.iter().map(|block| block * 1.02).collect();
    let compared = |spread: f64| {
        let sample = |blocks| one_run(blocks, spread);
        Estimate::from_times(&[sample(&blocks)], &[sample(&slower)], &APART)
    };
    let found = compared(0.0001);
    assert!(found.p.unwrap() < 1e-6, "{found:?}");
    let found = compared(0.01);
    assert!(found.p.unwrap() > 0.1, "{found:?}");
    assert!(found.low.unwrap() < 1.0 && found.high.unwrap() > 1.04);
}

#[test]
fn what_is_not_known_is_not_compared() {
    let unknown = [Sample {
        value: None,
        blocks: &[],
        spread: 0.01,
    }];
    let found = Estimate::from_times(&samples(&[5.0]), &unknown, &APART);
    assert_eq!(found.before, Some(5.0));
    assert_eq!(found.after, None);
    assert_eq!(found.p, None);
}

#[test]
fn times_that_may_be_nothing_are_compared_by_their_difference() {
    let before = samples(&[0.0, 1.0, 0.5, 0.2]);
    let after = samples(&[10.0, 11.0, 10.5, 10.2]);
    let found = Estimate::from_times(&before, &after, &APART);
    assert!(found.p.unwrap() < 1e-4);
    let from_nothing = Estimate::from_times(&samples(&[0.0; 3]), &after, &APART);
    assert_eq!((from_nothing.ratio, from_nothing.low), (None, None));
    assert!(from_nothing.p.unwrap() < 1e-3);
}

/// Holm's own procedure, by hand: 4 × 0.01, 3 × 0.013, 2 × 0.03, 0.2.
#[test]
fn many_comparisons_are_corrected() {
    let given = [Some(0.03), None, Some(0.01), Some(0.2), Some(0.013)];
    let expected = [Some(0.06), None, Some(0.04), Some(0.2), Some(0.04)];
    for (found, expected) in corrected(&given).into_iter().zip(expected) {
        match (found, expected) {
            (Some(found), Some(expected)) => assert!((found - expected).abs() < 1e-12),
            (found, expected) => assert_eq!(found, expected),
        }
    }
}

#[test]
fn one_block_that_is_most_of_the_sum_does_not_hide_its_noise() {
    let mut blocks = [3.0; 13];
    blocks[0] = 129.0;
    let mut other = blocks;
    other[0] = 160.0;
    let estimate =
        Estimate::from_times(&[one_run(&blocks, 0.01)], &[one_run(&other, 0.01)], &APART);
    assert!(estimate.p.unwrap() > 0.05, "{estimate:?}");
}

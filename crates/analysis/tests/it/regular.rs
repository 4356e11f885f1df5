//! Whether gaps come regularly.

use crate::program::{Program, US};
use gapscope_analysis::gaps::Pattern;
use gapscope_analysis::gaps::Regularity::*;
use gapscope_timeline::thresholds::{REGULAR_LEAST_GAPS, REGULAR_SPREAD};

/// The pattern of gaps that start at such times and last so long, in us.
fn pattern(gaps: &[(i64, i64)]) -> Pattern {
    let mut p = Program::new();
    let mut from = -1_000;
    for (start, length) in gaps {
        p.dispatch(1, [from, from], from, start - from);
        from = start + length;
    }
    p.dispatch(1, [from, from], from, 10);
    let findings = p.findings();
    assert_eq!(findings.idle_time.gap_count, gaps.len() as u64);
    findings.idle_time.devices[0].pattern.clone()
}

/// Numbers from 0 to 1 at random, the same each time.
fn random(mut seed: u64) -> impl FnMut() -> f64 {
    move || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[test]
fn frames_with_jitter_are_regular() {
    let mut random = random(1);
    let gaps: Vec<_> = (0..212)
        .map(|turn| {
            (
                turn * 16_700 + (random() * 1_000.0) as i64,
                4_000 + (random() * 4_000.0) as i64,
            )
        })
        .collect();
    let found = pattern(&gaps);
    assert_eq!(found.regularity, Regular, "{found:?}");
    assert_eq!(found.gaps_per_period, Some(1));
    let period = found.period_ns.unwrap() / US;
    assert!((16_600..16_800).contains(&period), "{period}");
    assert!(found.spread_share.unwrap() < 0.04, "{found:?}");
    assert_eq!((found.gap_count, found.share), (212, Some(1.0)));
}

#[test]
fn small_gaps_between_the_large_ones_do_not_count() {
    let mut random = random(2);
    let mut gaps = Vec::new();
    for turn in 0..50 {
        let mut at = turn * 20_000;
        gaps.push((at, 5_000));
        at += 5_000;
        for _ in 0..50 {
            at += 20 + (random() * 200.0) as i64;
            gaps.push((at, 5));
            at += 5;
        }
    }
    let found = pattern(&gaps);
    assert_eq!((found.regularity, found.gap_count), (Regular, 50));
    assert_eq!(found.period_ns, Some(20_000 * US));
    assert!((0.9..0.96).contains(&found.share.unwrap()), "{found:?}");
}

#[test]
fn gaps_at_random_are_irregular() {
    for seed in 0..40 {
        let mut random = random(seed + 3);
        let mut at = 0;
        let gaps: Vec<_> = (0..12 + seed * 8)
            .map(|_| {
                at += 1_100 + (-(1.0 - random()).ln() * 20_000.0) as i64;
                (at, 1_000)
            })
            .collect();
        let found = pattern(&gaps);
        assert_eq!(found.regularity, Irregular, "{seed}: {found:?}");
        assert_eq!(found.period_ns, None);
        assert!(found.apart_p25_ns < found.apart_p75_ns);
    }
}

#[test]
fn two_gaps_in_each_step_have_the_steps_period() {
    let mut random = random(50);
    let mut gaps = Vec::new();
    for turn in 0..40 {
        let at = turn * 30_000 + (random() * 500.0) as i64;
        gaps.push((at, 5_000));
        gaps.push((at + 8_000, 3_000));
    }
    let found = pattern(&gaps);
    assert_eq!(found.regularity, Regular);
    assert_eq!(found.gaps_per_period, Some(2));
    let period = found.period_ns.unwrap() / US;
    assert!((29_800..30_200).contains(&period), "{period}");
}

#[test]
fn one_long_gap_is_no_pattern() {
    let mut gaps: Vec<_> = (0..100).map(|turn| (turn * 2_000, 10)).collect();
    gaps.push((300_000, 10_000_000));
    let found = pattern(&gaps);
    assert_eq!((found.regularity, found.gap_count), (Unknown, 1));
    assert!(
        found.reason.is_some() && found.share > Some(0.99),
        "{found:?}"
    );
    assert_eq!(found.apart_p25_ns, None);
}

#[test]
fn a_pause_or_a_gap_too_many_changes_nothing() {
    let mut gaps: Vec<_> = (0..60)
        .map(|turn| (turn * 10_000 + if turn > 30 { 500_000 } else { 0 }, 2_000))
        .collect();
    gaps.push((25_000, 1_500));
    gaps.sort();
    let found = pattern(&gaps);
    assert_eq!(found.regularity, Regular);
    assert_eq!(found.period_ns, Some(10_000 * US));
}

#[test]
fn a_loop_of_a_fixed_period_whose_work_takes_more_or_less_is_regular_by_the_ends() {
    let mut random = random(60);
    let gaps: Vec<_> = (0..50)
        .map(|turn| {
            let busy = (random() * 8_000.0) as i64;
            (turn * 20_000 + busy, 20_000 - busy - 1_000)
        })
        .collect();
    let found = pattern(&gaps);
    assert_eq!(found.regularity, Regular);
    assert_eq!(found.period_ns, Some(20_000 * US));
    assert_eq!(found.spread_share, Some(0.0));
}

#[test]
fn fewer_gaps_than_the_limit_are_unknown() {
    let gaps: Vec<_> = (0..REGULAR_LEAST_GAPS as i64)
        .map(|turn| (turn * 1_000, 100))
        .collect();
    assert_eq!(pattern(&gaps).regularity, Regular);
    let found = pattern(&gaps[1..]);
    assert_eq!(found.regularity, Unknown);
    assert!(found.reason.unwrap().contains("too few"));
}

#[test]
fn more_spread_than_the_limit_is_irregular() {
    // Distances alternate in the long run: a quarter shorter, a quarter longer, by `off` in 1000.
    let of = |off: i64| {
        let mut random = random(70);
        let mut at = 0;
        let gaps: Vec<_> = (0..400)
            .map(|_| {
                let turn = random();
                at += 10_000
                    + if turn < 0.4 {
                        -off * 10
                    } else if turn > 0.6 {
                        off * 10
                    } else {
                        0
                    };
                (at, 1_000)
            })
            .collect();
        pattern(&gaps).regularity
    };
    let limit = (REGULAR_SPREAD * 1_000.0) as i64;
    assert_eq!(of(limit), Regular);
    assert_eq!(of(limit + 1), Irregular);
}

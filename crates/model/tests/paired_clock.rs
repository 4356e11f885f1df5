//! The clock of a profile, which is asked for any time.

use gapscope_model::clock::{ClockPair, NoTime, PairedClock};
use proptest::prelude::*;

#[test]
fn a_clock_needs_two_samples_or_a_period() {
    let mut clock = PairedClock::default();
    assert_eq!(clock.convert(5), Err(NoTime::NoSamples));
    clock.add(ClockPair::new(1_000, 10));
    assert_eq!(clock.convert(20), Err(NoTime::OneSample));
    clock.set_nanoseconds_per_tick(2.0);
    assert_eq!(clock.convert(20).unwrap().ns, 1_020);
    clock.add(ClockPair::new(2_000, 20));
    assert_eq!(
        clock.convert(15).unwrap().ns,
        1_500,
        "samples beat the driver's word"
    );
    assert_eq!(clock.convert(15).unwrap().error_ns, None);
}

#[test]
fn a_clock_refuses_contradictions() {
    let mut clock = PairedClock::default();
    clock.add(ClockPair::new(1_000, 10));
    clock.add(ClockPair::new(900, 20));
    assert_eq!((clock.pairs().len(), clock.refused()), (1, 1));
}

#[test]
fn a_bent_clock_shows_in_the_error() {
    let mut clock = PairedClock::default();
    for (cpu_ns, gpu_ticks) in [(0, 1), (1_500, 1_001), (2_000, 2_001)] {
        clock.add(ClockPair::new(cpu_ns, gpu_ticks).with_error_ns(1));
    }
    assert_eq!(clock.error_ns(), Some(500));
}

proptest! {
    /// Two clocks that do not start together and differ in rate, with readings that are off by at most `error`.
    #[test]
    fn a_converted_time_is_within_its_bound(
        start in 0_u64..1 << 62,
        ticks_start in 0_u64..1 << 50,
        period_ps in 1_000_u64..1_000_000,
        error in 0_u64..10_000,
        readings in prop::collection::vec((1_u64..1_000_000_000, -1.0_f64..1.0), 2..20),
        asked in 0.0_f64..1.0,
    ) {
        let truth = |ticks: u64| {
            let since = u128::from(ticks - ticks_start);
            start + u64::try_from(since * u128::from(period_ps) / 1_000).unwrap()
        };
        let mut clock = PairedClock::default();
        let mut ticks = ticks_start;
        for (gap, off) in readings {
            ticks += gap;
            let off = (off * error as f64) as i64;
            clock.add(ClockPair::new(truth(ticks).saturating_add_signed(off), ticks).with_error_ns(error));
        }
        if clock.pairs().len() > 1 {
            let first = clock.pairs()[0].gpu_ticks;
            let last = clock.pairs().last().unwrap().gpu_ticks;
            let tick = first + ((last - first) as f64 * asked) as u64;
            let time = clock.convert(tick).unwrap();
            let wrong = time.ns.abs_diff(truth(tick));
            prop_assert!(wrong <= time.error_ns.unwrap() + 2, "{wrong} ns wrong, {time:?}");
            prop_assert!(!time.extrapolated);
        }
    }
}

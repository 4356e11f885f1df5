//! Tests clocks against a simulated one: the true error never exceeds the stated one.

use super::*;
use proptest::prelude::*;

/// A device clock that wraps and whose rate wanders slowly around a constant drift.
#[derive(Debug, Clone)]
struct Simulated {
    rate: f64,
    drift: f64,
    wander: f64,
    period_s: f64,
    origin: u64,
    bits: u32,
}

impl Simulated {
    /// Returns the ticks since the host's zero, not wrapped.
    fn ticks(&self, host_ns: i64) -> i128 {
        let t = host_ns as f64;
        let angle = t / 1e9 / self.period_s * std::f64::consts::TAU;
        let wander_ns = self.wander * self.period_s * 1e9 / std::f64::consts::TAU * angle.sin();
        // Nanoseconds come first, so that an exact clock stays exact.
        let ns = i128::from(host_ns) + (t * self.drift + wander_ns).round() as i128;
        if self.rate == 1.0 {
            ns
        } else {
            (ns as f64 / self.rate).round() as i128
        }
    }

    fn raw(&self, host_ns: i64) -> u64 {
        let ticks = (self.ticks(host_ns) + i128::from(self.origin)) as u64;
        if self.bits >= 64 {
            ticks
        } else {
            ticks & ((1 << self.bits) - 1)
        }
    }
}

fn simulated() -> impl Strategy<Value = Simulated> {
    (
        prop_oneof![Just(1.0), Just(10.0), Just(83.333), Just(0.5)],
        -100e-6..100e-6f64,
        0.0..2e-6f64,
        60.0..600.0f64,
        any::<u64>(),
        prop_oneof![Just(64), Just(40), Just(36)],
    )
        .prop_map(|(rate, drift, wander, period_s, origin, bits)| Simulated {
            rate,
            drift,
            wander,
            period_s,
            origin,
            bits,
        })
}

const SECOND: i64 = 1_000_000_000;

proptest! {
    #[test]
    fn a_calibrated_time_is_within_the_stated_error(
        device in simulated(),
        jitter in proptest::collection::vec(-1.0..1.0f64, 40),
        error in 0..2000u32,
        spacing_ms in 200..1500i64,
        begin in 0..4_000_000_000_000i64,
        work in proptest::collection::vec((0.0..1.0f64, 1..100_000_000i64), 1..40),
    ) {
        let mut clock = DeviceClock::new(ClockSource::Calibrated, device.rate);
        clock.queue_bits(device.bits);
        let mut pending: Vec<(i64, i64)> = work
            .iter()
            .map(|(at, length)| {
                let at = begin + (at * (spacing_ms * 1_000_000 * 40) as f64) as i64;
                (at, *length)
            })
            .collect();
        pending.sort_unstable();
        let mut mapped = Vec::new();
        let mut pending = pending.into_iter().peekable();
        let mut open: Vec<(i64, Ticks)> = Vec::new();
        for (index, jitter) in jitter.iter().enumerate() {
            let host_ns = begin + index as i64 * spacing_ms * 1_000_000;
            let read_ns = host_ns + (jitter * f64::from(error)) as i64;
            prop_assert!(clock.sample(device.raw(read_ns), host_ns, error));
            open.retain(|(true_ns, ticks)| {
                let settled = clock.settled(*ticks);
                if settled {
                    mapped.push((*true_ns, clock.host_ns(*ticks).unwrap()));
                }
                !settled
            });
            while let Some((at, length)) = pending.next_if(|(at, _)| *at < host_ns) {
                for moment in [at, at + length] {
                    let ticks = clock
                        .unwrap(device.raw(moment), device.bits, at - 1000, at + length + 1_000_000)
                        .expect("the wrap is longer than the work");
                    open.push((moment, ticks));
                }
            }
        }
        for (true_ns, ticks) in open {
            mapped.push((true_ns, clock.host_ns(ticks).unwrap()));
        }
        let summary = clock.summary();
        let stated = summary.error_ns.unwrap() + device.rate.ceil() as i64;
        for (true_ns, found_ns) in mapped {
            prop_assert!((true_ns - found_ns).abs() <= stated, "{true_ns} {found_ns} {stated}");
        }
    }

    #[test]
    fn a_bracketed_time_is_within_the_stated_error(
        device in simulated(),
        begin in 0..4_000_000_000_000i64,
        work in proptest::collection::vec(
            (1_000..400_000_000i64, 1_000..30_000_000i64, 500..200_000i64, 500..2_000_000i64),
            1..200,
        ),
    ) {
        let mut clock = DeviceClock::new(ClockSource::Brackets, device.rate);
        clock.queue_bits(device.bits);
        let mut now = begin;
        let mut open: Vec<(i64, Ticks)> = Vec::new();
        let mut mapped = Vec::new();
        for (pause, length, latency, notice) in work {
            let submitted = now + pause;
            let (start, end) = (submitted + latency, submitted + latency + length);
            let seen = end + notice;
            now = seen;
            let ticks = clock.unwrap(device.raw(start), device.bits, submitted, seen).expect("it is unambiguous");
            let length_ticks = (device.ticks(end) - device.ticks(start)) as i64;
            let end_ticks = Ticks(ticks.0 + length_ticks);
            clock.bracket(ticks, end_ticks, submitted, seen);
            open.push((start, ticks));
            open.push((end, end_ticks));
            open.retain(|(true_ns, ticks)| {
                let settled = clock.settled(*ticks);
                if settled {
                    mapped.push((*true_ns, clock.host_ns(*ticks).unwrap()));
                }
                !settled
            });
        }
        for (true_ns, ticks) in open {
            mapped.push((true_ns, clock.host_ns(ticks).unwrap()));
        }
        let stated = clock.summary().error_ns.expect("brackets of one clock do not contradict") + device.rate.ceil() as i64;
        for (true_ns, found_ns) in mapped {
            prop_assert!((true_ns - found_ns).abs() <= stated, "{true_ns} {found_ns} {stated}");
        }
    }

    #[test]
    fn nonsense_is_refused_without_a_panic(
        source in prop_oneof![Just(ClockSource::Calibrated), Just(ClockSource::Brackets)],
        rate in any::<f64>(),
        bits in 0..100u32,
        calls in proptest::collection::vec((0..5u8, any::<u64>(), any::<i64>(), any::<i64>()), 0..40),
    ) {
        let mut clock = DeviceClock::new(source, rate);
        clock.queue_bits(bits);
        for (call, raw, a, b) in calls {
            match call {
                0 => { clock.sample(raw, a, b as u32); }
                1 => { let _ = clock.unwrap(raw, bits.max(1), a.min(b), a.max(b)); }
                2 => clock.bracket(Ticks(raw as i64), Ticks(a), b, a),
                3 => { clock.host_ns(Ticks(a)); }
                _ => { clock.settled(Ticks(a)); clock.estimate_ns(Ticks(b)); clock.summary(); }
            }
        }
    }
}

#[test]
fn a_clock_that_is_the_hosts_maps_exactly() {
    let mut clock = DeviceClock::new(ClockSource::Calibrated, 1.0);
    clock.queue_bits(64);
    let start = 987_654_321_012_345i64;
    let samples = || (0..5).map(|second| start + second * SECOND);
    for at in samples() {
        assert!(clock.sample(at as u64, at, 1));
    }
    for at in samples() {
        for moment in [at - 123_456_789, at + 1, at + 999_999_999] {
            let ticks = clock
                .unwrap(moment as u64, 64, moment - 10, moment + 10)
                .unwrap();
            assert_eq!(clock.host_ns(ticks), Some(moment));
        }
    }
    let summary = clock.summary();
    assert!(summary.error_ns.unwrap() <= 6, "{summary:?}");
    assert_eq!(summary.drift_ppm, Some(0.0));
    assert_eq!(summary.samples, 5);
}

#[test]
fn one_sample_gives_a_bound_that_grows_with_the_distance() {
    let mut clock = DeviceClock::new(ClockSource::Calibrated, 1.0);
    clock.queue_bits(64);
    clock.sample(0, 0, 100);
    let ticks = clock
        .unwrap(10 * SECOND as u64, 64, 9 * SECOND, 11 * SECOND)
        .unwrap();
    clock.host_ns(ticks);
    let summary = clock.summary();
    assert_eq!(summary.error_ns, Some(2_000_101));
    assert_eq!(summary.drift_ppm, None);
}

#[test]
fn samples_before_the_first_queue_count() {
    let mut clock = DeviceClock::new(ClockSource::Calibrated, 1.0);
    clock.sample(1000, 5_000_000, 1);
    assert_eq!(clock.summary().samples, 0);
    clock.queue_bits(36);
    assert_eq!(clock.summary().samples, 1);
    let ticks = clock.unwrap(1500, 36, 5_000_000, 5_001_000).unwrap();
    assert_eq!(clock.host_ns(ticks), Some(5_000_500));
}

#[test]
fn a_narrow_clock_is_unwrapped_over_many_periods_or_said_to_be_ambiguous() {
    let device = Simulated {
        rate: 1.0,
        drift: 20e-6,
        wander: 0.0,
        period_s: 60.0,
        origin: 77,
        bits: 32,
    };
    let mut clock = DeviceClock::new(ClockSource::Calibrated, 1.0);
    clock.queue_bits(32);
    for second in [0, 30, 60, 61] {
        clock.sample(device.raw(second * SECOND), second * SECOND, 10);
    }
    let at = 43 * SECOND + 5;
    let ticks = clock
        .unwrap(device.raw(at), 32, at - 1000, at + SECOND)
        .unwrap();
    assert!((clock.host_ns(ticks).unwrap() - at).abs() <= clock.summary().error_ns.unwrap());
    // The period is 4.3 s.
    let outcome = clock.unwrap(device.raw(at), 32, at - 5 * SECOND, at + SECOND);
    assert_eq!(outcome, Err(Unplaced::Ambiguous));
    let outcome = clock.unwrap(device.raw(at), 32, at + SECOND, at + 2 * SECOND);
    assert_eq!(outcome, Err(Unplaced::Contradiction));
}

#[test]
fn a_clock_that_goes_back_is_refused() {
    let mut clock = DeviceClock::new(ClockSource::Calibrated, 1.0);
    clock.queue_bits(64);
    assert!(clock.sample(1_000_000, 0, 1));
    assert!(!clock.sample(999_999, SECOND, 1));
    assert!(clock.sample(1_000_000 + 2 * SECOND as u64, 2 * SECOND, 1));
}

#[test]
fn tight_brackets_far_apart_tell_the_rate() {
    let device = Simulated {
        rate: 10.0,
        drift: 80e-6,
        wander: 0.0,
        period_s: 60.0,
        origin: 0,
        bits: 64,
    };
    let mut clock = DeviceClock::new(ClockSource::Brackets, 10.0);
    clock.queue_bits(64);
    for index in 0..600 {
        let at = index * SECOND / 10;
        let (start, end) = (at + 5_000, at + 50_000);
        let ticks = clock
            .unwrap(device.raw(start), 64, at, end + 10_000)
            .unwrap();
        let end_ticks = Ticks(ticks.0 + (device.ticks(end) - device.ticks(start)) as i64);
        clock.bracket(ticks, end_ticks, at, end + 10_000);
    }
    let drift = clock.summary().drift_ppm.unwrap();
    assert!((drift - 80.0).abs() < 2.0, "{drift}");
}

/// When a machine sleeps, the device's counter begins anew, or runs on while the host's clock stands still.
#[test]
fn a_clock_that_leaps_is_anchored_anew() {
    const MS: i64 = 1_000_000;
    for bits in [64, 36] {
        for after in [5_000, 9_000_000_000_000u64, 40_000_000_000_000] {
            let mut clock = DeviceClock::new(ClockSource::Calibrated, 1.0);
            clock.queue_bits(bits);
            let mask = if bits == 64 {
                u64::MAX
            } else {
                (1 << bits) - 1
            };
            let raw = |at_ns: i64| match at_ns < 1_000 * MS {
                true => 9_000_000_000_000 + at_ns as u64,
                false => after + (at_ns - 1_000 * MS) as u64,
            } & mask;
            let mut refused = 0;
            for at_ms in (0..2_000).step_by(20) {
                let at_ns = at_ms * MS;
                refused += u32::from(!clock.sample(raw(at_ns), at_ns, 100));
                for work_ns in [at_ns + MS, at_ns + 2 * MS] {
                    let ticks = clock.unwrap(raw(work_ns), bits, work_ns - MS, work_ns + MS);
                    // Nothing is known between the leap and the next sample.
                    let placed = ticks.ok().and_then(|ticks| clock.host_ns(ticks));
                    assert_eq!(
                        placed.map(|ns| (ns - work_ns).abs() <= 200),
                        Some(true),
                        "{bits} {after} {at_ms}"
                    );
                }
            }
            assert_eq!(refused, 1, "{bits} {after}");
            let error_ns = clock.summary().error_ns;
            assert!(
                error_ns.is_some_and(|error| error < 100_000),
                "{error_ns:?}"
            );
        }
    }
}

use super::*;
use proptest::prelude::*;

/// A thread of operators of irregular lengths, most of which launch something, by the clock of the launches.
struct Planted {
    ranges: Vec<(Span, bool)>,
    launches: Vec<Launch>,
}

impl Planted {
    fn new(seed: u64, operators: usize) -> Planted {
        let mut random = fastrand::Rng::with_seed(seed);
        let (mut ranges, mut launches) = (Vec::new(), Vec::new());
        let mut at = 1_000_000_000;
        for _ in 0..operators {
            at += random.i64(1_000..40_000);
            let before = random.i64(2_000..9_000);
            let length = random.i64(3_000..9_000);
            let after = random.i64(2_000..6_000);
            let end = at + before + length + after;
            ranges.push((Span::between(at, end), true));
            // An operator inside, which has ended when the launch begins.
            ranges.push((Span::between(at + 500, at + before - 500), true));
            if random.u8(..4) > 0 {
                launches.push(launch(at + before, at + before + length));
            }
            at = end;
        }
        // A function of Python around all.
        ranges.push((Span::between(999_000_000, at + 5), false));
        Planted { ranges, launches }
    }

    /// Returns the fit with segments whose clock is behind by an offset.
    fn fit(&self, offset_ns: i64) -> Fit {
        let ranges = self.ranges.iter().map(|(span, is_native)| {
            let start_ns = span.start_ns - offset_ns;
            (Span { start_ns, ..*span }, *is_native)
        });
        fit_of(&segments(ranges.collect()), &self.launches)
    }
}

fn launch(start: i64, end: i64) -> Launch {
    Launch {
        span: Span::between(start, end),
        function: Arc::from("cudaLaunchKernel"),
    }
}

fn fit_of(segments: &[Range<i64>], launches: &[Launch]) -> Fit {
    fit(&[ThreadPair { segments, launches }]).unwrap()
}

#[test]
fn segments_lie_between_the_borders_of_ranges_and_are_native() {
    let span = Span::between;
    let ranges = vec![
        (span(0, 100), false),
        (span(10, 50), true),
        (span(20, 30), true),
        (span(60, 70), false),
        // It ends after the range around it, and is cut there.
        (span(90, 120), true),
        (span(200, 200), true),
    ];
    assert_eq!(segments(ranges), [10..20, 20..30, 30..50, 90..100]);
    assert!(segments(Vec::new()).is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_planted_offset_is_measured_within_the_error(seed in 0..1000_u64, offset_ns in -4_900_000..4_900_000_i64) {
        let planted = Planted::new(seed, 300);
        let fit = planted.fit(offset_ns);
        prop_assert_eq!(fit.doubt(), None);
        prop_assert!((fit.offset_ns - offset_ns).abs() <= fit.error_ns, "{:?} for {}", fit, offset_ns);
        prop_assert!(fit.error_ns < 10_000, "{:?}", fit);
        // At the edge of the tried offsets, launches on the border of the window may be left out.
        prop_assert!(fit.inside == fit.launches && fit.inside + 2 >= planted.launches.len() as u64, "{:?}", fit);
    }

    #[test]
    fn the_launches_of_another_run_are_doubted(seed in 0..1000_u64, offset_ns in -4_900_000..4_900_000_i64) {
        let (planted, other) = (Planted::new(seed, 300), Planted::new(seed + 7_000, 300));
        let mixed = Planted { ranges: planted.ranges, launches: other.launches };
        prop_assert!(mixed.fit(offset_ns).doubt().is_some());
    }

    #[test]
    fn odd_times_are_survived(
        times in proptest::collection::vec((any::<i64>(), any::<i64>(), any::<bool>()), 0..40),
        calls in proptest::collection::vec((any::<i64>(), 0..1_i64 << 62), 0..40),
    ) {
        let ranges = times.iter().map(|(start, end, is_native)| (Span::between(*start, *end), *is_native));
        let segments = segments(ranges.filter(|(span, _)| span.duration_ns >= 0).collect());
        let mut launches: Vec<Launch> = calls.iter().map(|(start, length)| launch(*start, start.saturating_add(*length))).collect();
        launches.sort_by_key(|launch| launch.span.start_ns);
        let fit = fit(&[ThreadPair { segments: &segments, launches: &launches }]);
        prop_assert!(fit.is_none_or(|fit| fit.inside <= fit.launches));
    }
}

#[test]
fn regular_launches_and_few_launches_tell_nothing() {
    let regular: Vec<_> = (0..200).map(|at| at * 50_000).collect();
    for (starts, words) in [
        (&regular[..], "too regular"),
        (&[0, 61_000, 170_000], "too few"),
    ] {
        let ranges: Vec<Range<i64>> = starts.iter().map(|at| *at..at + 20_000).collect();
        let launches: Vec<Launch> = (starts.iter())
            .map(|at| launch(at + 4_000, at + 9_000))
            .collect();
        let fit = fit_of(&ranges, &launches);
        assert_eq!(
            (fit.inside, fit.launches as usize),
            (fit.launches, starts.len())
        );
        let doubt = fit.doubt().unwrap();
        assert!(doubt.contains(words), "{doubt}");
    }
}

#[test]
fn an_offset_that_the_clocks_do_not_say_needs_nearly_all_launches() {
    for (offset_ns, is_doubted) in [(0, false), (15_000, false), (700_000, true)] {
        let mut planted = Planted::new(3, 400);
        let every = planted.launches.len() / 20;
        for launch in planted.launches.iter_mut().step_by(every) {
            launch.span.start_ns -= 10_000;
        }
        let fit = planted.fit(offset_ns);
        assert!((0.9..0.97).contains(&fit.share()), "{fit:?}");
        assert_eq!(fit.doubt().is_some(), is_doubted, "{fit:?}");
    }
}

#[test]
fn launches_outside_of_operators_are_counted_and_tolerated_up_to_a_tenth() {
    for (outside, is_doubted) in [(20, false), (60, true)] {
        let mut planted = Planted::new(3, 400);
        let all = planted.launches.len() as u64;
        // Every n-th launch happens before its operator.
        let every = all as usize / outside;
        for launch in planted.launches.iter_mut().step_by(every) {
            launch.span.start_ns -= 10_000;
        }
        let fit = planted.fit(0);
        assert!(fit.inside < fit.launches, "{fit:?}");
        assert_eq!(fit.doubt().is_some(), is_doubted, "{fit:?}");
    }
}

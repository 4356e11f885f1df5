use super::*;
use gapscope_timeline::counters::recorded;
use gapscope_trace::Trace;
use proptest::collection::vec;
use proptest::prelude::*;
use std::fmt::Write;

/// Kernels of the traces below; what is numbered so is a transfer.
const KERNELS: u32 = 3;
/// No work or sample ends later.
const END: i64 = 100;

/// Start, length, and kernel.
type Ran = (i64, i64, u32);
/// Start, length and value of a sample.
type Sampled = (i64, i64, u32);

fn trace(work: &[Ran], samples: &[Sampled]) -> Trace {
    let mut text = String::from("device id=1\n");
    for kernel in 0..KERNELS {
        writeln!(text, "kernel id={kernel} name=k{kernel}").unwrap();
    }
    for (at, (start, length, kernel)) in work.iter().enumerate() {
        writeln!(text, "queue id={at} device=1").unwrap();
        let row = match kernel {
            &KERNELS => "transfer kind=copy".to_owned(),
            kernel => format!("dispatch kernel={kernel}"),
        };
        writeln!(
            text,
            "{row} queue={at} start_ns={start} duration_ns={length}"
        )
        .unwrap();
    }
    text.push_str("counter id=1 name=\"SMs active\" unit=percent device=1 source=test\n");
    for (start, length, value) in samples {
        writeln!(
            text,
            "counter_value counter=1 start_ns={start} duration_ns={length} value={value}"
        )
        .unwrap();
    }
    Trace::from_text(&text).unwrap()
}

/// What [`Attribution`] means, nanosecond by nanosecond.
fn slow(work: &[Ran], samples: &[Sampled]) -> Vec<SampleSums> {
    // The kernels that run in each nanosecond.
    let running: Vec<Vec<u32>> = (0..END)
        .map(|ns| {
            let runs = |(start, length, _): &&Ran| *start <= ns && ns < start + length;
            let mut kernels: Vec<u32> = work.iter().filter(runs).map(|of| of.2).collect();
            kernels.sort_unstable();
            kernels.dedup();
            kernels
        })
        .collect();
    let mut sums = vec![SampleSums::default(); KERNELS as usize];
    let mut samples = samples.to_vec();
    samples.sort_by_key(|sample| sample.0);
    let mut until = i64::MIN;
    for (start, length, value) in samples {
        if length == 0 || start < until {
            continue;
        }
        until = start + length;
        // The first nanosecond that way in which something runs.
        let seen = |way: &mut dyn Iterator<Item = i64>| {
            way.map(|ns| &running[ns as usize])
                .find(|kernels| !kernels.is_empty())
        };
        let back = seen(&mut (0..=start).rev());
        let ahead = seen(&mut (until - 1..END));
        let Some([kernel]) = back.map(Vec::as_slice) else {
            continue;
        };
        let inside = || running[start as usize..until as usize].iter();
        let sole = |kernels: &Vec<u32>| kernels.is_empty() || *kernels == [*kernel];
        let ran = inside().filter(|kernels| !kernels.is_empty()).count() as i64;
        if *kernel < KERNELS
            && ahead.map(Vec::as_slice) == Some(&[*kernel])
            && inside().all(sole)
            && ran as f64 >= SAMPLE_RAN_SHARE * length as f64
        {
            sums[*kernel as usize].add(f64::from(value), length, ran);
        }
    }
    sums
}

fn fast(work: &[Ran], samples: &[Sampled]) -> Vec<SampleSums> {
    let trace = trace(work, samples);
    let timeline = Timeline::new(&trace);
    match Attribution::new(&timeline, &recorded(&timeline), None) {
        Some(attribution) => attribution.counters[0].kernels.clone(),
        None => vec![SampleSums::default(); KERNELS as usize],
    }
}

proptest! {
    #[test]
    fn samples_are_given_to_kernels_as_a_slow_reference_gives_them(
        work in vec((0i64..70, 0i64..30, 0..=KERNELS), 0..12),
        samples in vec((0i64..80, 0i64..20, 0u32..100), 1..30),
    ) {
        prop_assert_eq!(fast(&work, &samples), slow(&work, &samples));
    }

    /// One kernel again and again with short pauses, as it is on a GPU.
    #[test]
    fn pauses_between_dispatches_of_one_kernel_are_counted(
        lengths in vec((0i64..3, 1i64..12), 1..6),
        samples in vec((0i64..60, 1i64..40, 0u32..100), 1..30),
    ) {
        let mut at = 0;
        let work: Vec<Ran> = lengths.iter().map(|(pause, length)| {
            at += pause + length;
            (at - length, *length, 1)
        }).collect();
        prop_assert_eq!(fast(&work, &samples), slow(&work, &samples));
    }
}

#[test]
fn a_sample_across_two_kernels_is_of_neither() {
    // The second kernel begins in the second sample.
    let work = [(0, 15, 0), (15, 15, 1)];
    let sums = fast(&work, &[(0, 10, 40), (10, 10, 50), (20, 10, 60)]);
    assert_eq!((sums[0].count, sums[0].mean()), (1, 40.0));
    assert_eq!((sums[1].count, sums[1].mean()), (1, 60.0));
    // A copy beside the kernel.
    let beside = fast(
        &[(0, 30, 0), (12, 1, KERNELS)],
        &[(0, 10, 40), (10, 10, 50)],
    );
    assert_eq!((beside[0].count, beside[0].covered_ns), (1, 10));
}

#[test]
fn the_mean_is_over_time_and_its_error_is_that_of_independent_samples() {
    let work = [(0, 100, 0)];
    let sums = fast(&work, &[(0, 10, 10), (10, 30, 50)]);
    assert_eq!(sums[0].mean(), 40.0, "10 ns of 10, 30 ns of 50");
    let equal = fast(&work, &[(0, 10, 10), (10, 10, 20), (20, 10, 30)])[0];
    // Standard deviation 10, of three.
    assert!((equal.standard_error() - 10.0 / 3f64.sqrt()).abs() < 1e-9);
    // 70 of 100 ns may be 10 off.
    assert!((equal.error(100) - equal.standard_error() - 7.0).abs() < 1e-9);
    assert_eq!(
        fast(&work, &[(0, 10, 10)])[0].standard_error(),
        f64::INFINITY
    );
}

#[test]
fn in_a_window_only_the_work_that_starts_there_counts() {
    let trace = trace(
        &[(0, 30, 0), (30, 30, 0), (60, 30, 0)],
        &[(0, 10, 10), (30, 10, 20), (55, 10, 90), (60, 10, 30)],
    );
    let timeline = Timeline::new(&trace);
    let window = Interval::new(30, 60);
    let recorded = recorded(&timeline);
    let attribution = Attribution::new(&timeline, &recorded, Some(window)).unwrap();
    let found = attribution.counters[0].kernels[0];
    assert_eq!((found.count, found.mean()), (1, 20.0));
    let ran = attribution.kernels[0];
    assert_eq!((ran.ran_ns, ran.alone_ns), (30, 30));
}

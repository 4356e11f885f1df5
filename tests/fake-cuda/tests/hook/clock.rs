//! Times that are not known.

use crate::stub::Stub;

/// Gives every third of 300 kernels bad times.
fn unknown_times(bad: &str) {
    let outcome = Stub::new()
        .with("FAKE_CUDA_TIMES", &format!("{bad}:3"))
        .run("launch:300 sync");
    let process = outcome.only();
    process.assert_undamaged();
    assert_eq!(
        process.kernels.len(),
        300,
        "the kernels themselves are known"
    );
    assert_eq!(
        process.kernels.iter().filter(|k| k.span.is_none()).count(),
        100
    );
    for (kernel, truth) in process.kernels.iter().zip(outcome.truth_of("kernel")) {
        if let Some(span) = kernel.span {
            assert_eq!(span, truth.span());
        }
    }
}

#[test]
fn zero_times_are_unknown() {
    unknown_times("zero");
}

#[test]
fn an_end_before_the_begin_is_unknown() {
    unknown_times("negative");
}

#[test]
fn a_begin_without_an_end_is_unknown() {
    unknown_times("half");
}

#[test]
fn work_that_is_not_done_when_the_program_ends_has_no_times() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_KERNEL_NS", "20000000")
        .run("launch:5 sync launch:995 exit:0");
    let process = outcome.only();
    process.assert_undamaged();
    assert_eq!(process.kernels.len(), 1000);
    let unknown = process.kernels.iter().filter(|k| k.span.is_none()).count() as u64;
    assert!(
        (1..=995).contains(&unknown),
        "the device, which needs 20 s, was at work for {unknown} of them"
    );
}

#[test]
fn records_come_after_the_work_that_they_are_of() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_BUFFER", "8192")
        .run("launch:300 sync flushes:2 launch:20 sync");
    let process = outcome.whole();
    assert!(process.deliveries.len() >= 3, "{:?}", process.deliveries);
    for (end_ns, at_ns) in &process.deliveries {
        assert!(end_ns <= at_ns, "{end_ns} {at_ns}");
    }
    let latest = outcome.truth_of("kernel").iter().map(|t| t.end_ns).max();
    let told = process.deliveries.iter().map(|(end_ns, _)| *end_ns).max();
    assert_eq!(told, latest);
}

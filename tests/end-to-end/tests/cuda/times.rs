//! Tests the error bound of device times, and the host's waits, on the stub of CUDA.

use super::*;

#[test]
fn a_host_that_asks_again_and_again_waits_and_is_not_late() {
    let stub = Stub::new(&[("KERNEL_NS", "300000")]);
    let recording = stub.program("polls:200 sync").recorded();
    let h = &recording.trace().tables.host_calls;
    let polls: u64 = (0..h.len())
        .filter(|row| h.call[*row] == HostCallKind::PollEvent)
        .map(|row| u64::from(h.count[row]))
        .sum();
    let asked: u64 = recording
        .run
        .stdout
        .split_whitespace()
        .filter_map(|word| word.parse::<u64>().ok())
        .sum();
    assert_eq!(polls, asked, "{}", recording.run.stdout);
    // There is one call for each kernel, the call that records the event, and the polls that other work of the
    // machine separates.
    assert!(
        h.len() as u64 > 400 && (h.len() as u64) < 400 + asked / 4,
        "{} rows of {asked} polls",
        h.len()
    );
    let report = recording.report();
    // Gaps are compared by number, because on a busy machine a spinning host is late, too, and for long.
    let gaps_with = |cause: &str| {
        let gaps = report["gaps"].as_array().expect("gaps");
        let of = gaps.iter().find(|gap| gap["cause"] == cause);
        of.and_then(|gap| gap["count"].as_i64()).unwrap_or(0)
    };
    assert!(
        gaps_with("after-host-wait") > 100
            && gaps_with("after-host-wait") > 2 * gaps_with("host-late"),
        "{}",
        report["gaps"]
    );
    let clock = &recording.trace().manifest.devices[0].clock;
    assert!(
        clock.error_ns.is_some_and(|ns| ns < 1_000_000),
        "what was asked for and found done bounds the clock: {clock:?}"
    );
}

#[test]
fn the_bound_of_device_times_holds_wherever_they_are_put() {
    // The program waits with a stream, an event or a copy, or by asking.
    for waits in ["sync", "waits", "read", "polls:3"] {
        for (skew, drift) in [
            (0, 0),
            (-3_000, 0),
            (2_500, 0),
            (40_000, 0),
            (-60_000, 0),
            (0, 20),
        ] {
            the_bound_holds(waits, skew, drift);
        }
    }
    let stub = Stub::new(&[]);
    let trace = stub.program("launch:50 sleep:200").recorded().trace();
    let error_ns = trace.manifest.devices[0].clock.error_ns;
    assert!(
        error_ns.is_some_and(|ns| ns > 4_000),
        "nothing waits, but the records have come: {error_ns:?}"
    );
}

/// Records a program that waits in this way, with device times that are off, and compares the times with the stub's
/// log.
fn the_bound_holds(waits: &str, skew: i64, drift: i64) {
    let stub = Stub::new(&[("SKEW", &format!("{skew}:{drift}"))]);
    let steps = format!("{waits} launch:200 {waits} sleep:150 launch:20 {waits}");
    let trace = stub.program(&steps).recorded().trace();
    let clock = &trace.manifest.devices[0].clock;
    let error_ns = clock.error_ns.expect("the program waits");
    let mut true_ns: Vec<i64> = stub
        .did()
        .iter()
        .filter(|d| d.kind == "kernel")
        .map(|d| d.start_ns)
        .collect();
    let starts = &trace.tables.dispatches.start_ns;
    let mut recorded_ns: Vec<i64> = starts.iter().flatten().collect();
    true_ns.sort_unstable();
    recorded_ns.sort_unstable();
    assert_eq!(true_ns.len(), recorded_ns.len());
    let off = true_ns.iter().zip(&recorded_ns).map(|(t, r)| (t - r).abs());
    let worst = off.max().expect("kernels");
    let said = format!("{waits}, {skew} ns, {drift} ppm: off by {worst}, bound {error_ns}");
    assert!(worst <= error_ns, "{said}");
    // A busy machine returns late from waits.
    assert!(error_ns < worst + 20_000_000, "{said}");
    let early = skew < -4_000;
    let counted = trace
        .manifest
        .losses
        .iter()
        .any(|l| l.kind == LossKind::PlausibleDeviceTimes);
    assert_eq!(counted, early, "{said}");
}

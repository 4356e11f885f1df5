//! Tests recording on the project's fake driver, for cases that the software GPU does not have: several queue
//! families, few and missing timestamp bits, memory that is not coherent, a lost device, overlap. The driver logs
//! what it did and each misuse of Vulkan.

use std::collections::BTreeMap;

use gapscope_trace::ids::QueueId;
use gapscope_trace::manifest::ClockMethod;
use gapscope_trace::tables::{Table, Timing};
use gapscope_trace::{LossKind, Trace};
use serde_json::Value;

use crate::counts;
use crate::driver::Fake;
use crate::losses;
use crate::recording::Program;

/// A recording on the fake driver, with the driver's log.
pub struct Case {
    fake: Fake,
    pub trace: Trace,
}

/// Records `planted`, compares counts with the driver's log, and fails on misuse.
pub fn case(arguments: &str, settings: &[(&str, &str)]) -> Case {
    let fake = Fake::new(settings);
    let recording = Program::planted(arguments, &fake).recorded();
    let trace = recording.trace();
    counts::compare(&trace.tables, &recording.truth());
    losses::assert_exact(&trace);
    assert_eq!(fake.misuse(), "", "Vulkan was misused");
    Case { fake, trace }
}

impl Case {
    fn clock_error_ns(&self) -> i64 {
        self.trace.manifest.devices[0]
            .clock
            .error_ns
            .expect("the bound is known")
    }

    /// Compares the start and end of each dispatch with the driver's log, within the error bound that the trace
    /// states.
    fn assert_times_within_bound(&self) {
        let bound = self.clock_error_ns();
        let mut truth: Vec<(i64, i64)> = self.executed("dispatch");
        truth.sort();
        let dispatches = &self.trace.tables.dispatches;
        let mut recorded: Vec<(i64, i64)> = (0..dispatches.len())
            .map(|row| {
                let start = dispatches
                    .start_ns
                    .at(row)
                    .expect("each dispatch has times");
                (
                    start,
                    start
                        + dispatches
                            .duration_ns
                            .at(row)
                            .expect("each dispatch has times"),
                )
            })
            .collect();
        recorded.sort();
        assert_eq!(truth.len(), recorded.len());
        for (truth, recorded) in truth.iter().zip(&recorded) {
            assert!(
                (truth.0 - recorded.0).abs() <= bound,
                "start {recorded:?} of {truth:?}, bound {bound} ns"
            );
            assert!(
                (truth.1 - recorded.1).abs() <= bound,
                "end {recorded:?} of {truth:?}, bound {bound} ns"
            );
        }
    }

    fn executed(&self, kind: &str) -> Vec<(i64, i64)> {
        let time = |line: &Value, name: &str| line[name].as_i64().expect("known");
        let lines = self.fake.truth();
        let of_kind = lines.iter().filter(|line| line["kind"] == kind);
        of_kind
            .map(|line| (time(line, "start_ns"), time(line, "end_ns")))
            .collect()
    }
}

#[test]
fn times_are_true_within_the_stated_bound() {
    let case = case(
        "steady --n 20 --iterations 10",
        &[("DISPATCH_NS", "100000")],
    );
    assert_eq!(
        case.trace.manifest.devices[0].clock.method,
        ClockMethod::Calibrated
    );
    case.assert_times_within_bound();
}

#[test]
fn times_are_true_on_a_clock_that_drifts_and_starts_elsewhere() {
    let settings = [
        ("DISPATCH_NS", "100000"),
        ("CLOCK_OFFSET_NS", "987654321000"),
        ("CLOCK_DRIFT_PPM", "40"),
        ("TIMESTAMP_PERIOD", "52.083"),
    ];
    case(
        "host-sleep --sleep-us 50000 --iterations 20 --n 10",
        &settings,
    )
    .assert_times_within_bound();
}

#[test]
fn times_are_true_without_calibrated_timestamps() {
    for calibrated in ["0", "raw"] {
        let settings = [
            ("DISPATCH_NS", "100000"),
            ("CALIBRATED", calibrated),
            ("CLOCK_OFFSET_NS", "55555555"),
        ];
        let case = case("steady --n 20 --iterations 20", &settings);
        if calibrated == "0" {
            assert_eq!(
                case.trace.manifest.devices[0].clock.method,
                ClockMethod::Brackets
            );
        }
        case.assert_times_within_bound();
    }
}

/// A timestamp of 20 bits of a microsecond wraps about once a second.
#[test]
fn times_are_true_when_few_bits_wrap() {
    let settings = [
        ("DISPATCH_NS", "100000"),
        ("TIMESTAMP_BITS", "20"),
        ("TIMESTAMP_PERIOD", "1000"),
    ];
    case(
        "host-sleep --sleep-us 100000 --iterations 30 --n 5",
        &settings,
    )
    .assert_times_within_bound();
}

#[test]
fn memory_that_is_not_coherent_is_read_right() {
    case("steady --n 20 --iterations 10", &[("COHERENT", "0")]).assert_times_within_bound();
}

#[test]
fn overlap_is_preserved() {
    let case = case(
        "bench --n 20 --iterations 3",
        &[("OVERLAP", "1"), ("DISPATCH_NS", "100000")],
    );
    let mut truth = case.executed("dispatch");
    truth.sort();
    assert!(
        truth.windows(2).any(|pair| pair[1].0 < pair[0].1),
        "the driver overlapped: {truth:?}"
    );
    let dispatches = &case.trace.tables.dispatches;
    let mut recorded: Vec<_> = dispatches
        .start_ns
        .iter()
        .zip(&dispatches.duration_ns)
        .collect();
    recorded.sort();
    let overlaps = recorded.windows(2).any(|pair| {
        let end = pair[0]
            .0
            .zip(pair[0].1)
            .map(|(start, duration)| start + duration);
        pair[1].0.zip(end).is_some_and(|(start, end)| start < end)
    });
    assert!(overlaps, "{recorded:?}");
}

#[test]
fn a_family_without_timestamps_is_counted_and_said() {
    let case = case("steady --family 3 --n 5 --iterations 4", &[]);
    let timing = &case.trace.tables.command_buffers.timing;
    assert!(
        timing.iter().all(|&timing| timing == Timing::NoTimestamps),
        "{timing:?}"
    );
    assert_eq!(losses::counted(&case.trace, &LossKind::DispatchTimes), 20);
}

#[test]
fn a_family_that_only_transfers_is_timed() {
    let case = case("transfers --family 2", &[]);
    let transfers = &case.trace.tables.transfers;
    let buffers = &case.trace.tables.command_buffers;
    assert!(transfers.len() > 0);
    assert!(
        losses::all_known(&buffers.duration_ns),
        "{:?} {:?}",
        buffers.timing,
        case.trace.manifest.losses
    );
}

#[test]
fn a_family_that_only_transfers_cannot_be_timed_without_host_query_reset() {
    case("transfers --family 2", &[("HOST_QUERY_RESET", "0")]);
}

/// Vulkan 1.2 has host query reset; an extension adds it to Vulkan 1.1.
#[test]
fn host_query_reset_is_had_by_an_extension_too() {
    // With Vulkan 1.1 and the extension, command buffers copy nothing, and all queues are timed.
    let by_extension = case("transfers --family 2 --api-minor 1", &[]);
    let buffers = &by_extension.trace.tables.command_buffers;
    assert!(
        losses::all_known(&buffers.duration_ns),
        "{:?}",
        buffers.timing
    );
    assert_eq!(by_extension.trace.manifest.notes, [""; 0]);
    for (arguments, reset, reason) in [
        ("steady --api-minor 1", "0", "the driver does not offer it"),
        ("steady", "0", "the driver does not offer it"),
        (
            "steady --api-minor 0",
            "1",
            "the program asks for Vulkan 1.0",
        ),
    ] {
        let without = case(arguments, &[("HOST_QUERY_RESET", reset)]);
        let notes = &without.trace.manifest.notes;
        assert!(
            matches!(&notes[..], [note] if note.contains("waited at its end") && note.contains(reason)),
            "{arguments}: {notes:?}"
        );
        let buffers = &without.trace.tables.command_buffers;
        assert!(losses::all_known(&buffers.duration_ns));
    }
}

#[test]
fn queues_keep_their_own_work() {
    let case = case("ping-pong --iterations 10", &[("DISPATCH_NS", "50000")]);
    case.assert_times_within_bound();
    let mut by_queue: BTreeMap<QueueId, usize> = BTreeMap::new();
    for &queue in &case.trace.tables.dispatches.queue {
        *by_queue.entry(queue).or_default() += 1;
    }
    assert_eq!(by_queue.len(), 2, "{by_queue:?}");
    assert!(by_queue.values().all(|&count| count == 100), "{by_queue:?}");
}

#[test]
fn a_lost_device_is_said_and_what_it_did_is_kept() {
    let fake = Fake::new(&[("LOST_AFTER", "5")]);
    let recording = Program::planted("device-lost --iterations 20", &fake).record();
    let trace = recording.trace();
    assert!(
        trace.manifest.devices[0].lost,
        "{:?}",
        trace.manifest.devices
    );
    losses::assert_exact(&trace);
    assert_eq!(fake.misuse(), "");
}

macro_rules! without_misuse {
    ($($name:ident: $arguments:literal;)+) => {$(
        #[test]
        fn $name() {
            case($arguments, &[]);
        }
    )+};
}

without_misuse! {
    no_misuse_with_command_buffers_submitted_again: "resubmit";
    no_misuse_with_simultaneous_instances: "simultaneous";
    no_misuse_with_secondary_command_buffers: "secondary";
    no_misuse_with_handles_that_come_again: "host-pool-reset";
    no_misuse_with_push_descriptors: "push-descriptors";
    no_misuse_with_updated_descriptor_sets: "updated-sets";
    no_misuse_with_submit2: "submit2";
    no_misuse_with_threads: "threads --count 4";
    no_misuse_with_devices: "devices";
    no_misuse_with_render_passes: "render-pass";
    no_misuse_with_labels: "labels";
    no_misuse_with_instances_that_come_and_go: "churn";
    no_misuse_with_abandoned_objects: "abandon";
}

//! Records that CUPTI loses or that nobody understands are counted, and cost nothing else.

use crate::stub::Stub;

#[test]
fn records_that_cupti_dropped_are_counted() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_DROP", "9")
        .run("launch:100 sync");
    let process = outcome.only();
    assert_eq!(
        process.lost("CUDA activities", "CUPTI had no buffer for them"),
        9
    );
    assert_eq!(process.kernels.len(), 100);
}

#[test]
fn records_of_unknown_kinds_are_counted_and_passed_over() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_UNKNOWN", "5")
        .run("launch:100 sync");
    let process = outcome.only();
    assert_eq!(process.kernels.len(), 100);
    let unknown = process.lost("CUDA activities", "a kind of record that was not asked for");
    // These are a fifth of 100 kernels and some more.
    assert!((20..=25).contains(&unknown), "{unknown}");
}

#[test]
fn a_torn_buffer_is_counted_and_the_next_ones_are_read() {
    let stub = Stub::new()
        .with("FAKE_CUDA_TORN", "1")
        .with("FAKE_CUDA_BUFFER", "4096");
    let outcome = stub.run("launch:500 sync");
    let process = outcome.only();
    assert_eq!(process.kernels.len(), 500);
    let reason = "a buffer of CUPTI ends in a record that it does not know itself";
    assert_eq!(process.lost("CUDA activities", reason), 1);
}

#[test]
fn an_old_cupti_is_named_and_the_program_runs() {
    let stub = Stub::new().with("FAKE_CUDA_API_VERSION", "17");
    let outcome = stub.run("launch:10 sync");
    assert!(outcome.status.success());
    let process = outcome.only();
    assert!(process.kernels.is_empty() && process.ended);
    process.assert_not_recorded("libcupti is too old");
    let [note] = &process.notes[..] else {
        panic!("{:?}", process.notes)
    };
    assert!(
        note.contains(&stub.folder().display().to_string())
            && note.contains("API 17")
            && note.contains("CUDA 12.0"),
        "{note}"
    );
}

#[test]
fn a_cupti_that_does_not_work_is_named_and_not_called_old() {
    let stub = Stub::new().with("FAKE_CUDA_API_VERSION", "0");
    let outcome = stub.run("launch:10 sync");
    assert!(outcome.status.success());
    let process = outcome.only();
    process.assert_not_recorded("libcupti does not work");
    let note = &process.notes[0];
    assert!(
        note.contains("error 999") && note.contains("GAPSCOPE_CUPTI"),
        "{note}"
    );
}

#[test]
fn a_cupti_of_a_future_version_is_not_trusted() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_API_VERSION", "140000")
        .run("launch:10 sync");
    assert!(outcome.status.success());
    let process = outcome.only();
    assert!(process.kernels.is_empty());
    process.assert_not_recorded("libcupti is too new");
}

#[test]
fn a_missing_cupti_is_named_with_what_to_do() {
    let stub = Stub::new();
    std::fs::remove_file(stub.folder().join("libcupti.so.13")).expect("it is there");
    let outcome = stub.run("launch:10 sync");
    assert!(outcome.status.success());
    let process = outcome.only();
    process.assert_not_recorded("libcupti was not found");
    let [note] = &process.notes[..] else {
        panic!("{:?}", process.notes)
    };
    assert!(note.contains("pip install nvidia-cuda-cupti"), "{note}");
}

#[test]
fn the_cupti_that_the_user_names_is_taken_and_no_other() {
    let stub = Stub::new();
    let (there, moved) = (
        stub.folder().join("libcupti.so.13"),
        stub.folder().join("libmoved.so"),
    );
    std::fs::rename(&there, &moved).expect("it is there");
    let stub = stub.with("GAPSCOPE_CUPTI", &moved.display().to_string());
    assert_eq!(stub.run("launch:10 sync").whole().kernels.len(), 10);
    let stub = Stub::new().with("GAPSCOPE_CUPTI", "no-such-file.so");
    let outcome = stub.run("launch:10 sync");
    assert!(outcome.only().notes[0].contains("GAPSCOPE_CUPTI (no-such-file.so) cannot be loaded"));
}

#[test]
fn a_cupti_newer_than_the_driver_is_not_tried() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_DRIVER_VERSION", "12080")
        .run("launch:10 sync");
    outcome.only().assert_not_recorded("libcupti was not found");
}

#[test]
fn a_refused_subscription_is_said_and_nothing_else_is_done() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_SUBSCRIBE", "refuse")
        .run("launch:10 sync");
    assert!(outcome.status.success());
    let process = outcome.only();
    assert!(process.kernels.is_empty() && process.calls.is_empty() && process.devices.is_empty());
    process.assert_not_recorded("CUPTI refused the subscription");
    assert!(
        process.notes[0].contains("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"),
        "{}",
        process.notes[0]
    );
}

#[test]
fn a_cupti_that_refuses_callbacks_is_named_and_work_is_recorded() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_CALLBACKS", "refuse")
        .run("launch:10 copies graph:5:2 waits polls:1 sync");
    assert!(outcome.status.success());
    let process = outcome.only();
    process.assert_undamaged();
    assert_eq!((process.kernels.len(), process.transfers.len()), (27, 3));
    assert!(process.calls.is_empty() && process.polls.is_empty());
    assert!(process.waits.is_empty() && process.event_records.is_empty());
    let [(what, functions, reason)] = &process.losses[..] else {
        panic!("{:?}", process.losses)
    };
    assert_eq!(what, "functions whose calls are recorded");
    assert_eq!(reason, "CUPTI refused their callbacks");
    assert!(*functions > 20, "{functions}");
}

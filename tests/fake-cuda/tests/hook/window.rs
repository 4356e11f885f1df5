//! Recording on and off.

use crate::stub::Stub;
use std::collections::HashSet;

#[test]
fn outside_the_window_nothing_is_recorded_but_what_exists() {
    let stub = Stub::new().with("GAPSCOPE_RECORDING", "0");
    let outcome =
        stub.run("launch:100 memory copies waits sync capture:launch:20 sync launch:30 sync");
    let process = outcome.whole();
    // The work of the window is done when it ends or shortly after: the program waits after it.
    assert_eq!(
        process.kernels.len() + process.calls_of("cuLaunchKernel").len(),
        40
    );
    assert!(process.transfers.is_empty() && process.waits.is_empty());
    assert_eq!(process.allocations.len(), 4, "memory is what exists");
    assert!(
        process.calls_of("cudaGetDevice").is_empty(),
        "the noise stays off"
    );
}

#[test]
fn a_window_is_whole_and_no_longer_though_cupti_takes_its_time_to_switch() {
    let stub = Stub::new()
        .with("GAPSCOPE_RECORDING", "0")
        .with("FAKE_CUDA_SWITCH_MS", "100");
    let outcome = stub.run("launch:10 sync capture:launch:20 launch:30 sync flushes:2");
    let process = outcome.whole();
    assert_eq!(
        (
            process.kernels.len(),
            process.calls_of("cuLaunchKernel").len()
        ),
        (20, 20)
    );
}

#[test]
fn no_launch_that_is_recorded_lacks_its_kernel_though_others_launch_while_recording_begins() {
    let windows = ["launch-while:capture:calls:20"; 10].join(" ");
    let outcome = Stub::new()
        .with("GAPSCOPE_RECORDING", "0")
        .run(&format!("{windows} sync"));
    let process = outcome.whole();
    let kernels: HashSet<u32> = process.kernels.iter().map(|k| k.correlation).collect();
    let launches = process.calls_of("cuLaunchKernel");
    assert!(!launches.is_empty());
    let lack = launches
        .iter()
        .filter(|call| !kernels.contains(&call.correlation));
    assert_eq!(lack.count(), 0, "of {} launches", launches.len());
}

#[test]
fn a_capture_in_a_program_that_is_recorded_throughout_changes_nothing() {
    let outcome = Stub::new().run("launch:50 capture:launch:20 launch:30 sync");
    let process = outcome.whole();
    assert_eq!(process.kernels.len(), 100);
    assert_eq!(process.calls_of("cuLaunchKernel").len(), 100);
}

#[test]
fn a_label_starts_the_recording() {
    let stub = Stub::new()
        .with("GAPSCOPE_RECORDING", "0")
        .with("GAPSCOPE_START_LABEL", "step 3");
    let outcome = stub.run("launch:10 labels:5 sync");
    let process = outcome.whole();
    assert_eq!(process.kernels.len(), 2, "steps 3 and 4");
}

//! Other users of CUPTI in the program.

use crate::stub::Stub;

#[test]
fn a_profiler_inside_the_program_gets_nothing_and_takes_nothing() {
    let outcome = Stub::new().run("launch:100 profiler launch:100 sync");
    assert_eq!(outcome.output, "profiler: served false, 0 bytes\n");
    assert_eq!(
        outcome.whole().kernels.len(),
        300,
        "before, during and after"
    );
}

#[test]
fn a_profiler_that_was_there_first_keeps_its_place_and_the_user_is_told() {
    let outcome = Stub::new().run("profiler-first launch:100 sync");
    assert!(outcome.status.success());
    let process = outcome.only();
    assert!(process.kernels.is_empty());
    process.assert_not_recorded("CUPTI refused the subscription");
    assert!(
        process.notes[0].contains("another profiler"),
        "{}",
        process.notes[0]
    );
}

#[test]
fn a_program_that_has_loaded_cupti_is_warned_about_its_profiler() {
    let stub = Stub::new();
    // The link has a name that torch maps at import; the process shows links by their targets.
    let cupti = stub.folder().join("libcupti.so.13");
    let real = std::fs::canonicalize(&cupti).expect("the stub");
    std::fs::remove_file(&cupti).expect("it is there");
    std::fs::remove_file(stub.folder().join("libcuda.so.1")).expect("it is there");
    std::fs::copy(real, &cupti).expect("a copy");
    std::os::unix::fs::symlink(&cupti, stub.folder().join("libcuda.so.1")).expect("a link");
    let outcome = stub.run("launch:10 sync");
    let process = outcome.whole();
    assert_eq!(process.kernels.len(), 10);
    assert!(
        process.notes[0].contains("torch.profiler"),
        "{:?}",
        process.notes
    );
}

#[test]
fn without_a_session_the_library_does_nothing() {
    let stub = Stub::new().without("GAPSCOPE_SPOOL");
    let outcome = stub.run("profiler launch:10 nvtx sync");
    assert!(outcome.status.success());
    assert!(
        outcome.output.starts_with("profiler: served true"),
        "CUPTI is free: {}",
        outcome.output
    );
    assert!(outcome.processes.is_empty());
}

#[test]
fn a_program_without_cuda_is_left_alone() {
    let outcome = Stub::new().without("NVTX_INJECTION64_PATH").run("no-cuda");
    assert!(outcome.status.success());
    assert!(outcome.processes.is_empty());
}

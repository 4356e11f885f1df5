//! However a program ends, at most the last 100 ms of its work are lost, and no call.

use crate::stub::Stub;
use std::os::unix::process::ExitStatusExt;

/// Launches, waits for a flush, and ends.
fn ends(by: &str) -> (Option<i32>, Option<i32>) {
    let outcome = Stub::new().run(&format!("launch:2001 sync flushes:2 {by}"));
    let process = outcome.only();
    assert_eq!(process.kernels.len(), 2001, "{by}");
    assert_eq!(process.calls_of("cuLaunchKernel").len(), 2001, "{by}");
    process.assert_undamaged();
    assert_eq!(process.ended, by.starts_with("exit"), "{by}");
    (outcome.status.code(), outcome.status.signal())
}

#[test]
fn what_is_older_than_a_tenth_of_a_second_survives_exit_without_handlers() {
    assert_eq!(ends("_exit"), (Some(0), None));
}

#[test]
fn it_survives_being_killed() {
    assert_eq!(ends("kill"), (None, Some(libc::SIGKILL)));
}

#[test]
fn it_survives_an_abort() {
    assert_eq!(ends("abort"), (None, Some(libc::SIGABRT)));
}

#[test]
fn an_orderly_end_loses_nothing_and_keeps_its_code() {
    assert_eq!(ends("exit:3"), (Some(3), None));
    let outcome = Stub::new().run("launch:5000 sync exit:0");
    assert_eq!(outcome.whole().kernels.len(), 5000);
}

#[test]
fn a_sudden_end_keeps_what_was_flushed_before() {
    let outcome = Stub::new().run("launch:1000 sync flushes:2 launch:1000 kill");
    let process = outcome.only();
    assert!(
        (1000..=2000).contains(&process.kernels.len()),
        "{}",
        process.kernels.len()
    );
    // The calling thread writes its calls itself.
    assert_eq!(process.calls_of("cuLaunchKernel").len(), 2000);
    process.assert_undamaged();
}

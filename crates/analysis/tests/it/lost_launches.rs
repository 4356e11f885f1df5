//! Time in which work may have run that was launched and is not in the trace has no known cause; a file that was not read
//! whole says so beside the verdict.

use crate::program::Program;
use gapscope_analysis::gaps::Cause::{self, *};
use gapscope_analysis::headline::HeadlineKind;

/// A loss of graphs that were launched.
const LOST: &str = "loss what=\"command buffers\" count=3 reason=\"no rows of them\"";

/// The microseconds of a cause in a program that runs a kernel at 0 and one at 10 ms, each of 100 us, with these rows
/// between them.
fn idle(rows: &[&str], cause: Cause) -> i64 {
    let mut p = Program::new();
    p.launch(1, [-20, -10], 0, 100);
    for row in rows {
        p.line(row);
    }
    p.launch(1, [9_980, 9_990], 10_000, 100);
    let gaps = p.gaps();
    let of_cause = gaps.iter().find(|(of, _)| *of == cause);
    of_cause.map_or(0, |(_, us)| *us)
}

#[test]
fn no_cause_is_known_where_lost_work_may_have_run() {
    let launch = "host_call process=1 thread=7 call=launch function=cudaGraphLaunch start_ns=1ms duration_ns=10us";
    let wait =
        "host_call process=1 thread=7 call=wait-device-idle start_ns=1100us duration_ns=3900us";
    let capture = "host_call process=1 thread=7 call=build-graph function=cudaStreamBeginCapture start_ns=900us duration_ns=1us
         host_call process=1 thread=7 call=build-graph function=cudaStreamEndCapture start_ns=1500us duration_ns=1us";
    // From the call to the return of the wait, or to the start of the next work.
    assert_eq!(idle(&[LOST, launch, wait], Unknown), 4_000);
    assert_eq!(idle(&[LOST, launch], Unknown), 9_000);
    // A stream that captures runs nothing, and neither does a launch of nothing.
    assert_eq!(idle(&[LOST, launch, capture], Unknown), 0);
    assert_eq!(idle(&[launch, wait], Unknown), 0);
    // Without the launch the loss is of another time.
    assert_eq!(idle(&[LOST, wait], Unknown), 0);
}

#[test]
fn a_file_that_was_not_read_whole_says_so_beside_the_verdict() {
    for (what, count, text) in [
        (
            "parts of files",
            1,
            "A part of the file could not be read: torn.",
        ),
        (
            "parts of files",
            2,
            "2 parts of the file could not be read: torn.",
        ),
        (
            "rests of files",
            1,
            "The end of the file could not be read: torn.",
        ),
    ] {
        let mut p = Program::new();
        p.launch(1, [-20, -10], 0, 100);
        p.line(&format!("loss what=\"{what}\" count={count} reason=torn"));
        let notes = p.findings().headline;
        let of_file = notes
            .iter()
            .find(|note| note.kind == HeadlineKind::PartOfFile);
        assert_eq!(of_file.map(|note| note.sentence.as_str()), Some(text));
    }
}

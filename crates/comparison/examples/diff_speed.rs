//! Where the time of a report and of a comparison goes, in parts:
//! `cargo run --release -p gapscope-comparison --example diff_speed -- TRACE.gapscope…`
//!
//! Processor time is of all threads, and tells what a machine that does other work meanwhile would take.
#![forbid(unsafe_code)]

use gapscope_analysis::{Findings, activity, gaps};
use gapscope_comparison::diff::{Diff, Options, RunDigest};
use gapscope_timeline::{Timeline, busy};
use gapscope_trace::tables::Dispatches;
use gapscope_trace::{DispatchPieces, Selection, read};
use std::path::Path;
use std::time::Instant;

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let digests: Vec<RunDigest> = paths.iter().map(|path| one(path)).collect();
    if let [before, after] = digests.as_slice() {
        let (before, after) = (std::slice::from_ref(before), std::slice::from_ref(after));
        timed("diff", || Diff::new(before, after, &Options::default()));
    }
}

/// Reads one trace and analyses it.
fn one(path: &str) -> RunDigest {
    println!("{path}");
    let selection = RunDigest::selection();
    let others = selection.clone().without::<Dispatches>();
    let (trace, _) = timed("other tables", || {
        read(Path::new(path), &others).expect("it is a trace")
    });
    let pieces = pieces(path, &selection);
    timed("dispatches read", || pieces.each(&trace, &mut |_| ()));
    let pieces = self::pieces(path, &selection);
    let (timeline, _) = timed("dispatches read into the timeline", || {
        let timeline = Timeline::from_pieces(&trace, None, pieces.rows(), |take| {
            pieces.each(&trace, take)
        });
        timeline.expect("the dispatches can be read")
    });
    let window = timeline.work_window().expect("there is work");
    timed("busy time", || busy::busy(&timeline, Some(window)));
    timed("idle time", || gaps::idle_time(&timeline, window, 0, 0));
    let digest = timed("digest, with both", || RunDigest::new(&timeline, path, &[]));
    let findings = timed("findings", || {
        Findings::from_timeline(&timeline, &gapscope_analysis::Options::default())
    });
    assert_eq!(*findings.dispatch_count as usize, pieces.rows());
    timed("activity", || activity(&timeline, 60));
    digest
}

/// Opens the dispatches of a trace, which are read piece by piece.
fn pieces(path: &str, selection: &Selection) -> DispatchPieces {
    DispatchPieces::open(Path::new(path), selection).expect("the trace is complete")
}

/// Does some work, prints how long it took, and returns its result.
fn timed<R>(what: &str, work: impl FnOnce() -> R) -> R {
    let (begin, used) = (Instant::now(), processor_seconds());
    let result = work();
    let used = (processor_seconds().zip(used)).map(|(end, begin)| format!("{:.2}", end - begin));
    println!(
        "  {what}: {:.2} s, processor time {} s",
        begin.elapsed().as_secs_f64(),
        used.as_deref().unwrap_or("unknown")
    );
    result
}

/// Processor time of this process in seconds, to a hundredth.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ').skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

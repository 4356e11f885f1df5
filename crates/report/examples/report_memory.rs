//! What a report takes: `cargo run --release -p gapscope-report --example report_memory -- TRACE.gapscope` prints the findings as
//! JSON, and on standard error the time and the greatest memory that reading, analysing and writing took.
#![forbid(unsafe_code)]

use gapscope_analysis::{Findings, Options, Timeline, activity};
use gapscope_report::{Report, json};
use gapscope_trace::DispatchPieces;
use gapscope_trace::tables::Dispatches;
use std::path::PathBuf;
use std::time::Instant;

fn main() {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: report_memory TRACE.gapscope");
        std::process::exit(2);
    };
    let begin = Instant::now();
    let selection = Findings::selection();
    let others = selection.clone().without::<Dispatches>();
    let read = gapscope_trace::read(&path, &others);
    let (trace, mut diagnostics) = read.unwrap_or_else(|error| panic!("{error}"));
    say("the other tables", begin);
    let pieces = DispatchPieces::open(&path, &selection).expect("it is complete");
    let timeline = Timeline::of_pieces(&trace, pieces.rows(), |take| pieces.each(&trace, take));
    let (timeline, unknown) = timeline.expect("its dispatches can be read");
    diagnostics.extend(unknown);
    say("the timeline", begin);
    let findings = Findings::of_timeline(&timeline, &Options::default());
    say("the findings", begin);
    let activity = activity(&timeline, 80);
    let remarks: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    let text = json::text_with_activity(&Report {
        trace: "trace",
        manifest: &trace.manifest,
        findings: &findings,
        activity: &activity,
        label: None,
        remarks: &remarks,
        top: 10,
    });
    println!("{}", text.expect("it is JSON"));
    let count = findings.dispatch_count;
    let peak = peak_mib();
    eprintln!(
        "{count} dispatches: {:.3} s, at most {peak} MiB resident, {:.1} bytes a dispatch",
        begin.elapsed().as_secs_f64(),
        (peak << 20) as f64 / count.max(1) as f64,
    );
}

fn say(what: &str, begin: Instant) {
    let (seconds, mib) = (begin.elapsed().as_secs_f64(), peak_mib());
    eprintln!("{what}: after {seconds:.3} s, at most {mib} MiB");
}

/// The greatest resident memory of this process so far.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kib.unwrap_or(0) >> 10
}

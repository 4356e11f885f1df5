//! Makes digests of traces, from which runs are compared.

use gapscope_comparison::diff::RunDigest;
use gapscope_timeline::Timeline;
use gapscope_trace::tables::Table;
use gapscope_trace::{Trace, UnreadTable};

fn digest(trace: &Trace) -> RunDigest {
    RunDigest::new(&Timeline::new(trace), "run", &[])
}

#[test]
fn a_digest_is_the_same_with_samples_and_without() {
    let whole = Trace::from_text(include_str!("../../../../fixtures/v3.txt")).unwrap();
    let mut without = whole.clone();
    without.tables.samples = Default::default();
    without.tables.stacks = Default::default();
    without.tables.frames = Default::default();
    assert!(!whole.tables.samples.is_empty());
    assert_eq!(digest(&whole), digest(&without));
}

#[test]
fn without_all_dispatches_no_idle_time_is_known() {
    // The only dispatch without times is left out.
    let untimed = "dispatch command_buffer=2 position=0 queue=1 kernel=1\n";
    let text = include_str!("../../../../fixtures/v3.txt");
    let mut trace = Trace::from_text(&text.replace(untimed, "")).unwrap();
    let idle_times = |trace: &Trace| {
        let digest = serde_json::to_value(digest(trace)).unwrap();
        let figures = digest["figures"].as_object().unwrap().clone();
        let idle = figures
            .into_iter()
            .filter(|(name, _)| name.contains("idle"));
        idle.map(|(name, figure)| (name, figure["value"].is_null()))
            .collect::<Vec<_>>()
    };
    let whole = idle_times(&trace);
    assert!(whole.len() > 1 && whole.iter().all(|(_, unknown)| !unknown));
    // One of a few dispatches without times is more than a hundredth.
    let with_untimed = idle_times(&Trace::from_text(text).unwrap());
    assert!(with_untimed.iter().all(|(_, unknown)| *unknown));
    // So is one that was lost.
    let loss = gapscope_trace::manifest::Loss::new(
        gapscope_trace::LossKind::Dispatches,
        1,
        "the file has no row of it",
    );
    trace.manifest.losses.push(loss);
    assert!(idle_times(&trace).iter().all(|(_, unknown)| *unknown));
    trace.manifest.losses.pop();
    trace.unread.push(UnreadTable {
        table: "dispatches",
        file: "dispatches.parquet".to_owned(),
        column: None,
        reason: "it is cut short".to_owned(),
        rows_read: 1,
        rows_missing: None,
    });
    let cut = idle_times(&trace);
    assert_eq!(cut.len(), whole.len());
    assert!(cut.iter().all(|(_, unknown)| *unknown), "{cut:?}");
}

//! What compares runs takes no notice of samples: a run with them is not another run.

use gapscope_comparison::diff::RunDigest;
use gapscope_timeline::Timeline;
use gapscope_trace::tables::Table;
use gapscope_trace::{Trace, read};
use std::path::Path;

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
fn the_tables_of_samples_are_not_read_for_a_digest() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/v3.gapscope");
    let (trace, diagnostics) = read(&folder, &RunDigest::selection()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let tables = &trace.tables;
    assert!(!tables.dispatches.is_empty());
    assert_eq!(
        [
            tables.samples.len(),
            tables.stacks.len(),
            tables.frames.len()
        ],
        [0; 3]
    );
}

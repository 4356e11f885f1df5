//! Tests a recording inside another.

use crate::{TRACE, record};
use gapscope_recorder::{Outcome, Recorded};
use gapscope_trace::Selection;
use gapscope_trace::tables::Table;
use std::path::Path;

/// Records another recording whose program has a task.
fn around_another(task: &str) -> (tempfile::TempDir, Recorded) {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner.gapscope");
    let outer = record(&folder.path().join("outer.gapscope"), task, |recording| {
        let trace = format!("{TRACE}={}", inner.display());
        recording.command.insert(1, trace.into());
    });
    (folder, outer.unwrap())
}

#[test]
fn a_recording_inside_another_is_said_to_have_recorded_the_work() {
    let (folder, outer) = around_another("session:10");
    let inner = folder.path().join("inner.gapscope");
    let Outcome::RecordedInside {
        reason,
        trace_kept: false,
        ..
    } = outer.outcome
    else {
        panic!("{outer:?}");
    };
    assert_eq!(
        reason,
        format!(
            "the command itself ran `gapscope record`, which recorded what it started in {}, and there was no GPU work \
             besides",
            inner.display()
        )
    );
    assert_eq!(dispatches(&inner), 10);
    assert!(!outer.output.exists());
}

#[test]
fn a_recording_inside_another_that_has_work_too_is_noted() {
    let (folder, outer) = around_another("work-and-session:10");
    let inner = folder.path().join("inner.gapscope");
    assert_eq!((outer.dispatches, dispatches(&inner)), (5, 10));
    let note = format!("in {}; that work is not in this trace.", inner.display());
    assert!(
        matches!(&outer.notes[..], [only] if only.ends_with(&note)),
        "{:?}",
        outer.notes
    );
}

#[test]
fn a_recording_inside_another_that_recorded_nothing_is_not_mentioned() {
    let (folder, outer) = around_another("session-of-nothing");
    assert!(!folder.path().join("inner.gapscope").exists());
    let Outcome::NothingRecorded { reason, .. } = outer.outcome else {
        panic!("{outer:?}");
    };
    assert!(reason.contains("used no Vulkan"), "{reason}");
}

fn dispatches(trace: &Path) -> usize {
    let (trace, _) = gapscope_trace::read(trace, &Selection::all()).unwrap();
    trace.tables.dispatches.len()
}

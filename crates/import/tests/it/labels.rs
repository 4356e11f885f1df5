//! Tests labels that a program sets through the SDK, which Instruments records as signposts.

use crate::imported::{loss, noted};
use crate::{Exports, plain};
use gapscope_trace::Trace;
use gapscope_trace::lookup::LabelPaths;
use stand_in_xctrace::{Quirks, Scene, Signpost};

fn signpost(at_ns: i64, event_type: &'static str, id: u64, message: &str) -> Signpost {
    Signpost {
        at_ns,
        event_type,
        id,
        subsystem: "gapscope",
        message: message.to_owned(),
    }
}

/// Returns a scene of two command buffers, committed at 400 µs and 1400 µs: the first under `eager / add`, the second
/// under `compiled`.
fn labelled() -> Scene {
    let mut scene = Scene::chain(2);
    scene.signposts = vec![
        signpost(50_000, "Begin", 1, "eager"),
        signpost(60_000, "Begin", 2, "add"),
        signpost(70_000, "Event", 3, "token <1>"),
        signpost(900_000, "End", 2, ""),
        signpost(950_000, "End", 1, ""),
        signpost(1_000_000, "Begin", 4, "compiled"),
        signpost(1_900_000, "End", 4, ""),
    ];
    scene
}

/// Returns the markers of SDK labels: text, time from the trace's start, duration.
fn markers(trace: &Trace) -> Vec<(String, i64, Option<i64>)> {
    let paths = LabelPaths::new(&trace.tables.labels);
    let t = &trace.tables.markers;
    let rows = (0..t.label.len()).map(|row| {
        let start_ns = t.start_ns.at(row).unwrap() - trace.manifest.start_ns;
        let path = paths.get(t.label[row]).unwrap().to_owned();
        (path, start_ns, t.duration_ns.at(row))
    });
    rows.filter(|(path, ..)| !path.starts_with("Encoding"))
        .collect()
}

fn work_labels(trace: &Trace) -> Vec<Option<String>> {
    let paths = LabelPaths::new(&trace.tables.labels);
    let labels = trace.tables.opaque_work.label.iter();
    labels
        .map(|label| Some(paths.get((label)?)?.to_owned()))
        .collect()
}

#[test]
fn labels_are_markers_and_those_of_the_work_that_is_committed_under_them() {
    let marker = |path: &str, start_ns, duration_ns| (path.to_owned(), start_ns, Some(duration_ns));
    for quirks in [
        Quirks::default(),
        Quirks {
            two_nodes: true,
            ..Quirks::default()
        },
        Quirks {
            forward_references: true,
            ..Quirks::default()
        },
    ] {
        let trace = Exports::from_scene(&labelled(), &quirks).trace();
        let mut found = markers(&trace);
        found.sort_by_key(|(_, start_ns, _)| *start_ns);
        assert_eq!(
            found,
            [
                marker("eager", 50_000, 900_000),
                marker("eager / add", 60_000, 840_000),
                marker("eager / add / token <1>", 70_000, 0),
                marker("compiled", 1_000_000, 900_000),
            ],
            "{quirks:?}"
        );
        assert_eq!(
            work_labels(&trace),
            [Some("eager / add".to_owned()), Some("compiled".to_owned())]
        );
        assert_eq!(loss(&trace, "of labels"), 0);
        assert!(!noted(&trace, "has a label"));
    }
}

#[test]
fn a_command_buffers_own_label_comes_first() {
    let mut scene = labelled();
    scene.command_buffers[0].label = "step 1".to_owned();
    let trace = plain(&scene);
    assert_eq!(
        work_labels(&trace),
        [Some("step 1".to_owned()), Some("compiled".to_owned())]
    );
}

#[test]
fn signposts_of_others_are_no_labels() {
    let mut scene = labelled();
    for signpost in &mut scene.signposts {
        signpost.subsystem = "com.apple.UIKit";
    }
    let trace = plain(&scene);
    assert_eq!(markers(&trace), []);
    assert_eq!(work_labels(&trace), [None, None]);
}

#[test]
fn half_of_a_label_is_counted() {
    let mut scene = Scene::chain(2);
    scene.signposts = vec![
        signpost(10_000, "End", 7, ""),
        signpost(1_300_000, "Begin", 8, "last"),
    ];
    let trace = plain(&scene);
    assert_eq!(markers(&trace), [("last".to_owned(), 1_300_000, None)]);
    assert_eq!(work_labels(&trace), [None, Some("last".to_owned())]);
    assert_eq!(loss(&trace, "starts of labels"), 1);
    assert_eq!(loss(&trace, "ends of labels"), 1);
}

#[test]
fn a_signpost_that_stands_in_two_tables_is_one_label() {
    let mut scene = labelled();
    let mut twice = scene.signposts.clone();
    twice.extend(scene.signposts.clone());
    scene.signposts = twice;
    assert_eq!(markers(&plain(&scene)).len(), 4);
}

//! Tests the traces of profiles.

use crate::kernel_profile::tests::command_buffer;
use crate::kernel_profile::*;
use gapscope_trace::ids::LabelId;
use gapscope_trace::{Selection, Trace};

#[test]
fn a_trace_holds_the_rows_and_says_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.gapscope");
    let profile = Profile::new();
    assert!(matches!(
        profile.write_trace(&path),
        Err(TraceError::NothingInTime)
    ));
    command_buffer(&profile, (1_000, 2_000), &[(1_000, 1_500), (1_500, 1_900)]);
    profile.record("only a sum", 77);
    profile.write_trace(&path).unwrap();
    let (trace, diagnostics) = gapscope_trace::read(&path, &Selection::all()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    assert_eq!(trace.tables.dispatches.duration_ns, [Some(500), Some(400)]);
    assert_eq!(trace.tables.command_buffers.start_ns, [Some(1_000)]);
    assert_eq!(trace.tables.kernels.name, ["attention".into()]);
    assert_eq!(trace.tables.kernels.local_x, [Some(64)]);
    assert_eq!(trace.manifest.queues[0].name.as_deref(), Some("main"));
    let losses: Vec<_> = trace
        .manifest
        .losses
        .iter()
        .map(|l| (l.kind.as_str(), l.count))
        .collect();
    assert_eq!(losses, [("command buffers", 1), ("submissions", 1)]);
    assert!(
        matches!(profile.write_trace(&path), Err(TraceError::Write(_))),
        "never overwritten"
    );
}

/// Returns a trace with two passes of three and of one dispatch, recorded with `sampling`.
fn passes_in_a_trace(sampling: Sampling) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.gapscope");
    let profile = Profile::new();
    profile.set_sampling(sampling);
    let id = profile.command_buffer();
    profile.record_command_buffer(CommandBufferEntry {
        id: Some(id),
        label: "forward".into(),
        start_ns: Some(1_000),
        end_ns: Some(5_000),
        dispatches: 4,
        ..CommandBufferEntry::default()
    });
    for (label, first_dispatch, dispatches, times) in [
        ("layer 0", 0, 3, (1_000, 3_000)),
        ("layer 1", 3, 1, (3_000, 4_500)),
    ] {
        profile.record_pass(PassEntry {
            cb_label: "forward".into(),
            command_buffer: Some(id),
            label: label.into(),
            first_dispatch,
            dispatches,
            start_gpu_ns: Some(times.0),
            end_gpu_ns: Some(times.1),
            ..PassEntry::default()
        });
    }
    for index in 0..4 {
        let timed = index == 3 || sampling == Sampling::Dispatch;
        profile.record_dispatch(DispatchEntry {
            cb_label: "forward".into(),
            command_buffer: Some(id),
            op_kind: format!("layer {}", index / 3).into(),
            kernel: "gemm".into(),
            dispatch_index: index,
            start_gpu_ns: timed.then_some(3_000),
            end_gpu_ns: timed.then_some(4_500),
            unknown_because: "only passes".into(),
            ..DispatchEntry::default()
        });
    }
    profile.write_trace(&path).unwrap();
    let (trace, diagnostics) = gapscope_trace::read(&path, &Selection::all()).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    trace
}

#[test]
fn passes_that_are_timed_are_work_and_no_dispatches() {
    let trace = passes_in_a_trace(Sampling::Pass);
    let tables = &trace.tables;
    assert_eq!(tables.opaque_work.duration_ns, [Some(2_000)]);
    assert_eq!(
        tables.dispatches.duration_ns,
        [None, None, None, Some(1_500)],
        "the pass of one dispatch is that dispatch"
    );
    assert_eq!(tables.opaque_work.position, [0]);
    assert_eq!(tables.dispatches.position, [1, 2, 3, 4]);
    let losses = &trace.manifest.losses;
    let times: Vec<_> = losses
        .iter()
        .filter(|l| l.kind == LossKind::DispatchTimes)
        .collect();
    assert_eq!((times.len(), times[0].count), (1, 3), "{losses:?}");
    assert_eq!(times[0].reason, "only passes");
    let text = |id: Option<LabelId>| &*tables.labels.text[id.unwrap().0 as usize];
    assert_eq!(text(tables.opaque_work.label.at(0)), "layer 0");
    assert_eq!(text(tables.dispatches.label.at(3)), "layer 1");
    let parent = tables
        .labels
        .parent
        .at(tables.dispatches.label.at(3).unwrap().0 as usize);
    assert_eq!(text(parent), "forward");
}

#[test]
fn passes_are_markers_where_their_dispatches_are_timed() {
    let trace = passes_in_a_trace(Sampling::Dispatch);
    let tables = &trace.tables;
    assert!(tables.opaque_work.start_ns.is_empty());
    assert_eq!(tables.markers.duration_ns, [Some(2_000), Some(1_500)]);
    assert_eq!(tables.dispatches.position, [0, 1, 2, 3]);
}

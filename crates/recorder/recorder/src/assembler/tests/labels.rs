//! Tests labels in command buffers, on queues and on threads.

use super::Program;
use super::program::{Commands, losses};
use gapscope_spool::event::*;
use gapscope_spool::ids as hook;
use gapscope_trace::ids::LabelId;
use gapscope_trace::tables::{MarkerScope, Table};
use std::sync::Arc;

#[test]
fn a_label_spans_the_command_buffers_between_its_begin_and_its_end() {
    let mut program = Program::new();
    program.kernel(1, "k");
    program.text(1, "step");
    program.text(2, "pass");
    program.record(5, &Commands::begun().label(1).end());
    program.record(6, &Commands::begun().label(2).dispatch(1).end_label().end());
    program.record(
        7,
        &Commands::begun().dispatch(1).end_label().dispatch(1).end(),
    );
    let instances = program.submit_to(1, &[5, 6, 7], &[], &[]);
    // Another queue has its own labels.
    let other = program.submit_to(2, &[6], &[], &[])[0];
    let t = 1_001_000;
    program.ticks(instances[0], 5, &[t, t + 1]);
    program.ticks(instances[1], 6, &[t + 10, t + 11, t + 14, t + 15]);
    program.ticks(
        instances[2],
        7,
        &[t + 20, t + 21, t + 25, t + 27, t + 28, t + 29],
    );
    program.ticks(other, 6, &[t + 10, t + 11, t + 13, t + 15]);
    // The command buffers are seen finished in another order.
    for instance in [instances[2], instances[0], other, instances[1]] {
        program.end(instance, Outcome::Timed);
    }
    let (manifest, tables) = program.finish();
    assert_eq!(losses(&manifest), []);
    let text = |label: Option<LabelId>| label.map(|l| &*tables.labels.text[l.0 as usize]);
    assert_eq!(
        tables.dispatches.label.iter().map(text).collect::<Vec<_>>(),
        [Some("step"), None, Some("pass"), Some("pass")]
    );
    let mut parents: Vec<_> = tables.labels.parent.iter().map(text).collect();
    parents.sort_unstable();
    assert_eq!(parents, [None, None, Some("step")]);
    let mut markers: Vec<_> = (0..tables.markers.len())
        .map(|row| tables.markers.row(row))
        .map(|m| {
            (
                m.queue.map(|id| id.0),
                text(Some(m.label)),
                m.command_buffer.map(|id| id.0),
                m.start_ns,
                m.duration_ns,
            )
        })
        .collect();
    markers.sort_unstable();
    let at = |ns: u64| Some((t + ns) as i64);
    assert_eq!(
        markers,
        [
            (Some(0), Some("pass"), Some(1), at(11), Some(3)),
            (Some(0), Some("step"), Some(0), at(11), Some(14)),
            (Some(1), Some("pass"), Some(3), at(11), Some(2)),
        ]
    );
    let of = |id: u64| tables.command_buffers.id.iter().position(|i| i.0 == id);
    let labels: Vec<_> = (0..4)
        .map(|id| text(tables.command_buffers.label.at(of(id).unwrap())))
        .collect();
    assert_eq!(
        labels,
        [Some("step"), Some("step"), Some("step"), Some("pass")]
    );
}

#[test]
fn labels_that_are_never_ended_do_not_nest_without_end() {
    let mut program = Program::new();
    program.text(1, "frame");
    program.record(5, &Commands::begun().label(1).end());
    for _ in 0..100 {
        program.run(5, &[1_001_000, 1_001_001]);
    }
    let (_, tables) = program.finish();
    assert!(tables.labels.len() <= 17, "{}", tables.labels.len());
    assert_eq!(tables.markers.len(), 100);
}

#[test]
fn labels_on_queues_and_threads_are_host_markers() {
    let mut program = Program::new();
    program.text(1, "step");
    program.text(2, "upload");
    program.record(5, &Commands::begun().end());
    let label = |scope, edge, text, at_ns| CommonEvent::Label {
        scope,
        edge,
        text: hook::Text(text),
        at_ns,
    };
    program.event(label(
        LabelScope::Queue(hook::Queue(1)),
        LabelEdge::Begin,
        1,
        100,
    ));
    program.event(label(LabelScope::Thread, LabelEdge::Begin, 2, 110));
    let on_queue = program.run(5, &[1_001_000, 1_001_010]);
    program.event(label(
        LabelScope::Queue(hook::Queue(1)),
        LabelEdge::Instant,
        2,
        120,
    ));
    program.event(label(
        LabelScope::Queue(hook::Queue(1)),
        LabelEdge::End,
        0,
        200,
    ));
    program.event(label(
        LabelScope::Queue(hook::Queue(1)),
        LabelEdge::End,
        0,
        210,
    ));
    assert_eq!(on_queue, 1);
    let (_, tables) = program.finish();
    let rows: Vec<_> = (0..tables.markers.len())
        .map(|row| tables.markers.row(row))
        .map(|m| {
            (
                m.scope,
                m.label.0,
                m.queue.map(|id| id.0),
                m.thread.map(|id| id.0),
                m.start_ns,
                m.duration_ns,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            (MarkerScope::Queue, 2, Some(0), None, Some(120), Some(0)),
            (MarkerScope::Queue, 0, Some(0), None, Some(100), Some(100)),
            // The label was never ended, so that its length is unknown.
            (MarkerScope::Thread, 1, None, Some(10), Some(110), None),
        ]
    );
    assert_eq!(tables.labels.parent, [None, None, Some(LabelId(0))]);
    assert_eq!(tables.command_buffers.label, [Some(LabelId(0))]);
}

#[test]
fn what_a_thread_submits_under_its_label_carries_it() {
    let mut program = Program::new();
    program.text(1, "step");
    program.record(5, &Commands::begun().end());
    let label = |edge, at_ns| CommonEvent::Label {
        scope: LabelScope::Thread,
        edge,
        text: hook::Text(1),
        at_ns,
    };
    program.run(5, &[1_001_000, 1_001_010]);
    program.event(label(LabelEdge::Begin, 100));
    program.run(5, &[1_002_000, 1_002_010]);
    program.event(label(LabelEdge::End, 1 << 40));
    let (_, tables) = program.finish();
    assert_eq!(tables.labels.text, ["step"].map(Arc::from));
    assert_eq!(tables.command_buffers.label, [None, Some(LabelId(0))]);
}

#[test]
fn labels_inside_a_command_buffer_nest_in_the_label_around_its_submission() {
    let mut program = Program::new();
    program.text(1, "step");
    program.text(2, "layer");
    program.kernel(1, "k");
    program.record(5, &Commands::begun().label(2).dispatch(1).end_label().end());
    program.event(CommonEvent::Label {
        scope: LabelScope::Thread,
        edge: LabelEdge::Begin,
        text: hook::Text(1),
        at_ns: 100,
    });
    program.run(5, &[1_001_000, 1_001_010, 1_001_020, 1_001_030]);
    let (_, tables) = program.finish();
    assert_eq!(tables.labels.text, ["step", "layer"].map(Arc::from));
    assert_eq!(tables.labels.parent, [None, Some(LabelId(0))]);
    assert_eq!(tables.dispatches.label, [Some(LabelId(1))]);
}

//! CUDA graphs: node by node, or as wholes.

use crate::stub::{Outcome, Stub};
use gapscope_spool::event::GraphChange;
use std::collections::HashSet;

#[test]
fn nodes_of_a_graph_are_kernels_of_its_launch() {
    for step in ["graph:100:5", "runtime-graph:100:5"] {
        are_kernels_of_its_launch(&Stub::new().run(&format!("{step} sync")));
    }
}

fn are_kernels_of_its_launch(outcome: &Outcome) {
    let process = outcome.whole();
    assert_eq!((process.kernels.len(), process.graph_runs.len()), (500, 0));
    let launches: HashSet<u32> = process
        .calls_of("cuGraphLaunch")
        .iter()
        .map(|c| c.correlation)
        .collect();
    assert_eq!(launches.len(), 5);
    for (kernel, truth) in process.kernels.iter().zip(outcome.truth_of("kernel")) {
        assert!(launches.contains(&kernel.correlation));
        assert!(kernel.of_graph);
        assert_eq!(
            kernel.span.expect("known times").start_ns,
            truth.start_ns,
            "neighbours overlap"
        );
    }
}

#[test]
fn a_launch_of_a_graph_that_is_a_loop_says_which_graph_and_which_stream() {
    let outcome = Stub::new().run("loops:4 host-nodes:1 sync");
    let process = outcome.whole();
    let launches = process.calls_of("cuGraphLaunch");
    assert_eq!(launches.len(), 2 * 4 + 3);
    let bodies = (process.kernels.iter()).filter(|kernel| kernel.correlation == 0);
    let graphs: HashSet<u32> = bodies.map(|kernel| kernel.graph).collect();
    assert_eq!(graphs.len(), 2);
    let launched = process.loops[..8].iter().map(|(_, graph)| *graph);
    assert_eq!(launched.collect::<HashSet<u32>>(), graphs);
    // The graph whose host nodes are not known has a conditional node, too.
    assert_eq!(process.loops.len(), 8 + 1);
    let queues: HashSet<u32> = process
        .submissions
        .iter()
        .map(|(queue, _)| *queue)
        .collect();
    assert_eq!((process.submissions.len(), queues.len()), (8 + 1, 2));
}

#[test]
fn graphs_as_wholes_have_one_time_each() {
    for (name, value) in [
        ("GAPSCOPE_CUDA_GRAPHS", "graph"),
        ("GAPSCOPE_MODE", "command-buffer"),
    ] {
        let outcome = Stub::new()
            .with(name, value)
            .run("graph:100:5 launch:3 sync");
        let process = outcome.whole();
        assert_eq!(
            (process.kernels.len(), process.graph_runs.len()),
            (3, 5),
            "{name}={value}"
        );
        for ((span, correlation), truth) in process.graph_runs.iter().zip(outcome.truth_of("graph"))
        {
            assert_eq!(*correlation, truth.correlation);
            let span = span.expect("known times");
            assert_eq!(span, truth.span());
        }
    }
}

#[test]
fn nodes_may_be_asked_for_where_command_buffers_are_timed_as_wholes() {
    let stub = Stub::new()
        .with("GAPSCOPE_MODE", "command-buffer")
        .with("GAPSCOPE_CUDA_GRAPHS", "node");
    assert_eq!(stub.run("graph:10:2 sync").whole().kernels.len(), 20);
}

#[test]
fn a_graph_that_is_older_than_the_recording_does_not_crash_the_program() {
    let stub = Stub::new()
        .with("GAPSCOPE_CUDA_GRAPHS", "graph")
        .with("GAPSCOPE_RECORDING", "0");
    let outcome = stub.run("graph:10:3 sync capture:graph:10:2 sync graph:10:4 sync");
    let process = outcome.whole();
    assert_eq!(process.graph_runs.len(), 2, "those of the window");
}

#[test]
fn a_graph_that_starts_on_the_host_makes_no_device_of_it() {
    let run = |ends: &str, version: &str, steps: &str| {
        Stub::new()
            .with("GAPSCOPE_CUDA_GRAPHS", "graph")
            .with("FAKE_CUDA_GRAPH_ON_HOST", ends)
            .with("FAKE_CUDA_API_VERSION", version)
            .run(steps)
    };
    // The queue is that of the graph's end, or the only stream that has its number.
    for (ends, version) in [("start", "130001"), ("all", "130001"), ("start", "18")] {
        let outcome = run(ends, version, "launch:1 graph:10:2 sync");
        let process = outcome.whole();
        assert_eq!(process.graph_runs.len(), 2, "{ends} {version}");
        assert_eq!((process.devices.len(), process.queues.len()), (1, 1));
    }
    // Two contexts have a stream with the graph's number.
    let outcome = run(
        "all",
        "130001",
        "launch:1 device:1 launch:1 graph:10:2 sync",
    );
    let process = outcome.only();
    assert_eq!((process.devices.len(), process.queues.len()), (2, 2));
    assert!(process.graph_runs.is_empty());
    let reason = "they start and end on the host, and CUPTI does not say on which device they ran";
    assert_eq!(process.lost("graph launches", reason), 2);
}

#[test]
fn each_node_of_a_graph_is_told_as_it_is_made_and_copied() {
    let outcome = Stub::new().run("graph:10:2 sync");
    let process = outcome.whole();
    let changes: Vec<GraphChange> = (process.graph_changes.iter())
        .map(|(_, change)| *change)
        .collect();
    let created = changes.iter().filter_map(|change| match *change {
        GraphChange::NodeCreated { node, at_ns } => Some((node, at_ns)),
        _ => None,
    });
    let created: Vec<_> = created.collect();
    assert_eq!(created.len(), 20, "of the graph and of the executable one");
    assert!(created.is_sorted_by_key(|(_, at_ns)| *at_ns));
    let copies = changes.iter().filter_map(|change| match *change {
        GraphChange::NodeCloned { node, original } => Some((node, original)),
        _ => None,
    });
    let (copies, originals): (Vec<_>, Vec<_>) = copies.unzip();
    let of_graph = created[..10].iter().map(|(node, _)| *node);
    assert_eq!(originals, of_graph.collect::<Vec<_>>());
    let ran: Vec<_> = process.kernels.iter().map(|kernel| kernel.node).collect();
    assert_eq!(ran[..10], copies);
    assert_eq!(ran[10..], copies, "a launch makes no node");
    assert!(matches!(changes[0], GraphChange::Created { .. }));
    let last = changes.last().copied();
    let graph = copies[0].graph();
    assert_eq!(last, Some(GraphChange::Instantiated { graph }));
}

#[test]
fn outside_of_the_window_no_node_is_told() {
    let stub = Stub::new().with("GAPSCOPE_RECORDING", "0");
    let outcome = stub.run("graph:10:3 sync capture:graph:10:2 sync graph:10:4 sync");
    let created = (outcome.whole().graph_changes.iter())
        .filter(|(_, change)| matches!(change, GraphChange::NodeCreated { .. }));
    assert_eq!(created.count(), 20, "those of the window");
}

#[test]
fn a_cupti_that_tells_no_nodes_is_noted() {
    let stub = Stub::new().with("FAKE_CUDA_CALLBACKS", "refuse");
    let outcome = stub.run("graph:10:2 sync");
    let notes = &outcome.only().notes;
    let noted = |note: &String| note.contains("when the nodes of graphs are made");
    assert!(notes.iter().any(noted), "{notes:?}");
}

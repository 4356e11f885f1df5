//! Operations that streams wait for and that are no work.

use crate::stub::Stub;

const FUNCTIONS: [&str; 7] = [
    "cuLaunchHostFunc",
    "cudaLaunchHostFunc",
    "cudaStreamAddCallback",
    "cuStreamWaitValue32",
    "cuStreamBatchMemOp",
    "cudaWaitExternalSemaphoresAsync",
    "cudaMemPrefetchAsync",
];

#[test]
fn what_is_put_on_a_stream_is_a_submission_unless_it_goes_into_a_graph_or_fails() {
    let outcome = Stub::new().run("operations sync");
    let process = outcome.whole();
    let truth = outcome.truth_of("submission");
    assert_eq!(truth.len(), FUNCTIONS.len());
    let mut found = process.submissions.clone();
    found.sort_by_key(|(_, correlation)| *correlation);
    let found: Vec<(u32, u32, String)> = (found.iter())
        .map(|(queue, correlation)| {
            let (_, _, stream) = process.queues[queue];
            let mut calls = process.calls.iter();
            let call = calls.find(|call| call.correlation == *correlation);
            (stream, *correlation, call.expect("its call").name.clone())
        })
        .collect();
    let expected: Vec<(u32, u32, String)> = (truth.iter().zip(FUNCTIONS))
        .map(|(t, name)| (t.number("stream"), t.correlation, name.to_owned()))
        .collect();
    assert_eq!(found, expected);
    // Calls in a capture, on no stream, or without a wait submit nothing.
    for name in FUNCTIONS {
        let alone = process.calls_of(name).into_iter();
        let alone = alone.filter(|call| call.correlation == 0).count();
        assert_eq!(
            alone,
            if name == "cuStreamBatchMemOp" { 3 } else { 2 },
            "{name}"
        );
    }
    assert!(
        process.host_functions.is_empty(),
        "CUPTI 13.0 does not time them"
    );
}

#[test]
fn a_newer_cupti_times_functions_of_the_host() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_API_VERSION", "130500")
        .run("operations host-nodes:3 sync");
    let process = outcome.whole();
    let truth = outcome.truth_of("submission").into_iter();
    let truth: Vec<_> = truth
        .filter(|t| t.more["what"] == "host-function")
        .collect();
    assert_eq!(truth.len(), 3);
    for truth in truth {
        let mut functions = process.host_functions.iter();
        let function = functions.find(|f| f.correlation == truth.correlation);
        let function = function.expect("its record");
        let span = function.span.expect("known times");
        assert_eq!(span, truth.span());
        assert_eq!(process.queues[&function.queue].2, truth.number("stream"));
        assert_eq!(function.thread, 4242);
    }
    assert_eq!(process.host_functions.len(), 3 + 2 * 3 + 3, "and the nodes");
}

#[test]
fn host_nodes_of_graphs_are_counted_where_that_can_be_known() {
    let outcome = Stub::new().run("host-nodes:3 sync");
    let process = outcome.whole();
    let launches: Vec<u32> = (process.calls_of("cuGraphLaunch").iter())
        .map(|call| call.correlation)
        .collect();
    assert_eq!(launches.len(), 3);
    let expected = [(launches[0], 6), (launches[2], 0)];
    assert_eq!(
        process.host_nodes, expected,
        "that of the device's choice is unknown"
    );
}

#[test]
fn a_graph_from_before_the_recording_has_an_unknown_number_of_host_nodes() {
    let outcome = Stub::new()
        .with("GAPSCOPE_RECORDING", "0")
        .run("host-nodes:3 sync capture:host-nodes:1 sync");
    let process = outcome.whole();
    let known: Vec<u32> = process.host_nodes.iter().map(|(_, count)| *count).collect();
    assert_eq!(known, [2, 0], "of those that were instantiated in it");
}

#[test]
fn what_is_put_on_a_stream_that_is_not_known_is_counted() {
    let outcome = Stub::new()
        .with("FAKE_CUDA_STREAM_IDS", "refuse")
        .run("operations sync");
    let process = outcome.only();
    assert!(process.submissions.is_empty());
    let lost = process.lost("submissions", "their stream is not known");
    assert_eq!(lost, FUNCTIONS.len() as u64);
}

#[test]
fn the_launch_of_a_graph_ends_the_polls_before_it() {
    let outcome = Stub::new().run("polls:1 graph:1:1 polls:1 sync");
    let process = outcome.whole();
    let launch = process.calls_of("cuGraphLaunch")[0].span;
    for polls in &process.polls {
        assert!(
            polls.span.end_ns() <= launch.start_ns || launch.end_ns() <= polls.span.start_ns,
            "{polls:?}"
        );
    }
}

#[test]
fn work_without_a_record_is_counted_where_it_can_be_noticed() {
    let outcome = Stub::new().run("unrecorded graph:1:1 sync");
    let process = outcome.only();
    let mut calls: Vec<&str> = (process.submissions.iter())
        .flat_map(|(_, correlation)| {
            process
                .calls
                .iter()
                .filter(|c| c.correlation == *correlation)
        })
        .map(|call| call.name.as_str())
        .collect();
    calls.sort_unstable();
    assert_eq!(calls, ["cuMemBatchDecompressAsync", "cudaMemPrefetchAsync"]);
    let mut losses: Vec<(&str, u64)> = (process.losses.iter())
        .map(|(what, count, _)| (what.as_str(), *count))
        .collect();
    losses.sort_unstable();
    assert_eq!(
        losses,
        [
            ("graphs that the device can launch itself", 1),
            ("managed allocations whose page moves are not recorded", 1),
        ],
        "the session counts the others by their calls"
    );
    assert_eq!(process.calls_of("cuGraphLaunch").len(), 2);
}

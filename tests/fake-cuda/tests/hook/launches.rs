//! Checks that all kernels and calls are recorded, and joined.

use crate::recorded::Recorded;
use crate::stub::{Outcome, Stub, Truth};
use std::collections::HashMap;

/// Steps of every kind.
const STEPS: &str = "launch:30 runtime:20 grids:3 copies read memory pool managed waits runtime-waits own-stream \
                     captured-waits refused-waits graph:5:2 runtime-graph:5:2 threads:3:20 polls:2 runtime-polls:2 \
                     noise:5 sync";

/// The calls that are not recorded: they neither cause work nor wait nor take long.
const UNRECORDED: [&str; 4] = [
    "cudaGetDevice",
    "cudaGetLastError",
    "cuEventDestroy",
    "cudaEventDestroy",
];

/// Returns the program's calls by correlation.
fn calls(outcome: &Outcome) -> HashMap<u32, &Truth> {
    let calls = outcome.truth_of("call").into_iter();
    calls.map(|t| (t.correlation, t)).collect()
}

#[test]
fn every_kernel_is_recorded_as_it_ran_and_has_its_call() {
    let outcome = Stub::new().run("launch:300 runtime:200 sync");
    let process = outcome.whole();
    let called = calls(&outcome);
    let truth: HashMap<u32, _> = outcome
        .truth_of("kernel")
        .into_iter()
        .map(|t| (t.correlation, t))
        .collect();
    assert_eq!((truth.len(), process.kernels.len()), (500, 500));
    let recorded: HashMap<u32, _> = process.calls.iter().map(|c| (c.correlation, c)).collect();
    for kernel in &process.kernels {
        let span = kernel.span.expect("known times");
        let truth = truth[&kernel.correlation];
        assert_eq!(span, truth.span());
        assert_eq!(kernel.name, truth.name);
        let call = recorded[&kernel.correlation];
        assert!(
            call.span.start_ns < span.start_ns,
            "a kernel never begins before its launch"
        );
        // A launch through the runtime is recorded by the driver's call inside.
        assert_eq!((call.name.as_str(), call.result), ("cuLaunchKernel", 0));
        let shape = kernel.shape;
        assert_eq!((shape.groups, shape.local_size), ([4, 1, 1], [256, 1, 1]));
        assert_eq!(shape.registers, 32);
        let by_driver = called[&kernel.correlation].name == "cuLaunchKernel";
        assert_eq!(shape.dynamic_shared_bytes, if by_driver { 64 } else { 0 });
        assert_eq!((shape.static_shared_bytes, shape.local_bytes), (1024, 16));
    }
    assert_eq!(process.calls_of("cuLaunchKernel").len(), 500);
}

/// Checks that every call is there once, of its thread and with its result, between its start and its end in the stub.
fn each_call_is_recorded_once(process: &Recorded, outcome: &Outcome) {
    let truth = calls(outcome);
    let key = |name: &str, thread, result| (name.to_owned(), thread, result);
    let mut recorded: Vec<_> = process
        .calls
        .iter()
        .map(|c| (c.correlation, key(&c.name, c.thread, c.result)))
        .collect();
    recorded.sort();
    let mut called: Vec<_> = truth
        .values()
        .filter(|t| !t.asks() && !UNRECORDED.contains(&t.recorded_name()))
        .map(|t| {
            let key = key(t.recorded_name(), t.number("thread"), t.number("result"));
            (t.correlation, key)
        })
        .collect();
    called.sort();
    assert_eq!(recorded, called);
    for call in &process.calls {
        let truth = truth[&call.correlation];
        assert!(
            truth.start_ns <= call.span.start_ns && call.span.end_ns() <= truth.end_ns,
            "{call:?} within {truth:?}"
        );
        assert!(process.threads.contains_key(&call.thread), "it is named");
    }
}

#[test]
fn each_call_is_recorded_once_though_those_of_the_runtime_have_one_of_the_driver_inside() {
    // The oldest CUPTI works, too.
    for version in ["130001", "18"] {
        let outcome = Stub::new()
            .with("FAKE_CUDA_API_VERSION", version)
            .run(STEPS);
        assert!(outcome.status.success());
        let process = outcome.only();
        process.assert_undamaged();
        each_call_is_recorded_once(process, &outcome);
        assert!(process.calls.iter().any(|c| c.result != 0), "some failed");
        let asked: u32 = process.polls.iter().map(|p| p.count).sum();
        let asked_truly = outcome.truth_of("call").iter().filter(|t| t.asks()).count();
        assert_eq!(asked as usize, asked_truly);
    }
}

#[test]
fn calls_that_only_ask_for_what_the_runtime_knows_are_left_out() {
    let outcome = Stub::new().run("noise:500 launch:50 noise:500 sync");
    let process = outcome.whole();
    let asked = outcome
        .truth_of("call")
        .iter()
        .filter(|t| t.recorded_name() == "cudaGetDevice")
        .count();
    assert_eq!(asked, 3000);
    // These are a context, a module, fifty launches and a wait.
    assert_eq!(process.calls.len(), 53);
    each_call_is_recorded_once(process, &outcome);
}

#[test]
fn a_kernel_costs_few_bytes() {
    let outcome = Stub::new().run("launch:20000 sync");
    let process = outcome.whole();
    assert_eq!(process.kernels.len(), 20_000);
    assert_eq!(process.calls_of("cuLaunchKernel").len(), 20_000);
    let bytes: usize = process.batches.iter().sum();
    let each = bytes as f64 / 20_000.0;
    assert!(each < 9.0, "{each} bytes for a kernel");
}

#[test]
fn threads_have_the_systems_ids_and_names() {
    let outcome = Stub::new().run("threads:4:200 sync");
    let process = outcome.whole();
    assert_eq!(process.kernels.len(), 800);
    each_call_is_recorded_once(process, &outcome);
    let threads: std::collections::HashSet<u32> = process
        .calls_of("cuLaunchKernel")
        .iter()
        .map(|c| c.thread)
        .collect();
    assert_eq!(threads.len(), 4);
    let queues: std::collections::HashSet<u32> =
        process.kernels.iter().map(|k| k.shape.queue.0).collect();
    assert_eq!(queues.len(), 4, "a stream for each thread");
}

#[test]
fn records_that_come_the_last_first_and_in_small_buffers_are_all_there() {
    let stub = Stub::new()
        .with("FAKE_CUDA_ORDER", "reverse")
        .with("FAKE_CUDA_BUFFER", "4096");
    let outcome = stub.run("threads:3:500 sync");
    let process = outcome.whole();
    let mut truth: Vec<_> = outcome
        .truth_of("kernel")
        .iter()
        .map(|t| (t.correlation, t.start_ns))
        .collect();
    let known =
        |k: &crate::recorded::Kernel| (k.correlation, k.span.expect("known times").start_ns);
    let mut recorded: Vec<_> = process.kernels.iter().map(known).collect();
    truth.sort_unstable();
    recorded.sort_unstable();
    assert_eq!(recorded, truth);
}

#[test]
fn a_program_whose_every_launch_differs_does_not_fill_the_memory() {
    let outcome = Stub::new()
        .without("FAKE_CUDA_TRUTH")
        .run("grids:70000 sync");
    let process = outcome.whole();
    assert_eq!((process.kernels.len(), process.shapes), (70_000, 70_000));
    let mut widths: Vec<u32> = process.kernels.iter().map(|k| k.shape.groups[0]).collect();
    widths.sort_unstable();
    assert!(
        widths.into_iter().eq(1..=70_000),
        "each launch has its own grid"
    );
    assert_eq!(
        process.forgotten,
        [65_537],
        "shapes that are not used any more are forgotten on both sides"
    );
}

#[test]
fn a_kernels_name_is_its_own_though_another_modules_lay_at_the_same_place() {
    let outcome = Stub::new().run("reload");
    let mut names: Vec<_> = outcome
        .whole()
        .kernels
        .iter()
        .map(|k| k.name.as_str())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["_Z5firstv", "_Z6secondv"]);
}

#[test]
fn what_the_user_leaves_out_is_a_loss() {
    let outcome = Stub::new()
        .with("GAPSCOPE_CUDA_WITHOUT", "events,calls")
        .run("runtime:10 waits polls:1 sync");
    let process = outcome.only();
    assert_eq!(process.kernels.len(), 17);
    assert!(process.calls.is_empty() && process.polls.is_empty());
    assert!(process.event_records.is_empty() && process.waits.len() > 4);
    let reason = "left out because the environment says so";
    assert_eq!(process.lost("events on queues", reason), 1);
    assert_eq!(process.lost("host calls", reason), 1);
    assert_eq!(process.losses.len(), 2);
}

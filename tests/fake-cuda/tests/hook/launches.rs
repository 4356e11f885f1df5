//! Kernels and their calls: all of them, each with the other.

use crate::stub::Stub;
use std::collections::HashMap;

#[test]
fn every_kernel_is_recorded_as_it_ran_and_has_its_call() {
    let outcome = Stub::new().run("launch:300 runtime:200 sync");
    let process = outcome.whole();
    let truth: HashMap<u32, _> = outcome
        .truth_of("kernel")
        .into_iter()
        .map(|t| (t.correlation, t))
        .collect();
    assert_eq!((truth.len(), process.kernels.len()), (500, 500));
    for kernel in &process.kernels {
        let span = kernel.span.expect("known times");
        let truth = truth[&kernel.correlation];
        assert_eq!(
            (span.start_ns, span.end_ns()),
            (truth.start_ns, truth.end_ns)
        );
        assert_eq!(kernel.name, truth.name);
        let call = process
            .calls
            .iter()
            .find(|c| c.correlation == kernel.correlation)
            .expect("its call");
        assert!(
            call.span.expect("known times").start_ns < span.start_ns,
            "a kernel never begins before its launch"
        );
        let shape = kernel.shape;
        assert_eq!((shape.groups, shape.local_size), ([4, 1, 1], [256, 1, 1]));
        assert_eq!(shape.registers, 32);
        assert_eq!(
            shape.dynamic_shared_bytes,
            if call.interface == "cuda-driver" {
                64
            } else {
                0
            }
        );
        assert_eq!((shape.static_shared_bytes, shape.local_bytes), (1024, 16));
    }
    assert_eq!(process.calls_of("cuLaunchKernel").len(), 300);
    let runtime = process.calls_of("cudaLaunchKernel");
    assert_eq!(runtime.len(), 200);
    assert!(
        runtime
            .iter()
            .all(|c| c.interface == "cuda-runtime" && c.result == 0)
    );
}

#[test]
fn calls_have_the_times_of_the_program_and_those_that_only_ask_are_left_out() {
    let outcome = Stub::new().run("noise:500 launch:50 noise:500 sync");
    let process = outcome.whole();
    assert!(
        process.calls_of("cudaGetDevice").is_empty()
            && process.calls_of("cudaGetLastError").is_empty()
    );
    let truth: HashMap<u32, _> = outcome
        .truth_of("call")
        .into_iter()
        .map(|t| (t.correlation, t))
        .collect();
    assert_eq!(
        truth
            .values()
            .filter(|t| t.name.starts_with("cudaGetDevice"))
            .count(),
        3000
    );
    // A context, a module, fifty launches, a wait.
    assert_eq!(process.calls.len(), 53);
    for call in &process.calls {
        let span = call.span.expect("known times");
        let truth = truth[&call.correlation];
        assert_eq!(
            (span.start_ns, span.end_ns()),
            (truth.start_ns, truth.end_ns),
            "{}",
            call.name
        );
    }
}

#[test]
fn a_launch_costs_few_bytes() {
    let outcome = Stub::new().run("launch:20000 sync");
    let process = outcome.whole();
    assert_eq!(process.kernels.len(), 20_000);
    let bytes: usize = process.batches.iter().sum();
    let each = bytes as f64 / 20_000.0;
    assert!(
        each < 16.0,
        "{each} bytes for a kernel and its call; the prototype took 16.1"
    );
}

#[test]
fn calls_and_kernels_of_threads_carry_the_systems_thread_ids() {
    let outcome = Stub::new().run("threads:4:200 sync");
    let process = outcome.whole();
    assert_eq!(process.kernels.len(), 800);
    let mut by_thread: HashMap<i64, usize> = HashMap::new();
    for truth in outcome
        .truth_of("call")
        .iter()
        .filter(|t| t.name == "cuLaunchKernel")
    {
        *by_thread
            .entry(truth.more["thread"].as_i64().expect("a number"))
            .or_default() += 1;
    }
    assert_eq!(by_thread.len(), 4);
    for (thread, launches) in by_thread {
        let recorded = process
            .calls_of("cuLaunchKernel")
            .iter()
            .filter(|c| i64::from(c.thread) == thread)
            .count();
        assert_eq!(recorded, launches);
        assert!(
            process.threads.contains_key(&(thread as u32)),
            "the thread is named"
        );
    }
    let queues: std::collections::HashSet<u32> =
        process.kernels.iter().map(|k| k.shape.queue).collect();
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
        .with("GAPSCOPE_CUDA_WITHOUT", "events,runtime")
        .run("runtime:10 waits sync");
    let process = outcome.only();
    assert_eq!(process.kernels.len(), 15);
    assert!(process.calls_of("cudaLaunchKernel").is_empty() && process.event_records.is_empty());
    let reason = "left out because the environment says so";
    assert_eq!(process.lost("events on queues", reason), 1);
    assert_eq!(process.lost("runtime calls", reason), 1);
    assert_eq!(process.losses.len(), 2);
}

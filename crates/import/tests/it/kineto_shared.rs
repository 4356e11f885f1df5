//! Tests files of PyTorch's profiler in which two processes use one GPU and the same correlations at the same time.

use crate::imported::{Rows, import_bytes, kernel as kernel_of};
use gapscope_trace::Trace;
use gapscope_trace::tables::Table;

/// Returns a call of a process at a time in microseconds.
fn call(pid: u32, function: &str, correlation: u32, at: u32) -> String {
    format!(
        r#"{{"ph":"X","cat":"cuda_runtime","name":"{function}","pid":{pid},"tid":{pid},"ts":{at},"dur":1,"args":{{"correlation":{correlation}}}}}"#
    )
}

/// Returns work on the stream 7 of the device 0, which every process calls so.
fn work(category: &str, name: &str, correlation: u32, at: u32) -> String {
    format!(
        r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":0,"tid":7,"ts":{at},"dur":20,"args":{{"device":0,"stream":7,"correlation":{correlation}}}}}"#
    )
}

fn imported(events: &[String]) -> Trace {
    let text = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    import_bytes("shared.json", text.as_bytes()).unwrap().trace
}

/// Returns the name of each kernel with the process that it is of, in order of time.
fn processes_of(trace: &Trace) -> Vec<(String, u32)> {
    let mut rows: Vec<_> = trace.tables.dispatches.iter().collect();
    rows.sort_by_key(|row| row.start_ns);
    let of = |row: &gapscope_trace::tables::Dispatch| {
        let mut queues = trace.manifest.queues.iter();
        let queue = queues.find(|queue| queue.id == row.queue).unwrap();
        let device = trace.manifest.device(queue.device).unwrap();
        let pid = trace.manifest.process(device.process).unwrap().pid;
        (kernel_of(trace, row.kernel).name.to_string(), pid)
    };
    rows.iter().map(of).collect()
}

#[test]
fn calls_of_two_processes_at_nearly_one_time_have_their_own_work() {
    let mut events = Vec::new();
    for number in 1..=10 {
        let at = 1000 + number * 100;
        events.push(call(100, "cudaLaunchKernel", number, at));
        events.push(call(200, "cudaLaunchKernel", number, at + 2));
        events.push(work("kernel", "k100", number, at + 10));
        events.push(work("kernel", "k200", number, at + 30));
    }
    let trace = imported(&events);
    assert_eq!(trace.tables.submissions.len(), 20);
    assert_eq!(trace.tables.dispatches.len(), 20);
    for (name, pid) in processes_of(&trace) {
        assert_eq!(name, format!("k{pid}"));
    }
    // Either call could have launched either kernel, and the trace says so.
    let [loss] = trace.manifest.losses.as_slice() else {
        panic!("{:?}", trace.manifest.losses);
    };
    assert_eq!(loss.count, 20);
    assert!(
        loss.reason
            .starts_with("calls of several processes have their correlation")
    );
}

#[test]
fn a_kernel_and_a_copy_of_two_processes_with_one_correlation_are_told_apart_by_kind() {
    let mut events = Vec::new();
    for number in 1..=10 {
        let at = 1000 + number * 100;
        events.push(call(100, "cudaLaunchKernel", number, at));
        events.push(call(200, "cudaMemcpyAsync", number, at + 2));
        events.push(work(
            "gpu_memcpy",
            "Memcpy HtoD (Pinned -> Device)",
            number,
            at + 10,
        ));
        events.push(work("kernel", "k100", number, at + 40));
    }
    let trace = imported(&events);
    assert_eq!(trace.manifest.losses, []);
    assert_eq!(trace.tables.submissions.len(), 20);
    assert_eq!(trace.tables.transfers.len(), 10);
    assert!(processes_of(&trace).iter().all(|(_, pid)| *pid == 100));
}

#[test]
fn work_is_never_of_a_call_that_only_waits() {
    let mut events = Vec::new();
    for number in 1..=10 {
        let at = 1000 + number * 200;
        // Every second correlation is a wait of the other process, which comes later.
        let (first, second) = if number % 2 == 0 {
            (100, 200)
        } else {
            (200, 100)
        };
        events.push(call(first, "cudaLaunchKernel", number, at));
        events.push(call(second, "cudaStreamSynchronize", number, at + 2));
        events.push(work("kernel", &format!("k{first}"), number, at + 10));
    }
    let trace = imported(&events);
    assert_eq!(trace.manifest.losses, []);
    assert_eq!(trace.tables.submissions.len(), 10);
    for (name, pid) in processes_of(&trace) {
        assert_eq!(name, format!("k{pid}"));
    }
}

#[test]
fn devices_of_ranks_of_which_some_are_late_are_their_processes() {
    // Each rank has the same correlations, and calls 30 us after the one before, or 0 us: work follows 10 us after its call.
    for late in [[0, 0, 30, 0], [0, 30, 60, 90], [30, 0, 0, 30], [0, 0, 0, 0]] {
        let mut events = Vec::new();
        for number in 1..=10 {
            for (device, late) in (0..4).zip(late) {
                let (pid, at) = (100 * (device + 1), 1000 + number * 200 + late);
                events.push(call(pid, "cudaLaunchKernel", number, at));
                let kernel = work("kernel", &format!("k{pid}"), number, at + 10);
                let kernel = kernel.replace(r#""pid":0"#, &format!(r#""pid":{device}"#));
                events.push(kernel.replace(r#""device":0"#, &format!(r#""device":{device}"#)));
            }
        }
        let trace = imported(&events);
        assert_eq!(trace.tables.submissions.len(), 40, "{late:?}");
        for (name, pid) in processes_of(&trace) {
            assert_eq!(name, format!("k{pid}"), "{late:?}");
        }
        assert_eq!(trace.manifest.losses, [], "{late:?}");
    }
}

/// Returns the count of a loss whose reason has a text.
fn lost(trace: &Trace, text: &str) -> u64 {
    let losses = trace.manifest.losses.iter();
    let losses = losses.filter(|loss| loss.reason.contains(text));
    losses.map(|loss| loss.count).sum()
}

const NOBODYS: &str = "nothing tells whose work this is";

#[test]
fn work_that_either_of_two_processes_may_have_launched_is_nobodys() {
    let mut events = Vec::new();
    for number in 1..=10 {
        let at = 1000 + number * 100;
        events.push(call(100, "cudaLaunchKernel", number, at));
        events.push(call(200, "cudaLaunchKernel", number, at + 2));
        // The kernel of the process 200 is missing, or that of the process 100.
        events.push(work("kernel", "k0", number, at + 10));
    }
    let trace = imported(&events);
    assert_eq!(trace.tables.dispatches.len(), 10);
    assert_eq!(trace.tables.submissions.len(), 0);
    assert_eq!(lost(&trace, NOBODYS), 10);
    assert!(processes_of(&trace).iter().all(|(_, pid)| *pid == 0));
    let mut processes = trace.manifest.processes.iter();
    let nobody = processes.find(|process| process.pid == 0).unwrap();
    assert_eq!(nobody.executable, "unknown process");
}

#[test]
fn work_before_the_call_of_the_other_process_has_its_own() {
    let mut events = Vec::new();
    for number in 1..=10 {
        let at = 1000 + number * 100;
        events.push(call(100, "cudaLaunchKernel", number, at));
        events.push(work("kernel", "k100", number, at + 10));
        // Its work is missing.
        events.push(call(200, "cudaLaunchKernel", number, at + 50));
    }
    let trace = imported(&events);
    assert_eq!(trace.tables.submissions.len(), 10);
    assert_eq!(lost(&trace, NOBODYS), 0);
    assert!(processes_of(&trace).iter().all(|(_, pid)| *pid == 100));
}

#[test]
fn nodes_of_graphs_are_of_the_launch_of_a_graph() {
    let mut events = Vec::new();
    for number in 1..=10 {
        let at = 1000 + number * 200;
        events.push(call(100, "cudaGraphLaunch", number, at));
        events.push(call(200, "cudaLaunchKernel", number, at + 4));
        for node in 1..=3 {
            let node_of = work("kernel", "k100", number, at + 10 + 20 * node);
            let ids = format!(r#""args":{{"graph id":1,"graph node id":{node},"#);
            events.push(node_of.replace(r#""args":{"#, &ids));
        }
        events.push(work("kernel", "k200", number, at + 100));
    }
    let trace = imported(&events);
    assert_eq!(trace.tables.submissions.len(), 20);
    assert_eq!(trace.tables.command_buffers.len(), 10);
    assert_eq!(trace.manifest.losses, []);
    for (name, pid) in processes_of(&trace) {
        assert_eq!(name, format!("k{pid}"));
    }
}

#[test]
fn a_correlation_that_two_processes_use_again_pairs_each_use() {
    let mut events = Vec::new();
    for number in 0..20 {
        let at = 1000 + number * 100;
        for (pid, late) in [(100, 0), (200, 50)] {
            events.push(call(pid, "cudaLaunchKernel", 1 + number % 4, at + late));
            let kernel = work("kernel", &format!("k{pid}"), 1 + number % 4, at + late + 10);
            events.push(kernel);
        }
    }
    let trace = imported(&events);
    assert_eq!(trace.tables.submissions.len(), 40);
    for (name, pid) in processes_of(&trace) {
        assert_eq!(name, format!("k{pid}"));
    }
}

#[test]
fn streams_of_their_own_tell_the_work_of_processes_apart() {
    let on = |stream: u32, event: String| {
        event.replace(r#""stream":7"#, &format!(r#""stream":{stream}"#))
    };
    let mut events = Vec::new();
    for number in 1..=20 {
        let at = 1000 + number * 100;
        events.push(call(100, "cudaLaunchKernel", number, at));
        // Every second time the other process calls before either kernel runs, and its kernel runs first; now and then a kernel is missing.
        let late = if number % 2 == 0 { 2 } else { 40 };
        let runs_at = if number % 2 == 0 { 45 } else { 10 };
        events.push(call(200, "cudaLaunchKernel", number, at + late));
        events.push(on(8, work("kernel", "k100", number, at + runs_at)));
        if number % 5 != 0 {
            let runs_at = if number % 2 == 0 { 10 } else { 60 };
            events.push(on(9, work("kernel", "k200", number, at + runs_at)));
        }
    }
    let trace = imported(&events);
    assert_eq!(lost(&trace, NOBODYS), 0);
    assert_eq!(trace.tables.submissions.len(), 36);
    for (name, pid) in processes_of(&trace) {
        assert_eq!(name, format!("k{pid}"));
    }
}

#[test]
fn work_without_a_call_is_of_the_process_whose_stream_it_is_on() {
    let mut events = vec![
        call(200, "cudaStreamSynchronize", 1, 900),
        call(200, "cudaStreamSynchronize", 2, 910),
        call(200, "cudaStreamSynchronize", 3, 920),
    ];
    for number in 10..12 {
        events.push(call(100, "cudaLaunchKernel", number, number * 100));
        events.push(work("kernel", "k100", number, number * 100 + 10));
    }
    // Its call was made before the profiler began.
    events.push(work("kernel", "k100", 5, 950));
    let trace = imported(&events);
    assert_eq!(trace.tables.submissions.len(), 2);
    assert!(processes_of(&trace).iter().all(|(_, pid)| *pid == 100));
}

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

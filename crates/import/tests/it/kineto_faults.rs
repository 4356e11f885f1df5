//! Tests the import of Chrome's JSON that is broken, merged, contradictory or old, by small files of which the right
//! answer is known.

use crate::imported::{Rows, import_bytes, kernel as kernel_of, loss};
use gapscope_import::Options;
use gapscope_trace::lookup::LabelPaths;
use gapscope_trace::tables::Table;
use gapscope_trace::{Selection, Trace, read};

/// A call of CUDA by thread 1 of a process.
fn call(pid: &str, name: &str, correlation: u32, start: i64) -> String {
    format!(
        r#"{{"ph":"X","cat":"cuda_runtime","name":"{name}","pid":{pid},"tid":1,"ts":{start},"dur":5,"args":{{"correlation":{correlation}}}}}"#
    )
}

fn launch(pid: &str, correlation: u32, start: i64) -> String {
    call(pid, "cudaLaunchKernel", correlation, start)
}

/// A kernel on stream 7 of a device.
fn kernel(
    pid: &str,
    name: &str,
    device: u32,
    correlation: u32,
    [start, length]: [i64; 2],
) -> String {
    format!(
        r#"{{"ph":"X","cat":"kernel","name":"{name}","pid":{pid},"tid":7,"ts":{start},"dur":{length},"args":{{"device":{device},"context":1,"stream":7,"correlation":{correlation},"grid":[1,1,1],"block":[32,1,1]}}}}"#
    )
}

fn document(events: &[String]) -> String {
    format!(
        r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#,
        events.join(",\n")
    )
}

fn trace(document: &str) -> Trace {
    let import = import_bytes("run.pt.trace.json", document.as_bytes());
    import.unwrap().trace
}

/// The start of the call of each dispatch, by the dispatch's start, in microseconds; -1 without a call.
fn launched_at(trace: &Trace) -> Vec<(i64, i64)> {
    let tables = &trace.tables;
    let mut starts: Vec<(i64, i64)> = (0..tables.dispatches.len())
        .map(|row| {
            let submission = tables.dispatches.submission.at(row);
            let call =
                submission.and_then(|id| tables.submissions.id.iter().position(|of| *of == id));
            let call = call.map_or(-1, |row| tables.submissions.start_ns[row] / 1000);
            (
                tables.dispatches.start_ns.at(row).unwrap_or(-1000) / 1000,
                call,
            )
        })
        .collect();
    starts.sort_unstable();
    starts
}

#[test]
fn correlations_join_inside_of_one_process() {
    // Two ranks use the same correlations; the second one is 1 ms late.
    let cases = [
        // Calls of the second rank come after the kernels of the first.
        (["1000", "1001"], ["0", "1"], 1000),
        // Both ranks launch at nearly the same time.
        (["1000", "1001"], ["0", "1"], 1),
        // The names of the processes say which device is whose.
        (
            [r#""[A] 1""#, r#""[B] 2""#],
            [r#""[A] 0""#, r#""[B] 0""#],
            1,
        ),
    ];
    for (hosts, devices, late) in cases {
        let mut events = Vec::new();
        let mut expected = Vec::new();
        for at in 0..10u32 {
            for rank in 0..2usize {
                let start = 10 + i64::from(at) * 100 + rank as i64 * late;
                // Kernels wait in a queue, so that the calls of both ranks are before them.
                events.push(launch(hosts[rank], at + 1, start));
                events.push(kernel(
                    devices[rank],
                    "k",
                    rank as u32,
                    at + 1,
                    [start + 40, 20],
                ));
                expected.push((start + 40, start));
            }
        }
        expected.sort_unstable();
        let trace = trace(&document(&events));
        assert_eq!(launched_at(&trace), expected, "{hosts:?} {late}");
        assert_eq!(trace.manifest.queues.len(), 2);
        assert!(
            trace.manifest.losses.is_empty(),
            "{:?}",
            trace.manifest.losses
        );
    }
}

#[test]
fn work_belongs_to_the_nearest_call_before_it_where_a_correlation_is_used_again() {
    let mut events = Vec::new();
    let mut expected = Vec::new();
    for (uses, start) in [0, 5_000, 9_000].into_iter().enumerate() {
        for at in 0..5 {
            let start = 10 + start + i64::from(at) * 100;
            events.push(launch("1000", 7 + at, start));
            events.push(kernel(
                "0",
                ["a", "b", "c"][uses],
                0,
                7 + at,
                [start + 9, 50],
            ));
            expected.push((start + 9, start));
        }
    }
    let trace = trace(&document(&events));
    assert_eq!(launched_at(&trace), expected);
    assert_eq!(loss(&trace, "have their correlation"), 15);
    assert_eq!(loss(&trace, "no rows of what the device did"), 0);
}

#[test]
fn a_broken_part_costs_itself_only() {
    let good = |at: u32| {
        let start = 10 + i64::from(at) * 100;
        [
            launch("1000", at + 1, start),
            kernel("0", "k", 0, at + 1, [start + 9, 50]),
        ]
    };
    let broken = [
        r#"{"ph":"X","name":"a"b","pid":1,"args":{"x":{"ph":1}}}"#,
        "{\"ph\":\"X\",\"name\":\"void f(\"x\ny\")\",\"args\":{}}",
        r#"{"ph":"X","name":"a,"pid":1}"#,
        r#"{"ph":"X","name" "a"}"#,
        "}}]]",
        "\u{0}",
    ];
    for part in broken {
        let events: Vec<String> = (0..3)
            .flat_map(good)
            .chain([part.to_owned()])
            .chain((3..6).flat_map(good))
            .collect();
        let text = document(&events);
        let read = trace(&text);
        assert_eq!(read.tables.dispatches.len(), 6, "{part}");
        let losses = &read.manifest.losses;
        let parts = losses
            .iter()
            .find(|loss| loss.kind.as_str() == "parts of files");
        if part != "}}]]" {
            let reason = &parts.expect(part).reason;
            assert!(
                reason.contains(&format!("of {} bytes", text.len())),
                "{reason}"
            );
        }
    }
    // What surrounds the events may be broken, too.
    let text = document(&(0..3).flat_map(good).collect::<Vec<_>>());
    let text = text.replace("\"schemaVersion\":1", "\"a\":{\"b\" 1},\"schemaVersion\":1");
    assert_eq!(trace(&text).tables.dispatches.len(), 3);
}

#[test]
fn every_document_of_a_file_is_read() {
    let rank = |device: u32| document(&[kernel("0", "k", device, 1, [10, 5])]);
    let array = |device| format!("[{}]", kernel("0", "k", device, 1, [10, 5]));
    for between in ["\n", "", " , ", "\n\u{0}\n"] {
        let files = [rank(0), rank(1), array(2), rank(3)].join(between);
        let folder = tempfile::tempdir().unwrap();
        let [path, output] = ["run.json", "out.gapscope"].map(|name| folder.path().join(name));
        std::fs::write(&path, &files).unwrap();
        let import = gapscope_import::import(&[path], &output, &Options::default(), &|_, _| ());
        assert_eq!(import.unwrap().timed_work, 4, "{between:?}");
    }
}

#[test]
fn a_time_of_zero_far_from_all_others_is_unknown() {
    let untimed = |trace: &Trace| {
        let starts = trace.tables.dispatches.start_ns.iter();
        starts.filter(|start| start.is_none()).count()
    };
    let file = |base: i64| {
        let mut events = Vec::new();
        for at in 0..10u32 {
            let start = base + i64::from(at) * 100;
            events.push(launch("1000", at + 1, start));
            let times = if at == 4 { [0, 0] } else { [start + 9, 50] };
            events.push(kernel("0", "k", 0, at + 1, times));
        }
        events
    };
    for base in [6_543_210_000, 1_764_100_000_000_000] {
        let mut events = file(base);
        for _ in 0..2 {
            let trace = trace(&document(&events));
            assert_eq!(untimed(&trace), 1, "{base}");
            let length_ns = trace.manifest.end_ns - trace.manifest.start_ns;
            assert!(length_ns < 2_000_000, "{base}: {length_ns}");
            // The event with the unknown time may be the first in the file.
            events.rotate_left(9);
        }
    }
    // Times that count from the beginning of the file may be 0.
    let trace = trace(&document(&[
        kernel("0", "k", 0, 1, [0, 5]),
        kernel("0", "k", 0, 2, [90, 5]),
    ]));
    assert_eq!(untimed(&trace), 0);
    assert_eq!(trace.manifest.start_ns, 0);
}

#[test]
fn work_that_ends_after_later_work_of_its_stream_is_not_believed() {
    let file = |impossible: &[u32], call_name: &str, stream: &str| {
        let mut events = Vec::new();
        for at in 0..12u32 {
            let start = 10 + i64::from(at) * 100;
            events.push(call("1000", call_name, at + 1, start));
            let length = if impossible.contains(&at) {
                900_000
            } else {
                50
            };
            events.push(
                kernel("0", "k", 0, at + 1, [start + 9, length]).replace("\"stream\":7", stream),
            );
        }
        trace(&document(&events))
    };
    let untimed = |trace: &Trace| loss(trace, "times that are impossible");
    let flagged = file(&[3, 8], "cudaLaunchKernel", "\"stream\":7");
    assert_eq!(untimed(&flagged), 2);
    assert!(
        flagged.manifest.end_ns < 2_000_000,
        "the recording does not last as long"
    );
    // The last work of a stream may take long, nodes of graphs run side by side, and where much overlaps the number
    // of the stream stands for several streams.
    assert_eq!(untimed(&file(&[11], "cudaLaunchKernel", "\"stream\":7")), 0);
    assert_eq!(untimed(&file(&[3], "cudaGraphLaunch", "\"stream\":7")), 0);
    assert_eq!(
        untimed(&file(&[1, 3, 5, 7], "cudaLaunchKernel", "\"stream\":7")),
        0
    );
}

#[test]
fn launches_of_graphs_without_kernels_are_lost() {
    let mut events = Vec::new();
    for at in 0..10u32 {
        events.push(call(
            "1000",
            "cudaGraphLaunch",
            at + 1,
            10 + i64::from(at) * 100,
        ));
        if at % 5 == 0 {
            let start = 20 + i64::from(at) * 100;
            events.push(kernel("0", "k", 0, at + 1, [start, 5]));
        }
    }
    let trace = trace(&document(&events));
    assert_eq!(loss(&trace, "no rows of what the device did"), 8);
}

#[test]
fn files_of_2021_have_labels_and_steps() {
    let operator = |name: &str, start: i64, length: i64| {
        format!(
            r#"{{"ph":"X","cat":"Operator","name":"{name}","pid":1000,"tid":"1","ts":{start},"dur":{length}}}"#
        )
    };
    let events = [
        operator("ProfilerStep#7", 10, 500),
        operator(
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            20,
            50,
        ),
        operator("my forward", 100, 200),
        operator("aten::mm", 110, 20),
        operator("AddmmBackward0", 130, 20),
        launch("1000", 1, 115).replace("cuda_runtime", "Runtime"),
        kernel("0", "k", 0, 1, [120, 5]).replace("\"kernel\"", "\"Kernel\""),
    ];
    let trace = trace(&document(&events));
    let tables = &trace.tables;
    let paths = LabelPaths::new(&tables.labels);
    let label = tables
        .dispatches
        .label
        .at(0)
        .and_then(|label| paths.get(label));
    assert_eq!(label, Some("ProfilerStep / my forward"));
    let domain = |text: &str| {
        let id = tables.labels.text.iter().position(|of| &**of == text);
        let id = tables.labels.id[id.expect(text)];
        let row = tables
            .markers
            .label
            .iter()
            .position(|of| *of == id)
            .expect(text);
        tables.markers.domain[row].clone()
    };
    assert_eq!(domain("aten::mm").as_deref(), Some("operator"));
    assert_eq!(domain("AddmmBackward0").as_deref(), Some("operator"));
    assert_eq!(
        domain("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        None
    );
}

#[test]
fn kernels_of_nccl_have_what_the_operator_around_their_launch_says() {
    let operator = |start: i64, seq: u32| {
        format!(
            r#"{{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":1000,"tid":1,"ts":{start},"dur":20,"args":{{"Collective name":"allreduce","dtype":"Float","In msg nelems":256,"Out msg nelems":256,"Group size":2,"Process Group Name":"0","Process Group Ranks":"[0, 1]","Seq":{seq}}}}}"#
        )
    };
    let nccl = |at, start| {
        kernel(
            "0",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            0,
            at,
            [start, 9],
        )
    };
    let events = [
        operator(100, 5),
        launch("1000", 1, 105),
        nccl(1, 120),
        operator(200, 6),
        launch("1000", 2, 205),
        nccl(2, 220),
        // No operator says anything of this one.
        launch("1000", 3, 305),
        nccl(3, 320),
    ];
    let trace = trace(&document(&events));
    let markers = &trace.tables.markers;
    let rows = (0..markers.len()).filter(|row| markers.domain[*row].as_deref() == Some("NCCL"));
    let payloads: Vec<&str> = rows
        .filter_map(|row| markers.payload[row].as_deref())
        .collect();
    assert_eq!(payloads.len(), 2);
    for (payload, seq) in payloads.iter().zip(["Seq=5", "Seq=6"]) {
        assert!(payload.contains(seq), "{payload}");
        assert!(payload.contains("Message size [bytes]=1024"), "{payload}");
    }
}

#[test]
fn merged_files_and_folders_with_a_front_end_are_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(folder.path().join("in")).unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let rank = |number: u32, pids: [&str; 2]| {
        [
            launch(pids[0], 1, 10 + i64::from(number)),
            kernel(pids[1], "k", number, 1, [20, 5]),
        ]
    };
    let merged: Vec<String> = (rank(0, [r#""[TP00] 9""#, r#""[TP00] 0""#]).into_iter())
        .chain(rank(1, [r#""[TP01] 9""#, r#""[TP01] 1""#]))
        .collect();
    write("merged.json", &document(&merged));
    for number in 0..2 {
        let info =
            format!(r#""distributedInfo":{{"rank":{number},"world_size":2}},"schemaVersion""#);
        let text = document(&rank(number, ["9", "0"])).replace("\"schemaVersion\"", &info);
        write(&format!("in/r{number}.json"), &text);
    }
    let front_end =
        r#"{"ph":"X","cat":"cpu_op","name":"detokenize","pid":1,"tid":1,"ts":10,"dur":1}"#;
    write("in/a.async_llm.json", &document(&[front_end.to_owned()]));
    for (input, note) in [
        ("merged.json", "[TP00], [TP01]"),
        ("in", "a.async_llm.json was left out"),
    ] {
        let output = folder.path().join(format!("{input}.gapscope"));
        let inputs = [folder.path().join(input)];
        gapscope_import::import(&inputs, &output, &Options::default(), &|_, _| ()).unwrap();
        let all = read(&output, &Selection::all()).unwrap().0;
        assert_eq!(all.manifest.ranks, [0, 1], "{input}");
        let notes = all.manifest.notes.join("\n");
        assert!(notes.contains(note), "{notes}");
        for number in 0..2 {
            let of_rank = read(&output.join(format!("rank={number}")), &Selection::all())
                .unwrap()
                .0;
            assert_eq!(launched_at(&of_rank), [(20, 10 + number)], "{input}");
        }
    }
}

/// A backward pass whose node runs on thread 2 from 100 to 200 us. Thread 1 sets labels, and makes a call at `call`.
fn backward(labels: &[(u32, &str, i64, i64)], call_at: i64, arrows: &[(char, u32, i64)]) -> String {
    let range = |thread: u32, category: &str, name: &str, start: i64, length: i64| {
        format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":1000,"tid":{thread},"ts":{start},"dur":{length}}}"#
        )
    };
    let node = "autograd::engine::evaluate_function: AddBackward0";
    let mut events = vec![
        range(2, "cpu_op", node, 100, 100),
        launch("1000", 1, 120).replace("\"tid\":1", "\"tid\":2"),
        kernel("0", "k", 0, 1, [130, 5]),
        call("1000", "cudaFuncGetAttributes", 9, call_at),
    ];
    for (thread, name, start, length) in labels {
        events.push(range(*thread, "user_annotation", name, *start, *length));
    }
    for (phase, thread, at) in arrows {
        events.push(format!(
            r#"{{"ph":"{phase}","cat":"fwdbwd","name":"fwdbwd","id":5,"pid":1000,"tid":{thread},"ts":{at},"bp":"e"}}"#
        ));
    }
    document(&events)
}

#[test]
fn the_work_of_a_backward_pass_has_the_label_of_the_thread_that_called_it() {
    let backward_label = (1, "backward", 90, 200);
    let arrows = [('s', 1, 10), ('f', 2, 100)];
    for (name, labels, call_at, arrows, expected) in [
        (
            "arrows",
            vec![backward_label],
            300,
            &arrows[..],
            Some("backward"),
        ),
        (
            "arrows, and calls meanwhile",
            vec![backward_label],
            150,
            &arrows,
            Some("backward"),
        ),
        (
            "the thread waits",
            vec![backward_label],
            300,
            &[],
            Some("backward"),
        ),
        (
            "the thread makes calls",
            vec![backward_label],
            150,
            &[],
            None,
        ),
        (
            "two threads have labels",
            vec![backward_label, (3, "other", 90, 200)],
            300,
            &[],
            None,
        ),
        (
            "arrows tell of which",
            vec![backward_label, (3, "other", 90, 200)],
            300,
            &arrows,
            Some("backward"),
        ),
        (
            "the label ends before",
            vec![(1, "forward", 10, 80)],
            300,
            &arrows,
            None,
        ),
        (
            "the label ends in the node",
            vec![(1, "forward", 10, 120)],
            300,
            &arrows,
            None,
        ),
        (
            "nested",
            vec![(1, "train", 5, 500), backward_label],
            300,
            &arrows,
            Some("train / backward"),
        ),
        (
            "a label of its own",
            vec![backward_label, (2, "hook", 110, 30)],
            300,
            &arrows,
            Some("backward / hook"),
        ),
    ] {
        let trace = trace(&backward(&labels, call_at, arrows));
        let tables = &trace.tables;
        let paths = LabelPaths::new(&tables.labels);
        let label = tables.dispatches.label.at(0);
        assert_eq!(label.and_then(|label| paths.get(label)), expected, "{name}");
        assert_eq!(loss(&trace, "fwdbwd"), 0, "{name}");
        let of_labels = tables
            .markers
            .domain
            .iter()
            .filter(|domain| domain.is_none());
        assert_eq!(of_labels.count(), labels.len(), "{name}");
    }
}

#[test]
fn waits_name_their_submission_where_the_file_has_them_and_else_it_is_said_how_to_record_them() {
    let waits = [
        call("1", "cudaStreamWaitEvent", 4, 40),
        call("1", "cudaEventSynchronize", 6, 60),
        call("1", "cudaStreamSynchronize", 7, 70),
    ];
    let calls = [launch("1", 1, 10), launch("1", 2, 20), launch("1", 5, 50)];
    let kernels = [(1, 7, 100), (2, 7, 120), (5, 8, 140)].map(|(correlation, stream, ts)| {
        format!(
            r#"{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":{stream},"ts":{ts},"dur":9,"args":{{"device":0,"context":1,"stream":{stream},"correlation":{correlation}}}}}"#
        )
    });
    let sync = |name: &str, stream: i64, correlation: u32, event: &str| {
        format!(
            r#"{{"ph":"X","cat":"cuda_sync","name":"{name}","pid":0,"tid":{stream},"ts":90,"dur":1,"args":{{"cuda_sync_kind":"{name}",{event}"stream":{stream},"correlation":{correlation},"device":0,"context":1}}}}"#
        )
    };
    let event =
        r#""wait_on_stream":7,"wait_on_cuda_event_record_corr_id":3,"wait_on_cuda_event_id":9,"#;
    let syncs = [
        sync("Stream Wait Event", 8, 4, event),
        sync("Event Sync", -1, 6, event),
        sync("Stream Sync", 8, 7, ""),
    ];
    let without = [&waits[..], &calls, &kernels].concat();
    let with = [&without[..], &syncs].concat();
    let trace_of = |events: &[String]| trace(&document(events));
    let noted = |trace: &Trace| {
        let mut notes = trace.manifest.notes.iter();
        notes.any(|note| note.contains("enable_cuda_sync_events=True"))
    };
    let trace = trace_of(&with);
    assert!(!noted(&trace) && noted(&trace_of(&without)));
    let tables = &trace.tables;
    let mut launches: Vec<_> = (0..3).map(|row| tables.submissions.row(row)).collect();
    launches.sort_by_key(|launch| launch.start_ns);
    let [_, second, third] = launches.try_into().unwrap();
    assert_eq!(tables.dependencies.submission, [third.id]);
    assert_eq!(tables.dependencies.waits_for, [Some(second.id)]);
    let mut calls: Vec<_> = (0..tables.host_calls.len())
        .map(|row| tables.host_calls.row(row))
        .collect();
    calls.retain(|call| {
        call.function
            .as_deref()
            .is_some_and(|name| name.ends_with("Synchronize"))
    });
    calls.sort_by_key(|call| call.start_ns);
    let named: Vec<_> = calls
        .iter()
        .map(|call| (call.waits_for, call.queue))
        .collect();
    // The event was recorded behind the second launch, and the third one is on the stream that waits for it.
    let place = |launch: &gapscope_trace::tables::Submission| (Some(launch.id), Some(launch.queue));
    assert_eq!(named, [place(&second), place(&third)]);
}

#[test]
fn two_processes_that_number_their_devices_and_calls_alike_are_told_apart_by_time() {
    let mut events = Vec::new();
    for (pid, base) in [(100, 1000), (200, 1040)] {
        for number in 1..=10 {
            let at = base + number * 100;
            events.push(format!(
                r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":{pid},"tid":{pid},"ts":{at},"dur":5,"args":{{"correlation":{number}}}}},
                {{"ph":"X","cat":"kernel","name":"k{pid}","pid":0,"tid":7,"ts":{},"dur":20,"args":{{"device":0,"stream":7,"correlation":{number}}}}}"#,
                at + 10
            ));
        }
    }
    let text = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    let trace = import_bytes("merged.json", text.as_bytes()).unwrap().trace;
    let tables = &trace.tables;
    assert_eq!(trace.manifest.losses, []);
    assert_eq!(tables.submissions.len(), 20);
    for dispatch in tables.dispatches.iter() {
        let mut queues = trace.manifest.queues.iter();
        let queue = queues.find(|queue| queue.id == dispatch.queue).unwrap();
        let device = trace.manifest.device(queue.device).unwrap();
        let pid = trace.manifest.process(device.process).unwrap().pid;
        let name = kernel_of(&trace, dispatch.kernel).name;
        assert_eq!(*name, *format!("k{pid}"));
    }
}

#[test]
fn copies_of_hip_have_the_bytes_that_their_calls_say() {
    let copy = |number: u32, bytes: &str, more: &str| {
        let at = number * 100;
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"hipMemcpyWithStream","pid":1,"tid":1,"ts":{at},"dur":50,"args":{{"correlation":{number}{bytes}}}}},
            {{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Host -> Device)","pid":2,"tid":0,"ts":{},"dur":5,"args":{{"device":2,"stream":0,"correlation":{number}{more}}}}}"#,
            at + 10
        )
    };
    let second = r#"{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Host -> Device)","pid":2,"tid":0,"ts":316,"dur":5,"args":{"device":2,"stream":0,"correlation":3}}"#;
    let events = [
        copy(1, r#","size":"2560""#, ""),
        copy(2, r#","bytes":"8""#, r#","bytes":16"#),
        // A copy in two parts, of which none has the whole size.
        copy(3, r#","size":"64""#, ""),
        second.to_owned(),
        copy(4, "", ""),
    ];
    let text = format!(r#"{{"traceEvents":[{}]}}"#, events.join(","));
    let trace = import_bytes("hip.json", text.as_bytes()).unwrap().trace;
    let bytes = &trace.tables.transfers.bytes;
    assert_eq!(*bytes, [Some(2560), Some(16), None, None, None]);
}

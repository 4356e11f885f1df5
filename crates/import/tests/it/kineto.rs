//! Tests the import of Chrome's JSON with planted events.

use crate::imported::{Rows, import, import_bytes, loss, path};
use gapscope_import::Options;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{HostCallKind, SubmissionKind, Table, TransferKind};
use gapscope_trace::{Selection, Trace, read};
use std::io::Write;
use std::path::Path;

/// Imports a document and returns its trace.
fn trace(document: &str) -> Trace {
    let import = import_bytes("run.pt.trace.json", document.as_bytes());
    import.unwrap().trace
}

fn error(document: &[u8]) -> String {
    let import = import_bytes("run.json", document);
    import.unwrap_err().to_string()
}

const KINETO: &str = r#"{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "totalGlobalMem": 100, "computeMajor": 9, "computeMinor": 0, "numSms": 132}],
  "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "ts": 1, "args": {"name": "python3"}},
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 100, "tid": 100, "ts": 10.000, "dur": 90.000, "args": {"External id": 1}},
    {"ph": "X", "cat": "user_annotation", "name": "forward", "pid": 100, "tid": 100, "ts": 11.000, "dur": 20.000},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 100, "tid": 100, "ts": 12.001, "dur": 5.5, "args": {"Input Dims": [[1, 2], []]}},
    {"ph": "X", "cat": "python_function", "name": "model.py(3): forward", "pid": 100, "tid": 100, "ts": 11.5, "dur": 18, "args": {"Python id": 1}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100, "ts": 13.123, "dur": 2.002, "args": {"cbid": 211, "correlation": 7}},
    {"ph": "s", "id": 7, "pid": 100, "tid": 100, "ts": 13.123, "cat": "ac2g", "name": "ac2g"},
    {"ph": "f", "id": 7, "pid": 0, "tid": 7, "ts": 20.001, "cat": "ac2g", "name": "ac2g", "bp": "e"},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 100, "tid": 200, "ts": 40, "dur": 1, "args": {"correlation": 8}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 100, "tid": 200, "ts": 42, "dur": 30, "args": {"correlation": 9}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "pid": 100, "tid": 100, "ts": 110, "dur": 3, "args": {"correlation": 10}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaEventQuery", "pid": 100, "tid": 100, "ts": 120, "dur": 1, "args": {"correlation": 11}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaEventQuery", "pid": 100, "tid": 100, "ts": 122, "dur": 1, "args": {"correlation": 12}},
    {"ph": "X", "cat": "kernel", "name": "void mm<float>(float*, \"x\")", "pid": 0, "tid": 7, "ts": 20.001, "dur": 10.000, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 7, "registers per thread": 90, "shared memory": 49152, "grid": [64, 1, 1], "block": [128, 1, 1]}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (Device -> Pageable)", "pid": 0, "tid": 7, "ts": 50, "dur": 20, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 8, "bytes": 4096}},
    {"ph": "X", "cat": "kernel", "name": "node", "pid": 0, "tid": 7, "ts": 112, "dur": 1, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 10, "grid": [1, 1, 1], "block": [32, 1, 1]}},
    {"ph": "X", "cat": "kernel", "name": "node", "pid": 0, "tid": 7, "ts": 114, "dur": 1, "args": {"device": 0, "context": 1, "stream": 7, "correlation": 10, "grid": [1, 1, 1], "block": [32, 1, 1]}},
    {"ph": "X", "cat": "gpu_memset", "name": "Memset (Device)", "pid": 0, "tid": 20, "ts": 200, "dur": 1, "args": {"device": 0, "context": 1, "stream": 20, "correlation": 99, "bytes": 8}},
    {"ph": "X", "cat": "gpu_user_annotation", "name": "forward", "pid": 0, "tid": 7, "ts": 20, "dur": 10},
    {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 100, "tid": 100, "ts": 12, "args": {"Total Reserved": 2048, "Total Allocated": 1024, "Bytes": 512, "Addr": 7, "Device Id": 0, "Device Type": 1}},
    {"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0, "ts": 150, "dur": 2},
    {"ph": "s", "id": 1, "pid": 100, "tid": 100, "ts": 13, "cat": "fwdbwd", "name": "fwdbwd"},
    {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": 5, "dur": 300}
  ],
  "cuda_driver_version": 12090,
  "baseTimeNanoseconds": 1700000000000000000
}"#;

#[test]
fn a_file_of_pytorch_is_a_trace_as_of_a_recording() {
    let trace = trace(KINETO);
    let tables = &trace.tables;
    assert_eq!(
        tables.dispatches.start_ns,
        [Some(20_001), Some(112_000), Some(114_000)]
    );
    assert_eq!(
        tables.dispatches.duration_ns,
        [Some(10_000), Some(1000), Some(1000)]
    );
    assert_eq!(tables.dispatches.groups_x.at(0), Some(64));
    let kernels = &tables.kernels;
    assert_eq!(&*kernels.name[0], "void mm<float>(float*, \"x\")");
    assert_eq!(
        (kernels.local_x.at(0), kernels.registers.at(0)),
        (Some(128), Some(90))
    );
    assert_eq!(kernels.static_shared_bytes.at(0), Some(49152));
    assert_eq!(kernels.dynamic_shared_bytes.at(0), None);

    let submissions = &tables.submissions;
    assert_eq!(
        submissions.kind,
        [
            SubmissionKind::Kernel,
            SubmissionKind::Transfer,
            SubmissionKind::Graph
        ]
    );
    assert_eq!(
        (submissions.start_ns[0], submissions.duration_ns[0]),
        (13_123, 2002)
    );
    assert_eq!(tables.dispatches.submission.at(0), Some(submissions.id[0]));
    assert_eq!(submissions.thread.at(1).map(|t| t.0), Some(200));
    // The launch of a graph is a command buffer.
    let graphs = &tables.command_buffers;
    assert_eq!((graphs.len(), graphs.dispatches[0]), (1, 2));
    assert_eq!(
        (graphs.start_ns.at(0), graphs.duration_ns.at(0)),
        (Some(112_000), Some(3000))
    );
    assert_eq!(tables.dispatches.command_buffer.at(1), Some(graphs.id[0]));
    assert_eq!(tables.dispatches.submission.at(1), None);

    assert_eq!(
        tables.transfers.kind,
        [TransferKind::DeviceToHost, TransferKind::Fill]
    );
    assert_eq!(tables.transfers.bytes, [Some(4096), Some(8)]);
    assert_eq!(tables.transfers.submission.at(1), None);
    assert_eq!(loss(&trace, "host calls of GPU work"), 1);

    let calls = &tables.host_calls;
    let count = |kind| calls.call.iter().filter(|call| **call == kind).count();
    assert_eq!(count(HostCallKind::WaitQueueIdle), 1);
    assert_eq!(count(HostCallKind::Recording), 1);
    let polls = calls
        .call
        .iter()
        .position(|call| *call == HostCallKind::PollEvent);
    let polls = calls.row(polls.unwrap());
    assert_eq!(
        (polls.count, polls.duration_ns, polls.busy_ns),
        (2, 3000, 2000)
    );
    assert_eq!(loss(&trace, "fwdbwd"), 0);
}

#[test]
fn work_has_the_labels_of_its_launch_and_steps_are_of_the_whole_process() {
    let trace = trace(KINETO);
    let tables = &trace.tables;
    let of = |label| path(&trace, label);
    assert_eq!(of(tables.dispatches.label.at(0)), "ProfilerStep / forward");
    // Another thread launched the transfer.
    assert_eq!(of(tables.transfers.label.at(0)), "ProfilerStep");
    assert_eq!(tables.dispatches.label.at(1), None);
    let markers = |domain: Option<&str>| -> Vec<_> {
        let markers = tables.markers.iter();
        let markers = markers.filter(|marker| marker.domain.as_deref() == domain);
        markers
            .map(|marker| (of(Some(marker.label)), marker.start_ns.unwrap()))
            .collect()
    };
    assert_eq!(markers(Some("operator")), [("aten::mm".to_owned(), 12_001)]);
    assert_eq!(
        markers(Some("python")),
        [("model.py(3): forward".to_owned(), 11_500)]
    );
    assert_eq!(markers(None).len(), 2);
    let payloads: Vec<_> = tables.markers.payload.iter().flatten().collect();
    assert_eq!(
        payloads,
        ["Input Dims=[[1,2],[]]", "3"].map(Into::into).each_ref()
    );
}

#[test]
fn devices_counters_and_the_date_are_kept() {
    let trace = trace(KINETO);
    let manifest = &trace.manifest;
    assert_eq!((manifest.start_ns, manifest.end_ns), (5000, 305_000));
    assert_eq!(manifest.start_unix_ns, Some(1_700_000_000_000_005_000));
    assert_eq!(manifest.command, ["python3"]);
    let device = &manifest.devices[0];
    assert_eq!(
        (&*device.name, &*device.driver),
        ("NVIDIA H100", "CUDA 12.9")
    );
    assert_eq!(
        manifest.queues.iter().map(|q| q.index).collect::<Vec<_>>(),
        [7, 20]
    );
    // The file does not say what its streams can do.
    assert!(manifest.queues.iter().all(|q| q.capabilities.is_empty()));
    assert_eq!(trace.tables.counters.len(), 2);
    assert_eq!(trace.tables.counter_values.value, [1024.0, 2048.0]);
    assert_eq!(trace.tables.counters.device.at(0), Some(device.id));
}

#[test]
fn gzip_and_arrays_without_their_end_are_read_too() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let (_, events) = KINETO.split_once("\"traceEvents\": ").unwrap();
    let (events, _) = events.rsplit_once(']').unwrap();
    packed.write_all(events.as_bytes()).unwrap();
    let array = import_bytes("run.json.gz", &packed.finish().unwrap());
    let array = array.unwrap().trace;
    let whole = trace(KINETO);
    assert_eq!(array.tables.dispatches, whole.tables.dispatches);
    assert_eq!(loss(&array, "rests of files"), 0);
}

#[test]
fn a_cut_file_gives_what_is_there_and_a_loss() {
    let whole = trace(KINETO);
    let mut most = 0;
    for end in (600..KINETO.len()).step_by(97) {
        let Ok(cut) = import_bytes("run.json", &KINETO.as_bytes()[..end]) else {
            continue;
        };
        let cut = cut.trace;
        assert_eq!(loss(&cut, "rests of files"), 1, "{end}");
        let work = |trace: &Trace| trace.tables.dispatches.len();
        assert!((most..=work(&whole)).contains(&work(&cut)), "{end}");
        most = work(&cut);
    }
    assert_eq!(most, 3);
}

#[test]
fn times_since_1970_become_times_since_the_day_began_and_a_date() {
    let day_us = 24 * 3600 * 1_000_000u64;
    let at = 19_000 * day_us;
    let text = format!(
        r#"[{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{}.047,"dur":1.001,"args":{{"correlation":1}}}}]"#,
        at + 5
    );
    let trace = trace(&text);
    assert_eq!(trace.tables.dispatches.start_ns, [Some(5047)]);
    let at_ns = at as i64 * 1000;
    assert_eq!(trace.manifest.start_unix_ns, Some(at_ns + 5047));
}

#[test]
fn ranks_are_traces_of_one_clock() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("out.gapscope");
    let add = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let import = |files| gapscope_import::import(files, &output, &Options::default(), &|_, _| ());
    let files = ["a.json", "b.json"].map(|name| add(name, KINETO));
    let error = import(&files).unwrap_err().to_string();
    assert!(error.contains("distributedInfo"), "{error}");
    let of_rank = |rank: u32, base: &str| {
        let text = KINETO
            .replace("\"schemaVersion\"", &format!(r#""distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": 2}}, "schemaVersion""#))
            .replace("1700000000000000000", base);
        add(&format!("rank{rank}.json"), &text)
    };
    let files = [
        of_rank(1, "1700000000000001000"),
        of_rank(0, "1700000000000000000"),
    ];
    import(&files).unwrap();
    let trace_in = |folder: &Path| read(folder, &Selection::all()).unwrap().0;
    assert_eq!(trace_in(&output).manifest.ranks, [0, 1]);
    let start = |rank: u32| {
        let trace = trace_in(&output.join(format!("rank={rank}")));
        let known = trace.manifest.rank.unwrap();
        assert_eq!((known.rank, known.world_size), (rank, 2));
        trace.tables.dispatches.start_ns.at(0).unwrap()
    };
    assert_eq!((start(0), start(1)), (20_001, 21_001));
}

#[test]
fn other_profilers_give_markers_and_devices_by_their_names() {
    let trace = trace(
        r#"{"displayTimeUnit":"ns","metadata":{"a":[1,{"b":"c"}]},"traceEvents":[
        {"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:1"}},
        {"ph":"M","pid":1,"tid":13,"name":"thread_name","args":{"name":"Stream #13(Compute,MemcpyH2D)"}},
        {"ph":"M","pid":1,"tid":20,"name":"thread_name","args":{"name":"XLA Ops"}},
        {"ph":"M","pid":9,"name":"process_name","args":{"name":"/host:CPU"}},
        {"ph":"X","pid":9,"tid":5,"ts":1.5,"dur":2,"name":"cuLaunchKernel","args":{"correlation_id":"3"}},
        {"ph":"X","pid":1,"tid":13,"ts":5.125,"dur":2.5,"name":"loop_add","args":{"correlation_id":"3","tf_op":"jit(f)/add","kernel_details":"regs:16 static_shared:0 dynamic_shared:0 grid:2,1,1 block:128,1,1"}},
        {"ph":"X","pid":1,"tid":20,"ts":5.125,"dur":2.5,"name":"add.1"},
        {"ph":"X","pid":1,"tid":13,"ts":9,"dur":1,"name":"MemcpyH2D","args":{"memcpy_details":"kind_src:pinned kind_dst:device size:64"}},
        {"ph":"B","pid":9,"tid":5,"ts":10,"name":"outer","cat":"x"},
        {"ph":"B","pid":9,"tid":5,"ts":11,"name":"inner"},
        {"ph":"E","pid":9,"tid":5,"ts":12},
        {"ph":"E","pid":9,"tid":5,"ts":13},
        {"ph":"E","pid":9,"tid":5,"ts":14},
        {"ph":"b","pid":9,"tid":5,"ts":10,"id":"0x1","name":"request","cat":"net"},
        {"ph":"e","pid":9,"tid":6,"ts":20,"id":"0x1","name":"request","cat":"net"},
        {"ph":"C","pid":9,"ts":10,"name":"queue","args":{"depth":3}},
        {"ph":"X","pid":9,"tid":5,"ts":30,"dur":-1,"name":"backwards"},
        {"ph":"P","pid":9,"tid":5,"ts":30,"name":"sample"},
        {}
        ]}"#,
    );
    let tables = &trace.tables;
    assert_eq!(tables.dispatches.start_ns, [Some(5125)]);
    assert_eq!(tables.kernels.dynamic_shared_bytes, [Some(0)]);
    assert_eq!(tables.transfers.bytes, [Some(64)]);
    assert_eq!(tables.submissions.len(), 1);
    assert_eq!(trace.manifest.devices.len(), 1);
    let texts: Vec<&str> = tables.labels.text.iter().map(|text| &**text).collect();
    assert_eq!(texts, ["jit(f)", "add", "inner", "outer", "request"]);
    assert_eq!(
        tables.markers.duration_ns,
        [Some(1000), Some(3000), Some(10_000)]
    );
    assert_eq!(tables.counter_values.value, [3.0]);
    assert_eq!(loss(&trace, "beginning is not in the file"), 1);
    assert_eq!(loss(&trace, "absent or impossible"), 1);
    assert_eq!(loss(&trace, "no place"), 1);
}

#[test]
fn collectives_have_the_ranges_that_nccl_would_set() {
    let trace = trace(
        r#"{"schemaVersion":1,"traceEvents":[
        {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernelExC","pid":1,"tid":1,"ts":1,"dur":2,"args":{"correlation":3}},
        {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)","pid":0,"tid":20,"ts":5,"dur":9,"args":{"device":0,"stream":20,"correlation":3,"Collective name":"allreduce","In msg nelems":256,"Out msg nelems":256,"Group size":4,"dtype":"Float","Process Group Name":"0","Process Group Ranks":"[0, 1, 2, 3]"}}
        ]}"#,
    );
    let markers = &trace.tables.markers;
    assert_eq!(markers.domain[0].as_deref(), Some("NCCL"));
    let payload = markers.payload[0].as_deref().unwrap();
    assert!(payload.contains("Message size [bytes]=1024"), "{payload}");
    assert_eq!(&*trace.tables.labels.text[0], "ncclAllReduce");
}

#[test]
fn what_is_something_else_gets_one_sentence() {
    assert!(error(b"").contains("an empty file"));
    assert!(error(b"{\"a\": 1}").contains("JSON that no importer knows"));
    assert!(error(br#"{"traceEvents": []}"#).contains("holds no events"));
    assert!(error(br#"{"traceEvents": 7}"#).contains("holds no events"));
    assert!(error(br#"[{"ph" 1}]"#).contains("holds no events"));
}

#[test]
fn hostile_files_end() {
    let deep = format!(
        r#"{{"traceEvents": [{{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":1,"args":{}1{}}}]}}"#,
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert_eq!(trace(&deep).tables.dispatches.len(), 1);
    let many: Vec<String> = (0..100_000)
        .map(|n| format!(r#"{{"ph":"X","cat":"kernel","name":"k","pid":{n},"tid":{n},"ts":{n},"dur":1,"args":{{"correlation":1}}}}"#))
        .collect();
    let trace_of_many = trace(&format!("[{}]", many.join(",")));
    assert_eq!(trace_of_many.manifest.queues.len(), 1024);
    assert_eq!(loss(&trace_of_many, "than any program has"), 98_976);
    let odd = trace(
        r#"[{"ph":"X","cat":"kernel","name":"k","name":"again","pid":"x","tid":null,"ts":"1.5","dur":1e400,"args":[]},
            {"ph":"X","cat":"kernel","name":"k","pid":-1,"tid":1e9,"ts":1,"dur":9e15,"args":{"grid":"x","correlation":-5}},
            {"ph":"X","cat":"kernel","name":"\ud800","pid":0,"tid":0,"ts":4611686018427387.9,"dur":4611686018427387.9},
            null, 7, "x"]"#,
    );
    assert_eq!(loss(&odd, "not objects"), 3);
}

/// Tests the cuts in `fixtures/kineto` against a plain script's counts of kernels and calls and sums of times.
#[test]
fn cuts_of_real_files_have_all_their_work() {
    let cuts = [
        ("h100", 31_360, 40),
        ("v100_ns", 1_425_784, 40),
        ("v100_old", 55_000, 40),
    ];
    for (name, kernels_ns, calls) in cuts {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/kineto");
        let path = Path::new(root).join(format!("{name}.json"));
        let trace = import(&path).unwrap().trace;
        let tables = &trace.tables;
        assert_eq!(
            (tables.dispatches.len(), tables.transfers.len()),
            (10, 20),
            "{name}"
        );
        let all_ns: i64 = tables.dispatches.duration_ns.iter().flatten().sum();
        assert_eq!(all_ns, kernels_ns, "{name}");
        // Calls that copy and wait are submissions, too.
        let others = [HostCallKind::Recording, HostCallKind::CopyAndWait];
        let rows = tables.host_calls.iter();
        let rows = rows.filter(|row| !others.contains(&row.call));
        let counted: u32 = rows.map(|row| row.count).sum();
        assert_eq!(counted + tables.submissions.len() as u32, calls, "{name}");
        let mut devices = trace.manifest.devices.iter();
        assert!(devices.all(|device| device.api == Api::Cuda));
    }
}

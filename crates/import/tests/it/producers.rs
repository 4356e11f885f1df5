//! Tests files of other producers of Chrome's JSON: Triton's Proton, Ascend's profiler, Intel's unitrace,
//! PaddlePaddle, ONNX Runtime and XLA. The inputs are made by hand after the source code of the producers, which `docs/import.md` says.

use crate::imported::{Import, Rows, import_bytes, kernel, loss, path};
use gapscope_trace::tables::{SubmissionKind, Table, TransferKind};

fn import(text: &str) -> Import {
    import_bytes("trace.json", text.as_bytes()).unwrap()
}

#[test]
fn kernels_of_proton_have_their_callers_as_labels() {
    let import = import(
        r#"{"displayTimeUnit": "us", "traceEvents": [
        {"name":"matmul","cat":"kernel","ph":"X","ts":0.0,"dur":40.0,"tid":7,"args":{"call_stack":["ROOT","layer","matmul"]}},
        {"name":"layer","cat":"call_path","ph":"X","pid":"stream 7","tid":"path 1","ts":0.0,"dur":140.0,"args":{"call_stack":["ROOT","layer"]}},
        {"name":"softmax","cat":"kernel","ph":"X","pid":"stream 7","tid":"kernels","ts":100.0,"dur":40.0,"args":{"call_stack":["ROOT","layer","softmax"],"device_id":0}}
        ]}"#,
    );
    let dispatches: Vec<_> = import.trace.tables.dispatches.iter().collect();
    let of = |row: usize| {
        let dispatch = &dispatches[row];
        let name = kernel(&import.trace, dispatch.kernel).name.to_string();
        (name, path(&import.trace, dispatch.label), dispatch.queue)
    };
    assert_eq!(dispatches.len(), 2);
    let queue = dispatches[0].queue;
    assert_eq!(of(0), ("matmul".into(), "layer".into(), queue));
    assert_eq!(of(1), ("softmax".into(), "layer".into(), queue));
    assert_eq!(import.trace.manifest.queues[0].index, 7);
}

#[test]
fn tasks_of_ascend_are_work_and_waits_are_none() {
    let import = import(
        r#"[
        {"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"Python"}},
        {"ph":"M","name":"process_name","pid":4,"tid":0,"args":{"name":"Ascend Hardware"}},
        {"ph":"M","name":"process_name","pid":5,"tid":0,"args":{"name":"CANN"}},
        {"ph":"X","name":"Node@launch","pid":5,"tid":77,"ts":"1699529623106740.100","dur":5,"args":{"Thread Id":77,"Mode":"launch","level":"node","connection_ids":[19]}},
        {"ph":"X","name":"aclnnMatmul_MatMulV2","pid":4,"tid":3,"ts":"1699529623106750.200","dur":100,"args":{"Model Id":4294967295,"Task Type":"AI_CORE","Stream Id":3,"Task Id":5,"Batch Id":0,"Subtask Id":4294967295,"connection_id":19}},
        {"ph":"X","name":"EVENT_WAIT","pid":4,"tid":3,"ts":"1699529623106850.200","dur":900,"args":{"Task Type":"EVENT_WAIT","Stream Id":3,"Task Id":6,"connection_id":20}},
        {"ph":"X","name":"MEMCPY_ASYNC","pid":4,"tid":11,"ts":"1699529623107850.200","dur":2,"args":{"Task Type":"SDMA","Stream Id":11,"Task Id":7,"connection_id":21}}
        ]"#,
    );
    let tables = &import.trace.tables;
    assert_eq!(tables.dispatches.duration_ns, [Some(100_000)]);
    assert_eq!(tables.transfers.duration_ns, [Some(2_000)]);
    assert_eq!(tables.submissions.kind, [SubmissionKind::Kernel]);
    let function = tables.submissions.function[0].as_deref();
    assert_eq!(function, Some("Node@launch"));
    assert_eq!(
        tables.dispatches.submission,
        [Some(tables.submissions.id[0])]
    );
    assert!(import.notes("A task of Ascend's streams is a wait"));
    assert_eq!(import.trace.manifest.devices[0].name, "Ascend Hardware");
    let streams: Vec<_> = import
        .trace
        .manifest
        .queues
        .iter()
        .map(|q| q.index)
        .collect();
    assert_eq!(streams, [3, 11]);
}

#[test]
fn device_rows_of_unitrace_are_joined_with_calls_by_arrows() {
    let import = import(
        r#"{ "traceEvents":[
        {"ph":"X","tid":77,"pid":70,"name":"zeCommandListAppendLaunchKernel","cat":"cpu_op","ts":1700000000000010,"dur":8},
        {"ph":"s","tid":77,"pid":70,"name":"dep","cat":"data_flow","ts":1700000000000010,"id":5},
        {"ph":"X","tid":77,"pid":70,"name":"zeCommandListAppendMemoryCopy","cat":"cpu_op","ts":1700000000000030,"dur":8},
        {"ph":"s","tid":77,"pid":70,"name":"dep","cat":"data_flow","ts":1700000000000030,"id":6},
        {"ph":"X","tid":77,"pid":70,"name":"zeEventHostSynchronize","cat":"cpu_op","ts":1700000000000050,"dur":80},
        {"ph":"X","tid":4294967295,"pid":4294967295,"name":"gemm[SIMD32 {16; 2; 1} {128; 1; 1}]","cat":"gpu_op","ts":1700000000000040,"dur":50,"args":{"id":"5"}},
        {"ph":"t","tid":4294967295,"pid":4294967295,"name":"dep","cat":"data_flow","ts":1700000000000040,"id":5},
        {"ph":"X","tid":4294967294,"pid":4294967295,"name":"zeCommandListAppendMemoryCopy(M2D)[4096]","cat":"gpu_op","ts":1700000000000095,"dur":5,"args":{"id":"6"}},
        {"ph":"M","name":"process_name","pid":70,"ts":1,"args":{"name":"HOST<n>"}},
        {"ph":"M","name":"process_name","pid":4294967295,"ts":1,"args":{"name":"DEVICE<n>0:3a:0:0"}}
        ]}"#,
    );
    let tables = &import.trace.tables;
    let dispatch = tables.dispatches.iter().next().unwrap();
    let kernel = kernel(&import.trace, dispatch.kernel);
    assert_eq!((&*kernel.name, kernel.local_x), ("gemm", Some(128)));
    assert_eq!((dispatch.groups_x, dispatch.groups_y), (Some(16), Some(2)));
    assert_eq!(tables.transfers.kind, [TransferKind::HostToDevice]);
    assert_eq!(tables.transfers.bytes, [Some(4096)]);
    assert_eq!(tables.submissions.len(), 2);
    assert!(dispatch.submission.is_some());
    assert!(tables.transfers.submission.at(0).is_some());
    assert_eq!(import.loss("host calls of GPU work"), 0);
    let devices = &import.trace.manifest.devices;
    assert_eq!(devices.len(), 1);
    assert_eq!(devices[0].name, "DEVICE<n>0:3a:0:0");
}

#[test]
fn arrows_of_unitrace_join_by_categories_with_numbers() {
    let import = import(
        r#"{ "traceEvents":[
        {"ph":"X","tid":77,"pid":70,"name":"zeCommandListAppendLaunchKernel","cat":"cpu_op","ts":1700000000000010,"dur":8},
        {"ph":"s","tid":77,"pid":70,"name":"dep","cat":"Flow_H2D_5_1","ts":1700000000000011,"id":5},
        {"ph":"X","tid":4294959103,"pid":4294959103,"name":"Tile #0: gemm[SIMD32 {16; 2; 1} {128; 1; 1}]","cat":"gpu_op","ts":1700000000000040,"dur":50,"args":{"id":"5"}},
        {"ph":"t","tid":4294959103,"pid":4294959103,"name":"dep","cat":"Flow_H2D_5_1","ts":1700000000000040,"id":5},
        {"ph":"s","tid":4294959103,"pid":4294959103,"name":"dep","cat":"Flow_D2H_5_1","ts":1700000000000090,"id":5},
        {"ph":"t","tid":77,"pid":70,"name":"dep","cat":"Flow_D2H_5_1","ts":1700000000000091,"id":5}
        ]}"#,
    );
    let dispatch = import.trace.tables.dispatches.iter().next().unwrap();
    assert!(dispatch.submission.is_some());
    assert_eq!(&*kernel(&import.trace, dispatch.kernel).name, "gemm");
    assert_eq!(import.trace.manifest.losses, []);
}

#[test]
fn files_of_paddlepaddle_have_calls_steps_and_labels() {
    let import = import(
        r#"{ "schemaVersion": "1.0.0", "displayTimeUnit": "us", "deviceProperties": [{"id": 0, "name": "Tesla V100"}], "traceEvents": [
        { "name": "ProfileStep#4", "pid": 5, "tid": 5, "ts": 990, "dur": 200, "ph": "X", "cat": "profile_step", "args": { } },
        { "name": "loss", "pid": 5, "tid": 5, "ts": 995, "dur": 100, "ph": "X", "cat": "user_defined", "args": { } },
        { "name": "matmul dygraph", "pid": 5, "tid": 5, "ts": 998, "dur": 30, "ph": "X", "cat": "operator", "args": { } },
        { "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 1000, "dur": 5, "ph": "X", "cat": "cuda_runtime", "args": { "correlation id": 3 } },
        { "name": "gemm", "pid": 0, "tid": 7, "ts": 1010, "dur": 50, "ph": "X", "cat": "kernel", "args": { "device": 0, "context": 1, "stream": 7, "correlation id": 3, "grid": [4, 1, 1], "block": [128, 1, 1] } },
        { }
        ] }"#,
    );
    let tables = &import.trace.tables;
    let dispatch = tables.dispatches.iter().next().unwrap();
    assert_eq!(dispatch.submission, Some(tables.submissions.id[0]));
    assert_eq!(path(&import.trace, dispatch.label), "ProfileStep / loss");
    assert_eq!(import.trace.manifest.losses, []);
}

#[test]
fn kernels_of_onnx_runtime_under_the_host_process_are_of_an_unknown_device() {
    let import = import(
        r#"[
        {"cat": "Session", "pid": 123, "tid": 456, "dur": 300, "ts": 2000, "ph": "X", "name": "model_run", "args": {}},
        {"cat": "Kernel", "pid": 123, "tid": 456, "dur": 20, "ts": 2010, "ph": "X", "name": "sgemm", "args": {"stream": "7", "grid_x": "4", "grid_y": "2", "grid_z": "1", "block_x": "128", "block_y": "1", "block_z": "1"}}
        ]"#,
    );
    let dispatch = import.trace.tables.dispatches.iter().next().unwrap();
    let groups = [dispatch.groups_x, dispatch.groups_y, dispatch.groups_z];
    assert_eq!(groups, [4, 2, 1].map(Some));
    assert_eq!(kernel(&import.trace, dispatch.kernel).local_x, Some(128));
    assert_eq!(import.trace.manifest.devices[0].name, "unknown GPU");
}

#[test]
fn calls_of_xla_with_the_kernel_in_their_names_are_joined() {
    let import = import(
        r#"{"displayTimeUnit": "ns", "traceEvents": [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "pid": 1, "tid": 13, "name": "thread_name", "args": {"name": "Stream #13"}},
        {"ph": "X", "pid": 701, "tid": 5, "name": "cuLaunchKernel: loop_fusion", "ts": 5, "dur": 5, "args": {"correlation_id": "1"}},
        {"ph": "X", "pid": 1, "tid": 13, "name": "loop_fusion", "ts": 20, "dur": 50, "args": {"correlation_id": "1"}},
        {}
        ]}"#,
    );
    let tables = &import.trace.tables;
    assert_eq!(
        tables.submissions.function[0].as_deref(),
        Some("cuLaunchKernel")
    );
    assert!(tables.dispatches.submission.at(0).is_some());
    assert_eq!(import.trace.manifest.losses, []);
}

#[test]
fn rows_of_processes_that_are_named_like_gpus_are_work_whatever_their_category_is() {
    for late in [false, true] {
        let name = r#"{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":"GPU 0"}}"#;
        let rows = r#"{"ph":"X","pid":1,"tid":3,"name":"gemm","cat":"gpu","ts":10,"dur":5},
            {"ph":"X","pid":2,"tid":3,"name":"wait","cat":"gpu","ts":10,"dur":5}"#;
        let other =
            r#"{"ph":"M","pid":2,"tid":0,"name":"process_name","args":{"name":"GPU Process"}}"#;
        let text = match late {
            false => format!("[{name},{other},{rows}]"),
            true => format!("[{rows},{other},{name}]"),
        };
        let import = import(&text);
        let tables = &import.trace.tables;
        assert_eq!(tables.dispatches.duration_ns, [Some(5_000)], "{late}");
        assert_eq!(tables.markers.len(), 1, "{late}");
    }
    // TensorFlow 1 writes the work of a stream three times.
    let process = |pid: u32, name: &str| {
        format!(
            r#"{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":"{name} Compute"}}}},
            {{"ph":"X","cat":"Op","pid":{pid},"tid":0,"name":"MatMul","ts":20,"dur":50,"args":{{"name":"m","op":"MatMul"}}}}"#
        )
    };
    let names = [
        "/job:localhost/replica:0/task:0/device:GPU:0",
        "/device:GPU:0/stream:all",
        "/device:GPU:0/stream:14",
    ];
    let rows: Vec<String> = (0..)
        .zip(names)
        .map(|(pid, name)| process(pid, name))
        .collect();
    let import = import(&format!(r#"{{"traceEvents":[{}]}}"#, rows.join(",")));
    assert_eq!(import.trace.tables.dispatches.duration_ns, [Some(50_000)]);
}

#[test]
fn rows_of_habana_are_kernels_copies_and_calls() {
    let import = import(
        r#"{"schemaVersion":1,"traceEvents":[
        {"ph":"M","name":"process_name","pid":0,"tid":0,"args":{"name":"/device:HPU:0"}},
        {"ph":"M","name":"thread_name","pid":0,"tid":2001,"args":{"name":"TPC 0"}},
        {"ph":"M","name":"thread_name","pid":0,"tid":5,"args":{"name":"EDMA 0"}},
        {"ph":"M","name":"thread_name","pid":0,"tid":12001,"args":{"name":"ARC_FARM 0"}},
        {"ph":"M","name":"thread_name","pid":19,"tid":7,"args":{"name":"Synapse/main"}},
        {"ph":"X","cat":"hpu_op","name":"enqueueWithExternalEventsExt","pid":19,"tid":7,"ts":1000,"dur":20,"args":{"recipeId":3}},
        {"ph":"X","cat":"hpu_op","name":"schedule","pid":0,"tid":12001,"ts":1010,"dur":2,"args":{"recipeId":3}},
        {"ph":"X","cat":"hpu_op","name":"transfer","pid":0,"tid":5,"ts":1020,"dur":30,"args":{"recipeId":3}},
        {"ph":"X","cat":"kernel","name":"relu_fwd_f32","pid":0,"tid":2001,"ts":1050,"dur":40,"args":{"device":0,"recipeId":3}}
        ]}"#,
    );
    let tables = &import.trace.tables;
    assert_eq!(tables.dispatches.duration_ns, [Some(40_000)]);
    assert_eq!(tables.transfers.duration_ns, [Some(30_000)]);
    let functions = tables.host_calls.function.iter().flatten();
    let functions: Vec<&str> = functions.map(|function| &**function).collect();
    assert_eq!(functions, ["enqueueWithExternalEventsExt"]);
    assert_eq!(import.trace.manifest.devices.len(), 1);
    assert_eq!(tables.markers.start_ns.len(), 1);
}

#[test]
fn a_start_and_a_duration_without_a_phase_are_a_range() {
    let import = import(
        r#"{"schemaVersion":1,"traceEvents":[
        {"cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":10,"dur":5,"args":{"correlation":18446744073709551615}},
        {"cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":20,"dur":5,"args":{"device":0,"stream":7,"correlation":18446744073709551615}},
        {"name":"a text that is no event"}
        ]}"#,
    );
    let tables = &import.trace.tables;
    assert_eq!(tables.dispatches.duration_ns, [Some(5000)]);
    assert_eq!(
        tables.dispatches.submission,
        [Some(tables.submissions.id[0])]
    );
    assert_eq!(import.loss("events"), 1);
}

#[test]
fn copies_of_the_first_versions_of_rocprof_are_work() {
    let name = |pid: u32, name: &str| {
        format!(r#"{{"ph":"M","pid":{pid},"name":"process_name","args":{{"name":"{name}"}}}}"#)
    };
    let work = |pid: u32, name: &str, at: u32, args: &str| {
        format!(
            r#"{{"ph":"X","name":"{name}","pid":"{pid}","tid":"{}","ts":"{at}","dur":"9","args":{{{args}}}}}"#,
            6 - pid
        )
    };
    let names = [
        name(2, "0 CPU HIP API"),
        name(1, "1 COPY"),
        name(6, "2 GPU0"),
    ];
    let on = r#""dev-id":"0","stream-id":"3""#;
    let events = [
        work(6, "vecadd.kd", 1020, on),
        work(1, "CopyDeviceToHost", 1072, on),
        work(1, "FillBuffer", 1082, ""),
    ];
    // The names may stand behind the events.
    for parts in [[&names[..], &events[..]], [&events[..], &names[..]]] {
        let document = format!(r#"{{"traceEvents":[{{}},{}]}}"#, parts.concat().join(","));
        let import = self::import(&document);
        let tables = &import.trace.tables;
        let kinds = tables.transfers.iter().map(|row| row.kind);
        assert_eq!(
            Vec::from_iter(kinds),
            [TransferKind::DeviceToHost, TransferKind::Fill]
        );
        assert_eq!(tables.dispatches.len(), 1);
        assert_eq!(tables.markers.len(), 0);
        let processes = import.trace.manifest.processes.iter();
        assert!(
            processes
                .clone()
                .all(|process| process.executable != "1 COPY")
        );
    }
}

#[test]
fn times_of_events_of_the_device_are_lost_and_make_no_process() {
    let document = r#"{"schemaVersion":1,"traceEvents":[
        {"ph":"M","name":"process_name","pid":0,"args":{"name":"python3"}},
        {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1020,"dur":50,"args":{"device":0,"stream":7}},
        {"ph":"X","cat":"cuda_event","name":"cudaEvent","pid":0,"tid":7,"ts":1070,"dur":0.001,"args":{"device":0,"stream":7}}]}"#;
    let import = self::import(document);
    assert_eq!(import.trace.tables.markers.len(), 0);
    let processes = import.trace.manifest.processes.iter();
    assert!(
        processes
            .clone()
            .all(|process| process.executable != "python3")
    );
    assert_eq!(
        loss(&import.trace, "times at which a device reaches events"),
        1
    );
}

#[test]
fn ranges_of_devices_without_those_of_the_host_are_lost() {
    let range = |category: &str, name: &str| {
        format!(
            r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":0,"tid":7,"ts":1010,"dur":90,"args":{{}}}}"#
        )
    };
    let events = [
        range("gpu_user_annotation", "forward"),
        range("gpu_user_annotation", "forward"),
        range("gpu_user_annotation", "backward"),
        range("user_annotation", "backward"),
        r#"{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1020,"dur":5,"args":{"device":0,"stream":7}}"#.to_owned(),
    ];
    let document = format!(
        r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#,
        events.join(",")
    );
    let import = self::import(&document);
    assert_eq!(loss(&import.trace, "ranges of the device alone"), 2);
}

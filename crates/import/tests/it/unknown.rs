//! Tests that rows without a process, device or stream are not assigned to number 0.

use crate::database::database;
use crate::imported::{fixture, import_bytes};
use gapscope_trace::Trace;
use gapscope_trace::manifest::{Device, Process, Queue};

/// Imports a file and returns its trace.
fn trace_of(name: &str, bytes: &[u8]) -> Trace {
    import_bytes(name, bytes).unwrap().trace
}

/// Returns the process, device and queue of each dispatch.
fn places(trace: &Trace) -> Vec<(&Process, &Device, &Queue)> {
    let manifest = &trace.manifest;
    let queues = trace.tables.dispatches.queue.iter();
    queues
        .map(|queue| {
            let queue = manifest.queues.iter().find(|known| known.id == *queue);
            let queue = queue.unwrap();
            let device = manifest.device(queue.device).unwrap();
            (manifest.process(device.process).unwrap(), device, queue)
        })
        .collect()
}

/// Creates a database of kernels with times, device, context, stream, correlation and process.
fn kernels(rows: &[&str]) -> Vec<u8> {
    let mut text = String::from(
        "StringIds id value\n[1, \"scale\"]\nCUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName\n",
    );
    for row in rows {
        text += &format!("[{row}, 1]\n");
    }
    database(&text)
}

#[test]
fn rows_of_nsys_without_device_stream_or_process_are_of_unknown_ones() {
    let trace = trace_of(
        "export.sqlite",
        &kernels(&[
            "100, 150, 0, 1, 0, 5, 117440512",
            "200, 250, null, 1, 0, 6, 117440512",
            "300, 350, 0, 1, null, 7, 117440512",
            "400, 450, 0, 1, 0, 8, 134217728",
            "500, 550, 0, 1, 0, 9, null",
        ]),
    );
    let places = places(&trace);
    let (process, device, queue) = places[0];
    assert_eq!((process.pid, queue.index, &queue.name), (7, 0, &None));
    let (same, unknown_device, _) = places[1];
    assert_eq!(same, process);
    assert_ne!(unknown_device.id, device.id);
    assert_eq!(unknown_device.name, "unknown GPU");
    let (_, same, unknown_stream) = places[2];
    assert_eq!(same, device);
    assert_ne!(unknown_stream.id, queue.id);
    assert_eq!(unknown_stream.name.as_deref(), Some("unknown stream"));
    let (unknown_process, ..) = places[4];
    assert!(![process.id, places[3].0.id].contains(&unknown_process.id));
    assert_eq!(unknown_process.executable, "unknown process");
}

#[test]
fn rows_of_nsys_without_a_process_are_of_the_only_one() {
    let trace = trace_of(
        "export.sqlite",
        &kernels(&[
            "100, 150, 0, 1, 0, 5, 117440512",
            "200, 250, 0, 1, 0, 6, null",
        ]),
    );
    let places = places(&trace);
    assert_eq!(places[0], places[1]);
    assert_eq!(places[0].0.pid, 7);
}

#[test]
fn work_of_chromes_json_without_device_or_stream_is_of_unknown_ones() {
    let trace = trace_of(
        "trace.json",
        br#"{"traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 0, "ts": 1, "dur": 1, "args": {"device": 0, "stream": 0}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": "GPU", "tid": 0, "ts": 3, "dur": 1, "args": {"stream": 0}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": "main", "ts": 5, "dur": 1, "args": {"device": 0}}
        ]}"#,
    );
    let places = places(&trace);
    let devices: Vec<&str> = places.iter().map(|place| &*place.1.name).collect();
    assert_eq!(devices, ["unknown GPU 0", "unknown GPU", "unknown GPU 0"]);
    let streams: Vec<_> = places.iter().map(|place| place.2.name.as_deref()).collect();
    assert_eq!(streams, [None, None, Some("unknown stream")]);
    assert_eq!(places[0].1, places[2].1);
}

#[test]
fn a_copy_of_rocprofv3_without_agent_or_stream_is_of_unknown_ones() {
    let text = std::fs::read_to_string(fixture("rocprofv3.json")).unwrap();
    let mut document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let records = &mut document["rocprofiler-sdk-tool"][0]["buffer_records"]["memory_copy"];
    let copy = records[0].as_object_mut().unwrap();
    for key in ["src_agent_id", "dst_agent_id", "stream_id", "queue_id"] {
        copy.remove(key);
    }
    let trace = trace_of("results.json", document.to_string().as_bytes());
    let manifest = &trace.manifest;
    let unknown = manifest.queues.iter().find(|queue| {
        let device = manifest.device(queue.device).unwrap();
        queue.name.as_deref() == Some("unknown stream") && device.name == "unknown GPU"
    });
    let unknown = unknown.unwrap().id;
    let copies = trace.tables.transfers.queue.iter();
    assert_eq!(copies.filter(|queue| **queue == unknown).count(), 1);
}

#[test]
fn cut_and_rewritten_exports_of_nsys_are_read() {
    // Numbers are texts in databases that scripts have written again.
    let rows = ["\"100\", \"150\", \"0\", \"1\", \"0\", \"5\", \"117440512\""];
    let trace = trace_of("export.sqlite", &kernels(&rows));
    assert_eq!(trace.tables.dispatches.duration_ns, [Some(50)]);
    let (process, device, _) = places(&trace)[0];
    assert_eq!((process.pid, &*device.name), (7, "GPU 0"));
    // A cut without the table of names.
    let text = "CUPTI_ACTIVITY_KIND_KERNEL start end deviceId streamId correlationId demangledName\n[100, 150, 0, 7, 5, 1]\n";
    let trace = trace_of("export.sqlite", &database(text));
    assert_eq!(trace.tables.dispatches.duration_ns, [Some(50)]);
    let name = &trace.tables.kernels.name[0];
    assert!(!name.is_empty(), "{name}");
}

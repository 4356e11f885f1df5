//! Tests the import of Perfetto's traces: those of Perfetto's own tests, with trace_processor's results, and
//! gapscope's own exports.

use crate::imported::{self, Import, Rows, kernel, text};
use gapscope_export::{Scene, perfetto};
use gapscope_trace::Trace;
use gapscope_trace::tables::*;
use std::path::Path;

fn import(name: &str) -> Import {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto");
    imported::import(&folder.join(format!("{name}.pftrace"))).unwrap()
}

/// Returns start, duration, name and queue of all GPU work, by start.
fn gpu_work(trace: &Trace) -> Vec<(i64, i64, String, String)> {
    let t = &trace.tables;
    let queue = |id| {
        let queues = &trace.manifest.queues;
        let queue = queues.iter().find(|queue| queue.id == id).unwrap();
        queue.name.clone().unwrap_or_default()
    };
    let dispatches = t.dispatches.iter().map(|d| {
        let name = kernel(trace, d.kernel).name.to_string();
        (d.start_ns, d.duration_ns, name, d.queue)
    });
    let opaque = t.opaque_work.iter().map(|w| {
        let name = text(trace, w.label.unwrap());
        (w.start_ns, w.duration_ns, name, w.queue)
    });
    let work = dispatches.chain(opaque);
    let mut work: Vec<_> = work
        .map(|(start, duration, name, id)| (start.unwrap(), duration.unwrap(), name, queue(id)))
        .collect();
    work.sort();
    work
}

fn rows(expected: &[(i64, i64, &str, &str)]) -> Vec<(i64, i64, String, String)> {
    let rows = expected.iter();
    let mut rows: Vec<_> = rows
        .map(|(start, duration, name, queue)| {
            (*start, *duration, (*name).to_owned(), (*queue).to_owned())
        })
        .collect();
    rows.sort();
    rows
}

/// Returns start, value, name and GPU of all values of counters, by start.
fn counter_values(trace: &Trace) -> Vec<(i64, f64, String)> {
    let t = &trace.tables;
    let mut values: Vec<_> = (t.counter_values.iter())
        .map(|value| {
            let mut counters = t.counters.iter();
            let counter = counters.find(|row| row.id == value.counter).unwrap();
            let mut devices = trace.manifest.devices.iter();
            let device = devices.find(|device| Some(device.id) == counter.device);
            let device = device.map_or("host", |device| &device.name);
            let name = format!("{} of {device}", counter.name);
            (value.start_ns, value.value, name)
        })
        .collect();
    values.sort_by(|a, b| (a.0, &a.2).cmp(&(b.0, &b.2)));
    values
}

#[test]
fn render_stages_with_old_specifications_are_those_of_perfetto() {
    let import = import("gpu_render_stages");
    let unknown_queue = "unknown queue 4294967295";
    let mut expected = vec![
        (0, 5, "unknown stage", "unknown queue 1"),
        (0, 5, "stage 0", "queue 0"),
        (10, 5, "stage 1", "queue 1"),
        (20, 5, "stage 2", "queue 2"),
        (30, 5, "stage 3", "queue 0"),
        (40, 5, "unknown stage", "unknown queue 3"),
        (80, 5, "stage 2", "queue 0"),
        (140, 5, "unknown stage", unknown_queue),
    ];
    let stage_0 = [50, 60, 70, 90, 100, 110, 120, 130, 150, 160, 170, 180];
    expected.extend(stage_0.map(|at| (at, 5, "stage 0", "queue 0")));
    assert_eq!(gpu_work(&import.trace), rows(&expected));
    let names = import.trace.tables.command_buffers.iter();
    let names: Vec<_> = names.filter_map(|row| row.name).collect();
    assert_eq!(names, ["command_buffer".into()]);
}

#[test]
fn render_stages_with_interned_specifications_are_those_of_perfetto() {
    let import = import("gpu_render_stages_interned_spec");
    let expected = [
        (100, 10, "binning", "vertex"),
        (200, 10, "render", "fragment"),
        (300, 10, "render", "queue2"),
    ];
    assert_eq!(gpu_work(&import.trace), rows(&expected));
    // The fourth interval names a queue without a description; Perfetto does not have it either.
    assert_eq!(import.loss("GPU intervals"), 1);
}

#[test]
fn overlapping_render_stages_keep_their_times() {
    let import = import("gpu_render_stages_overlapping");
    let expected = [
        (100, 10, "stage 1", "queue 1"),
        (105, 10, "stage 1", "queue 1"),
    ];
    assert_eq!(gpu_work(&import.trace), rows(&expected));
}

#[test]
fn kernels_have_their_names_and_launches() {
    let import = import("gpu_compute_launch");
    let t = &import.trace.tables;
    let kernel = t.kernels.iter().next().unwrap();
    assert_eq!(&*kernel.name, "vectorAdd");
    assert_eq!(kernel.entry_point.as_deref(), Some("_Z9vectorAddPfS_S_i"));
    let full = "vectorAdd(float*, float*, float*, int)";
    assert_eq!(kernel.full_name.as_deref(), Some(full));
    let local = [kernel.local_x, kernel.local_y, kernel.local_z];
    assert_eq!(local, [Some(128), Some(1), Some(1)]);
    assert_eq!(kernel.registers, Some(32));
    assert_eq!(kernel.dynamic_shared_bytes, Some(4096));
    let d = t.dispatches.iter().next().unwrap();
    assert_eq!(
        [d.groups_x, d.groups_y, d.groups_z],
        [Some(256), Some(1), Some(1)]
    );
    assert_eq!((d.start_ns, d.duration_ns), (Some(100), Some(50)));

    let import = self::import("gpu_compute_kernel");
    let t = &import.trace.tables;
    let entries = t.dispatches.iter();
    let entries = entries.map(|d| {
        imported::kernel(&import.trace, d.kernel)
            .entry_point
            .unwrap()
    });
    let entries: Vec<String> = entries.map(|entry| entry.to_string()).collect();
    let (add, multiply) = ("_Z9vectorAddPfS_S_i", "_Z6matMulPfS_S_ii");
    assert_eq!(entries, [add, multiply, add]);
    assert_eq!(import.trace.manifest.processes[0].pid, 100);
}

#[test]
fn a_call_and_the_work_that_it_submitted_are_linked() {
    let import = import("gpu_render_stages_flow");
    let t = &import.trace.tables;
    let submission = t.submissions.iter().next().unwrap();
    let mut dispatches = t.dispatches.iter();
    let softmax = dispatches.find(|d| d.submission == Some(submission.id));
    assert_eq!(softmax.unwrap().start_ns, Some(100));
    assert_eq!(t.submissions.len(), 1);
}

#[test]
fn submissions_of_vulkan_have_their_threads() {
    let import = import("vulkan_api_events");
    // The file has no GPU work, so that the calls are counted as losses.
    assert_eq!(import.loss("submissions"), 2);
}

#[test]
fn counters_are_of_the_time_before_or_after_their_samples() {
    let import_of = import;
    let import = import_of("gpu_counters");
    let (vertices, pixels) = (
        "Vertex / Second [Vertex/s] of GPU 0",
        "Fragment / Second [Pixel/s] of GPU 0",
    );
    let triangles = "Triangle Acceleration [Triangle/ms:ms] of GPU 1";
    let mut found = counter_values(&import.trace);
    found.retain(|(_, _, name)| [vertices, pixels, triangles].contains(&name.as_str()));
    let expected = [
        (11, 10.0, vertices),
        (12, 14.0, pixels),
        (14, 9.0, triangles),
        (21, 15.5, vertices),
        (22, 21.0, pixels),
        (24, 7.0, triangles),
    ];
    let expected = expected.map(|(at, value, name)| (at, value, name.to_owned()));
    assert_eq!(found, expected);

    let import = import_of("gpu_counters_forwards_looking");
    let found = counter_values(&import.trace);
    let values: Vec<_> = found.iter().map(|(at, value, _)| (*at, *value)).collect();
    assert_eq!(values, [(10, 100.0), (20, 0.0), (30, 0.0), (40, 50.0)]);

    let import = import_of("gpu_counter_interned_descriptor");
    let expected = [
        (10, 150.0, "CounterA of GPU 0"),
        (10, 250.0, "CounterB of GPU 1"),
    ];
    let expected = expected.map(|(at, value, name)| (at, value, name.to_owned()));
    assert_eq!(counter_values(&import.trace), expected);
}

#[test]
fn clocks_are_brought_together() {
    let import = import("clock_sync");
    let found = counter_values(&import.trace);
    let values: Vec<_> = found.iter().map(|(at, value, _)| (*at, *value)).collect();
    let expected = [
        (1, 5.0),
        (102, 7.0),
        (1003, 9.0),
        (1005, 11.0),
        (2006, 12.0),
        (2010, 13.0),
        (2013, 14.0),
        (3007, 15.0),
    ];
    assert_eq!(values, expected);
}

#[test]
fn memory_in_use_is_a_counter() {
    // The other events that Perfetto's test finds are of the kernel's ftrace, which is not imported.
    let import = import("gpu_mem_total");
    let found = counter_values(&import.trace);
    let all = |gpu| format!("GPU memory in use by all of GPU {gpu}");
    let of = "GPU memory in use by process 1 of GPU 0".to_owned();
    let expected = [(0, 123.0, all(0)), (0, 456.0, all(1)), (0, 100.0, of)];
    assert_eq!(found, expected);
}

#[test]
fn slices_are_on_their_threads_and_processes() {
    let import = import("track_event_tracks");
    let t = &import.trace.tables;
    let name = |marker: &Marker| {
        let mut threads = import.trace.manifest.threads.iter();
        let thread = threads
            .find(|known| Some(known.thread) == marker.thread && known.process == marker.process);
        thread.map(|thread| thread.name.clone())
    };
    let mut found: Vec<_> = (t.markers.iter())
        .map(|marker| {
            let (start, duration) = (marker.start_ns.unwrap(), marker.duration_ns.unwrap());
            let thread = name(&marker).unwrap_or_default();
            (start, duration, text(&import.trace, marker.label), thread)
        })
        .collect();
    found.sort();
    // t1 and t3 have one thread id, one after the other; a trace keeps the last name.
    let expected = rows(&[
        (1000, 0, "event1_on_t1", "t3"),
        (2000, 0, "event1_on_t2", "t2"),
        (3000, 0, "event2_on_t2", "t2"),
        (4000, 0, "event1_on_p1", ""),
        (5000, 0, "event1_on_async", ""),
        (5100, 100, "event1_on_async2", ""),
        (6000, 0, "event1_on_async3", "t2"),
        (6000, 0, "event3_on_t1", "t3"),
        (11000, 0, "event1_on_t3", "t3"),
        (21000, 0, "event1_on_p2", ""),
        (22000, 0, "event1_on_t4", "t4"),
        (30000, 0, "event1_on_t1", ""),
        (31000, 0, "event2_on_p2", ""),
        (32000, 0, "event2_on_t4", "t4"),
        (40000, 0, "event_and_track_async3", ""),
    ]);
    assert_eq!(found, expected);
}

#[test]
fn overlapping_slices_of_old_traces_are_paired_by_their_ids() {
    let import = import("legacy_async_event");
    let markers = import.trace.tables.markers.iter();
    let mut times: Vec<_> = markers
        .map(|marker| (marker.start_ns, marker.duration_ns))
        .collect();
    times.sort();
    let expected = [(1000, 7000), (2000, 1000)];
    assert_eq!(times, expected.map(|(at, for_ns)| (Some(at), Some(for_ns))));
    assert_eq!(import.loss("track events"), 2);
}

#[test]
fn a_gpus_log_is_kept() {
    let import = import("gpu_log");
    let markers = &import.trace.tables.markers;
    let found: Vec<_> = markers
        .iter()
        .map(|marker| (marker.start_ns.unwrap(), marker.category))
        .collect();
    assert_eq!(found.len(), 6);
    assert_eq!(found[5], (5, Some("tag1".into())));
}

/// Tests that gapscope's own exports keep their kernels, counts and times.
#[test]
fn our_own_exports_come_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for name in [
        "report/tests/traces/host_bound.txt",
        "report/tests/traces/two_queues.txt",
        "report/tests/traces/command_buffers_only.txt",
        "../fixtures/v1.txt",
        "../fixtures/v2.txt",
    ] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let trace = Trace::from_text(&text).unwrap();
        let mut bytes = Vec::new();
        perfetto::write(&Scene::new(&trace), &mut bytes).unwrap();
        // Two packets of ftrace, without events.
        bytes.extend(b"\x0a\x02\x0a\x00".repeat(2));
        let import = imported::import_bytes("own.pftrace", &bytes).unwrap();
        assert_eq!(import.loss("packets of ftrace"), 2);
        assert_eq!(summary(&import.trace), summary(&trace), "{name}");
    }
}

/// Formats every timed row that an export draws.
fn summary(trace: &Trace) -> Vec<String> {
    let t = &trace.tables;
    let device = |id| {
        let queue = trace.manifest.queues.iter().find(|queue| queue.id == id)?;
        let mut devices = trace.manifest.devices.iter();
        devices.position(|device| device.id == queue.device)
    };
    let times =
        |start: Option<i64>, duration: Option<i64>| Some(format!("{} {}", start?, duration?));
    let dispatches = t.dispatches.iter().filter_map(|d| {
        let times = times(d.start_ns, d.duration_ns)?;
        let name = kernel(trace, d.kernel).name;
        let (groups, device) = (d.groups_x, device(d.queue));
        let position = d.position;
        Some(format!(
            "dispatch {times} {name} {groups:?} {device:?} {position}"
        ))
    });
    let transfers = t.transfers.iter().filter_map(|w| {
        let times = times(w.start_ns, w.duration_ns)?;
        Some(format!("transfer {times} {} {:?}", w.kind, w.bytes))
    });
    let opaque = t.opaque_work.iter().filter_map(|w| {
        let times = times(w.start_ns, w.duration_ns)?;
        Some(format!("opaque {times} {}", w.kind))
    });
    let command_buffers = t.command_buffers.iter().filter_map(|c| {
        let times = times(c.start_ns, c.duration_ns)?;
        Some(format!("command buffer {times}"))
    });
    // A launch comes back as a submission only where the drawing has its work, and as a call where it has not.
    let calls = t.host_calls.iter();
    let calls = calls.filter(|c| c.call != HostCallKind::Launch).map(|c| {
        format!(
            "call {} {:?} {} {} {} {}",
            c.call, c.thread, c.start_ns, c.duration_ns, c.count, c.busy_ns
        )
    });
    let markers = t.markers.iter().filter_map(|m| {
        let times = times(m.start_ns, m.duration_ns)?;
        Some(format!(
            "marker {} {times} {}",
            m.scope,
            text(trace, m.label)
        ))
    });
    let work = dispatches
        .chain(transfers)
        .chain(opaque)
        .chain(command_buffers);
    let mut lines: Vec<String> = work.chain(calls).chain(markers).collect();
    lines.sort();
    lines
}

// The expected values are those of the annotations in the file, which a script outside of this project printed.
#[test]
fn a_real_file_of_rocprofv3_has_launch_shapes_registers_and_agents() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/perfetto");
    let import = imported::import(&folder.join("rocprofv3_jacc.pftrace.gz")).unwrap();
    let tables = &import.trace.tables;
    assert_eq!(tables.dispatches.len(), 15);
    let first = tables.dispatches.iter().next().unwrap();
    let groups = [first.groups_x, first.groups_y, first.groups_z];
    assert_eq!(groups, [Some(1_000_448 / 1024), Some(1), Some(1)]);
    let kernel = kernel(&import.trace, first.kernel);
    assert_eq!(kernel.local_x, Some(1024));
    assert_eq!(kernel.registers, Some(8));
    assert_eq!(kernel.local_bytes, Some(0));
    assert_eq!(kernel.static_shared_bytes, Some(0));
    for kernel in tables.kernels.iter() {
        assert!(!kernel.name.contains(".kd"), "{}", kernel.name);
    }
    let devices = &import.trace.manifest.devices;
    let names: Vec<_> = devices.iter().map(|device| &*device.name).collect();
    assert_eq!(names, ["Agent-4"]);
    // Calls of HIP and HSA are calls and no labels.
    assert_eq!(tables.markers.len(), 0);
    assert!(import.notes("they stand in x"));
}

//! Tests that rocprofv3's two formats give the same trace of one planted scene.

use crate::imported::{self, fixture, import_bytes, loss, losses, path};
use gapscope_import::{Options, import};
use gapscope_trace::Trace;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{HostCallKind, MemoryEvent, TransferKind};

fn trace(name: &str) -> Trace {
    imported::import(&fixture(name)).unwrap().trace
}

#[test]
fn both_formats_give_the_same_trace() {
    let (mut of_database, mut of_json) = (trace("rocpd.db"), trace("rocprofv3.json"));
    // The formats differ in rows without a table: one has counters, and the other scratch memory.
    let others = ["3 rows of rocpd_pmc_event", "3 records of scratch_memory"];
    for (trace, other) in [&of_database, &of_json].into_iter().zip(others) {
        let losses = losses(trace);
        assert_eq!(losses.len(), 2, "{losses:?}");
        for loss in ["2 host calls of GPU work", other] {
            assert!(losses.iter().any(|known| known == loss), "{losses:?}");
        }
    }
    for trace in [&mut of_database, &mut of_json] {
        trace.manifest.losses.clear();
        trace.manifest.command.clear();
        for device in &mut trace.manifest.devices {
            device.uuid.clear();
        }
        // Only the database has the names of threads and streams.
        for thread in &mut trace.manifest.threads {
            thread.name.clear();
        }
        for queue in &mut trace.manifest.queues {
            queue.name = None;
        }
    }
    assert_eq!(of_database.manifest, of_json.manifest);
    assert_eq!(of_database.tables, of_json.tables);
}

#[test]
fn the_planted_scene_is_there() {
    let trace = trace("rocpd.db");
    let (manifest, tables) = (&trace.manifest, &trace.tables);
    let names: Vec<_> = manifest
        .devices
        .iter()
        .map(|device| device.name.as_str())
        .collect();
    assert_eq!(names, ["AMD Instinct MI300X (gfx942)"; 2]);
    assert!(manifest.devices.iter().all(|device| device.api == Api::Hip));
    assert_ne!(manifest.devices[0].uuid, manifest.devices[1].uuid);
    assert_eq!(
        manifest.devices[0].limits.as_ref().unwrap().multiprocessors,
        Some(304)
    );
    assert_eq!(manifest.host.system, "Linux 6.8.0");
    let dispatches = &tables.dispatches;
    assert_eq!(
        dispatches.duration_ns,
        [Some(200_000), Some(199_500), Some(10_000)]
    );
    // The launch has 100,000 work-items in groups of 256.
    assert_eq!(
        (dispatches.groups_x.at(0), dispatches.groups_y.at(0)),
        (Some(391), Some(2))
    );
    let kernel = imported::kernel(&trace, dispatches.kernel[0]);
    assert_eq!(&*kernel.name, "scale(float*, int)");
    assert_eq!(kernel.entry_point.as_deref(), Some("_Z5scalePfi"));
    assert_eq!(kernel.static_shared_bytes, Some(512));
    assert_eq!(kernel.dynamic_shared_bytes, Some(512));
    assert_eq!(kernel.registers, Some(24));
    assert_eq!(
        tables.transfers.kind,
        [
            TransferKind::HostToDevice,
            TransferKind::DeviceToHost,
            TransferKind::PeerToPeer
        ]
    );
    assert_eq!(
        tables.transfers.bytes,
        [Some(1 << 20), Some(4096), Some(64)]
    );
    // Four HIP calls launched something; a wait and an HSA call did not.
    let functions = tables.submissions.function.iter().flatten();
    let functions: Vec<_> = functions.map(|function| &**function).collect();
    assert_eq!(
        functions,
        [
            "hipMemcpyAsync",
            "hipLaunchKernel",
            "hipLaunchKernel",
            "hipMemcpyAsync"
        ]
    );
    assert_eq!(
        tables.host_calls.call,
        [HostCallKind::OtherCall, HostCallKind::WaitQueueIdle]
    );
    let of = |row| path(&trace, dispatches.label.at(row));
    assert_eq!(
        (of(0), of(1)),
        ("step 1".to_owned(), "ncclAllReduce".to_owned())
    );
    assert_eq!(
        tables.memory.event,
        [MemoryEvent::Allocate, MemoryEvent::Free]
    );
    assert_eq!(tables.memory.bytes, [1 << 20, 1 << 20]);
}

#[test]
fn a_cut_document_gives_what_came_before() {
    let whole = std::fs::read(fixture("rocprofv3.json")).unwrap();
    let mut best = 0;
    for length in (0..whole.len()).step_by(499) {
        match import_bytes("cut.json", &whole[..length]) {
            Ok(import) => {
                assert_eq!(loss(&import.trace, "rests of files"), 1);
                best = best.max(import.trace.tables.dispatches.queue.len());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert_eq!(best, 3);
}

#[test]
fn what_nests_too_deep_is_refused() {
    let deep = format!(
        "{{\"rocprofiler-sdk-tool\": [{{\"agents\": {}",
        "[".repeat(1 << 20)
    );
    let error = import_bytes("deep.json", deep.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("rocprofv3's JSON"), "{error}");
}

#[test]
fn databases_of_one_machine_make_one_trace_and_what_both_have_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trace.gapscope");
    let inputs = [fixture("rocpd.db"), fixture("rocpd.db")];
    import(&inputs, &output, &Options::default(), &|_, _| {}).unwrap();
    let (trace, _) = gapscope_trace::read(&output, &gapscope_trace::Selection::all()).unwrap();
    assert_eq!(trace.tables.dispatches.queue.len(), 3);
    assert!(loss(&trace, "repeated events") >= 3);
}

#[test]
fn other_writers_json_gives_the_same_trace() {
    let whole = std::fs::read_to_string(fixture("rocprofv3.json")).unwrap();
    let wanted = trace("rocprofv3.json");
    let value: serde_json::Value = serde_json::from_str(&whole).unwrap();
    // In the order of the alphabet, records come before the names that they refer to.
    let sorted = value.to_string();
    let [records, names] = ["buffer_records", "kernel_symbols"].map(|key| sorted.find(key));
    assert!(records < names);
    for (text, lost_parts) in [
        (sorted, 0),
        (format!("\u{feff}{whole}"), 0),
        (format!("[INFO] tool started {{1}}\n{whole}"), 1),
        (whole.replace("\n    }\n", "\n    },\n"), 0),
        (whole.replace("\"cu_count\": 0", "\"cu_count\": NaN"), 0),
        // Numbers in quotes are numbers.
        (whole.replace("\"pid\": 4242", "\"pid\": \"4242\""), 0),
    ] {
        let trace = import_bytes("results.json", text.as_bytes()).unwrap().trace;
        assert_eq!(trace.tables, wanted.tables, "{text:.60}");
        assert_eq!(loss(&trace, "not JSON"), lost_parts, "{text:.60}");
    }
}

#[test]
fn a_value_of_another_type_costs_only_itself() {
    let whole = std::fs::read_to_string(fixture("rocprofv3.json")).unwrap();
    let wanted = trace("rocprofv3.json");
    let counts = |trace: &Trace| {
        let tables = &trace.tables;
        [
            tables.dispatches.kernel.len(),
            tables.transfers.kind.len(),
            tables.submissions.id.len(),
            tables.host_calls.start_ns.len(),
        ]
    };
    for (member, other) in [
        ("\"command\": [", "\"command\": \"app --fast\", \"x\": ["),
        ("\"pid\": 4242", "\"pid\": {}"),
        ("\"cu_count\": 304", "\"cu_count\": \"many\""),
        ("\"machine_id\": \"aa\"", "\"machine_id\": 7"),
        (
            "\"private_segment_size\": ",
            "\"private_segment_size\": [], \"x\": ",
        ),
        ("\"workgroup_size\": {", "\"workgroup_size\": 64, \"x\": {"),
        ("\"operations\": []", "\"operations\": 5"),
    ] {
        assert!(whole.contains(member), "{member}");
        let text = whole.replacen(member, other, 1);
        let trace = import_bytes("results.json", text.as_bytes()).unwrap().trace;
        assert_eq!(counts(&trace), counts(&wanted), "{other}");
        assert_eq!(loss(&trace, "their type is not the one"), 1, "{other}");
    }
    // A record that is no object, and a kind that is no list.
    let text = whole.replacen(
        "\"kernel_dispatch\": [",
        "\"kernel_dispatch\": [null, 7,",
        1,
    );
    let trace = import_bytes("results.json", text.as_bytes()).unwrap().trace;
    assert_eq!(counts(&trace), counts(&wanted));
    let text = whole.replacen(
        "\"scratch_memory\": [",
        "\"scratch_memory\": 7, \"x\": [",
        1,
    );
    let trace = import_bytes("results.json", text.as_bytes()).unwrap().trace;
    assert_eq!(counts(&trace), counts(&wanted));
}

#[test]
fn documents_that_follow_each_other_are_read() {
    let whole = std::fs::read_to_string(fixture("rocprofv3.json")).unwrap();
    let other = whole.replace("4242", "4243");
    let wanted = trace("rocprofv3.json").tables.dispatches.kernel.len();
    let both = import_bytes("results.json", [whole, other].join("\n").as_bytes()).unwrap();
    assert_eq!(both.trace.tables.dispatches.kernel.len(), 2 * wanted);
}

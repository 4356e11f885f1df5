//! Tests that rocprofv3's two formats give the same trace of one planted scene.

use crate::nsys::{fixture, imported};
use gapscope_import::{Options, import};
use gapscope_trace::Trace;
use gapscope_trace::manifest::Api;
use gapscope_trace::tables::{HostCallKind, MemoryEvent, TransferKind};

fn trace(name: &str) -> Trace {
    imported(&fixture(name)).unwrap().0
}

#[test]
fn both_formats_give_the_same_trace() {
    let (mut of_database, mut of_json) = (trace("rocpd.db"), trace("rocprofv3.json"));
    for (number, losses) in [&of_database, &of_json]
        .into_iter()
        .map(|t| &t.manifest.losses)
        .enumerate()
    {
        let count = |what: &str| {
            losses
                .iter()
                .find(|loss| loss.kind.as_str() == what)
                .map(|loss| loss.count)
        };
        // The formats differ in rows without a table: one has counters, and the other scratch memory.
        let others = [
            count("rows of rocpd_pmc_event"),
            count("records of scratch_memory"),
        ];
        assert_eq!(
            others,
            [(number == 0).then_some(3), (number == 1).then_some(3)]
        );
        assert_eq!(count("host calls of GPU work"), Some(2));
        assert_eq!(losses.len(), 2);
    }
    for trace in [&mut of_database, &mut of_json] {
        trace.manifest.losses.clear();
        trace.manifest.command.clear();
        for device in &mut trace.manifest.devices {
            device.uuid.clear();
        }
        // Only the database has the names of threads and streams.
        trace
            .manifest
            .threads
            .iter_mut()
            .for_each(|thread| thread.name.clear());
        trace
            .manifest
            .queues
            .iter_mut()
            .for_each(|queue| queue.name = None);
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
    let kernel = |row: usize| {
        let id = dispatches.kernel[row];
        tables
            .kernels
            .id
            .iter()
            .position(|known| *known == id)
            .unwrap()
    };
    let first = kernel(0);
    assert_eq!(&*tables.kernels.name[first], "scale(float*, int)");
    assert_eq!(
        tables.kernels.entry_point[first].as_deref(),
        Some("_Z5scalePfi")
    );
    let shared = (
        tables.kernels.static_shared_bytes.at(first),
        tables.kernels.dynamic_shared_bytes.at(first),
    );
    assert_eq!(shared, (Some(512), Some(512)));
    assert_eq!(tables.kernels.registers.at(first), Some(24));
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
    let functions: Vec<_> = tables
        .submissions
        .function
        .iter()
        .flatten()
        .map(|f| &**f)
        .collect();
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
    let text = |id| {
        &*tables.labels.text[tables
            .labels
            .id
            .iter()
            .position(|known| *known == id)
            .unwrap()]
    };
    assert_eq!(text(dispatches.label.at(0).unwrap()), "step 1");
    assert_eq!(text(dispatches.label.at(1).unwrap()), "ncclAllReduce");
    assert_eq!(
        tables.memory.event,
        [MemoryEvent::Allocate, MemoryEvent::Free]
    );
    assert_eq!(tables.memory.bytes, [1 << 20, 1 << 20]);
}

#[test]
fn a_cut_document_gives_what_came_before() {
    let whole = std::fs::read(fixture("rocprofv3.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.json");
    let mut best = 0;
    for length in (0..whole.len()).step_by(499) {
        std::fs::write(&path, &whole[..length]).unwrap();
        match imported(&path) {
            Ok((trace, _)) => {
                assert!(
                    trace
                        .manifest
                        .losses
                        .iter()
                        .any(|loss| loss.kind.as_str() == "ends of documents")
                );
                best = best.max(trace.tables.dispatches.queue.len());
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    assert_eq!(best, 3);
}

#[test]
fn what_nests_too_deep_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.json");
    let deep = format!(
        "{{\"rocprofiler-sdk-tool\": [{{\"agents\": {}",
        "[".repeat(1 << 20)
    );
    std::fs::write(&path, deep).unwrap();
    assert!(
        imported(&path)
            .unwrap_err()
            .to_string()
            .contains("rocprofv3's JSON")
    );
}

#[test]
fn databases_of_one_machine_make_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trace.gapscope");
    let inputs = [fixture("rocpd.db"), fixture("rocpd.db")];
    import(&inputs, &output, &Options::default(), &|_, _| {}).unwrap();
    let (trace, _) = gapscope_trace::read(&output, &gapscope_trace::Selection::all()).unwrap();
    assert_eq!(trace.tables.dispatches.queue.len(), 6);
}

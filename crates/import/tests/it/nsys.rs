//! Tests the import of a real export of Nsight Systems, and of planted rows.

use crate::database::database;
use crate::imported::{Rows, fixture, import, import_bytes, import_with, losses, path, planted};
use gapscope_import::Options;
use gapscope_trace::optional::Optional;
use gapscope_trace::tables::{
    HostCallKind, MarkerScope, MemoryPlace, SubmissionKind, TransferKind,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Returns the number of rows of work, and the sum of their durations.
fn sum(durations: &Optional<i64>) -> (usize, i64) {
    (durations.len(), durations.iter().flatten().sum())
}

// The expected numbers are those of `sqlite3`: SELECT count(*), sum("end" - start) of each table.
#[test]
fn a_real_export_has_the_counts_and_times_that_sqlite_finds() {
    let import = import(&fixture("nsys-2025.5.2.sqlite")).unwrap();
    let (trace, imported) = (import.trace, import.imported);
    let tables = &trace.tables;
    assert_eq!(sum(&tables.dispatches.duration_ns), (3, 3840));
    assert_eq!(sum(&tables.opaque_work.duration_ns), (2, 3104));
    assert_eq!(sum(&tables.transfers.duration_ns), (1, 864));
    assert_eq!(tables.transfers.bytes, [Some(4096)]);
    assert_eq!(tables.transfers.kind, [TransferKind::HostToDevice]);
    assert_eq!(imported.timed_work, 6);
    assert_eq!(imported.command_buffers, 2);
    // There are 33 calls, of which six launched work, and 35 overheads.
    assert_eq!(tables.submissions.id.len(), 6);
    assert_eq!(tables.host_calls.count.iter().sum::<u32>(), 33 - 6 + 35);
    let os = tables.markers.domain.iter();
    let os = os.filter(|domain| domain.as_deref() == Some("OS runtime"));
    assert_eq!(os.count(), 654);
    let device = &trace.manifest.devices[0];
    assert_eq!(device.name, "NVIDIA GeForce RTX 3060");
    let limits = device.limits.as_ref().unwrap();
    assert_eq!(limits.multiprocessors, Some(28));
    assert_eq!(limits.compute_capability.as_deref(), Some("8.6"));
    for queue in &trace.manifest.queues {
        assert_eq!(queue.kind.as_deref(), Some("blocking"));
    }
    assert_eq!(
        losses(&trace),
        ["48 rows of OSRT_FILE_ACCESS_EVENTS", "1 waits"]
    );
}

#[test]
fn texts_of_every_length_are_whole() {
    let trace = import(&fixture("texts.sqlite")).unwrap().trace;
    let texts = &trace.tables.labels.text;
    assert_eq!(texts.len(), 59 + 120 + 170 + 2);
    for text in texts {
        let length: usize = match text.split_once(':') {
            Some((length, rest)) if rest.chars().all(|c| c.is_ascii_lowercase()) => {
                length.parse().unwrap()
            }
            // The cut removed the length itself.
            _ => text.len(),
        };
        assert_eq!(text.len(), length, "{}", &text[..text.len().min(40)]);
    }
}

const TWO_PROCESSES: &str = r#"
StringIds id value
[1, "void scale<float>(float*, int)"]
[2, "_Z5scaleIfEvPfi"]
[3, "cudaLaunchKernel_v7000"]
[4, "cudaMemcpyAsync_v3020"]
[5, "cudaStreamSynchronize_v3020"]
[6, "main"]
[7, "aten::mm, seq = 12, op_id = 7, sizes = [[2, 2], []]"]
CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue
[100, 110, 117440513, 5, 3, 0]
[100, 111, 134217729, 5, 3, 0]
[120, 125, 117440513, 6, 4, 0]
[130, 400, 117440513, 7, 5, 0]
[140, 141, 117440513, 8, 3, 2]
[150, 151, 117440513, 9, 3, 0]
CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName mangledName gridX gridY gridZ blockX blockY blockZ registersPerThread staticSharedMemory dynamicSharedMemory graphNodeId
[200, 250, 0, 1, 7, 5, 117440512, 1, 2, 4, 2, 1, 128, 1, 1, 32, 64, 16, null]
[205, 265, 0, 1, 7, 5, 134217728, 1, 2, 8, 1, 1, 128, 1, 1, 32, 64, 16, null]
CUPTI_ACTIVITY_KIND_MEMCPY start end deviceId contextId streamId correlationId globalPid bytes copyKind srcKind dstKind
[260, 300, 0, 1, 13, 6, 117440512, 4096, 2, 2, 0]
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start end deviceId contextId streamId correlationId globalPid syncType eventId
[130, 400, 0, 1, 7, 7, 117440512, 3, 0]
[112, 113, 3, 1, 13, 55, 117440512, 2, 99]
CUPTI_ACTIVITY_KIND_CUDA_EVENT deviceId contextId streamId correlationId globalPid eventId
[0, 1, 7, 5, 117440512, 98]
NVTX_EVENTS start end eventType category text globalTid textId domainId uint64Value jsonText
[0, null, 75, null, "NCCL", 117440513, null, 1, null, null]
[0, null, 33, 3, "loss", 117440513, null, 0, null, null]
[90, 500, 59, 3, "step", 117440513, null, 0, 12, null]
[95, 119, 59, null, null, 117440513, 7, 0, null, null]
[96, 115, 59, null, "ncclAllReduce", 117440513, null, 1, null, "{\"Bytes\": 64}"]
[500, null, 34, null, "done", 117440513, null, 0, null, null]
[50, 60, 60, null, "anywhere", 117440513, null, 0, null, null]
TARGET_INFO_CUDA_STREAM streamId processId contextId priority flag
[13, 7, 1, 4294967295, 2]
TARGET_INFO_CUDA_CONTEXT_INFO nullStreamId processId contextId
[7, 7, 1]
ThreadNames nameId globalTid
[6, 117440513]
SCHED_EVENTS start cpu
[1, 2]
[2, 3]
"#;

#[test]
fn rows_are_joined_by_process_and_correlation() {
    let trace = planted(TWO_PROCESSES);
    let (tables, manifest) = (&trace.tables, &trace.manifest);
    let pids: BTreeMap<_, _> = manifest.processes.iter().map(|p| (p.id, p.pid)).collect();
    assert_eq!(pids.values().copied().collect::<Vec<_>>(), [7, 8]);
    assert_eq!(tables.dispatches.start_ns, [Some(200), Some(205)]);
    assert_eq!(tables.dispatches.groups_x, [Some(4), Some(8)]);
    let submissions: Vec<_> = tables.submissions.iter().collect();
    let submission = |row: usize| {
        let id = tables.dispatches.submission.at(row).unwrap();
        submissions.iter().find(|row| row.id == id).unwrap()
    };
    let (first, second) = (submission(0), submission(1));
    assert_eq!((pids[&first.process], pids[&second.process]), (7, 8));
    assert_eq!(second.duration_ns, 11);
    assert_eq!(first.kind, SubmissionKind::Kernel);
    assert_eq!(first.function.as_deref(), Some("cudaLaunchKernel"));
    let kernel = tables.kernels.iter().next().unwrap();
    assert_eq!(&*kernel.name, "void scale<float>(float*, int)");
    assert_eq!(kernel.entry_point.as_deref(), Some("_Z5scaleIfEvPfi"));
    assert_eq!((kernel.local_x, kernel.registers), (Some(128), Some(32)));
    assert_eq!(kernel.dynamic_shared_bytes, Some(16));
    assert_eq!(tables.transfers.kind, [TransferKind::DeviceToHost]);
    assert_eq!(tables.transfers.host_memory, [Some(MemoryPlace::Pageable)]);
    // The wait has its stream, although its row names another device.
    let mut calls = tables.host_calls.iter();
    let wait = calls.find(|row| row.call == HostCallKind::WaitQueueIdle);
    assert_eq!(wait.unwrap().queue, Some(tables.dispatches.queue[0]));
    assert_eq!(manifest.devices.len(), 2);
    // A failed call launched nothing; a successful call without work is counted.
    assert_eq!(losses(&trace), ["1 dispatches", "2 rows of SCHED_EVENTS"]);
    let mut queues = manifest.queues.iter();
    let stream = queues.find(|queue| queue.index == 13).unwrap();
    assert_eq!(stream.kind.as_deref(), Some("non-blocking"));
    assert_eq!(stream.priority, Some(-1));
    assert!(manifest.threads.iter().any(|thread| thread.name == "main"));
}

#[test]
fn labels_have_domains_details_and_the_work_inside_them() {
    let trace = planted(TWO_PROCESSES);
    let tables = &trace.tables;
    let of = |label| path(&trace, label);
    // As in traces of gapscope, labels nest inside their domain, and the innermost of all counts.
    assert_eq!(of(tables.dispatches.label.at(0)), "ncclAllReduce");
    assert_eq!(tables.dispatches.label.at(1), None);
    assert_eq!(of(tables.transfers.label.at(0)), "step");
    let marker = |text: &str| {
        let mut markers = tables.markers.iter();
        let marker = markers.find(|marker| of(Some(marker.label)).ends_with(text));
        marker.unwrap()
    };
    let step = marker("step");
    assert_eq!(step.category.as_deref(), Some("loss"));
    assert_eq!(step.payload.as_deref(), Some("12"));
    assert_eq!(
        marker("step / aten::mm").payload.as_deref(),
        Some("seq=12, op_id=7, sizes=[[2, 2], []]")
    );
    let reduce = marker("ncclAllReduce");
    assert_eq!(reduce.domain.as_deref(), Some("NCCL"));
    assert_eq!(reduce.payload.as_deref(), Some("Bytes=64"));
    assert_eq!(marker("done").duration_ns, Some(0));
    assert_eq!(marker("anywhere").scope, MarkerScope::Process);
}

#[test]
fn a_stream_waits_for_the_last_work_before_the_event() {
    let trace = planted(
        r#"
StringIds id value
[1, "cuLaunchKernel"]
CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue
[10, 11, 117440513, 1, 1, 0]
[20, 21, 117440513, 2, 1, 0]
[50, 51, 117440513, 5, 1, 0]
CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid
[100, 110, 0, 1, 7, 1, 117440512]
[110, 120, 0, 1, 7, 2, 117440512]
[120, 130, 0, 1, 8, 5, 117440512]
CUPTI_ACTIVITY_KIND_CUDA_EVENT deviceId contextId streamId correlationId globalPid eventId
[0, 1, 7, 3, 117440512, 98]
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start end deviceId contextId streamId correlationId globalPid syncType eventId
[30, 31, 0, 1, 8, 4, 117440512, 2, 98]
"#,
    );
    let dependencies = &trace.tables.dependencies;
    let id = |row: usize| trace.tables.dispatches.submission.at(row).unwrap();
    assert_eq!(dependencies.submission, [id(2)]);
    assert_eq!(dependencies.waits_for, [Some(id(1))]);
}

#[test]
fn a_wait_of_the_host_is_for_the_last_work_before_it_or_before_its_event() {
    let trace = planted(
        r#"
StringIds id value
[1, "cuLaunchKernel"]
[2, "cudaStreamSynchronize_v3020"]
[3, "cudaEventSynchronize_v3020"]
[4, "cudaDeviceSynchronize_v3020"]
CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue
[10, 11, 117440513, 1, 1, 0]
[20, 21, 117440513, 2, 1, 0]
[40, 41, 117440513, 4, 1, 0]
[50, 111, 117440513, 5, 3, 0]
[120, 131, 117440513, 6, 2, 0]
[140, 141, 117440513, 7, 2, 0]
[150, 151, 117440513, 8, 3, 0]
[160, 161, 117440513, 9, 4, 0]
CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid
[100, 110, 0, 1, 7, 1, 117440512]
[105, 120, 0, 1, 8, 2, 117440512]
[110, 130, 0, 1, 7, 4, 117440512]
CUPTI_ACTIVITY_KIND_CUDA_EVENT deviceId contextId streamId correlationId globalPid eventId
[0, 1, 7, 3, 117440512, 98]
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start end deviceId contextId streamId correlationId globalPid syncType eventId
[50, 111, 0, 1, 4294967295, 5, 117440512, 1, 98]
[120, 131, 0, 1, 7, 6, 117440512, 3, 0]
[140, 141, 0, 1, 8, 7, 117440512, 3, 0]
[150, 151, 0, 1, 4294967295, 8, 117440512, 1, 77]
[160, 161, 0, 1, 4294967295, 9, 117440512, 4, 0]
"#,
    );
    let tables = &trace.tables;
    let work = |row: usize| {
        (
            tables.dispatches.submission.at(row),
            Some(tables.dispatches.queue[row]),
        )
    };
    let mut waits: Vec<_> = tables.host_calls.iter().collect();
    waits.sort_by_key(|wait| wait.start_ns);
    let waits: Vec<_> = waits
        .iter()
        .map(|wait| (wait.waits_for, wait.queue))
        .collect();
    // Nothing says where event 77 was recorded, and a wait for a device is for all streams.
    assert_eq!(
        waits,
        [work(0), work(2), work(1), (None, None), (None, None)]
    );
}

#[test]
fn a_wait_goes_through_a_stream_without_work() {
    let trace = planted(
        r#"
StringIds id value
[1, "cuLaunchKernel"]
CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue
[10, 11, 117440513, 1, 1, 0]
[50, 51, 117440513, 6, 1, 0]
CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid
[100, 110, 1, 1, 7, 1, 117440512]
[120, 130, 1, 1, 8, 6, 117440512]
CUPTI_ACTIVITY_KIND_CUDA_EVENT deviceId contextId streamId correlationId globalPid eventId
[1, 1, 7, 2, 117440512, 98]
[1, 1, 9, 4, 117440512, 99]
CUPTI_ACTIVITY_KIND_SYNCHRONIZATION start end deviceId contextId streamId correlationId globalPid syncType eventId
[30, 31, 0, 1, 9, 3, 117440512, 2, 98]
[40, 41, 0, 1, 8, 5, 117440512, 2, 99]
"#,
    );
    let id = |row: usize| trace.tables.dispatches.submission.at(row).unwrap();
    assert_eq!(trace.tables.dependencies.submission, [id(1)]);
    assert_eq!(trace.tables.dependencies.waits_for, [Some(id(0))]);
    assert_eq!(trace.manifest.devices.len(), 1);
}

#[test]
fn impossible_values_are_losses() {
    let trace = planted(
        r#"
StringIds id value
[1, "cudaLaunchKernel"]
["x", {"blob": 3}]
CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId
[10, 5, 117440513, 1, 1]
[null, 5, 117440513, 1, 1]
[-9223372036854775808, 9223372036854775807, 117440513, 1, 1]
["a", "b", "c", "d", "e"]
[10, 12, 117440513, -3, 1]
CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid gridX
[100, 90, -1, 99999999999, 7, 1, 117440512, -5]
[9223372036854775807, 9223372036854775807, 0, 1, 7, 1, 117440512, 1]
[200, 210, 0, 1, 7, null, null, 1]
NVTX_EVENTS start end eventType text globalTid
[10, 5, 59, "backwards", 117440513]
[10, 20, 59, {"blob": 5}, 117440513]
[10, 30, 77, "odd", 117440513]
[11, null, 59, "open", 117440513]
"#,
    );
    assert_eq!(trace.tables.dispatches.start_ns, [Some(200), None, None]);
    assert_eq!(trace.tables.dispatches.groups_x, [Some(1), None, Some(1)]);
    assert_eq!(
        losses(&trace),
        [
            "2 dispatch times",
            "1 ends of labels",
            "4 host calls",
            "3 host calls of GPU work",
            "1 labels",
            "1 rows of NVTX_EVENTS"
        ]
    );
}

#[test]
fn one_process_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.sqlite");
    std::fs::write(&path, database(TWO_PROCESSES)).unwrap();
    let options = Options {
        pid: Some(8),
        ..Options::default()
    };
    let trace = import_with(&path, &options).unwrap().trace;
    assert_eq!(trace.tables.dispatches.start_ns, [Some(205)]);
    assert_eq!(trace.manifest.processes.len(), 1);
}

fn sentence(path: &Path) -> String {
    import(path).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_imported_is_said_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let report = file("a.nsys-rep", b"anything");
    assert!(sentence(&report).contains("nsys export --type sqlite"));
    let empty = file(
        "empty.sqlite",
        &database("StringIds id value\nMETA_DATA_EXPORT name value"),
    );
    assert!(sentence(&empty).contains("has no CUDA work, calls or labels"));
    let old = file(
        "old.sqlite",
        &database(
            "StringIds id value\nTARGET_INFO_SYSTEM_ENV name value\nSCHED_EVENTS start cpu\n[1, 2]",
        ),
    );
    assert!(sentence(&old).contains("has no CUDA work, calls or labels"));
    let written = file("written.sqlite", &database(TWO_PROCESSES));
    file("written.sqlite-wal", &[1; 100]);
    assert!(sentence(&written).contains("wal_checkpoint"));
    let changed = file("changed.sqlite", &database(TWO_PROCESSES));
    file(
        "changed.sqlite-journal",
        &[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7, 0],
    );
    assert!(sentence(&changed).contains("in the middle of a change"));
    let mut wide = database(TWO_PROCESSES);
    wide[59] = 2;
    assert!(sentence(&file("wide.sqlite", &wide)).contains("finds no tables of"));
}

#[test]
fn cut_and_damaged_files_give_what_there_is() {
    let whole = database(TWO_PROCESSES);
    let mut seen = (0, 0);
    let mut attempt = |bytes: &[u8]| match import_bytes("export.sqlite", bytes) {
        Ok(_) => seen.0 += 1,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            seen.1 += 1;
        }
    };
    for length in (0..whole.len()).step_by(6007) {
        attempt(&whole[..length]);
    }
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..40 {
        let mut bytes = whole.clone();
        for _ in 0..rng.usize(1..20) {
            let at = rng.usize(0..bytes.len());
            bytes[at] = rng.u8(..);
        }
        attempt(&bytes);
    }
    assert!(seen.0 > 5 && seen.1 > 2, "{seen:?}");
}

#[test]
fn a_cut_file_says_how_much_is_missing() {
    let whole = std::fs::read(fixture("nsys-2025.5.2.sqlite")).unwrap();
    let cut = import_bytes("cut.sqlite", &whole[..whole.len() * 3 / 4]);
    let trace = cut.unwrap().trace;
    let start = import_bytes("start.sqlite", &database(TWO_PROCESSES)[..8192]);
    let error = start.unwrap_err().to_string();
    assert!(error.contains("is cut or damaged"), "{error}");
    let losses = losses(&trace);
    let mut pages = losses.iter();
    assert!(
        pages.any(|loss| loss.ends_with("pages of the database")),
        "{losses:?}"
    );
}

/// A program with managed memory: pages move to the device while a kernel runs (copies of kind 11, in any stream, with
/// no correlation), and to the host between kernels (kind 12). The column of the GPUs' ids is that of exports of 2021.
const MANAGED: &str = r#"
StringIds id value
[1, "add(float*)"]
[2, "cudaLaunchKernel_v7000"]
TARGET_INFO_GPU deviceId name
[0, "Tesla V100"]
CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue
[100, 110, 117440513, 5, 2, 0]
[900, 910, 117440513, 6, 2, 0]
CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName
[120, 500, 0, 1, 7, 5, 117440512, 1]
[920, 990, 0, 1, 7, 6, 117440512, 1]
CUPTI_ACTIVITY_KIND_MEMCPY start end deviceId contextId streamId correlationId globalPid bytes copyKind srcKind dstKind
[150, 160, 0, 0, 0, 0, null, 65536, 11, 0, 2]
[600, 620, 0, 1, 0, 0, 117440512, 4096, 12, 2, 0]
[640, 650, 0, 1, 0, 0, 117440512, 8192, 13, 2, 2]
"#;

#[test]
fn page_moves_of_managed_memory_have_a_queue_of_their_own_and_no_call() {
    let trace = planted(MANAGED);
    assert_eq!(losses(&trace), Vec::<String>::new());
    let devices: Vec<_> = trace
        .manifest
        .devices
        .iter()
        .map(|device| &*device.name)
        .collect();
    assert_eq!(devices, ["Tesla V100"]);
    let transfers = &trace.tables.transfers;
    assert_eq!(transfers.host_memory, [Some(MemoryPlace::Managed); 3]);
    assert_eq!(
        transfers.kind,
        [
            TransferKind::HostToDevice,
            TransferKind::DeviceToHost,
            TransferKind::PeerToPeer,
        ]
    );
    assert_eq!(transfers.submission, [None, None, None]);
    let queues = &trace.manifest.queues;
    let names: Vec<_> = queues.iter().map(|queue| queue.name.as_deref()).collect();
    assert_eq!(
        names,
        [None, Some("managed memory")],
        "there is no stream 0"
    );
}

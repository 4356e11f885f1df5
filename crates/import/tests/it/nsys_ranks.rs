//! Tests exports of Nsight Systems of several ranks.

use crate::database::database;
use gapscope_import::{Options, import};
use gapscope_trace::{Selection, Trace, read};

/// The rows of an export.
const EXPORT: &str = "StringIds id value\n[1, \"scale\"]\n[2, \"cudaLaunchKernel\"]\n\
         CUPTI_ACTIVITY_KIND_KERNEL start end deviceId contextId streamId correlationId globalPid demangledName\n\
         [100, 150, 0, 1, 7, 5, 117440512, 1]\n\
         CUPTI_ACTIVITY_KIND_RUNTIME start end globalTid correlationId nameId returnValue\n\
         [90, 95, 117440513, 5, 2, 0]\n\
         NVTX_EVENTS start end eventType text globalTid\n\
         [80, 200, 59, \"step\", 117440513]\n\
         TARGET_INFO_GPU_METRICS typeId metricId metricName\n[1, 1, \"SMs Active [Throughput %]\"]\n\
         GPU_METRICS timestamp typeId metricId value\n[110, 1, 1, 50]\n";

/// Returns an export with a kernel 100 ns after the start of a session with this wall-clock time.
fn export(session_ns: Option<i64>) -> Vec<u8> {
    let mut text = String::from(EXPORT);
    if let Some(session_ns) = session_ns {
        text += &format!("TARGET_INFO_SESSION_START_TIME utcEpochNs\n[{session_ns}]\n");
    }
    database(&text)
}

/// Imports the sessions and returns the trace of the whole and those of the ranks.
fn traces(sessions: &[Option<i64>]) -> (Trace, Vec<Trace>) {
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<_> = (0..)
        .zip(sessions)
        .map(|(number, session_ns)| {
            let path = folder.path().join(format!("{number}.sqlite"));
            std::fs::write(&path, export(*session_ns)).unwrap();
            path
        })
        .collect();
    let output = folder.path().join("ranks.gapscope");
    let imported = import(&files, &output, &Options::default(), &|_, _| {}).unwrap();
    assert_eq!(imported.timed_work, sessions.len() as u64);
    let trace = |path: &std::path::Path| {
        let (trace, diagnostics) = read(path, &Selection::all()).unwrap();
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        trace
    };
    let ranks = (0..sessions.len()).map(|rank| trace(&output.join(format!("rank={rank}"))));
    (trace(&output), ranks.collect())
}

#[test]
fn several_exports_are_ranks_of_one_axis() {
    let zero = 1_700_000_000_000_000_000;
    let (whole, ranks) = traces(&[Some(zero + 500), Some(zero)]);
    assert_eq!(whole.manifest.ranks, [0, 1]);
    assert!(whole.manifest.notes[0].contains("in the order of the files"));
    for (number, trace) in (0..).zip(&ranks) {
        let rank = trace.manifest.rank.unwrap();
        assert_eq!((rank.rank, rank.world_size), (number, 2));
    }
    let tables = &ranks[0].tables;
    assert_eq!(tables.dispatches.start_ns, [Some(600)]);
    assert_eq!(tables.submissions.start_ns, [590]);
    assert_eq!(tables.markers.start_ns, [Some(580)]);
    assert_eq!(tables.markers.duration_ns, [Some(120)]);
    assert_eq!(tables.counter_values.start_ns, [610]);
    assert_eq!(tables.dispatches.label, [Some(tables.markers.label[0])]);
    assert_eq!(ranks[1].tables.dispatches.start_ns, [Some(100)]);
    let unix = |trace: &Trace| trace.manifest.start_unix_ns;
    assert_eq!(
        (unix(&ranks[0]), unix(&ranks[1])),
        (Some(zero + 580), Some(zero + 80))
    );
}

#[test]
fn ranks_whose_sessions_cannot_be_related_are_said_to_be() {
    for other in [None, Some(i64::MIN)] {
        let (whole, ranks) = traces(&[Some(1_700_000_000_000_000_000), other]);
        assert!(whole.manifest.notes[0].contains("cannot be compared"));
        for trace in &ranks {
            assert_eq!(trace.tables.dispatches.start_ns, [Some(100)]);
        }
    }
}

#[test]
fn exports_of_one_process_that_follow_each_other_are_no_ranks() {
    let zero: i64 = 1_700_000_000_000_000_000;
    let import_pair = |starts: [i64; 2], pids: [u32; 2], ranks: Vec<u32>| {
        let folder = tempfile::tempdir().unwrap();
        let paths = [0, 1].map(|index: usize| {
            let path = folder.path().join(format!("run.{index}.sqlite"));
            let (start, pid) = (starts[index], pids[index]);
            let more = format!(
                "ANALYSIS_DETAILS duration\n[1000]\nTARGET_INFO_CUDA_DEVICE gpuId cudaId pid\n[0, 0, {pid}]\n\
                 TARGET_INFO_SESSION_START_TIME utcEpochNs\n[{start}]\n"
            );
            std::fs::write(&path, database(&(EXPORT.to_owned() + &more))).unwrap();
            path
        });
        let options = Options {
            ranks,
            ..Options::default()
        };
        let output = folder.path().join("out.gapscope");
        import(&paths, &output, &options, &|_, _| {}).map(drop)
    };
    let error = import_pair([zero + 5000, zero], [7, 7], vec![]).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("are no ranks: both are of process 7"),
        "{error}"
    );
    // Ranks in containers may have one pid, and other processes may follow each other.
    import_pair([zero + 500, zero], [7, 7], vec![]).unwrap();
    import_pair([zero + 5000, zero], [7, 8], vec![]).unwrap();
    import_pair([zero + 5000, zero], [7, 7], vec![0, 1]).unwrap();
}

//! Tests that traces of many producers come back from our own exports to Chrome's JSON and to Perfetto as they were:
//! with all rows, losses and notes, and with equal findings.

use crate::Exports;
use crate::imported::{Rows, fixture};
use gapscope_analysis::{Findings, Options as Analyses};
use gapscope_export::{Exported, Joined, JoinedFormat, Scene, chrome, perfetto};
use gapscope_import::{Options, import};
use gapscope_trace::embedded::can_embed_ranks;
use gapscope_trace::manifest::Rank;
use gapscope_trace::tables::Table;
use gapscope_trace::{Selection, Trace, TraceWriter, rank_folders, read};
use stand_in_xctrace::{Quirks, Scene as Planted};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

type WriteExport = fn(&Scene, &mut Vec<u8>) -> std::io::Result<Exported>;

/// The formats that a trace comes back from, with the names of their files.
const FORMATS: [(&str, WriteExport); 2] = [
    ("own.json", chrome::write),
    ("own.pftrace", perfetto::write),
];

/// Returns the path of a file of the repository.
fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

fn whole(folder: &Path) -> Trace {
    read(folder, &Selection::all()).unwrap().0
}

/// Writes a trace as `NAME.gapscope` in a folder.
fn recording(folder: &Path, name: &str, text: &str) -> PathBuf {
    let mut trace = Trace::from_text(text).unwrap();
    let path = folder.join(format!("{name}.gapscope"));
    let mut writer = TraceWriter::create(&path).unwrap();
    writer.tables_mut().append(&mut trace.tables);
    writer.finish(&trace.manifest).unwrap();
    path
}

/// Imports a file of another tool as `NAME.gapscope` in a folder.
fn foreign(folder: &Path, name: &str, input: &Path) -> PathBuf {
    let path = folder.join(format!("{name}.gapscope"));
    import(&[input.to_owned()], &path, &Options::default(), &|_, _| {}).unwrap();
    path
}

fn bytes(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Returns the traces of all producers, each with its name.
fn traces(folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let text = |name: &str| {
        let path = file(&format!("crates/report/tests/traces/{name}.txt"));
        recording(folder, name, &std::fs::read_to_string(path).unwrap())
    };
    let foreign = |name: &str, path: PathBuf| foreign(folder, name, &path);
    let proton = b"[{\"name\":\"mm\",\"cat\":\"kernel\",\"ph\":\"X\",\"ts\":0.5,\"dur\":40.125,\"tid\":0,\"args\":{\"call_stack\":[\"ROOT\",\"mm\"]}}]";
    let ggml = "ggml_vulkan: Found 1 Vulkan devices:\nggml_vulkan: 0 = NVIDIA H200 (NVIDIA) | uma: 0\n\
        ----------------\nVulkan Timings:\nADD: 3 x 4.1 us\nTotal time: 12.3 us.\n";
    let planted = Exports::from_scene(&Planted::labelled_chain(6), &Quirks::default());
    vec![
        ("a recording of Vulkan", file("fixtures/v3.gapscope")),
        (
            "a recording of Vulkan by an old version",
            file("fixtures/v2.gapscope"),
        ),
        ("command buffers alone", text("command_buffers_only")),
        ("a recording of CUDA", text("cuda_waits")),
        ("two GPUs", text("two_gpus")),
        ("samples of threads", text("other_threads")),
        (
            "Kineto, H100",
            foreign("h100", file("fixtures/kineto/h100.json")),
        ),
        (
            "Kineto, 2021",
            foreign("v100", file("fixtures/kineto/v100_old.json")),
        ),
        (
            "Nsight Systems",
            foreign("nsys", fixture("nsys-2025.5.2.sqlite")),
        ),
        ("rocpd", foreign("rocpd", fixture("rocpd.db"))),
        ("rocprofv3", foreign("rocprofv3", fixture("rocprofv3.json"))),
        (
            "Perfetto",
            foreign(
                "perfetto",
                file("crates/import/tests/perfetto/gpu_render_stages_flow.pftrace"),
            ),
        ),
        (
            "XSpace",
            foreign(
                "xspace",
                file("crates/import/tests/xplane/jax_te_fused_attn.xplane.pb.gz"),
            ),
        ),
        (
            "ggml",
            foreign("ggml", bytes(folder, "stderr.log", ggml.as_bytes())),
        ),
        (
            "Instruments",
            foreign("instruments", planted.folder.path().to_owned()),
        ),
        (
            "host functions and waits for other programs",
            recording(folder, "put", PUT_ON_STREAMS),
        ),
        (
            "Proton",
            foreign("proton", bytes(folder, "proton.json", proton)),
        ),
        (
            "Kineto with damage, impossible times and a cut end",
            foreign("damaged", bytes(folder, "damaged.json", &damaged_kineto())),
        ),
        (
            "rocprofv3 with values of other types",
            foreign("odd", bytes(folder, "odd.json", odd_rocprofv3().as_bytes())),
        ),
    ]
}

/// Returns a file of Kineto with a part that is no JSON, impossible times and without its end.
fn damaged_kineto() -> Vec<u8> {
    let whole = std::fs::read_to_string(file("fixtures/kineto/h100.json")).unwrap();
    let zero = whole.replacen("\"ts\": ", "\"ts\": 0, \"x\": ", 3);
    let negative = zero.replacen("\"dur\": ", "\"dur\": -", 5);
    let broken = negative.replacen("},\n", "},\n{\"name\": \"a\" \"b\"},\n", 1);
    assert!(broken.len() > whole.len());
    broken.as_bytes()[..broken.len() * 9 / 10].to_vec()
}

/// Returns a document of rocprofv3 with values of other types.
fn odd_rocprofv3() -> String {
    let whole = std::fs::read_to_string(fixture("rocprofv3.json")).unwrap();
    let odd = whole.replacen("\"end_timestamp\": ", "\"end_timestamp\": {}, \"x\": ", 2);
    odd.replace("\"thread_id\": ", "\"thread_id\": [], \"x\": ")
}

/// Returns the export of a trace, with the trace behind the drawing.
fn exported(path: &Path, write: WriteExport) -> Vec<u8> {
    let trace = whole(path);
    let mut scene = Scene::new(&trace);
    assert!(gapscope_trace::embedded::can_embed(path));
    scene.embed(path);
    let mut out = Vec::new();
    write(&scene, &mut out).unwrap();
    out
}

fn import_bytes(folder: &Path, name: &str, content: &[u8]) -> Trace {
    let output = folder.join("again.gapscope");
    let _ = std::fs::remove_dir_all(&output);
    let input = bytes(folder, name, content);
    import(&[input], &output, &Options::default(), &|_, _| {}).unwrap();
    whole(&output)
}

/// A stranger's trace may have a link in place of a table, and its export must not take the file behind the link along.
#[cfg(unix)]
#[test]
fn a_trace_with_a_link_in_place_of_a_table_is_not_embedded() {
    let folder = tempfile::tempdir().unwrap();
    // The last trace is imported into the folder, and no fixture.
    let (_, path) = traces(folder.path()).pop().unwrap();
    assert!(path.starts_with(folder.path()));
    assert!(gapscope_trace::embedded::can_embed(&path));
    let outside = bytes(folder.path(), "secret", b"of the reader");
    let table = path.join("labels.parquet");
    let _ = std::fs::remove_file(&table);
    std::os::unix::fs::symlink(outside, table).unwrap();
    assert!(!gapscope_trace::embedded::can_embed(&path));
}

#[test]
fn traces_of_all_producers_come_back_with_their_rows_losses_and_findings() {
    let folder = tempfile::tempdir().unwrap();
    for (name, path) in traces(folder.path()) {
        let before = whole(&path);
        let findings = serde_json::to_value(Findings::new(&before, &Analyses::default())).unwrap();
        for (file, write) in FORMATS {
            let after = import_bytes(folder.path(), file, &exported(&path, write));
            assert_eq!(after.manifest, before.manifest, "{name}, {file}");
            assert_eq!(after.tables, before.tables, "{name}, {file}");
            let again = serde_json::to_value(Findings::new(&after, &Analyses::default())).unwrap();
            assert_eq!(again, findings, "{name}, {file}");
        }
    }
}

/// Writes a trace of several ranks, each a recording of its own, and returns its folder.
fn several_ranks(folder: &Path, texts: &[(u32, String)]) -> PathBuf {
    let root = folder.join("ranks.gapscope");
    let mut manifest = Trace::from_text("manifest start_ns=0 end_ns=1ms")
        .unwrap()
        .manifest;
    manifest.complete = true;
    manifest.ranks = texts.iter().map(|(rank, _)| *rank).collect();
    TraceWriter::create(&root)
        .unwrap()
        .finish(&manifest)
        .unwrap();
    for (rank, text) in texts {
        let mut trace = Trace::from_text(text).unwrap();
        trace.manifest.rank = Some(Rank {
            rank: *rank,
            local_rank: None,
            world_size: 8,
        });
        let mut writer = TraceWriter::create(&root.join(format!("rank={rank}"))).unwrap();
        writer.tables_mut().append(&mut trace.tables);
        writer.finish(&trace.manifest).unwrap();
    }
    root
}

/// Returns the manifest, the rows and the findings of a trace and of each of its ranks.
fn everything(root: &Path) -> Vec<(Option<u32>, Trace, serde_json::Value)> {
    let ranks = rank_folders(root).into_iter();
    let folders = ranks.map(|(rank, path)| (Some(rank), path));
    std::iter::once((None, root.to_owned()))
        .chain(folders)
        .map(|(rank, path)| {
            let trace = whole(&path);
            let findings = Findings::new(&trace, &Analyses::default());
            (rank, trace, serde_json::to_value(findings).unwrap())
        })
        .collect()
}

/// Returns the recordings of three ranks, of which the last one is late.
fn late_rank() -> Vec<(u32, String)> {
    [0, 1, 7]
        .map(|rank: u32| {
            let late = LAUNCHES.replace("start_ns=126us", "start_ns=326us");
            let text = if rank == 7 { late.as_str() } else { LAUNCHES };
            (rank, text.to_owned())
        })
        .into()
}

#[test]
fn several_ranks_in_one_file_come_back_as_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let root = several_ranks(folder.path(), &late_rank());
    let before = everything(&root);
    assert_eq!(before.len(), 4);
    for (name, format) in [
        ("all.json", JoinedFormat::Chrome),
        ("all.pftrace", JoinedFormat::Perfetto),
    ] {
        let mut out = Vec::new();
        let mut joined = Joined::begin(format, 0, 1_000_000, &mut out).unwrap();
        assert!(can_embed_ranks(&root));
        joined.embed(&root).unwrap();
        for (rank, trace, _) in &before[1..] {
            let name = format!("rank {}", rank.unwrap());
            joined.add(&name, &mut Scene::new(trace)).unwrap();
        }
        joined.end().unwrap();
        let output = folder.path().join(format!("{name}.gapscope"));
        let input = bytes(folder.path(), name, &out);
        let imported = import(&[input], &output, &Options::default(), &|_, _| {}).unwrap();
        assert_eq!(imported.timed_work, 6);
        assert!(everything(&output) == before, "{name}");
    }
}

#[test]
fn documents_of_several_ranks_come_back_as_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let document = |rank: u32| {
        let events = (0..5).map(|at| {
            let (call, work) = (100 + at * 100, 120 + at * 100 + rank * 30);
            format!(
                r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{call},"dur":5,"args":{{"correlation":{at}1}}}},
                {{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":{work},"dur":60,"args":{{"device":0,"stream":7,"correlation":{at}1}}}}"#
            )
        });
        let events: Vec<String> = events.collect();
        format!(
            r#"{{"schemaVersion":1,"distributedInfo":{{"rank":{rank},"world_size":2}},"traceEvents":[{}]}}"#,
            events.join(",")
        )
    };
    let text = [document(0), document(1)].join("\n");
    let root = foreign(
        folder.path(),
        "documents",
        &bytes(folder.path(), "two.json", text.as_bytes()),
    );
    let before = everything(&root);
    assert_eq!(before.len(), 3);
    let mut out = Vec::new();
    let mut joined = Joined::begin(JoinedFormat::Perfetto, 0, 1_000_000, &mut out).unwrap();
    joined.embed(&root).unwrap();
    for (rank, trace, _) in &before[1..] {
        let name = format!("rank {}", rank.unwrap());
        joined.add(&name, &mut Scene::new(trace)).unwrap();
    }
    joined.end().unwrap();
    let output = foreign(
        folder.path(),
        "again",
        &bytes(folder.path(), "all.pftrace", &out),
    );
    assert!(everything(&output) == before);
}

#[test]
fn ranks_with_a_file_each_come_back_as_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let root = several_ranks(folder.path(), &late_rank());
    let before = everything(&root);
    for (name, write) in FORMATS {
        let inputs = rank_folders(&root).into_iter().map(|(rank, path)| {
            let name = format!("rank{rank}-{name}");
            bytes(folder.path(), &name, &exported(&path, write))
        });
        let inputs: Vec<PathBuf> = inputs.collect();
        let output = folder.path().join(format!("{name}.gapscope"));
        import(&inputs, &output, &Options::default(), &|_, _| {}).unwrap();
        assert!(everything(&output)[1..] == before[1..], "{name}");
        assert_eq!(whole(&output).manifest.ranks, [0, 1, 7], "{name}");
    }
}

#[test]
fn a_compressed_export_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = file("fixtures/v3.gapscope");
    for (name, write) in FORMATS {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&exported(&path, write)).unwrap();
        let after = import_bytes(
            folder.path(),
            &format!("{name}.gz"),
            &gzip.finish().unwrap(),
        );
        assert_eq!(after.tables, whole(&path).tables, "{name}");
    }
}

/// A recording of CUDA with two launches.
const LAUNCHES: &str = "\
manifest sampling_mode=dispatch start_ns=0 end_ns=1ms
process id=1 pid=7 executable=/usr/bin/python
thread process=1 thread=7 name=main
device id=1 process=1 api=cuda name=\"Some GPU\"
queue id=1 device=1
kernel id=1 process=1 name=gemm
submission id=1 process=1 queue=1 kind=kernel thread=7 start_ns=100us duration_ns=10us function=cudaLaunchKernel
submission id=2 process=1 queue=1 kind=kernel thread=7 start_ns=115us duration_ns=3us function=cuLaunchKernelEx
host_call process=1 thread=7 call=wait-queue-idle start_ns=130us duration_ns=20us function=cudaStreamSynchronize
dispatch submission=1 position=0 queue=1 kernel=1 start_ns=120us duration_ns=5us
dispatch submission=2 position=0 queue=1 kernel=1 start_ns=126us duration_ns=5us
";

/// A recording of CUDA whose stream waits for a function of the host, whose times are known, and then for another program.
const PUT_ON_STREAMS: &str = "\
manifest sampling_mode=dispatch start_ns=0 end_ns=12ms
process id=1 pid=7 executable=/usr/bin/python
thread process=1 thread=7 name=main
device id=1 process=1 api=cuda name=\"Some GPU\"
queue id=1 device=1
queue id=2 device=1
kernel id=1 process=1 name=gemm
submission id=1 process=1 queue=1 kind=kernel thread=7 start_ns=100us duration_ns=5us function=cudaLaunchKernel
submission id=2 process=1 queue=1 kind=host-function thread=7 start_ns=110us duration_ns=5us function=cudaLaunchHostFunc
host_call process=1 call=host-function queue=1 start_ns=1.12ms duration_ns=3ms
submission id=3 process=1 queue=1 kind=kernel thread=7 start_ns=120us duration_ns=5us function=cudaLaunchKernel
submission id=4 process=1 queue=1 kind=wait-external thread=7 start_ns=130us duration_ns=5us function=cudaWaitExternalSemaphoresAsync
submission id=5 process=1 queue=1 kind=kernel thread=7 start_ns=140us duration_ns=5us function=cudaLaunchKernel
submission id=6 process=1 queue=2 kind=prefetch thread=7 start_ns=8ms duration_ns=5us function=cudaMemPrefetchAsync
submission id=7 process=1 queue=2 kind=kernel thread=7 start_ns=8.01ms duration_ns=5us function=cudaLaunchKernel
dispatch submission=1 position=0 queue=1 kernel=1 start_ns=120us duration_ns=1ms
dispatch submission=3 position=0 queue=1 kernel=1 start_ns=4.13ms duration_ns=1ms
dispatch submission=5 position=0 queue=1 kernel=1 start_ns=7ms duration_ns=1ms
dispatch submission=7 position=0 queue=2 kernel=1 start_ns=10ms duration_ns=1ms
";

#[test]
fn of_a_changed_export_the_drawing_is_imported_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path(), "launches", LAUNCHES);
    for (name, write) in FORMATS {
        let mut changed = exported(&path, write);
        let at = memchr::memmem::find(&changed, b"gemm").unwrap();
        changed[at..at + 4].copy_from_slice(b"conv");
        let after = import_bytes(folder.path(), name, &changed);
        let notes = &after.manifest.notes;
        let is_noted = notes
            .iter()
            .any(|note| note.contains("changed after gapscope"));
        assert!(is_noted, "{name}: {notes:?}");
        assert!(format!("{:?}", after.tables).contains("conv"), "{name}");
    }
}

#[test]
fn the_drawing_of_perfetto_alone_keeps_launches_and_calls_with_their_functions() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Trace::from_text(LAUNCHES).unwrap();
    let mut out = Vec::new();
    perfetto::write(&Scene::new(&trace), &mut out).unwrap();
    let after = import_bytes(folder.path(), "own.pftrace", &out).tables;
    let functions: Vec<_> = after.submissions.iter().map(|row| row.function).collect();
    let expected = ["cudaLaunchKernel", "cuLaunchKernelEx"].map(|name| Some(name.into()));
    assert_eq!(functions, expected);
    assert!(after.dispatches.submission.iter().all(|id| id.is_some()));
    let calls: Vec<_> = after
        .host_calls
        .iter()
        .map(|row| (row.call.as_str(), row.function))
        .collect();
    assert_eq!(
        calls,
        [("wait-queue-idle", Some("cudaStreamSynchronize".into()))]
    );
    assert_eq!(after.dispatches.len(), 2);
}

/// The parts of a trace that a drawing keeps: how much work is timed and how much of it has a call, the calls that submitted
/// work, the verdict, the time in which the host was late in percent of that of the trace itself, and the time of each cause in percent of
/// all gaps.
#[derive(Debug)]
struct Drawn {
    dispatches: usize,
    launched: usize,
    transfers: usize,
    launches: usize,
    verdict: String,
    host_late_percent: i64,
    causes: BTreeMap<String, i64>,
}

impl Drawn {
    fn new(trace: &Trace, whole: &Trace) -> Drawn {
        let dispatches = &trace.tables.dispatches;
        let rows = (0..dispatches.len()).filter(|row| {
            dispatches.start_ns.at(*row).is_some() && dispatches.duration_ns.at(*row).is_some()
        });
        let rows: Vec<usize> = rows.collect();
        let launched = rows.iter().filter(|row| {
            dispatches.submission.at(**row).is_some()
                || dispatches.command_buffer.at(**row).is_some()
        });
        let findings =
            |trace| serde_json::to_value(Findings::new(trace, &Analyses::default())).unwrap();
        let causes = |trace| {
            let findings = findings(trace);
            let causes = findings["gaps"].as_array().into_iter().flatten();
            let times = causes.map(|cause| {
                let name = cause["cause"].as_str().unwrap().to_owned();
                (name, cause["total_ns"].as_i64().unwrap_or(0))
            });
            times.fold(BTreeMap::<String, i64>::new(), |mut sums, (name, ns)| {
                *sums.entry(name).or_default() += ns;
                sums
            })
        };
        let late_ns = |trace| causes(trace).get("host-late").copied().unwrap_or(0);
        let whole_late_ns = late_ns(whole).max(1);
        let all_ns = causes(whole).values().sum::<i64>().max(1);
        let percent = causes(trace)
            .into_iter()
            .map(|(name, ns)| (name, (ns * 100 + all_ns / 2) / all_ns));
        Drawn {
            dispatches: rows.len(),
            launched: launched.count(),
            transfers: trace.tables.transfers.len(),
            launches: trace.tables.submissions.len(),
            verdict: findings(trace)["verdict"].to_string(),
            host_late_percent: (late_ns(trace) * 100 + whole_late_ns / 2) / whole_late_ns,
            causes: percent.filter(|(_, percent)| *percent > 0).collect(),
        }
    }
}

impl PartialEq for Drawn {
    /// Compares times of causes to 2 % of all gaps: a drawing has command buffers and graphs as a whole.
    fn eq(&self, other: &Drawn) -> bool {
        let counts = |drawn: &Drawn| {
            (
                drawn.dispatches,
                drawn.launched,
                drawn.transfers,
                drawn.launches,
            )
        };
        let percent = |drawn: &Drawn, cause| drawn.causes.get(cause).copied().unwrap_or(0);
        let causes = self.causes.keys().chain(other.causes.keys());
        counts(self) == counts(other)
            && self.verdict == other.verdict
            && self.host_late_percent == other.host_late_percent
            && causes
                .into_iter()
                .all(|cause| (percent(self, cause) - percent(other, cause)).abs() <= 2)
    }
}

/// The producers whose drawings are compared.
const DRAWN_WHOLE: [&str; 9] = [
    "a recording of CUDA",
    "Kineto, H100",
    "Kineto, 2021",
    "Nsight Systems",
    "rocprofv3",
    "a recording of Vulkan",
    "rocpd",
    "two GPUs",
    "host functions and waits for other programs",
];

/// Draws the traces of many producers, imports the drawings, and returns what became of each that differs.
fn differing(name: &str, drawing: impl Fn(&Scene) -> Vec<u8>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut differ = Vec::new();
    for (producer, path) in traces(folder.path()) {
        if !DRAWN_WHOLE.contains(&producer) {
            continue;
        }
        let before = whole(&path);
        let after = import_bytes(folder.path(), name, &drawing(&Scene::new(&before)));
        let notes = &after.manifest.notes;
        if !notes.iter().any(|note| note.contains("is a drawing")) {
            differ.push(format!("{producer}: the notes are {notes:?}"));
        }
        let (mut before, after) = (Drawn::new(&before, &before), Drawn::new(&after, &before));
        if producer == "a recording of Vulkan" {
            // A dispatch without times leaves its verdict open, and is not drawn.
            assert_eq!(before.verdict, "\"unknown\"");
            before.verdict.clone_from(&after.verdict);
            before.launches = after.launches;
        }
        if before != after {
            differ.push(format!("{producer}:\n  {before:?}\n  {after:?}"));
        }
    }
    differ
}

#[test]
fn drawings_of_chrome_that_another_tool_saved_again_keep_launches_and_verdicts() {
    let differ = differing("saved.json", |scene| {
        let mut drawing = Vec::new();
        chrome::write(scene, &mut drawing).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&drawing).unwrap();
        serde_json::to_vec_pretty(&document["traceEvents"]).unwrap()
    });
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn drawings_of_perfetto_without_the_trace_keep_launches_and_verdicts() {
    let differ = differing("saved.pftrace", |scene| {
        let mut drawing = Vec::new();
        perfetto::write(scene, &mut drawing).unwrap();
        drawing
    });
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

//! Tests files of Nsight Systems and PyTorch's profiler of one run, which are joined: a real pair, the same with planted
//! changes, and files that are not of one run.

use crate::imported::{Rows, fixture, path as label_path};
use flate2::read::GzDecoder;
use gapscope_import::{Error, Imported, Options, import};
use gapscope_trace::manifest::JoinedFile;
use gapscope_trace::{Selection, Trace};
use std::io::Read;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The process and the two threads that launch in the real pair `cpu`, and those in the pair `both`.
const OF_CPU: [&str; 2] = ["520", "557"];
const OF_BOTH: [&str; 2] = ["616", "653"];

/// Returns a file of the real pairs.
fn real(name: &str) -> PathBuf {
    fixture("joined").join(name)
}

/// Returns the unpacked content of a file of the real pairs.
fn content(name: &str) -> Vec<u8> {
    let packed = std::fs::read(real(name)).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&*packed).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Returns the document of a real pair.
fn document(pair: &str) -> String {
    String::from_utf8(content(&format!("{pair}.json.gz"))).unwrap()
}

/// Returns the base of a document, and what the document becomes with another base.
fn with_base(document: &str, change: impl Fn(i64) -> i64) -> String {
    let key = "\"baseTimeNanoseconds\":";
    let (before, rest) = document.split_once(key).unwrap();
    let (base, rest) = rest.split_once(',').unwrap();
    let base = change(base.parse().unwrap());
    format!("{before}{key}{base},{rest}")
}

/// Files in a folder of their own, and what becomes of them.
pub struct Files {
    pub folder: TempDir,
    pub paths: Vec<PathBuf>,
}

impl Files {
    pub fn new(files: &[(&str, &[u8])]) -> Files {
        let folder = tempfile::tempdir().unwrap();
        let paths = files.iter().map(|(name, content)| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        });
        let paths = paths.collect();
        Files { folder, paths }
    }

    pub fn import(&self, options: &Options) -> Result<(Imported, PathBuf), Error> {
        imported(&self.paths, options, self.folder.path())
    }

    /// Returns the trace of the files.
    pub fn trace(&self) -> Trace {
        let (_, output) = self.import(&Options::default()).unwrap();
        trace_of(&output)
    }

    /// Returns why the files are refused.
    pub fn refusal(&self) -> String {
        self.import(&Options::default()).unwrap_err().to_string()
    }
}

pub fn imported(
    paths: &[PathBuf],
    options: &Options,
    folder: &Path,
) -> Result<(Imported, PathBuf), Error> {
    let output = folder.join("out.gapscope");
    let imported = import(paths, &output, options, &|_, _| {});
    let imported = imported.inspect_err(|_| assert!(!output.exists()))?;
    Ok((imported, output))
}

pub fn trace_of(folder: &Path) -> Trace {
    let (trace, diagnostics) = gapscope_trace::read(folder, &Selection::all()).unwrap();
    // The cut export has waits whose calls are not in it.
    for diagnostic in diagnostics {
        let text = format!("{diagnostic:?}");
        assert!(text.contains("column: \"submission\""), "{text}");
    }
    trace
}

/// Imports files and returns their trace.
pub fn trace(paths: &[PathBuf]) -> Trace {
    let folder = tempfile::tempdir().unwrap();
    let (_, output) = imported(paths, &Options::default(), folder.path()).unwrap();
    trace_of(&output)
}

/// Returns the only file that was joined.
pub fn joined(trace: &Trace) -> &JoinedFile {
    let [joined] = &*trace.manifest.joined_files else {
        panic!("{:?}", trace.manifest.joined_files)
    };
    joined
}

/// Returns the number of markers of a domain, by thread.
pub fn markers(trace: &Trace, domain: &str, thread: u32) -> usize {
    let markers = trace.tables.markers.iter();
    let of = markers.filter(|marker| {
        marker.domain.as_deref() == Some(domain) && marker.thread.is_some_and(|own| own.0 == thread)
    });
    of.count()
}

#[test]
fn a_real_pair_is_joined_and_the_kernels_keep_their_times() {
    let pair = [real("cpu.sqlite.gz"), real("cpu.json.gz")];
    let alone = trace(&pair[..1]);
    let trace = trace(&pair);
    let file = joined(&trace);
    assert_eq!((file.launches_inside, file.launches), (462, 462));
    assert_eq!((file.offset_ns, file.own_launches), (0, 0));
    assert!(file.offset_error_ns < 5_000, "{file}");
    assert!(file.next_best_share.unwrap() < 0.7, "{file}");
    assert!(file.to_string().starts_with(
        "cpu.json.gz: 462 of 462 launches lie inside an operator of their thread (clocks 0.0 µs apart, ± "
    ));
    assert!(!file.matched_threads);
    let times = |trace: &Trace| {
        let rows = trace.tables.dispatches.iter();
        rows.map(|row| (row.start_ns, row.duration_ns))
            .collect::<Vec<_>>()
    };
    assert_eq!(times(&trace), times(&alone));
    assert!(!times(&trace).is_empty());
    // Operators and annotations give transfers their labels.
    let mut transfers = trace.tables.transfers.clone();
    transfers.label.clone_from(&alone.tables.transfers.label);
    assert_eq!(transfers, alone.tables.transfers);
    assert_eq!(trace.tables.host_calls, alone.tables.host_calls);
    let span = |trace: &Trace| (trace.manifest.start_ns, trace.manifest.end_ns);
    assert_eq!(span(&trace), span(&alone));
    assert_eq!(trace.manifest.start_unix_ns, alone.manifest.start_unix_ns);
    // Operators with shapes, functions of Python with modules, and labels, on both threads that launch.
    assert!(markers(&trace, "operator", 520) > 100 && markers(&trace, "operator", 557) > 100);
    assert!(markers(&trace, "python", 520) > 1_000);
    let markers = trace.tables.markers.iter();
    let texts: Vec<String> = markers
        .map(|row| label_path(&trace, Some(row.label)))
        .collect();
    assert!(texts.iter().any(|text| text.starts_with("nn.Module: ")));
    let with_shape = trace
        .tables
        .markers
        .iter()
        .filter(|row| row.payload.is_some());
    assert!(with_shape.count() > 100);
    let labelled = trace.tables.dispatches.iter();
    let labels: Vec<String> = labelled.map(|row| label_path(&trace, row.label)).collect();
    assert!(
        labels.iter().any(|label| label.contains("forward")),
        "{labels:?}"
    );
    // Autograd's engine launches the backward pass from a thread of its own, without labels there.
    let submissions = &trace.tables.submissions;
    let of_engine = trace.tables.dispatches.iter().filter(|row| {
        let mut ids = submissions.id.iter();
        let call = ids.position(|id| Some(*id) == row.submission);
        call.is_some_and(|row| {
            submissions
                .thread
                .at(row)
                .is_some_and(|thread| thread.0 == 557)
        })
    });
    let labelled = of_engine.filter(|row| row.label.is_some()).count();
    assert!(labelled > 50, "{labelled}");
}

#[test]
fn order_packing_and_a_folder_make_no_difference() {
    let expected = trace(&[real("cpu.sqlite.gz"), real("cpu.json.gz")]);
    let (json, export) = (content("cpu.json.gz"), content("cpu.sqlite.gz"));
    let files = Files::new(&[
        ("cpu.json", &json),
        ("cpu.sqlite", &export),
        ("run.nsys-rep", b"x"),
        ("notes.txt", b"x"),
    ]);
    let two = &files.paths[..2];
    let reversed = [two[1].clone(), two[0].clone()];
    for paths in [two, &reversed, &[files.folder.path().to_owned()]] {
        let trace = trace(paths);
        assert_eq!(joined(&trace).launches_inside, 462);
        assert_eq!(trace.tables.markers, expected.tables.markers);
        assert_eq!(trace.tables.dispatches, expected.tables.dispatches);
    }
    // A report that only nsys can read gets its advice.
    let mut paths = files.paths.clone();
    paths.remove(1);
    paths.pop();
    let error = imported(&paths, &Options::default(), files.folder.path()).unwrap_err();
    assert!(error.to_string().contains("nsys export"), "{error}");
}

#[test]
fn a_planted_offset_of_the_clocks_is_measured() {
    let export = content("cpu.sqlite.gz");
    for planted_ns in [1_234_567, -3_000_000, 40_000] {
        let json = with_base(&document("cpu"), |base| base + planted_ns);
        let files = Files::new(&[("a.json", json.as_bytes()), ("a.sqlite", &export)]);
        let trace = files.trace();
        let file = joined(&trace);
        assert_eq!((file.launches_inside, file.launches), (462, 462), "{file}");
        assert!(
            (file.offset_ns + planted_ns).abs() <= file.offset_error_ns,
            "{file}"
        );
    }
}

#[test]
fn files_of_two_runs_are_refused() {
    for (json, export, words) in [("cpu", "both", "ends 9.9"), ("both", "cpu", "begins 9.9")] {
        let paths = [
            real(&format!("{json}.json.gz")),
            real(&format!("{export}.sqlite.gz")),
        ];
        let folder = tempfile::tempdir().unwrap();
        let error = imported(&paths, &Options::default(), folder.path()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("are of different times") && text.contains(words),
            "{text}"
        );
    }
    // The same where times and ids are made to agree.
    let start = |pair: &str| {
        let document = document(pair);
        let ts = document.split("\"ts\":").skip(1);
        let ts = ts.map(|rest| {
            rest.split([',', '}'])
                .next()
                .unwrap()
                .parse::<f64>()
                .unwrap()
        });
        ts.fold(f64::MAX, f64::min)
    };
    let apart_ns = ((start("both") - start("cpu")) * 1000.0) as i64;
    let mut json = with_base(&document("cpu"), |base| base + apart_ns);
    for (own, other) in OF_CPU.iter().zip(OF_BOTH) {
        for key in ["pid", "tid"] {
            json = json.replace(&format!("\"{key}\":{own},"), &format!("\"{key}\":{other},"));
        }
    }
    let export = content("both.sqlite.gz");
    let text = Files::new(&[("a.json", json.as_bytes()), ("b.sqlite", &export)]).refusal();
    assert!(
        text.contains("launches lie inside an operator of their thread at the best offset"),
        "{text}"
    );
    // Nor do the threads of a container fit another run.
    let json = json
        .replace("\"tid\":616,", "\"tid\":1,")
        .replace("\"pid\":616,", "\"pid\":1,")
        .replace("\"tid\":653,", "\"tid\":38,");
    let text = Files::new(&[("a.json", json.as_bytes()), ("b.sqlite", &export)]).refusal();
    assert!(
        text.contains("fit the launches of no other process"),
        "{text}"
    );
}

#[test]
fn processes_of_containers_are_matched_by_their_launches() {
    let mut json = document("cpu");
    for (own, inside) in OF_CPU.iter().zip(["1", "38"]) {
        for key in ["pid", "tid"] {
            json = json.replace(
                &format!("\"{key}\":{own},"),
                &format!("\"{key}\":{inside},"),
            );
        }
    }
    let export = content("cpu.sqlite.gz");
    let trace = Files::new(&[("a.json", json.as_bytes()), ("a.sqlite", &export)]).trace();
    let file = joined(&trace);
    assert_eq!((file.launches_inside, file.launches), (462, 462));
    assert!(file.matched_threads && file.to_string().contains("have other numbers"));
    assert!(markers(&trace, "operator", 520) > 100 && markers(&trace, "operator", 557) > 100);
    assert_eq!(trace.manifest.processes.len(), 1);
}

#[test]
fn several_windows_of_the_profiler_are_joined_and_the_same_one_twice_is_not() {
    let document: serde_json::Value = serde_json::from_str(&document("cpu")).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let times: Vec<f64> = events
        .iter()
        .filter(|event| event["cat"] == "cpu_op")
        .map(|event| event["ts"].as_f64().unwrap())
        .collect();
    let (first, last) = times
        .iter()
        .fold((f64::MAX, f64::MIN), |(a, b), ts| (a.min(*ts), b.max(*ts)));
    let middle = (first + last) / 2.0;
    let part = |is_first: bool| {
        let mut part = document.clone();
        let events = part["traceEvents"].as_array_mut().unwrap();
        events.retain(|event| {
            let (from, to) = (
                event["ts"].as_f64().unwrap_or(0.0),
                event["dur"].as_f64().unwrap_or(0.0),
            );
            event["ph"] == "M"
                || if is_first {
                    from + to < middle
                } else {
                    from >= middle
                }
        });
        part.to_string()
    };
    let (before, after) = (part(true), part(false));
    let export = content("cpu.sqlite.gz");
    let files = Files::new(&[
        ("1.json", before.as_bytes()),
        ("2.json", after.as_bytes()),
        ("a.sqlite", &export),
    ]);
    let trace = files.trace();
    let all = &trace.manifest.joined_files;
    assert_eq!(all.len(), 2);
    let inside: u64 = all.iter().map(|file| file.launches_inside).sum();
    assert!((440..=462).contains(&inside), "{all:?}");
    let twice = Files::new(&[
        ("1.json", before.as_bytes()),
        ("2.json", before.as_bytes()),
        ("a.sqlite", &export),
    ]);
    let text = twice.refusal();
    assert!(
        text.contains("1.json and 2.json have operators of the same thread"),
        "{text}"
    );
}

#[test]
fn pairs_of_ranks_find_each_other() {
    let exports = [content("cpu.sqlite.gz"), content("both.sqlite.gz")];
    let with_rank = |pair: &str, rank: u32| {
        let info = format!(
            "{{\"distributedInfo\":{{\"backend\":\"nccl\",\"rank\":{rank},\"world_size\":2}},"
        );
        document(pair).replacen('{', &info, 1)
    };
    let plain = [document("cpu"), document("both")];
    let own = [with_rank("cpu", 1), with_rank("both", 0)];
    for (documents, named, expected) in [
        (&plain, &[][..], [0, 1]),
        (&own, &[], [1, 0]),
        (&plain, &[5, 3], [5, 3]),
        (&plain, &[3, 5, 3, 5], [5, 3]),
    ] {
        let files = Files::new(&[
            ("both.json", documents[1].as_bytes()),
            ("cpu.json", documents[0].as_bytes()),
            ("b.sqlite", &exports[1]),
            ("a.sqlite", &exports[0]),
        ]);
        // The exports stand in the order of the pairs.
        let mut paths = files.paths.clone();
        if named.len() != 4 {
            paths.swap(2, 3);
        }
        let options = Options {
            ranks: named.to_vec(),
            ..Options::default()
        };
        let (imported, output) = imported(&paths, &options, files.folder.path()).unwrap();
        assert_eq!(imported.joined_files.len(), 2);
        for (pair, rank) in ["cpu", "both"].iter().zip(expected) {
            let trace = trace_of(&output.join(format!("rank={rank}")));
            assert_eq!(trace.manifest.rank.unwrap().rank, rank);
            let file = joined(&trace);
            assert_eq!(file.file, format!("{pair}.json"));
            assert_eq!(file.launches_inside, file.launches);
        }
    }
    // A rank without a file of PyTorch's profiler.
    let files = Files::new(&[
        ("cpu.json", plain[0].as_bytes()),
        ("a.sqlite", &exports[0]),
        ("b.sqlite", &exports[1]),
    ]);
    let (_, output) = files.import(&Options::default()).unwrap();
    assert_eq!(joined(&trace_of(&output.join("rank=0"))).launches, 462);
    let other = trace_of(&output.join("rank=1"));
    assert!(other.manifest.joined_files.is_empty());
    let files_of_rank = Files::new(&[
        ("cpu.json", own[0].as_bytes()),
        ("a.sqlite", &exports[0]),
        ("b.sqlite", &exports[1]),
    ]);
    let (_, output) = files_of_rank.import(&Options::default()).unwrap();
    assert_eq!(joined(&trace_of(&output.join("rank=1"))).launches, 462);
    assert!(output.join("rank=0").exists());
    // Ranks that do not fit.
    for (ranks, words) in [
        (&[1][..], "name a rank for each export"),
        (&[1, 1], "rank 1 is named for two exports"),
        (&[0, 1, 0], "are of different times"),
        (&[7, 0, 1], "is of the rank of cpu.json"),
        (&[0, 0, 1], ""),
    ] {
        let options = Options {
            ranks: ranks.to_vec(),
            ..Options::default()
        };
        let error = imported(&files.paths, &options, tempfile::tempdir().unwrap().path());
        let text = error.map(drop).map_err(|error| error.to_string());
        match ranks {
            [0, 0, 1] => assert!(text.is_ok(), "{text:?}"),
            _ => assert!(text.as_ref().unwrap_err().contains(words), "{text:?}"),
        }
    }
}

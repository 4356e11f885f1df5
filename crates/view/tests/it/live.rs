//! Tests a trace that is recorded while it is shown.

use crate::client::{Client, refusal};
use crate::traces::{Folder, assert_has, list, text};
use gapscope_trace::ids::{DeviceId, KernelId, QueueId, SubmissionId};
use gapscope_trace::manifest::{Device, Manifest, Queue};
use gapscope_trace::tables::{Dispatch, Kernel, Submission, Table};
use gapscope_trace::{TraceWriter, manifest};
use gapscope_view::Options;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const ORIGIN_NS: i64 = 5_000_000;

fn manifest(complete: bool) -> Manifest {
    Manifest {
        format_version: manifest::FORMAT_VERSION,
        complete,
        start_ns: ORIGIN_NS,
        end_ns: if complete { ORIGIN_NS + 1_000_000 } else { 0 },
        devices: vec![Device {
            id: DeviceId(1),
            name: "GPU".to_owned(),
            ..Device::default()
        }],
        queues: vec![Queue {
            id: QueueId(1),
            device: DeviceId(1),
            ..Queue::default()
        }],
        ..Manifest::default()
    }
}

/// Serves a trace while it is recorded.
fn live(path: &Path) -> Client {
    let options = Options {
        live: true,
        ..Options::default()
    };
    Client::with(&[path.to_owned()], options)
}

/// Begins a trace with `count` dispatches.
fn begun(folder: &Folder, count: i64) -> (PathBuf, TraceWriter) {
    let path = folder.path().join("live.gapscope");
    let mut writer = TraceWriter::create(&path).unwrap();
    record(&mut writer, 0, count);
    (path, writer)
}

fn record(writer: &mut TraceWriter, from: i64, count: i64) {
    for at in from..from + count {
        let tables = writer.tables_mut();
        if at % 10 == 0 {
            tables.kernels.push(Kernel {
                id: KernelId((at / 10) as u32),
                name: format!("kernel {}", at / 10).into(),
                ..Kernel::default()
            });
        }
        tables.dispatches.push(Dispatch {
            queue: QueueId(1),
            kernel: KernelId((at / 10) as u32),
            start_ns: Some(ORIGIN_NS + at * 100),
            duration_ns: Some(150),
            ..Dispatch::default()
        });
    }
    writer.checkpoint().unwrap();
    writer.write_manifest(&manifest(false)).unwrap();
}

#[test]
fn a_live_trace_grows_and_is_completed() {
    let folder = Folder::new();
    let path = folder.path().join("live.gapscope");
    let mut writer = TraceWriter::create(&path).unwrap();
    writer.write_manifest(&manifest(false)).unwrap();
    let client = live(&path);
    let overview = client.json("overview");
    let origin_ns = ORIGIN_NS.to_string();
    assert_has(
        &overview["traces"][0],
        json!({"live": true, "origin_ns": origin_ns}),
    );

    record(&mut writer, 0, 20);
    let first = client.json("live?generations=1");
    let state = json!([{"generation": 2, "edition": 1, "live": true}]);
    assert_eq!(first["traces"], state);
    let frame = client.frame("t/0/track/q1.work?after=0");
    assert_eq!((frame.rows(), &frame.header["generation"]), (20, &json!(2)));
    assert_eq!(frame.lanes(), [0, 10, 20]);
    let strings = list(&client.json("t/0/strings?after=0")["strings"]).len();
    assert_eq!(client.json("t/0/findings")["dispatch_count"], 20);

    record(&mut writer, 20, 10);
    let second = client.json("live?generations=2");
    assert_eq!(second["traces"][0]["generation"], 3);
    let more = client.frame("t/0/track/q1.work?after=2");
    assert_eq!((more.rows(), more.column("start")[0]), (10, 2000.0));
    let added = client.json(&format!("t/0/strings?after={strings}"));
    assert_eq!(added["strings"], json!(["kernel 2"]));
    assert_eq!(client.frame("t/0/track/q1.work?after=3").rows(), 0);
    assert_eq!(client.frame("t/0/track/q1.work?after=0").rows(), 30);
    let gaps = client.frame("t/0/track/g0.gaps?after=3");
    assert_eq!(gaps.header["whole"], true);

    record(&mut writer, 30, 1);
    writer.finish(&manifest(true)).unwrap();
    let end = client.json("live?generations=3");
    let state = json!([{"generation": 4, "edition": 2, "live": false}]);
    assert_eq!(end["traces"], state);
    let overview = client.json("overview");
    let expected = json!({"edition": 2, "complete": true, "duration_ns": 1_000_000});
    assert_has(&overview["traces"][0], expected);
    assert_eq!(client.frame("t/0/track/q1.work?after=0").rows(), 31);
    assert_eq!(client.json("t/0/findings")["dispatch_count"], 31);
    // Nothing more comes, so the request does not wait.
    let start = std::time::Instant::now();
    assert_eq!(client.json("live?generations=4"), end);
    assert!(start.elapsed() < std::time::Duration::from_secs(8));
}

#[test]
fn what_is_submitted_and_not_timed_yet_has_an_empty_counter() {
    let folder = Folder::new();
    let path = folder.path().join("live.gapscope");
    let mut writer = TraceWriter::create(&path).unwrap();
    writer.tables_mut().submissions.push(Submission {
        id: SubmissionId(1),
        queue: QueueId(1),
        start_ns: ORIGIN_NS + 10,
        duration_ns: 10,
        command_buffers: 1,
        ..Submission::default()
    });
    writer.checkpoint().unwrap();
    writer.write_manifest(&manifest(false)).unwrap();
    let client = live(&path);
    client.json("live?generations=1");
    let overview = client.json("overview");
    let tracks = list(&overview["traces"][0]["tracks"]);
    assert!(tracks.iter().any(|track| track["id"] == "q1.depth"));
    assert_eq!(client.frame("t/0/counter/q1.depth").rows(), 0);
    assert_eq!(client.status("t/0/counter/q2.depth"), 404);
}

/// A folder that is a link to itself is unreadable even for root.
#[test]
#[cfg(unix)]
fn what_cannot_be_read_of_a_growing_trace_is_said() {
    let folder = Folder::new();
    let (path, mut writer) = begun(&folder, 20);
    let client = live(&path);
    let remarks = |client: &Client| {
        let overview = client.json("overview");
        let remarks = list(&overview["traces"][0]["remarks"]).iter();
        remarks
            .map(|remark| text(remark).to_owned())
            .collect::<Vec<_>>()
    };
    let generation = |after: u64| {
        let live = client.json(&format!("live?generations={after}"));
        live["traces"][0]["generation"].as_u64().unwrap()
    };
    assert_eq!(generation(1), 2);
    assert_eq!(remarks(&client), [""; 0]);
    let (parts, away) = (path.join("parts"), path.join("away"));
    std::fs::rename(&parts, &away).unwrap();
    std::os::unix::fs::symlink("parts", &parts).unwrap();
    assert_eq!(generation(2), 3);
    let said = remarks(&client);
    assert!(
        said.len() == 1
            && said[0].starts_with("rows that were recorded later are not all shown: ")
            && said[0].contains("parts cannot be read"),
        "{said:?}"
    );
    std::fs::remove_file(&parts).unwrap();
    std::fs::rename(&away, &parts).unwrap();
    record(&mut writer, 20, 10);
    assert_eq!(generation(3), 4);
    assert_eq!(remarks(&client), said);
    assert_eq!(client.frame("t/0/track/q1.work?after=0").rows(), 30);
}

/// A request with the numbers of one edition gets no rows of another.
#[test]
fn what_is_asked_of_an_earlier_edition_is_refused() {
    let folder = Folder::new();
    let (path, writer) = begun(&folder, 20);
    let client = live(&path);
    client.json("live?generations=1");
    let keys = [
        "t/0/strings?after=0",
        "t/0/track/q1.work?after=2",
        "t/0/track/g0.gaps?after=0",
        "t/0/findings?",
        "t/0/rows/dispatches/3?",
        "t/0/dependencies/dispatches/3?",
        "t/0/range?from=0&to=9",
        "t/0/graph?",
        // There is no such row, and yet the reason is the edition.
        "t/0/rows/dispatches/30?",
    ];
    let status = |key: &str, edition: u64| client.status(&format!("{key}&edition={edition}"));
    for key in &keys[..keys.len() - 1] {
        assert_eq!(status(key, 1), 200, "{key}");
    }
    writer.finish(&manifest(true)).unwrap();
    client.json("live?generations=2");
    for key in keys {
        assert_eq!(status(key, 1), 409, "{key}");
    }
    for key in &keys[..keys.len() - 1] {
        assert_eq!(status(key, 2), 200, "{key}");
        assert_eq!(client.status(key), 200, "{key}");
    }
}

/// An overview may be the first answer after the recording was completed.
#[test]
fn an_overview_has_the_new_edition() {
    let folder = Folder::new();
    let (path, writer) = begun(&folder, 20);
    let client = live(&path);
    assert_eq!(client.json("overview")["traces"][0]["edition"], 1);
    writer.finish(&manifest(true)).unwrap();
    let start = std::time::Instant::now();
    while client.json("overview")["traces"][0]["edition"] != 2 {
        assert!(start.elapsed() < std::time::Duration::from_secs(60));
        std::thread::yield_now();
    }
}

#[test]
fn ranks_appear_while_they_are_recorded() {
    let folder = Folder::new();
    let path = folder.path().join("run.gapscope");
    let whole = TraceWriter::create(&path).unwrap();
    whole.write_manifest(&manifest(false)).unwrap();
    let client = live(&path);
    let alone = client.json("overview");
    assert_eq!(alone["together"], json!(null));
    assert_eq!(list(&alone["traces"]).len(), 1);

    let mut ranks: Vec<TraceWriter> = Vec::new();
    for rank in [1, 0] {
        let mut writer = TraceWriter::create(&path.join(format!("rank={rank}"))).unwrap();
        record(&mut writer, 0, 10 + rank);
        ranks.push(writer);
        // There is one trace more than the request names, whatever its generation.
        let known = vec!["1"; ranks.len()].join(".");
        let states = client.json(&format!("live?generations={known}"));
        assert_eq!(list(&states["traces"]).len(), 1 + ranks.len());
    }
    while client.json("overview")["traces"][2]["generation"] != 2 {
        client.json("live?generations=1.2.1");
    }
    let overview = client.json("overview");
    assert_eq!(overview["together"], "run.gapscope");
    let names = |overview: &Value| -> Vec<String> {
        let traces = list(&overview["traces"]).iter();
        traces
            .map(|trace| text(&trace["name"]).to_owned())
            .collect()
    };
    assert_eq!(names(&overview), ["run.gapscope", "rank 1", "rank 0"]);
    assert_eq!(client.frame("t/1/track/q1.work?after=0").rows(), 11);
    assert_eq!(client.frame("t/2/track/q1.work?after=0").rows(), 10);

    // Of a complete recording the ranks are in order.
    for writer in ranks {
        writer.finish(&manifest(true)).unwrap();
    }
    whole.finish(&manifest(true)).unwrap();
    let client = Client::new(&[path]);
    let overview = client.json("overview");
    assert_eq!(names(&overview), ["run.gapscope", "rank 0", "rank 1"]);
    assert_eq!(overview["together"], "run.gapscope");
}

/// The folders of ranks were copied from the recording, without the trace that has no rank.
#[test]
fn ranks_without_a_recording_around_them_are_together() {
    let folder = Folder::new();
    for rank in 0..2 {
        let writer = TraceWriter::create(&folder.path().join(format!("rank={rank}"))).unwrap();
        writer.finish(&manifest(true)).unwrap();
    }
    let client = Client::new(&[folder.path().to_owned()]);
    let overview = client.json("overview");
    let name = folder.path().file_name().unwrap().to_str();
    assert_eq!(overview["together"].as_str(), name);
    assert_eq!(overview["traces"][1]["name"], "rank 1");
    assert_eq!(list(&overview["traces"]).len(), 2);
}

#[test]
fn ranks_that_were_recorded_apart_are_not_put_on_one_clock() {
    let folder = Folder::new();
    for rank in 0..2 {
        let writer = TraceWriter::create(&folder.path().join(format!("rank={rank}"))).unwrap();
        let mut manifest = manifest(true);
        manifest.start_ns += rank;
        writer.finish(&manifest).unwrap();
    }
    let refused = refusal(&[folder.path().to_owned()], Options::default());
    for part in ["different clocks", "rank=0"] {
        assert!(refused.contains(part), "{refused}");
    }
}

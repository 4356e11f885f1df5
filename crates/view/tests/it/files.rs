//! Tests the page as one file.

use crate::client::{Client, Frame};
use crate::traces::{Folder, SMALL, assert_has, list, tracks, write_file};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use gapscope_view::{Error, SavedView};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Unpacks the answers of a file as the page does.
pub fn answers(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let html = fs::read_to_string(path).unwrap();
    let (_, rest) = html
        .split_once("<script type=\"text/plain\" id=\"gapscope-data\">")
        .unwrap();
    let (data, _) = rest.split_once("</script>").unwrap();
    let packed = STANDARD.decode(data).unwrap();
    let mut bytes = Vec::new();
    let mut unpacked = GzDecoder::new(packed.as_slice());
    unpacked.read_to_end(&mut bytes).unwrap();
    let container = Frame::from_bytes(bytes);
    let places = container.header["answers"].as_object().unwrap();
    let place = |place: &Value, at: usize| place[at].as_u64().unwrap() as usize;
    let answer = |at: &Value| {
        assert_eq!(place(at, 0) % 8, 0);
        container.data()[place(at, 0)..][..place(at, 1)].to_vec()
    };
    places
        .iter()
        .map(|(key, at)| (key.clone(), answer(at)))
        .collect()
}

#[test]
fn a_small_trace_is_whole_and_says_what_the_server_says() {
    let folder = Folder::new();
    let trace = folder.trace("small", SMALL);
    let file = folder.path().join("small.html");
    let written = write_file(&trace, &file).unwrap();
    assert_eq!(written.folded, None);
    assert_eq!(written.bytes, fs::metadata(&file).unwrap().len());
    let html = fs::read_to_string(&file).unwrap();
    assert!(html.contains("Content-Security-Policy") && html.contains("default-src 'none'"));
    let answers = answers(&file);
    let client = Client::new(&[trace]);
    for (key, bytes) in &answers {
        if key == "overview" {
            let (mut packed, mut asked): (Value, Value) =
                (serde_json::from_slice(bytes).unwrap(), client.json(key));
            assert!(
                packed["file"]["folded"].is_null() && packed["file"]["made_unix_ns"].is_string()
            );
            packed["file"] = Value::Null;
            asked["file"] = Value::Null;
            for key in ["state", "first", "opened", "keeps", "page_rows"] {
                for overview in [&mut packed, &mut asked] {
                    overview.as_object_mut().unwrap().remove(key);
                }
            }
            assert_eq!(packed, asked);
        } else if let Some((table, block)) = key
            .strip_prefix("t/0/rows/")
            .and_then(|rest| rest.split_once('/'))
        {
            assert_eq!(block, "0");
            let rows: Vec<Value> = serde_json::from_slice(bytes).unwrap();
            for (row, packed) in rows.iter().enumerate() {
                assert_eq!(*packed, client.json(&format!("t/0/rows/{table}/{row}")));
            }
        } else if key.contains("/track/") || key.contains("/counter/") {
            assert_eq!(*bytes, client.key(key).body, "{key}");
        } else {
            let mut packed: Value = serde_json::from_slice(bytes).unwrap();
            if key == "t/0/notes" {
                // Notes in a file cannot be changed.
                assert!(packed["unwritable"].take().is_string());
            }
            assert_eq!(packed, client.json(key), "{key}");
        }
    }
    for key in [
        "overview",
        "t/0/strings",
        "t/0/findings",
        "t/0/graph",
        "t/0/notes",
        "t/0/track/q1.work",
        "t/0/track/q1.work/label",
        "t/0/track/g0.gaps",
        "t/0/counter/g0.memory",
        "t/0/source/0",
        "t/0/rows/dispatches/0",
        "t/0/rows/gaps/0",
    ] {
        assert!(answers.contains_key(key), "{key}");
    }
}

#[test]
fn a_large_trace_is_folded_and_says_so() {
    let folder = Folder::new();
    let trace = folder.synthetic(250_000);
    let file = folder.path().join("large.html");
    let written = write_file(&trace, &file).unwrap();
    let sentence = written.folded.unwrap();
    assert!(sentence.contains("gapscope view"), "{sentence}");
    assert!(written.bytes < 10 << 20, "{} bytes", written.bytes);
    let answers = answers(&file);
    let overview: Value = serde_json::from_slice(&answers["overview"]).unwrap();
    assert_eq!(overview["file"]["folded"], sentence);
    let work = tracks(&overview, "work");
    assert!(!work.is_empty() && work.iter().all(|track| track["busy"].is_string()));
    assert!(!answers.contains_key("t/0/track/q1.work"));
    assert!(!answers.keys().any(|key| key.starts_with("t/0/rows/")));
    let findings: Value = serde_json::from_slice(&answers["t/0/findings"]).unwrap();
    assert_eq!(findings["dispatch_count"], 250_000);
    let slices = &findings["activity"]["rows"][0]["slices"];
    assert_eq!(list(slices).len(), 1024);
}

#[test]
fn what_was_changed_since_is_said_to_who_writes_the_file() {
    let folder = Folder::new();
    let hash = "0123456789abcdef0123456789abcdef";
    let text = SMALL.replace("source=ab12", &format!("source={hash}"));
    let trace = folder.trace("small", &text);
    fs::create_dir_all(trace.join("sources")).unwrap();
    fs::write(trace.join(format!("sources/{hash}.ptx")), ".version 8.0").unwrap();
    let manifest = fs::read_to_string(trace.join("trace.json")).unwrap();
    fs::write(trace.join("trace.json"), manifest + "\n").unwrap();
    let file = folder.path().join("small.html");
    let written = write_file(&trace, &file).unwrap();
    let said = "was changed or damaged after it was written";
    assert_eq!(written.changed.len(), 2, "{:?}", written.changed);
    assert!(written.changed[0].starts_with(&format!("sources/{hash}.ptx {said}")));
    assert!(written.changed[1].contains(&format!("trace.json {said}")));
    let source: Value = serde_json::from_slice(&answers(&file)["t/0/source/0"]).unwrap();
    assert_eq!(source["missing"], written.changed[0]);
}

#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new();
    let trace = folder.trace("small", SMALL);
    let file = folder.path().join("precious.html");
    fs::write(&file, "precious").unwrap();
    let error = write_file(&trace, &file).unwrap_err();
    assert!(matches!(error, Error::Exists(_)), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    let nowhere = folder.path().join("no/such/folder/out.html");
    let error = write_file(&trace, &nowhere).unwrap_err();
    assert!(matches!(error, Error::Write { .. }), "{error}");
    let link = folder.path().join("link.html");
    std::os::unix::fs::symlink(folder.path().join("target.html"), &link).unwrap();
    assert!(write_file(&trace, &link).is_err());
}

/// A trace with two labels beside each other, each set twice.
const LABELLED: &str = "
    manifest sampling_mode=dispatch end_ns=1ms
    process id=1 pid=1
    device id=1 process=1 uuid=aa
    queue id=1 device=1
    label id=1 text=eager
    label id=2 text=compiled
    kernel id=1 process=1 name=sin
    command_buffer id=1 process=1 queue=1 start_ns=0us duration_ns=10us dispatches=1 label=1
    command_buffer id=2 process=1 queue=1 start_ns=20us duration_ns=5us dispatches=1 label=2
    dispatch command_buffer=1 queue=1 kernel=1 start_ns=0us duration_ns=10us label=1
    dispatch command_buffer=2 queue=1 kernel=1 start_ns=20us duration_ns=5us label=2
    marker process=1 scope=command-buffer label=1 queue=1 command_buffer=1 start_ns=0us duration_ns=10us
    marker process=1 scope=command-buffer label=2 queue=1 command_buffer=2 start_ns=20us duration_ns=5us";

#[test]
fn two_traces_are_in_one_file_with_their_comparison_and_the_state() {
    let folder = Folder::new();
    let paths = [
        folder.trace("before", LABELLED),
        folder.trace("after", LABELLED),
    ];
    let file = folder.path().join("both.html");
    let saved = SavedView::new(&paths, &[("p", "compare"), ("q", "a b")]);
    let written = gapscope_view::write_file(&saved, &file, None).unwrap();
    assert_eq!(written.folded, None);
    let answers = answers(&file);
    let client = Client::new(&paths);
    for key in [
        "compare?a=0&b=1",
        "compare?a=1&b=0",
        "compare?a=0&a_label=eager&b=0&b_label=compiled",
        "compare?a=0&a_label=eager&b=1&b_label=eager",
        "t/1/findings",
        "t/1/track/q1.work",
    ] {
        assert_eq!(answers[key], client.key(key).body, "{key}");
    }
    let overview: Value = serde_json::from_slice(&answers["overview"]).unwrap();
    assert_eq!(list(&overview["traces"]).len(), 2);
    assert_eq!(overview["state"], "p=compare&q=a+b");
    assert!(!answers.contains_key("ranks"));
}

#[test]
fn all_ranks_are_in_one_file_and_share_its_room() {
    let folder = Folder::new();
    let run = folder.path().join("run.gapscope");
    fs::create_dir(&run).unwrap();
    for rank in 0..2 {
        let command = format!("command=demo rank.rank={rank} rank.world_size=2");
        let text = SMALL.replace("command=demo", &command);
        folder.trace(&format!("run.gapscope/rank={rank}"), &text);
        let made = run.join(format!("rank={rank}.gapscope"));
        fs::rename(made, run.join(format!("rank={rank}"))).unwrap();
    }
    let file = folder.path().join("run.html");
    let saved =
        SavedView::open(&[folder.path().join("run.gapscope#first=rank+1&p=ranks")]).unwrap();
    let written = gapscope_view::write_file(&saved, &file, None).unwrap();
    assert_eq!(written.folded, None);
    let answers = answers(&file);
    let client = Client::new(&[run]);
    for key in ["ranks", "t/0/findings", "t/1/findings", "compare?a=0&b=1"] {
        assert_eq!(answers[key], client.key(key).body, "{key}");
    }
    let ranks: Value = serde_json::from_slice(&answers["ranks"]).unwrap();
    assert_eq!(ranks["traces"], json!([0, 1]));
    let overview: Value = serde_json::from_slice(&answers["overview"]).unwrap();
    assert_has(
        &overview,
        json!({"together": "run.gapscope", "first": "rank 1", "state": "p=ranks"}),
    );
}

//! Tests that damaged and malicious traces do no harm.

use crate::client::{Client, refusal};
use crate::traces::{Folder, SMALL, list, text, write_file};
use gapscope_trace::{Manifest, TraceWriter};
use gapscope_view::Options;
use serde_json::Value;
use std::fs;

const SCRIPT: &str = "</script><script>alert(1)</script><img src=x onerror=alert(1)>";

#[test]
fn a_torn_trace_is_shown_as_far_as_it_goes() {
    let folder = Folder::new();
    let path = folder.synthetic(2_000);
    let table = path.join("host_calls.parquet");
    let bytes = fs::read(&table).unwrap();
    fs::write(&table, &bytes[..bytes.len() / 2]).unwrap();
    fs::remove_file(path.join("markers.parquet")).unwrap();
    let client = Client::new(&[path]);
    let overview = client.json("overview");
    let remarks = list(&overview["traces"][0]["remarks"]);
    for file in ["host_calls.parquet", "markers.parquet"] {
        let names = |remark: &Value| text(remark).contains(file);
        assert!(remarks.iter().any(names), "{remarks:?}");
    }
    assert!(client.frame("t/0/track/q1.work").rows() > 0);
    assert!(client.json("t/0/findings")["verdict"].is_string());
}

#[test]
fn columns_that_are_damaged_inside_do_not_end_the_server() {
    let folder = Folder::new();
    for at in [0.2, 0.5, 0.8] {
        let path = folder.path().join(format!("damaged-{at}.gapscope"));
        let whole = folder.path().join("synthetic-500.gapscope");
        if !whole.exists() {
            folder.synthetic(500);
        }
        copy(&whole, &path);
        let table = path.join("dispatches.parquet");
        let mut bytes = fs::read(&table).unwrap();
        let from = (bytes.len() as f64 * at) as usize;
        let to = (from + 64).min(bytes.len());
        bytes[from..to].fill(0xff);
        fs::write(&table, bytes).unwrap();
        let client = Client::new(&[path]);
        for key in [
            "overview",
            "t/0/strings",
            "t/0/findings",
            "t/0/graph",
            "t/0/range?from=0&to=1000000",
        ] {
            client.json(key);
        }
        client.key("t/0/track/q1.work");
        client.key("t/0/rows/dispatches/0");
        client.json("overview");
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn what_is_not_a_trace_is_said_in_one_sentence() {
    let folder = Folder::new();
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let unfinished = folder.path().join("unfinished.gapscope");
    let manifest = Manifest {
        format_version: 1,
        ..Manifest::default()
    };
    let writer = TraceWriter::create(&unfinished).unwrap();
    writer.write_manifest(&manifest).unwrap();
    for (path, says) in [
        (folder.path().join("nothing"), "nothing"),
        (empty, "not a gapscope trace"),
        (unfinished, "gapscope recover"),
    ] {
        let text = refusal(&[path], Options::default());
        assert!(text.contains(says) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn names_of_ten_megabytes_are_cut_in_lists_and_whole_in_details() {
    let folder = Folder::new();
    let name = "x".repeat(10_000_000);
    let trace = format!("device id=1 name={name}\nqueue id=1 device=1 name={name}\nthread process=1 thread=1 name={name}
        label id=1 text={name}\nlabel id=2 text={name} parent=1\nkernel id=1 name={name}
        host_call process=1 thread=1 call=submit start_ns=0 duration_ns=1
        dispatch queue=1 kernel=1 start_ns=1 duration_ns=5 label=2");
    let client = Client::new(&[folder.trace("long", &trace)]);
    for key in [
        "t/0/strings",
        "t/0/findings",
        "t/0/graph",
        "t/0/range?from=0&to=9",
    ] {
        let length = client.key(key).body.len();
        assert!(length < 200_000, "{key}: {length} bytes");
    }
    // The overview has the manifest unchanged, except for its names.
    let length = client.key("overview").body.len();
    assert!(length < 200_000, "{length} bytes");
    let row = client.json("t/0/rows/dispatches/0");
    assert_eq!(text(&row["title"]).chars().count(), 240);
    assert_eq!(row["kernel"]["name"], row["title"]);
    let mut fields = list(&row["kernel"]["fields"]).iter();
    let name = fields.find(|field| field["name"] == "name").unwrap();
    assert_eq!(text(&name["value"]).len(), 10_000_000);
}

#[test]
fn html_in_texts_stays_text() {
    let folder = Folder::new();
    let text = SMALL
        .replace("name=produce", &format!("name=\"{SCRIPT}\""))
        .replace("text=step", &format!("text=\"{SCRIPT}\""));
    let path = folder.trace("html", &text);
    let client = Client::new(std::slice::from_ref(&path));
    for key in [
        "overview",
        "t/0/strings",
        "t/0/findings",
        "t/0/rows/dispatches/0",
        "t/0/rows/labels/0",
    ] {
        let response = client.key(key);
        for header in ["content-type: application/json", "nosniff"] {
            assert!(response.head.contains(header), "{key}");
        }
    }
    assert_eq!(client.json("t/0/rows/dispatches/0")["title"], SCRIPT);
    let file = folder.path().join("html.html");
    write_file(&path, &file).unwrap();
    let html = fs::read_to_string(&file).unwrap();
    assert!(!html.contains("alert(1)"), "the trace's texts are packed");
    assert_eq!(html.matches("</html>").count(), 1);
}

#[test]
fn impossible_numbers_are_no_times() {
    let folder = Folder::new();
    let trace = format!(
        "manifest start_ns={} end_ns={}
        device id=1\nqueue id=1 device=1\nqueue id=4294967295 device=7
        kernel id=1 name=k
        label id=1 text=a parent=1
        dispatch queue=1 kernel=1 start_ns={} duration_ns=5
        dispatch queue=1 kernel=9 start_ns=5 duration_ns=-5
        dispatch queue=4294967295 kernel=1 start_ns=10 duration_ns={} label=1 command_buffer=77 bindings=5
        transfer queue=9 kind=copy start_ns=1 duration_ns=2 source=8 bytes={}
        host_call process=9 thread=9 call=submit start_ns={} duration_ns=1
        marker process=1 scope=thread label=9 start_ns=0 duration_ns=0
        memory process=1 device=9 at_ns={} event=free allocation=1 bytes=1
        submission id=1 process=1 queue=1 thread=1 start_ns=100 duration_ns={}",
        i64::MIN, i64::MAX, i64::MAX, i64::MAX, u64::MAX, i64::MIN, i64::MIN, i64::MIN
    );
    let client = Client::new(&[folder.trace("odd", &trace)]);
    let overview = client.json("overview");
    for track in list(&overview["traces"][0]["tracks"]) {
        let id = text(&track["id"]);
        for key in [
            format!("t/0/track/{id}"),
            format!("t/0/counter/{id}"),
            format!("t/0/track/{id}/label"),
        ] {
            let status = client.status(&key);
            assert!(status == 200 || status == 404, "{key}: {status}");
        }
    }
    for key in ["t/0/findings", "t/0/graph", "t/0/range?from=-9e18&to=9e18"] {
        client.json(key);
    }
    for table in [
        "dispatches",
        "transfers",
        "host_calls",
        "markers",
        "submissions",
        "labels",
        "memory",
    ] {
        client.json(&format!("t/0/rows/{table}/0"));
    }
    client.json("t/0/dependencies/dispatches/1");
}

#[test]
fn wrong_parameters_are_refused() {
    let (_folder, client) = Client::small();
    for key in [
        "t/0/range",
        "t/0/range?from=1",
        "t/0/range?from=x&to=2",
        "t/0/range?from=NaN&to=2",
        "t/0/range?from=inf&to=inf",
        "t/0/range?from=1e300&to=2e300",
        "t/0/range?from=5&to=4",
        "t/0/graph?from=5",
        "t/0/strings?after=-1",
        "t/0/strings?after=1e99",
        "t/0/instances",
        "live?generations=1.x",
        "t/0/strings?edition=x",
        "compare?a=x",
        "compare?a=0&a_from=3",
    ] {
        let response = client.key(key);
        assert_eq!(response.status, 400, "{key}");
        let answer: Value = serde_json::from_slice(&response.body).unwrap();
        assert!(text(&answer["error"]).ends_with('.'), "{key}: {answer}");
    }
    let strings = client.json("t/0/strings?after=18446744073709551615");
    assert_eq!(list(&strings["strings"]).len(), 0);
    for key in [
        "t/0/track/q7.work",
        "t/0/track/x",
        "t/0/counter/q1.work",
        "t/0/rows/nothing/0",
        "t/0/rows/gaps/9999",
        "t/0/source/9",
        "t/0",
        "t",
        "",
        "unknown",
    ] {
        assert_eq!(client.status(key), 404, "{key}");
    }
}

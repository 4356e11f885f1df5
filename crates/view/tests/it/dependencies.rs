//! Tests dependencies of a capture and of a part of a trace.

use crate::client::{Client, refusal};
use crate::traces::{Folder, SMALL, assert_has, list, text, write_file};
use gapscope_view::{Options, SavedView};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Eight submissions of `fusion`: four with a chain of dispatches, and four with one dispatch that does the same.
fn capture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fusion.gapcapture")
}

#[test]
fn a_capture_says_what_it_is() {
    let client = Client::new(&[capture()]);
    let overview = client.json("overview");
    assert_eq!(overview["traces"], json!([]));
    let capture = &overview["capture"];
    assert_has(
        capture,
        json!({"name": "fusion.gapcapture", "window": "submissions 0..8", "end": "complete"}),
    );
    assert_has(
        capture,
        json!({"submission_count": 8, "dispatch_count": 20, "transfer_count": 6, "kernel_count": 5}),
    );
    let runs = list(&capture["kernels"])
        .iter()
        .map(|kernel| kernel["dispatch_count"].as_u64().unwrap());
    assert_eq!(runs.sum::<u64>(), 20);
    assert_eq!(client.status("t/0/findings"), 404);
}

#[test]
fn dependencies_of_a_capture_are_those_of_its_kernels() {
    let client = Client::new(&[capture()]);
    let found = client.json("t/0/dependencies");
    let nodes = list(&found["nodes"]);
    assert_eq!((nodes.len(), &found["node_count"]), (26, &json!(26)));
    let sin = nodes.iter().find(|node| node["name"] == "sin").unwrap();
    assert_has(
        sin,
        json!({"read_bytes": "16384", "written_bytes": "16384", "exact": true}),
    );
    let id = sin["id"].as_u64().unwrap();
    let edge = list(&found["edges"]).iter().find(|edge| {
        edge["from"] == json!(id) && edge["to"] == json!(id + 1) && edge["kind"] == "RAW"
    });
    let edge = edge.expect("the next reads what it wrote");
    assert_has(edge, json!({"bytes": "16384", "ordered_by": "barrier"}));
    assert_has(&found, json!({"hazard_count": 0, "unknown": null}));
    let needless = list(&found["barriers"])
        .iter()
        .filter(|barrier| barrier["need"] == "needless");
    assert_eq!(json!(needless.count()), found["needless_count"]);
    assert_eq!(list(&found["submissions"]).len(), 8);
}

#[test]
fn a_part_has_the_edges_inside_of_it_and_counts_the_others() {
    let client = Client::new(&[capture()]);
    let whole = client.json("t/0/dependencies");
    let part = client.json("t/0/dependencies?first=10");
    assert_eq!(part["first"], 10);
    assert_eq!(list(&part["nodes"]).len(), 16);
    assert_eq!(part["nodes"][0]["id"], 10);
    let inside =
        |edge: &&Value| edge["from"].as_u64() >= Some(10) && edge["to"].as_u64() >= Some(10);
    let crosses =
        |edge: &&Value| edge["from"].as_u64() < Some(10) && edge["to"].as_u64() >= Some(10);
    let edges = list(&whole["edges"]);
    assert_eq!(
        list(&part["edges"]).len(),
        edges.iter().filter(inside).count()
    );
    assert_eq!(part["edges_outside"], edges.iter().filter(crosses).count());
    assert_eq!(
        list(&client.json("t/0/dependencies?first=99999")["nodes"]).len(),
        0
    );
}

#[test]
fn a_capture_that_was_cut_off_is_shown_as_far_as_it_goes() {
    let folder = Folder::new();
    let path = folder.path().join("cut.gapcapture");
    std::fs::create_dir(&path).unwrap();
    let records = std::fs::read_to_string(capture().join("capture.jsonl")).unwrap();
    let cut = &records[..records.len() * 3 / 4];
    std::fs::write(path.join("capture.jsonl"), cut).unwrap();
    std::fs::copy(capture().join("content.bin"), path.join("content.bin")).unwrap();
    let client = Client::new(&[path]);
    assert!(!list(&client.json("overview")["capture"]["remarks"]).is_empty());
    let nodes = list(&client.json("t/0/dependencies")["nodes"]).len();
    assert!((1..26).contains(&nodes), "{nodes}");
}

#[test]
fn a_capture_is_shown_alone() {
    let folder = Folder::new();
    let trace = folder.trace("small", SMALL);
    let both = refusal(&[trace, capture()], Options::default());
    assert!(both.contains("name no other beside it"), "{both}");
    let none = folder.path().join("none.gapcapture");
    assert!(!refusal(&[none], Options::default()).is_empty());
}

#[test]
fn dependencies_of_a_trace_are_bounded_by_what_is_bound() {
    let (_folder, client) = Client::small();
    let found = client.json("t/0/dependencies");
    let nodes = list(&found["nodes"]);
    let places: Vec<_> = nodes
        .iter()
        .map(|node| (text(&node["place"]["table"]), &node["place"]["row"]))
        .collect();
    assert_eq!(
        places,
        [
            ("dispatches", &json!(0)),
            ("dispatches", &json!(1)),
            ("transfers", &json!(0)),
            ("dispatches", &json!(2))
        ]
    );
    assert_has(
        &nodes[0],
        json!({"name": "produce", "labels": ["step", "matmul"]}),
    );
    assert_eq!(nodes[1]["exact"], false);
    assert!(text(&nodes[1]["accesses"][0]["reason"]).contains("bound"));
    let edges: Vec<_> = list(&found["edges"])
        .iter()
        .map(|e| (&e["from"], &e["to"], text(&e["kind"])))
        .collect();
    assert_eq!(
        edges,
        [
            (&json!(0), &json!(1), "RAW"),
            (&json!(0), &json!(2), "RAW"),
            (&json!(0), &json!(3), "RAW"),
        ]
    );
    assert!(text(&found["unknown"]).contains("no memory barriers"));
    let submissions: Vec<_> = list(&found["submissions"])
        .iter()
        .map(|one| text(&one["name"]))
        .collect();
    assert_eq!(submissions, ["1", "2"]);
}

#[test]
fn a_range_of_a_trace_has_what_starts_in_it() {
    let (_folder, client) = Client::small();
    let found = client.json("t/0/dependencies?from=1400&to=4000");
    let rows: Vec<_> = list(&found["nodes"])
        .iter()
        .map(|node| text(&node["place"]["table"]))
        .collect();
    assert_eq!(rows, ["dispatches", "transfers"]);
    assert!(client.json("t/0/dependencies?from=8000&to=9000")["missing"].is_string());
    assert_eq!(client.status("t/0/dependencies?from=9&to=1"), 400);
}

/// Dispatches each of which reads what the one before wrote.
fn chain(dispatches: usize) -> String {
    let mut text = "
        device id=1 api=vulkan
        queue id=1 device=1
        buffer id=1 device=1 bytes=64 name=x
        buffer id=2 device=1 bytes=64 name=y
        binding id=1 binding=0 buffer=1 bytes=64 access=read
        binding id=1 binding=1 buffer=2 bytes=64 access=write
        binding id=2 binding=0 buffer=2 bytes=64 access=read
        binding id=2 binding=1 buffer=1 bytes=64 access=write
        kernel id=1 name=step"
        .to_owned();
    for number in 0..dispatches {
        let (start, set) = (number * 10, 1 + number % 2);
        text.push_str(&format!(
            "\n dispatch queue=1 kernel=1 start_ns={start} duration_ns=5 bindings={set}"
        ));
    }
    text
}

#[test]
fn a_large_trace_is_shown_in_parts_and_around_a_row() {
    let folder = Folder::new();
    let client = Client::new(&[folder.trace("chain", &chain(4_500))]);
    let sizes = |found: &Value| {
        let nodes = list(&found["nodes"]).len();
        (
            found["first"].as_u64().unwrap(),
            nodes,
            found["node_count"].as_u64().unwrap(),
        )
    };
    let found = client.json("t/0/dependencies");
    assert_eq!(sizes(&found), (0, 2_000, 4_500));
    let last = client.json("t/0/dependencies?first=4000");
    assert_eq!(sizes(&last), (4_000, 500, 4_500));
    assert_eq!(last["nodes"][0]["place"]["row"], 4_000);
    let raw = list(&last["edges"])
        .iter()
        .filter(|edge| edge["kind"] == "RAW");
    assert_eq!(raw.count(), 499);
    let around = client.json("t/0/dependencies?around=dispatches.3000");
    assert_eq!(sizes(&around), (2_800, 400, 4_500));
    for key in [
        "around=dispatches.4500",
        "around=markers.0",
        "around=x",
        "around=dispatches.-1",
    ] {
        let status = client.status(&format!("t/0/dependencies?{key}"));
        assert_eq!(status, 404, "{key}");
    }
}

#[test]
fn of_too_many_edges_the_smallest_are_left_out_and_counted() {
    // Each dispatch reads what all before it wrote: 8 bytes of each, and 800 of the first.
    let mut text = "
        device id=1 api=vulkan
        queue id=1 device=1
        buffer id=1 device=1 bytes=4096 name=x
        kernel id=1 name=step"
        .to_owned();
    for number in 0..200 {
        let (at, bytes) = match number {
            0 => (0, 800),
            number => (792 + number * 8, 8),
        };
        let (id, start) = (number + 1, number * 10);
        text.push_str(&format!(
            "\n binding id={id} binding=0 buffer=1 bytes={at} access=read
             binding id={id} binding=1 buffer=1 offset_bytes={at} bytes={bytes} access=write
             dispatch queue=1 kernel=1 start_ns={start} duration_ns=5 bindings={id}"
        ));
    }
    let folder = Folder::new();
    let client = Client::new(&[folder.trace("dense", &text)]);
    let found = client.json("t/0/dependencies");
    let all = 200 * 199 / 2;
    assert_eq!(found["edge_count"], all);
    let edges = list(&found["edges"]);
    assert_eq!(
        (edges.len(), &found["edges_left_out"]),
        (10_000, &json!(all - 10_000))
    );
    let large = edges.iter().filter(|edge| edge["bytes"] == "800").count();
    assert_eq!(large, 199);
    let on_path = |at: u64| {
        edges
            .iter()
            .any(|e| e["from"] == json!(at) && e["to"] == json!(at + 1))
    };
    assert!((0..199).all(on_path));
}

#[test]
fn a_capture_is_a_file_too() {
    let folder = Folder::new();
    let file = folder.path().join("capture.html");
    let written = write_file(&capture(), &file).unwrap();
    assert_eq!(written.folded, None);
    let page = std::fs::read_to_string(&file).unwrap();
    assert!(page.contains("id=\"gapscope-data\""));
    let both = SavedView::new(&[capture(), folder.trace("t", SMALL)], &[]);
    let error = gapscope_view::write_file(&both, &folder.path().join("both.html"), None);
    assert!(error.unwrap_err().to_string().contains("shown by itself"));
    assert!(!folder.path().join("both.html").exists());
}

//! Tests the details of rows.

use crate::client::Client;
use crate::traces::{assert_has, list, text};
use serde_json::json;

#[test]
fn a_row_has_its_fields_and_what_it_belongs_to() {
    let (_folder, client) = Client::small();
    let row = client.json("t/0/rows/dispatches/0");
    assert_has(
        &row,
        json!({"title": "produce", "start_ns": 1000, "duration_ns": 1000}),
    );
    assert_has(
        &row,
        json!({"track": "q1.work", "queue": "queue 0.0", "device": "Fast GPU"}),
    );
    assert_eq!(row["label"]["path"], json!(["step", "matmul"]));
    assert_eq!(row["kernel"]["has_source"], true);
    let field = |name: &str| {
        let mut fields = list(&row["fields"]).iter();
        fields.find(|field| field["name"] == name).unwrap()["value"].as_str()
    };
    assert_eq!((field("groups_x"), field("groups_y")), (Some("4"), None));
    assert_eq!(row["bindings"][0]["buffer"], "x");
    let call = json!({"relation": "submitted-by", "table": "host_calls", "row": 0, "track": "p1.t4712.calls"});
    assert_has(&row["links"][0], call);
    // A dispatch without a label has that of its command buffer.
    let other = client.json("t/0/rows/dispatches/1");
    assert_eq!(other["label"]["path"], json!(["step"]));
    let call = client.json("t/0/rows/host_calls/2");
    let mut links = list(&call["links"]).iter();
    let run = links.find(|link| link["relation"] == "runs").unwrap();
    assert_has(
        run,
        json!({"table": "dispatches", "row": 2, "start_ns": 6000}),
    );
    for table in [
        "transfers",
        "command_buffers",
        "submissions",
        "markers",
        "kernels",
        "labels",
        "buffers",
        "memory",
    ] {
        let row = client.json(&format!("t/0/rows/{table}/0"));
        assert!(!text(&row["title"]).is_empty(), "{table}");
        assert_eq!(client.status(&format!("t/0/rows/{table}/99")), 404);
    }
}

#[test]
fn dependencies_follow_the_buffers() {
    let (folder, client) = Client::small();
    let reader = client.json("t/0/dependencies/dispatches/1");
    let before = &reader["predecessors"][0];
    assert_has(
        before,
        json!({"row": 0, "kind": "read-after-write", "buffers": ["x"], "bytes": "64"}),
    );
    assert_has(before, json!({"track": "q1.work", "start_ns": 1000}));
    let graph = client.json("t/0/graph");
    assert_eq!(graph["nodes"][0]["name"], "produce");
    assert!(list(&graph["edges"]).len() >= 2);
    let nothing = client.json("t/0/graph?from=9000&to=9500");
    assert!(nothing["missing"].is_string());
    let bare = Client::new(&[folder.synthetic(100)]);
    let graph = bare.json("t/0/graph");
    assert!(graph["missing"].is_string() || graph["nodes"].is_array());
}

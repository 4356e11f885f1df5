//! Tests the details of rows.

use crate::client::Client;
use crate::traces::{Folder, SMALL};
use serde_json::{Value, json};

#[test]
fn a_row_has_its_fields_and_what_it_belongs_to() {
    let folder = Folder::new();
    let client = Client::of(&[folder.trace("small", SMALL)]);
    let row = client.json("t/0/rows/dispatches/0");
    assert_eq!(
        (&row["title"], &row["start_ns"], &row["duration_ns"]),
        (&json!("produce"), &json!(1000), &json!(1000))
    );
    assert_eq!(
        (&row["track"], &row["queue"], &row["device"]),
        (&json!("q1.work"), &json!("queue 0.0"), &json!("Fast GPU"))
    );
    assert_eq!(row["label"]["path"], json!(["step", "matmul"]));
    assert_eq!(row["kernel"]["has_source"], true);
    let field = |name: &str| {
        let fields = row["fields"].as_array().unwrap();
        fields.iter().find(|field| field["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!(
        (field("groups_x"), field("groups_y")),
        (json!("4"), Value::Null)
    );
    assert_eq!(row["bindings"][0]["buffer"], "x");
    let call = &row["links"][0];
    assert_eq!(
        (
            &call["relation"],
            &call["table"],
            &call["row"],
            &call["track"]
        ),
        (
            &json!("submitted-by"),
            &json!("host_calls"),
            &json!(0),
            &json!("p1.t4712.calls")
        )
    );
    // A dispatch without a label has that of its command buffer.
    assert_eq!(
        client.json("t/0/rows/dispatches/1")["label"]["path"],
        json!(["step"])
    );
    let call = client.json("t/0/rows/host_calls/2");
    let runs: Vec<_> = call["links"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|link| link["relation"] == "runs")
        .collect();
    assert_eq!(
        (&runs[0]["table"], &runs[0]["row"], &runs[0]["start_ns"]),
        (&json!("dispatches"), &json!(2), &json!(6000))
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
        assert!(
            !client.json(&format!("t/0/rows/{table}/0"))["title"]
                .as_str()
                .unwrap()
                .is_empty(),
            "{table}"
        );
        assert_eq!(
            client.key(&format!("t/0/rows/{table}/99")).status,
            404,
            "{table}"
        );
    }
}

#[test]
fn dependencies_follow_the_buffers() {
    let folder = Folder::new();
    let client = Client::of(&[folder.trace("small", SMALL)]);
    let reader = client.json("t/0/dependencies/dispatches/1");
    let before = &reader["predecessors"][0];
    assert_eq!(
        (
            &before["row"],
            &before["kind"],
            &before["buffers"],
            &before["bytes"]
        ),
        (
            &json!(0),
            &json!("read-after-write"),
            &json!(["x"]),
            &json!("64")
        )
    );
    assert_eq!(
        (&before["track"], &before["start_ns"]),
        (&json!("q1.work"), &json!(1000))
    );
    let graph = client.json("t/0/graph");
    assert_eq!(graph["nodes"][0]["name"], "produce");
    assert!(graph["edges"].as_array().unwrap().len() >= 2);
    let nothing = client.json("t/0/graph?from=9000&to=9500");
    assert!(nothing["missing"].is_string());
    let bare = Client::of(&[folder.synthetic(100)]);
    let graph = bare.json("t/0/graph");
    assert!(graph["missing"].is_string() || graph["nodes"].is_array());
}

//! Tests that preferences are shared by servers, and that only the page writes them.

use crate::client::Client;
use crate::traces::{Folder, SMALL};
use gapscope_view::Options;
use serde_json::{Value, json};

fn put(client: &Client, key: &str, body: &str, headers: &str) -> u16 {
    client.send("PUT", key, headers, body).status
}

const JSON: &str = "Content-Type: application/json\r\n";

#[test]
fn an_arrangement_is_there_at_every_port_and_wherever_the_trace_lies() {
    let folder = Folder::new();
    let trace = folder.trace("small", SMALL);
    let state = folder.path().join("state");
    let with = |trace| {
        let options = Options {
            state: Some(state.clone()),
            ..Options::default()
        };
        Client::with(&[trace], options)
    };
    let client = with(trace);
    let overview = client.json("overview");
    assert_eq!(overview["keeps"], true);
    assert_eq!(overview["traces"][0]["arranged"], Value::Null);
    let arranged = json!({"tracks": "pq1.work", "order": "g1,g0"});
    let sent = arranged.to_string();
    assert_eq!(put(&client, "t/0/arrangement", &sent, JSON), 200);
    assert_eq!(put(&client, "queries", "\"select 1\"", JSON), 200);
    drop(client);
    let moved = folder.trace("moved", SMALL);
    let client = with(moved);
    assert_eq!(client.json("overview")["traces"][0]["arranged"], arranged);
    assert_eq!(client.json("queries")["queries"], json!(["select 1"]));
    assert_eq!(put(&client, "t/0/arrangement", "{}", JSON), 200);
    let overview = client.json("overview");
    assert_eq!(overview["traces"][0]["arranged"], Value::Null);
    assert_eq!(put(&client, "t/9/arrangement", "{}", JSON), 404);
    for wrong in ["5", "{\"tracks\": 5}", "{\"other\": \"x\"}", "no"] {
        assert_eq!(put(&client, "t/0/arrangement", wrong, JSON), 400, "{wrong}");
    }
    // A form of another page cannot send JSON, and its scripts send their origin.
    let foreign = format!("{JSON}Origin: https://evil.example\r\n");
    for headers in ["", "Content-Type: text/plain\r\n", &foreign] {
        for key in ["t/0/arrangement", "queries"] {
            assert_eq!(put(&client, key, "{}", headers), 405, "{key} {headers}");
        }
    }
}

#[test]
fn without_a_folder_the_browser_keeps_it() {
    let (_folder, client) = Client::small();
    assert_eq!(client.json("overview")["keeps"], json!(false));
    assert_eq!(put(&client, "t/0/arrangement", "{}", JSON), 403);
}

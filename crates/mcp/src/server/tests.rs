//! Tests which folders the tools may use, by what the client says of its roots.

use super::Server;
use gapscope_companion::{DEFAULT_LONGEST_S, Mcp};
use rmcp::ServiceExt;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Calls `report` on a trace that does not exist, as a client with these capabilities that answers the question for its
/// roots with `roots`, and returns the error's sentence.
fn refusal(version: &str, capabilities: &Value, roots: &Value) -> String {
    let options = Mcp {
        root: Vec::new(),
        read_only: true,
        longest: DEFAULT_LONGEST_S,
        most: 40_000,
    };
    let server = Server::new(options).unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": {"name": "report", "arguments": {"trace": "none.gapscope"}}});
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        tokio::spawn(async move { server.serve(ours).await.unwrap().waiting().await });
        let (read, mut write) = tokio::io::split(theirs);
        for message in [initialize, initialized, call] {
            let line = format!("{message}\n");
            write.write_all(line.as_bytes()).await.unwrap();
        }
        let mut lines = BufReader::new(read).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["method"] == "roots/list" {
                let mut answer = roots.clone();
                answer["jsonrpc"] = "2.0".into();
                answer["id"] = message["id"].clone();
                let line = format!("{answer}\n");
                write.write_all(line.as_bytes()).await.unwrap();
            } else if message["id"] == 2 {
                assert_eq!(message["result"]["isError"], true, "{message}");
                let text = &message["result"]["content"][0]["text"];
                return text.as_str().unwrap().to_owned();
            }
        }
        panic!("the server ended without an answer");
    })
}

#[test]
fn a_client_that_has_roots_and_names_none_gets_no_access() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    let named = |address: &str| json!({"result": {"roots": [{"uri": address}]}});
    let has_roots = json!({"roots": {}});
    let none = "the client names no folder that may be used";
    let in_folder = format!("none.gapscope does not exist in {}", folder.display());
    let in_here = format!("none.gapscope does not exist in {}", here.display());
    let failed = json!({"error": {"code": -32603, "message": "no"}});
    let empty = json!({"result": {"roots": []}});
    for (capabilities, roots, beginning) in [
        (
            &has_roots,
            &named(&format!("file://{}", folder.display())),
            in_folder.as_str(),
        ),
        (&has_roots, &empty, none),
        (&has_roots, &named("https://example.com/a"), none),
        (
            &has_roots,
            &named("file:///none/of/these"),
            "no root is a folder",
        ),
        (&has_roots, &failed, "the client did not name its roots"),
        (&json!({}), &empty, in_here.as_str()),
    ] {
        let sentence = refusal("2025-06-18", capabilities, roots);
        assert!(sentence.starts_with(beginning), "{roots}: {sentence}");
    }
}
